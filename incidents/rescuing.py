"""Tickets of a team that is there no more: none may wait where nobody looks, so the default team gets them.

A team with tickets that are not resolved is not removed. What was resolved or merged when it was removed may open again
under it: an alert that fires anew, a merge that is taken back.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef

from incidents.catalog.models import Team
from incidents.domain import commands as c
from incidents.projections.models import IncidentRow
from incidents.projections.store import record
from ingest.commands import retrying
from ingest.queries import Context

ACTOR = "system:incidents"
AT_ONCE = 100


def rescue(now: datetime) -> int:
    """Hand over to the default team what is with none; how many tickets."""
    there = Team.objects.filter(slug=OuterRef("team"))
    astray = IncidentRow.objects.exclude(state="resolved").exclude(Exists(there)).order_by("number")
    ids = list(astray.values_list("pk", flat=True)[:AT_ONCE])
    return sum(retrying(partial(_hand_over, id_, now)) for id_ in ids)


@transaction.atomic
def _hand_over(incident: UUID, now: datetime) -> int:
    row = IncidentRow.objects.select_for_update().get(pk=incident)
    if row.state == "resolved" or Team.objects.filter(slug=row.team).exists():
        return 0
    default = Team.objects.get(is_default=True).slug
    why = f"its team {row.team} was removed, and {default} gets what nobody else does"
    record(str(row.pk), c.HandOver(default, why), Context(ACTOR), now)
    return 1
