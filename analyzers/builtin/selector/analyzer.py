"""Declaration of `selector`: version, parameters, and what it reads. The method is imported by its first run.

What the selector reads: every incident and sighting of nodes, and benchmark results, if any, by time.
"""

from __future__ import annotations

from analyzers.contract import Analyzer, Count, Deferred, Each, Input, Param, Reduction

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


PARAMS = (
    Param("horizon_hours", 24.0, "prediction horizon", low=0.1, high=8760),
    Param(
        "target_probability",
        0.01,
        "a node that is likelier than this to have an incident within the horizon should be validated",
        low=1e-6,
        high=0.999,
    ),
    Param(
        "incident_hours",
        100.0,
        "node-hours that an incident costs: lost work, restart, repair",
        low=0,
        high=1e6,
    ),
    Param(
        "benchmark_hours", 0.5, "duration of a benchmark without a stated one, in hours", low=1e-3, high=1000
    ),
    Param(
        "most_nodes",
        20,
        "most nodes recommended at once: as many as can leave service",
        low=1,
        high=100_000,
    ),
    Param("min_incidents", 10, "least incidents to learn from", low=2, high=100_000),
    Param(
        "not_incidents",
        "observed,validated,repaired",
        "kinds of node_incident rows that are only sightings of a node, with its covariates",
    ),
    Param("gone", "retired,drained", "kinds after which a node is not at risk until it is seen again"),
)

HISTORY = 26

ANALYZER = Analyzer(
    name="selector",
    version="2.1.0",
    title="Recommends which nodes to validate, and with which benchmarks, before they fail",
    inputs=INPUTS,
    params=PARAMS,
    analyze=Deferred("analyzers.builtin.selector.analysis:analyze"),
    history=HISTORY,
)
