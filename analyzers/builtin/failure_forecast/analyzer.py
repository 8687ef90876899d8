"""Declaration of `failure_forecast`: version, parameters, what it reads. The method is imported by its first run."""

from __future__ import annotations

from datetime import timedelta

from analyzers.builtin.reductions import metric_series
from analyzers.contract import Analyzer, Count, Deferred, Input, Param, Reduction

DAY = timedelta(days=1)

SERIES = metric_series(DAY)

ERRORS = Reduction("errors", "unit_failure", ("unit", "symptom", "time"), {"rows": Count()})

ATTEMPTS = Reduction(
    "attempts",
    "job_attempt",
    ("nodes", "outcome", "end"),
    {"rows": Count()},
    only=("outcome", ("completed", "failed")),
)

INCIDENTS = Reduction("incidents", "node_incident", ("node", "time", "kind"), {"rows": Count()})

PARAMS = (
    Param("horizon_hours", 48.0, "prediction horizon", low=1, high=720),
    Param("alarms", 10.0, "alarms in 1,000 node-days that can be looked at", low=0.1, high=500),
    Param("least_probability", 0.1, "least probability of an incident of a named node", low=0, high=1),
    Param("min_incidents", 15, "least incidents to learn from", low=8, high=100_000),
    Param(
        "not_incidents",
        "observed,validated,repaired,retired,drained",
        "kinds of node_incident rows that are no failures",
    ),
    Param("node_label", "", "label of metrics that names the node (default: the first known one)"),
)

HISTORY = 60

ANALYZER = Analyzer(
    name="failure_forecast",
    version="1.3.0",
    title="Forecasts which nodes fail soon, within a budget of alarms, with the probable cause",
    inputs=(
        Input("all", (SERIES, ERRORS, ATTEMPTS, INCIDENTS)),
        Input("metric_and_error", (SERIES, ERRORS, INCIDENTS)),
        Input("metric", (SERIES, INCIDENTS)),
        Input("error", (ERRORS, INCIDENTS)),
    ),
    params=PARAMS,
    analyze=Deferred("analyzers.builtin.failure_forecast.analysis:analyze"),
    history=HISTORY,
    length=DAY,
)
"""The first input with rows counts: rows that are missing in it are none."""
