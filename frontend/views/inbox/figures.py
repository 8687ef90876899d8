"""Figures of inbox rows beside the incident: state of the failure, trend, impact. No statement for a row."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from frontend.sparklines import trend_of
from incidents import queries
from incidents.components.impact import Impact, impacts_of
from incidents.domain.components.impact_graph import plural
from incidents.domain.incident.state import Failure
from incidents.incident.trends import trends_of
from incidents.incident.view import failures_of, moment
from ingest.queries import Position

MOST_KINDS = 2
"""Kinds of component that an impact names; services come along."""


def row_figures(views: Sequence[queries.View], as_of: Position | None = None) -> dict[str, Any]:
    """`failures`, `trends` and `impacts` by id of the incident, as rows show them."""
    end = moment(as_of)
    failures = failures_of(views, as_of)
    reports = trends_of([view.incident.id for view in views], end)
    impacts = impacts_of((view.incident for view in views), end)
    trends = {}
    for view in views:
        one = view.incident
        failing = _failing(one, failures[one.id], end)
        if one.id in reports or failing is not None:
            trends[one.id] = trend_of(reports.get(one.id, ()), failing, end)
    return {
        "failures": failures,
        "trends": trends,
        "impacts": {id_: impact_words(impact) for id_, impact in impacts.items()},
    }


def _failing(one: queries.Incident, failure: Failure, end: datetime) -> tuple[datetime, datetime] | None:
    """From when to when the failure lasted, as far as that is known."""
    if failure.since is None:
        return None
    if failure.state == "failing":
        return failure.since, end
    return one.failing_since or one.opened_at, failure.since


def impact_words(impact: Impact) -> list[str]:
    """`66 hosts`, `3 jobs`, `2 services`: shortest first line of the blast radius."""
    words = [_counted(count, kind) for kind, count in impact.kinds[:MOST_KINDS]]
    if impact.services:
        words.append(_counted(impact.services, "service"))
    return [*words[:-1], f"{words[-1]} and more"] if impact.more else words


def _counted(count: int, kind: str) -> str:
    return f"{count:,} {plural(kind) if count != 1 else kind.replace('_', ' ')}"
