"""Figures of inbox rows beside the incident: state of the failure, value, trend, impact. No statement for a row."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from frontend.sparklines import trend_of
from incidents import queries
from incidents.components.impact import Impact, impacts_of
from incidents.domain.alert_metric import AlertMetric, alert_metric
from incidents.domain.components.impact_graph import plural
from incidents.domain.incident.state import Failure
from incidents.incident.trends import trends_of
from incidents.incident.view import failures_of, latest_firing, moment
from ingest.queries import Position

MOST_KINDS = 2
"""Kinds of component that an impact names; services come along."""
LONGEST_VALUE = 40
"""Letters of a value, which a sender may write as a sentence."""


def row_figures(views: Sequence[queries.View], as_of: Position | None = None) -> dict[str, Any]:
    """`failures`, `values`, `trends` and `impacts` by id of the incident, as rows show them."""
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
        "values": {} if as_of else _values(views),
        "trends": trends,
        "impacts": {id_: impact_words(impact) for id_, impact in impacts.items()},
    }


def _values(views: Sequence[queries.View]) -> dict[str, str]:
    """`91.2%, threshold > 90` by id of an incident that no analyzer looked into, where an alert that fires says it."""
    unexamined = [one.incident.id for one in views if one.incident.firing and not one.incident.opinions]
    found = {}
    for id_, alerts in latest_firing(unexamined).items():
        metrics = (
            alert_metric(
                one.alert.labels, one.alert.annotations or {}, one.alert.description, one.alert.links
            )
            for one in alerts
        )
        if (metric := next((one for one in metrics if one.value_text), None)) is not None:
            found[id_] = value_words(metric)
    return found


def value_words(metric: AlertMetric) -> str:
    """The value as the sender wrote it, and its threshold where that is known."""
    text = metric.value_text
    with suppress(ValueError):
        value = float(text)
        text = f"{value:,.0f}" if 10_000 <= abs(value) < 1e15 else f"{value:.4g}"
    if len(text) > LONGEST_VALUE:
        text = f"{text[: LONGEST_VALUE - 1]}…"
    if metric.threshold is None:
        return text
    return f"{text}, threshold {metric.sign} {metric.threshold:g}".replace("  ", " ")


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
