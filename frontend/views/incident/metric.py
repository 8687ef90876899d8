"""Value, threshold and graph of the metric behind an alert, fetched beside the incident's page: the data source may be
slow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from frontend.evidence import Piece
from frontend.incident_page import AlertList, alert_list
from frontend.views.incident.similar import moment_in
from frontend.views.pages import page, show
from incidents import queries
from incidents.data_sources.models import DataSource
from incidents.data_sources.prometheus import Answer, DataSourceError, around, query_range
from incidents.domain.alert_metric import AlertMetric, alert_metric
from incidents.domain.values import rfc3339
from incidents.incident.view import moment
from ingest.queries import Alert


@page
@require_safe
def metric(request: HttpRequest, number: int) -> HttpResponse:
    as_of = moment_in(request)
    state = queries.get(str(number), as_of).incident
    alert, found = metric_of(alert_list(str(number), "", as_of))
    end = state.resolved_at or (moment(as_of) if as_of else timezone.now())
    onset = state.opened_at if alert is None else alert.alert.starts_at or state.opened_at
    source, problem, piece = None, "", None
    if found.plain:
        source = source_of(found)
        try:
            answer = None if source is None else query_range(source, found.plain, *around(onset, end))
        except DataSourceError as error:
            answer, problem = None, str(error)
        if answer is not None and answer.series:
            piece = drawn(found, answer, marks(state, onset, end))
        elif answer is not None:
            problem = f"{answer_of(source)} has no samples of this query in the time shown"
    context = {
        "i": state,
        "as_of": as_of,
        "alert": alert,
        "metric": found,
        "bound": "" if found.threshold is None else f"{found.threshold:g}",
        "sources": DataSource.objects.exists(),
        "problem": problem,
        "piece": piece,
    }
    return show(request, "frontend/incident/metric.html", context, section="inbox")


def answer_of(source: DataSource | None) -> str:
    return "The data source" if source is None else source.name


def metric_of(alerts: AlertList) -> tuple[Alert | None, AlertMetric]:
    """The first alert, those that fire before others, that says a value, a threshold or a query."""
    for one in alerts.alerts:
        alert = one.it.alert
        found = alert_metric(alert.labels, alert.annotations or {}, alert.description, alert.links)
        if found.known:
            return one.it, found
    return None, AlertMetric()


def source_of(found: AlertMetric) -> DataSource | None:
    """The data source that made the alert's link; without one of that address, the only one there is."""
    sources = list(DataSource.objects.all())
    made = [one for one in sources if one.made(found.link)]
    return made[0] if made else sources[0] if len(sources) == 1 else None


def marks(state: queries.Incident, onset: datetime, end: datetime) -> list[tuple[str, datetime]]:
    """The moments that the graph names."""
    named = (("alert", onset), ("opened", state.opened_at), ("acknowledged", state.acknowledged_at))
    found = [(name, at) for name, at in named if at is not None and at <= end]
    # An alert opens its incident within a second or two: one line for both.
    return found[1:] if len(found) > 1 and abs((found[1][1] - found[0][1]).total_seconds()) < 60 else found


def drawn(found: AlertMetric, answer: Answer, moments: Sequence[tuple[str, datetime]]) -> Piece:
    """The chart: a line for each series, the threshold across, the moments down."""
    rows = [
        {"time": rfc3339(at), "value": value, "series": one.name}
        for one in answer.series
        for at, value in one.points
    ]
    x = {"field": "time", "type": "temporal", "title": "time (UTC)"}
    layers: list[Mapping[str, Any]] = [
        {
            "data": {"values": rows},
            "mark": {"type": "line", "strokeWidth": 1.5},
            "encoding": {
                "x": x,
                "y": {"field": "value", "type": "quantitative", "title": "value", "scale": {"zero": False}},
                **(
                    {
                        "color": {
                            "field": "series",
                            "type": "nominal",
                            "legend": {"orient": "top"},
                            "title": None,
                        }
                    }
                    if len(answer.series) > 1
                    else {}
                ),
            },
        }
    ]
    if found.threshold is not None:
        bound = [{"threshold": found.threshold, "label": f"threshold {found.sign} {found.threshold:g}"}]
        layers += [
            {
                "data": {"values": bound},
                "mark": {"type": "rule", "strokeDash": [4, 3], "color": "#c2410c", "strokeWidth": 1.5},
                "encoding": {"y": {"field": "threshold", "type": "quantitative"}},
            }
        ]
    if moments:
        layers += [
            {
                "data": {"values": [{"time": rfc3339(at), "moment": name} for name, at in moments]},
                "mark": {"type": "rule", "strokeDash": [2, 2]},
                "encoding": {"x": x},
            },
            {
                "data": {"values": [{"time": rfc3339(at), "moment": name} for name, at in moments]},
                "mark": {"type": "text", "align": "left", "dx": 3, "y": 8, "fontSize": 11},
                "encoding": {"x": x, "text": {"field": "moment"}},
            },
        ]
    notes = [f"Every {answer.step} s."]
    if found.threshold is not None:
        notes.insert(0, f"Dashed across: threshold {found.sign} {found.threshold:g}.".replace("  ", " "))
    if answer.left_out:
        notes.append(f"{answer.left_out} more series are not drawn.")
    chart = {"height": 180, "layer": layers}
    return Piece("chart", "Metric of the alert", (), (), chart, " ".join(notes))
