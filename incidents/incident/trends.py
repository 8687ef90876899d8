"""Reports on incidents by the hour, for rows of a list: one statement for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from django.db import connection

HOURS: Final = 24
MOST_ENTRIES: Final = 200
"""Timeline entries of one incident that are read, the latest ones: an entry counts like events in a row."""
_REPORTS: Final = (
    "incident.opened",
    "incident.alerts_joined",
    "incident.symptoms_joined",
    "incident.report_joined",
    "incident.finding_joined",
    "incident.finding_recorded",
)
_SELECT: Final = """
    SELECT wanted.id::text, entry.at, entry.last_at, entry.count
    FROM unnest(%s::uuid[]) AS wanted(id) CROSS JOIN LATERAL (
        SELECT at, last_at, count, type FROM incident_timeline
        WHERE incident_id = wanted.id ORDER BY version DESC LIMIT %s
    ) AS entry
    WHERE entry.type = ANY(%s) AND entry.last_at > %s AND entry.at <= %s
"""


def trends_of(ids: Sequence[str], end: datetime) -> Mapping[str, tuple[float, ...]]:
    """By id of the incident the reports (alerts and findings that joined) of each of the HOURS hours before `end`,
    oldest first. An entry that counts several in a row is spread evenly over its span. Ids without any are left out.
    """
    if not ids:
        return {}
    begin = end - timedelta(hours=HOURS)
    with connection.cursor() as cursor:
        cursor.execute(_SELECT, (list(ids), MOST_ENTRIES, list(_REPORTS), begin, end))
        rows = cursor.fetchall()
    found: dict[str, list[float]] = {}
    for id_, first, last, count in rows:
        hours = found.setdefault(id_, [0.0] * HOURS)
        for place, amount in _spread(first, last, count, begin):
            hours[place] += amount
    return {id_: tuple(hours) for id_, hours in found.items() if any(hours)}


def _spread(first: datetime, last: datetime, count: int, begin: datetime) -> list[tuple[int, float]]:
    """Share of `count` events between two moments for each hour from `begin` on."""
    start, stop = ((moment - begin).total_seconds() / 3600 for moment in (first, last))
    if stop - start < 1e-9:
        return [(min(int(start), HOURS - 1), float(count))] if start >= 0 else []
    per_hour = count / (stop - start)
    shares = ((place, min(stop, place + 1) - max(start, place)) for place in range(HOURS))
    return [(place, per_hour * share) for place, share in shares if share > 0]
