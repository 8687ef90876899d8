"""Nodes at risk of failure, by the newest run of `failure_forecast` over a region."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from analyzers.builtin.failure_forecast.analyzer import ANALYZER
from analyzers.runs.models import Run, State
from analyzers.runs.results import verdict
from ingest.queries import rfc3339

AT_RISK: Final = "Nodes at risk"
"""Title of the table of a verdict that is read here."""


@dataclass(frozen=True, slots=True)
class NodeAtRisk:
    """`kind` is the probable kind of failure, `kind_probability` its probability if there is one; None for an unknown
    kind. `named`: above the threshold of the budget of alarms."""

    component: str
    probability: float
    reasons: str
    kind: str | None
    kind_probability: float | None
    named: bool

    def as_json(self) -> dict[str, Any]:
        return {
            "component": self.component,
            "probability": self.probability,
            "reasons": self.reasons,
            "kind": self.kind,
            "kind_probability": self.kind_probability,
            "named": self.named,
        }


@dataclass(frozen=True, slots=True)
class NodeForecast:
    """Nodes by probability, the likeliest first; none where the run made no forecast, which `reason` explains."""

    run: Run
    hours: float
    reason: str
    usual: float | None
    precision: float | None
    judged: int
    nodes: tuple[NodeAtRisk, ...]

    @property
    def until(self) -> datetime:
        """The end of the horizon."""
        return self.run.window_end + timedelta(hours=self.hours)

    def is_over(self, now: datetime) -> bool:
        return self.until <= now

    def of(self, component: str) -> NodeAtRisk | None:
        return next((one for one in self.nodes if one.component == component), None)

    def as_json(self) -> dict[str, Any]:
        return {
            "run": str(self.run.pk),
            "window": {"start": rfc3339(self.run.window_start), "end": rfc3339(self.run.window_end)},
            "status": self.run.status,
            "reason": self.reason or None,
            "horizon_hours": self.hours,
            "usual": self.usual,
            "precision": self.precision,
            "judged": self.judged,
        }


def node_forecast(region: str, at: datetime | None = None) -> NodeForecast | None:
    """The forecast of the newest window of a region that was judged, at a moment if one is given; None without any."""
    found = Run.objects.filter(analyzer=ANALYZER.name, region=region, state=State.DONE, repeats=None)
    if at is not None:
        found = found.filter(finished_at__lte=at)
    run = found.order_by("-window_end", "-created_at").first()
    return None if run is None else forecast_of(run)


def forecast_of(run: Run) -> NodeForecast | None:
    """The forecast of a run of the analyzer; None without a verdict."""
    body = verdict(run)
    if body is None:
        return None
    named = {one["component"] for one in body["suspects"]}
    rows = next((one["rows"] for one in body["evidence"] if one["title"] == AT_RISK), ())
    measures = body["measures"]
    return NodeForecast(
        run,
        float(body["params"]["horizon_hours"]),
        body["reason"] or "",
        measures.get("usual"),
        measures.get("precision"),
        int(measures.get("nodes", 0)),
        tuple(
            NodeAtRisk(name, probability, reasons or "", kind, share, name in named)
            for name, probability, reasons, kind, share in rows
        ),
    )
