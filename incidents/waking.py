"""Snoozed tickets whose time has come. What wakes them before is decided where it happens (`domain.snoozing`)."""

from __future__ import annotations

from datetime import datetime

from incidents.domain import commands as c
from incidents.projections.models import IncidentRow
from incidents.projections.store import record
from ingest.queries import Context

ACTOR = "system:incidents"
AT_ONCE = 250
"""Tickets in one transaction: hundreds may sleep until the same moment, the end of planned work."""


def wake(now: datetime) -> int:
    """Wake those that are due, at most AT_ONCE of them; how many. The rows are the timers: a sweep that was missed is
    made up by the next."""
    due = IncidentRow.objects.filter(state="snoozed", snoozed_until__lte=now).order_by("number")
    ids = list(due.values_list("pk", flat=True)[:AT_ONCE])
    return sum(bool(record(str(pk), c.WakeWhenDue(), Context(ACTOR), now).events) for pk in ids)
