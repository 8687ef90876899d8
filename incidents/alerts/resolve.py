"""Alerts that still fire while a person resolves their incident are over, too: said of some hundred in a transaction.

A storm's incident has 20,000 of them, and posts of these very alerts wait for the transaction that settles them. Which
ones they are is written down where the resolution is heard; a sweep takes them up from there, so that a process that is
killed loses none and settles none twice.

An incident that is opened again goes on with what still fires of it; what was settled comes back when it fires anew.

An alert of which its sender said something new since the resolution, or that fires in an open incident by now
(which may be this one, reopened), is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from uuid import UUID

from django.db import connection, transaction

from incidents.domain.incident import commands as c
from incidents.domain.incident.alerts import Member
from incidents.incident.models import IncidentRow, MemberAlert, PendingAlertResolution
from incidents.incident.repository import CommandResult, record
from ingest.commands import retrying, settle_alerts
from ingest.queries import Context, Event, Position, firing_alerts

ACTOR = "system:incidents"
AT_ONCE = 250
"""Alerts in one transaction: a tenth of a second of work."""
MEMBERS = 500
"""In one event of an incident."""


def begin(resolved: Event) -> None:
    """Have all that fires in an incident settled, the first of it at once. In the transaction of the follower."""
    incident = UUID(resolved.stream.removeprefix("incident/"))
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO incident_pending_alert_resolution (alert, incident, cause, position, resolved_at)"
            " SELECT alert, incident_id, %s, %s, %s FROM incident_alert WHERE incident_id = %s AND NOT resolved"
            " ON CONFLICT (alert) DO UPDATE SET incident = excluded.incident, cause = excluded.cause,"
            " position = excluded.position, resolved_at = excluded.resolved_at",
            (resolved.id, str(resolved.position), resolved.recorded_at, incident),
        )
    _resolve_part(incident, resolved.id)


def sweep(_: datetime) -> int:
    """Settle the next ones; how many were looked at."""
    return retrying(_next_part)


@transaction.atomic
def _next_part() -> int:
    first = PendingAlertResolution.objects.order_by("resolved_at", "incident", "alert").first()
    return 0 if first is None else _resolve_part(first.incident, first.cause)


def _resolve_part(incident: UUID, cause: str) -> int:
    # Nobody reopens it meanwhile: what fires in an incident that is open must not be settled.
    list(IncidentRow.objects.select_for_update().filter(pk=incident).values_list("pk"))
    waiting = PendingAlertResolution.objects.filter(incident=incident, cause=cause).order_by("alert")
    part = list(waiting.select_for_update(skip_locked=True)[:AT_ONCE])
    if not part:
        return 0
    ids = [str(one.alert) for one in part]
    members = MemberAlert.objects.filter(alert__in=ids, resolved=False).exclude(incident__state="resolved")
    fires_on = {str(alert) for alert in members.values_list("alert", flat=True)}
    settle_alerts(
        [id_ for id_ in ids if id_ not in fires_on],
        part[0].resolved_at,
        Position.parse(part[0].position),
        Context(ACTOR, cause),
    )
    PendingAlertResolution.objects.filter(alert__in=ids).delete()
    return len(part)


def resume(reopened: CommandResult) -> CommandResult:
    """Members of an incident that is open again: which of them fire is known from the alerts alone, since an
    incident that is resolved does not hear of them. In the transaction that reopened it."""
    if not reopened.events:
        return reopened
    incident, last = reopened.incident.id, reopened.events[-1]
    members = MemberAlert.objects.filter(incident__pk=incident, resolved=False).order_by("pk")
    ids = [str(alert) for alert in members.values_list("alert", flat=True)]
    firing = {event.body["alert"]: event.body for event in firing_alerts(ids)}
    context = Context(ACTOR, last.id, last.trace)
    for over in _parts([id_ for id_ in ids if id_ not in firing], MEMBERS):
        reopened = _and(reopened, record(incident, c.ResolveAlerts(over), context))
    for on in _parts([id_ for id_ in ids if id_ in firing], MEMBERS):
        again = tuple(Member(id_, firing[id_]["title"], firing[id_]["severity"], again=True) for id_ in on)
        reopened = _and(reopened, record(incident, c.JoinAlerts(again, "they fire on"), context))
    return reopened


def _parts(ids: Sequence[str], most: int) -> Iterator[tuple[str, ...]]:
    return (tuple(ids[start : start + most]) for start in range(0, len(ids), most))


def _and(before: CommandResult, then: CommandResult) -> CommandResult:
    return CommandResult(then.incident, then.position, before.events + then.events)
