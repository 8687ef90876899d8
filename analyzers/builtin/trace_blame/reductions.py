"""What `trace_blame` reads: the spans themselves, one row each, and counts of log records if there are any."""

from __future__ import annotations

from analyzers.contract import Count, Input, Reduction, Sum

SPANS = Reduction(
    "spans",
    kind="span",
    group_by=("trace", "span", "parent", "service", "instance", "operation", "time", "error"),
    aggregates={"duration_us": Sum("duration_us"), "rows": Count()},
)

LOGS = Reduction(
    "logs",
    kind="log_count",
    group_by=("component", "template", "severity", "time"),
    aggregates={"count": Sum("count")},
)

INPUTS = (Input("spans_and_logs", (SPANS, LOGS)), Input("span", (SPANS,)))
