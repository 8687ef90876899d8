"""What the selector reads: every incident and sighting of nodes, and benchmark results, if any, by time."""

from __future__ import annotations

from analyzers.contract import Count, Each, Input, Reduction

INCIDENTS = Reduction(
    "incidents",
    kind="node_incident",
    group_by=("node", "time", "kind", "covariates"),
    aggregates={"rows": Count()},
)

RESULTS = Reduction(
    "results",
    kind="benchmark",
    group_by=("node", "benchmark", "metric", "sku", "time"),
    aggregates={"times": Count()},
    each=Each("values"),
)

INPUTS = (Input("incidents_and_benchmarks", (INCIDENTS, RESULTS)), Input("incidents", (INCIDENTS,)))
