"""Incidents of a team that is there no more: none may wait where nobody looks, so the default team gets them.

A team with incidents that are not resolved is not removed. What was resolved or merged when it was removed
may open again under it: an alert that fires anew, a merge that is taken back.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from django.db.models import Exists, OuterRef, QuerySet

from incidents.domain.incident import commands as c
from incidents.incident.models import IncidentRow
from incidents.incident.repository import record
from incidents.teams.models import Team
from ingest.queries import Context

ACTOR = "system:incidents"
AT_ONCE = 100


def orphaned(now: datetime, but: Collection[str] = ()) -> list[str]:
    """Incidents that are with no team."""
    del now
    ids = _orphaned_rows().exclude(pk__in=list(but)).order_by("number").values_list("pk", flat=True)
    return [str(pk) for pk in ids[:AT_ONCE]]


def reassign_orphans(ids: Sequence[str], now: datetime) -> int:
    """Hand over to the default team those of them that are with none still; how many."""
    rows = list(_orphaned_rows().select_for_update(of=("self",)).filter(pk__in=ids).order_by("number"))
    default = Team.objects.get(is_default=True).slug
    for row in rows:
        why = f"team {row.team} was removed; {default} is the default team"
        record(str(row.pk), c.HandOver(default, why), Context(ACTOR), now)
    return len(rows)


def _orphaned_rows() -> QuerySet[IncidentRow]:
    there = Team.objects.filter(slug=OuterRef("team"))
    return IncidentRow.objects.exclude(state="resolved").exclude(Exists(there))
