"""Declaration of `validator`: version, parameters, and what it reads. The method is imported by its first run.

Reductions of the validator: every benchmark result, and what the topology says of each node.
"""

from __future__ import annotations

from analyzers.contract import INVENTORY, Analyzer, Count, Deferred, Each, Input, Param, Reduction

SAMPLES = Reduction(
    "samples",
    kind="benchmark",
    group_by=("node", "benchmark", "metric", "sku", "time"),
    aggregates={"times": Count()},
    each=Each("values"),
)
"""Every value of every node with when and how often it occurred: the exact samples."""

PARENTS = Reduction(
    INVENTORY,
    kind="topology",
    group_by=("component", "parents"),
    aggregates={"rows": Count()},
    or_within=True,
)

NEEDS = Reduction(
    "needs",
    kind="topology",
    group_by=("component", "depends_on"),
    aggregates={"rows": Count()},
    or_within=True,
)
LABELS = Reduction(
    "labels", kind="topology", group_by=("component", "labels"), aggregates={"rows": Count()}, or_within=True
)


PARAMS = (
    Param(
        "similarity",
        0.95,
        "least similarity of a node's results to the fleet's criteria; .95 is 5 % slower in every run",
        low=0.5,
        high=0.999,
    ),
    Param("min_nodes", 3, "least nodes of one kind from which criteria are learnt", low=3, high=100_000),
    Param(
        "spreads",
        4.0,
        "a node must also be worse by this many times the spread of healthy nodes",
        low=0,
        high=100,
    ),
    Param(
        "most_failing",
        0.2,
        "share of deviating nodes above which the fleet counts as split and no node is blamed",
        low=0.01,
        high=0.5,
    ),
    Param(
        "most_false",
        0.02,
        "largest share of healthy nodes among the blamed, and of healthy fleets with a blamed node",
        low=0.0001,
        high=1,
    ),
    Param(
        "baseline",
        "",
        "SuperBench's baseline.json: usual values by metric, which a node may not be worse than by more than "
        "`similarity` allows; with `rules` it is what those refer to",
        check=Deferred("analyzers.builtin.validator.published:check_baseline"),
    ),
    Param(
        "rules",
        "",
        "SuperBench's rule file (YAML): nodes that violate it are named",
        check=Deferred("analyzers.builtin.validator.published:check_rules"),
    ),
    Param("higher", "", "words of metrics that are worse when they fall, such as qps, beside the known"),
    Param("lower", "", "words of metrics that are worse when they rise, beside the known"),
)

HISTORY = 3

ANALYZER = Analyzer(
    name="validator",
    version="2.1.2",
    title="Nodes with benchmark results worse than the fleet's own criteria",
    inputs=(
        Input("benchmark_and_topology", (SAMPLES, PARENTS, NEEDS, LABELS)),
        Input("benchmark", (SAMPLES,)),
    ),
    params=PARAMS,
    analyze=Deferred("analyzers.builtin.validator.analysis:analyze"),
    history=HISTORY,
)
