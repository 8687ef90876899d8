"""Snoozed tickets whose time has come, or whose planned work or silence was called off.

What wakes them before is decided where it
happens (`domain.snoozing`)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from incidents.domain import commands as c
from incidents.domain.alerting import reported_from
from incidents.projections.models import IncidentRow, MemberAlert
from incidents.projections.store import record, record_on
from incidents.suppression import Covers
from ingest.queries import Context, firing_alerts

ACTOR = "system:incidents"
AT_ONCE = 250
"""Tickets in one transaction: hundreds may sleep until the same moment, the end of planned work."""


def oversleeping(now: datetime, but: Collection[str] = ()) -> list[str]:
    """Those that are due, at most AT_ONCE of them. The rows are the timers: a sweep that was missed is made up by the
    next."""
    due = IncidentRow.objects.filter(state="snoozed", snoozed_until__lte=now).exclude(pk__in=list(but))
    return [str(pk) for pk in due.order_by("number").values_list("pk", flat=True)[:AT_ONCE]]


def wake(ids: Sequence[str], now: datetime) -> int:
    """How many of them were still asleep."""
    return sum(bool(record(id_, c.WakeWhenDue(), Context(ACTOR), now).events) for id_ in ids)


def called_off(now: datetime, but: Collection[str] = ()) -> list[str]:
    """Incidents that sleep for planned work or a silence which was called off, ended early, or is about something else
    by now.

    One that sleeps until a window or silence ends that is in force is taken to be of it: thousands may sleep for one.
    """
    covers = Covers(now)
    spans = [one.span for one in covers.windows]
    spans += [span for one in covers.silences if (span := one.span(now)) is not None]
    asleep = IncidentRow.objects.filter(state="snoozed", snoozed_by=ACTOR, snoozed_until__gt=now)
    rest = asleep.exclude(snoozed_until__in=[one.ends_at for one in spans])
    rest = rest.exclude(pk__in=list(but)).order_by("number")
    ids, found = list(rest.values_list("pk", flat=True)), list[str]()
    for start in range(0, len(ids), AT_ONCE):
        found += _uncovered(ids[start : start + AT_ONCE], covers)
        if len(found) >= AT_ONCE:
            break
    return found[:AT_ONCE]


def _uncovered(incidents: Sequence[UUID], covers: Covers) -> list[str]:
    """Those of them in which something fires that nobody works on."""
    members = MemberAlert.objects.filter(incident__in=incidents, resting=False)
    home = {str(alert): str(pk) for pk, alert in members.values_list("incident_id", "alert")}
    alerts = [reported_from(event.body) for event in firing_alerts(list(home))]
    awake = {home[alert.alert] for alert in alerts if covers.of_alert(alert) is None}
    return [str(pk) for pk in incidents if str(pk) in awake]


def rouse(ids: Sequence[str], now: datetime) -> int:
    """As if they had not been put to sleep; how many of them still were."""
    asleep = IncidentRow.objects.filter(pk__in=ids, state="snoozed", snoozed_by=ACTOR).order_by("number")
    rows = list(asleep.select_for_update())
    for row in rows:
        record_on(row, c.Undo("snooze"), Context(ACTOR), now)
    return len(rows)
