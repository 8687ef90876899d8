"""Reductions of the validator: every benchmark result, and what the topology says of each node."""

from __future__ import annotations

from analyzers.contract import INVENTORY, Count, Each, Reduction

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
