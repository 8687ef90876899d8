"""Statistics of unresolved incidents: words for a search, and whether a storm is on.

All of it reads the few rows that are not resolved, however many lie behind them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db import connection
from django.db.models import QuerySet

from incidents.domain.incident.alerts import SPAN, Storm, Storming, storm_of
from incidents.incident.models import IncidentRow
from incidents.incident.projection import state_of
from incidents.incident.view import View

SUGGESTED = 8
LATEST = 1000
"""Resolved incidents among which a title is looked for."""


def storm(now: datetime) -> Storm | None:
    """The storm that goes on now, or None. `now` with an offset."""
    gathering = _unresolved().filter(dedup_key__startswith="storm:").order_by("-alerts", "number")
    rows = gathering.values_list("number", "title", "alerts", "firing")[:SUGGESTED]
    return storm_of(
        [Storming(*row) for row in rows], IncidentRow.objects.filter(opened_at__gt=now - SPAN).count()
    )


def values_in_use(field: str, begin: str) -> list[str]:
    """Components, analyzers or services of unresolved incidents that begin so, by how many incidents; at most
    a handful.
    """
    assert field in ("component", "analyzer", "service")
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {field} FROM incident WHERE state <> 'resolved' AND starts_with(lower({field}), %s)"
            " GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT %s",
            (begin.lower(), SUGGESTED),
        )
        return [row[0] for row in cursor.fetchall()]


def labels_in_use(begin: str) -> list[str]:
    """`name=value` of unresolved incidents' labels that begin so, the most frequent first."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT key || '=' || value FROM incident, jsonb_each_text(labels) WHERE state <> 'resolved'"
            " AND starts_with(lower(key || '=' || value), %s) GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT %s",
            (begin.lower(), SUGGESTED),
        )
        return [row[0] for row in cursor.fetchall()]


def with_title(part: str, most: int) -> Sequence[View]:
    """Incidents whose title or component holds this text, those that are not resolved first and of these the newest.

    Of the resolved ones only the latest thousand are looked at.
    """
    found: list[View] = []
    resolved = IncidentRow.objects.filter(state="resolved")
    edge = resolved.order_by("-number").values_list("number", flat=True)[LATEST - 1 : LATEST].first()
    for rows in (_unresolved(), resolved.filter(number__gte=edge or 0)):
        fitting = rows.filter(title__icontains=part) | rows.filter(component__icontains=part)
        latest = fitting.order_by("-number")[: most - len(found)]
        found += [View(state_of(row), row.version, row.position) for row in latest]
        if len(found) >= most:
            break
    return found


def _unresolved() -> QuerySet[IncidentRow]:
    return IncidentRow.objects.exclude(state="resolved")
