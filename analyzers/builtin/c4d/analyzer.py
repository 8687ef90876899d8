"""Declaration of `c4d`: version, parameters, and what it reads. The method is imported by its first run.

Each row is the state of one rank in one collective operation, or in one transfer of it (`src`, `dst`).
"""

from __future__ import annotations

from analyzers.contract import Analyzer, Count, Deferred, Input, Param, Reduction, Sum

STATES = Reduction(
    "states",
    kind="collective",
    group_by=("job", "communicator", "seq", "op", "rank", "src", "dst", "state", "time", "node"),
    aggregates={
        "rows": Count(),
        "start_ns": Sum("start_ns"),
        "end_ns": Sum("end_ns"),
        "bytes": Sum("bytes"),
        "ranks": Sum("ranks"),
    },
)

PARAMS = (
    Param(
        "hang_seconds",
        10.0,
        "stall from which a job may hang; 0 for a dump that was made because it hangs",
        low=0,
        high=3600,
    ),
    Param(
        "least_delay",
        0.25,
        "excess delay of a transfer that matters, as a share of the usual",
        low=0.05,
        high=10,
    ),
    Param("delay_mads", 5.0, "the same in robust standard deviations between pairs", low=2, high=50),
    Param("least_late", 0.05, "lateness of a rank that matters, as a share of the time", low=0.01, high=1),
    Param("late_mads", 6.0, "the same in robust standard deviations between ranks", low=2, high=50),
)

HISTORY = 2
"""Windows before the judged one: how long a stall was that was resolved, and which delays are usual."""

ANALYZER = Analyzer(
    name="c4d",
    version="1.7.2",
    title="Names the rank, NIC side or connection behind hangs and slow collectives of training jobs",
    inputs=(Input("collective", (STATES,)),),
    params=PARAMS,
    analyze=Deferred("analyzers.builtin.c4d.analysis:analyze"),
    history=HISTORY,
)
