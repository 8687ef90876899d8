"""Unsnooze incidents whose time has come.

Earlier wake-ups are decided by `domain.snoozing`; the end of a suppression wakes by `suppression`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from incidents.domain.incident import commands as c
from incidents.incident.models import IncidentRow
from incidents.incident.repository import record
from ingest.queries import Context

ACTOR = "system:incidents"
AT_ONCE = 250
"""Incidents in one transaction: hundreds may sleep until the same moment, the end of planned work."""


def due_snoozes(now: datetime, but: Collection[str] = ()) -> list[str]:
    """Those that are due, at most AT_ONCE of them. The rows are the timers: a sweep that was missed is made up by the
    next."""
    due = IncidentRow.objects.filter(state="snoozed", snoozed_until__lte=now).exclude(pk__in=list(but))
    return [str(pk) for pk in due.order_by("number").values_list("pk", flat=True)[:AT_ONCE]]


def wake(ids: Sequence[str], now: datetime) -> int:
    """How many of them were still asleep."""
    return sum(bool(record(id_, c.Unsnooze(), Context(ACTOR), now).events) for id_ in ids)
