"""What the validator reads: every value of every node, and when each node was measured."""

from __future__ import annotations

from analyzers.builtin.benchmark_samples import SAMPLES
from analyzers.contract import Count, Input, Reduction

MOMENTS = Reduction("moments", kind="benchmark", group_by=("node", "time"), aggregates={"rows": Count()})

INPUTS = (Input("benchmark", (SAMPLES, MOMENTS)),)
