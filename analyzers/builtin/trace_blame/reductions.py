"""What `trace_blame` reads: the spans themselves, one row each."""

from __future__ import annotations

from analyzers.contract import Count, Input, Reduction, Sum

SPANS = Reduction(
    "spans",
    kind="span",
    group_by=("trace", "span", "parent", "service", "instance", "operation", "time", "error"),
    aggregates={"duration_us": Sum("duration_us"), "rows": Count()},
)

INPUTS = (Input("span", (SPANS,)),)
