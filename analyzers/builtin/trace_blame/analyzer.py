"""Declaration of `trace_blame`: version, parameters, and what it reads. The method is imported by its first run.

What `trace_blame` reads: the spans themselves, one row each, and counts of log records if there are any.
"""

from __future__ import annotations

from analyzers.contract import Analyzer, Count, Deferred, Input, Param, Reduction, Sum

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


PARAMS = (
    Param("margin", 2.0, "nats of evidence from which on a service is blamed", low=-20, high=100),
    Param(
        "sure_margin",
        5.0,
        "nats that make one window enough, and that a second suspect needs",
        low=0,
        high=200,
    ),
    Param(
        "resolution_us",
        50.0,
        "least microseconds that matter: much shorter times are all alike; the history may show that more matter",
        low=1,
        high=60_000_000,
    ),
    Param("min_traces", 5, "fewest traces of a window that is judged", low=1, high=1_000_000),
    Param("min_history", 20, "fewest traces of the windows before it", low=1, high=1_000_000),
)

KNOWN, RECENT = 6, 2
"""Windows that say what is normal where there are few, and newer ones that are read past: what begins then would be
normal at once, because an ending that some window saw is no longer new, and one window alone is seldom sure enough for
an incident.
"""

HISTORY = 2 * KNOWN + RECENT

ANALYZER = Analyzer(
    name="trace_blame",
    version="3.1.5",
    title="Service or instance that explains changes in traces",
    inputs=INPUTS,
    params=PARAMS,
    analyze=Deferred("analyzers.builtin.trace_blame.analysis:analyze"),
    history=HISTORY,
)
