"""Incidents that are held open for alerts that flap, and are over once no alert has fired for a while."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from django.db.models import QuerySet

from incidents.domain.incident import commands as c
from incidents.domain.incident.grouping import SETTLED
from incidents.incident.models import IncidentRow
from incidents.incident.repository import record
from incidents.incident.telemetry_horizon import known_until
from ingest.queries import Context

ACTOR = "system:incidents"


def quiet_flapping(now: datetime, but: Collection[str] = (), most: int = 250) -> list[str]:
    """Those that have been quiet since."""
    tickets = _quiet(now).exclude(pk__in=list(but)).order_by("number")
    return [str(pk) for pk in tickets.values_list("pk", flat=True)[:most]]


def auto_resolve(ids: Sequence[str], now: datetime) -> int:
    """Resolve those of the incidents that are quiet still; how many."""
    why = f"no alert has fired for {int(SETTLED.total_seconds() // 60)} minutes"
    over = c.AutoResolve(why, known_until(None, now))
    quiet = _quiet(now).filter(pk__in=ids).order_by("number").values_list("pk", flat=True)
    return sum(bool(record(str(pk), over, Context(ACTOR)).events) for pk in quiet)


def _quiet(now: datetime) -> QuerySet[IncidentRow]:
    held = IncidentRow.objects.filter(flapping=True, firing=0, alert_at__lt=now - SETTLED)
    return held.exclude(state="resolved")
