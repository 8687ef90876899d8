"""Alerts that a person takes out of an incident: an event on each of the two incidents, in one transaction.

The reactor is kept out meanwhile, as for a merge. Locks are taken in one order: the reactor, the key, the row.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime

from django.db import transaction

from incidents.domain.incident import commands as c
from incidents.domain.incident.alerts import IncidentReference, Member
from incidents.domain.incident.split import MOST
from incidents.domain.incident.state import Incident
from incidents.domain.values import CommandRefusedError, InvalidValueError
from incidents.incident.merge import merge
from incidents.incident.models import IncidentRow, MemberAlert, TimelineEntry
from incidents.incident.repository import (
    CommandResult,
    IncidentNotFoundError,
    keep_reactor_out,
    loaded,
    lock_key,
    next_number,
    record,
    record_opening,
)
from incidents.incident.telemetry_horizon import known_until
from ingest.queries import Alert, Context, alerts, now_utc, ordered_id

ALL_OVER = "the remaining alerts are resolved"


def check_alerts(given: object) -> tuple[str, ...]:
    """Ids of alerts, each once. Raises InvalidValueError."""
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):
        raise InvalidValueError("alerts", "must be a list of alert ids")
    if not given:
        raise InvalidValueError("alerts", "choose at least one alert")
    if len(given) > MOST:
        raise InvalidValueError("alerts", f"must be at most {MOST}; for larger groups, add a route")
    ids: dict[str, None] = {}
    for place, one in enumerate(given):
        try:
            ids.setdefault(str(uuid.UUID(one)) if isinstance(one, str) else "", None)
        except ValueError:
            raise InvalidValueError("alerts", f"number {place + 1} is not an alert id") from None
    if "" in ids:
        raise InvalidValueError("alerts", "must be a list of alert ids")
    return tuple(ids)


@transaction.atomic
def split_off(
    incident_id: str, chosen: Sequence[str], title: str, reason: str, context: Context
) -> CommandResult:
    """Result recorded on the new incident. Raises InvalidValueError for alerts that are none of the incident's,
    CommandRefusedError where it is resolved or nothing would be left of it."""
    keep_reactor_out()
    row = IncidentRow.objects.filter(pk=incident_id).first()
    if row is None:
        raise IncidentNotFoundError(f"no incident {incident_id}")
    lock_key(row.dedup_key)
    source = loaded(IncidentRow.objects.select_for_update().get(pk=incident_id))
    members = MemberAlert.objects.filter(incident__pk=incident_id, alert__in=chosen).order_by("pk")
    rests = {str(one.alert): one.resolved for one in members}
    if strangers := [one for one in chosen if one not in rests]:
        raise InvalidValueError("alerts", f"{strangers[0]} is not an alert of #{source.number}")
    opening = _opening(source, rests, title, reason)
    target = IncidentReference(opening.id, opening.number, opening.title or opening.members[0].title)
    firing = sum(not resolved for resolved in rests.values())
    record(incident_id, c.SplitAlertsOff(tuple(rests), firing, target, opening.reason), context)
    opened = record_opening(opening, Context(context.actor, context.cause, context.trace))
    if source.firing and source.firing <= firing:
        over = c.AutoResolve(ALL_OVER, known_until(source.region, datetime.now(UTC)))
        record(incident_id, over, Context("system:incidents", context.cause, context.trace))
    return opened


def _opening(source: Incident, rests: dict[str, bool], title: str, reason: str) -> c.OpenSplitOff:
    known = {one.id: one for one in alerts(list(rests))}
    entries = [known[id_] for id_ in rests if id_ in known]
    return c.OpenSplitOff(
        str(ordered_id(now_utc())),
        next_number(),
        source,
        tuple(Member(one.id, one.alert.title, one.alert.severity) for one in entries),
        tuple(id_ for id_, resolved in rests.items() if resolved),
        entries[0].alert.component,
        _in_common(entries),
        title,
        reason,
    )


def _in_common(content: Sequence[Alert]) -> dict[str, str]:
    shared = dict(content[0].alert.labels)
    for one in content[1:]:
        shared = {name: value for name, value in shared.items() if one.alert.labels.get(name) == value}
    return shared


@transaction.atomic
def put_back(incident_id: str, context: Context) -> CommandResult:
    """Merges an incident that was split off into the one that its alerts came from. Raises CommandRefusedError for
    any other."""
    entry = TimelineEntry.objects.filter(incident__pk=incident_id, type="incident.split_from").first()
    if entry is None:
        number = IncidentRow.objects.filter(pk=incident_id).values_list("number", flat=True).first()
        raise CommandRefusedError(f"#{number} was not split off from another incident")
    return merge(incident_id, str(entry.body["source"]["id"]), "", context)
