"""Incidents of a list by team, component or cause: the groups with their counts, and the first of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.db import connection
from django.db.models import F, Q, Window
from django.db.models.expressions import RawSQL
from django.db.models.functions import RowNumber

from incidents.incident.models import IncidentRow
from incidents.incident.view import View, view_of
from incidents.search.filters import ORDERS, Filter, grouped_sql
from incidents.search.pagination import filtered
from ingest.api.pagination import in_order

MOST_GROUPS: Final = 30
"""Groups of one page."""
MOST_OF_A_GROUP: Final = 5
"""Incidents that are listed of each; the others are a list of their own."""


@dataclass(frozen=True, slots=True)
class GroupedIncidents:
    """`name` is None where incidents have no such field; `failing` of the `count` incidents have firing alerts or a
    failure that continues, `critical` are critical; `incidents` are the first in the order of the list."""

    name: str | None
    count: int
    failing: int
    critical: int
    incidents: tuple[View, ...]


def grouped(
    filters: Sequence[Filter], grouping: str, order: str, start: int = 0
) -> tuple[list[GroupedIncidents], int]:
    """At most MOST_GROUPS groups from `start` on, and how many there are in all: most severe first, then the largest.

    Two statements, however many incidents there are.
    """
    named = filtered(filters).annotate(_group=RawSQL(grouped_sql(grouping), ()))
    sql, values = (
        named.order_by()
        .values_list("_group", "severity_rank", "quiet", "state", "firing", "last_blamed")
        .query.sql_with_params()
    )
    with connection.cursor() as cursor:
        cursor.execute(
            "WITH listed(name, rank, quiet, state, firing, blamed) AS (" + sql + ")"
            " SELECT name, count(*), count(*) FILTER (WHERE NOT quiet AND state <> 'resolved'"
            " AND (firing > 0 OR blamed IS NOT NULL)),"
            " count(*) FILTER (WHERE rank = 0), count(*) OVER () FROM listed GROUP BY name"
            " ORDER BY min(rank), count(*) DESC, name NULLS LAST LIMIT %s OFFSET %s",
            (*values, MOST_GROUPS, start),
        )
        found = cursor.fetchall()
    names = [name for name, *_ in found]
    ordering = [F(name).desc() if falls else F(name).asc() for name, falls in ORDERS[order]]
    wanted = Q(_group__in=[one for one in names if one is not None])
    shown = named.filter(wanted | Q(_group__isnull=True) if None in names else wanted)
    placed = shown.annotate(_place=Window(RowNumber(), [F("_group")], ordering))
    ids = dict(placed.filter(_place__lte=MOST_OF_A_GROUP).order_by().values_list("pk", "_group"))
    members: dict[str | None, list[View]] = {}
    for row in in_order(IncidentRow.objects.filter(pk__in=list(ids)), ORDERS[order]):
        members.setdefault(ids[row.pk], []).append(view_of(row))
    total = found[0][4] if found else 0
    return [
        GroupedIncidents(name, count, failing, critical, tuple(members.get(name, ())))
        for name, count, failing, critical, _ in found
    ], total
