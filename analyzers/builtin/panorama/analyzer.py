"""Declaration of `panorama`: version, parameters, and what it reads. The method is imported by its first run.

The reduction of panorama: how often each observer reported each status of a subject, by second.
"""

from __future__ import annotations

from datetime import timedelta

from analyzers.contract import Analyzer, Count, Deferred, Input, Param, Reduction

SLICE = timedelta(seconds=1)

INPUT = Input(
    "observation",
    (
        Reduction(
            "seen",
            kind="observation",
            group_by=("observer", "subject", "context", "status"),
            aggregates={"times": Count()},
            slice=SLICE,
        ),
    ),
)


HISTORY = 5
"""Windows from which it is learnt how often calls usually fail."""

PARAMS = (
    Param(
        "method",
        "weighted",
        "weighted: likelihood with unreliable observers; paper: bounded look-back majority",
        choices=("weighted", "paper"),
    ),
    Param(
        "probe_contexts", "heartbeat,ping,probe", "contexts in which a subject is probed, not used; by comma"
    ),
    Param("look_back_seconds", 6.0, "weighted: how far back a judgement looks", low=1, high=86_400),
    Param("pending_seconds", 3.0, "longest time to an answer", low=1, high=86_400),
    Param("patience_seconds", 3.0, "weighted: how long it must last while it goes on", low=1, high=86_400),
    Param("least_seconds", 15.0, "weighted: how long it must have lasted if it is over", low=1, high=86_400),
    Param(
        "restart_seconds",
        20.0,
        "weighted: how long a process may be gone altogether, as in a restart",
        low=1,
        high=86_400,
    ),
    Param(
        "sure_seconds",
        10.0,
        "weighted: how long it must last for one window to be enough",
        low=1,
        high=86_400,
    ),
    Param("margin", 1.0, "weighted: nats of evidence above log(candidates)", low=-5, high=50),
    Param("ttl_seconds", 10.0, "paper: after how long an observation is forgotten", low=1, high=86_400),
)

ANALYZER = Analyzer(
    name="panorama",
    version="1.3.2",
    title="Gray failures, failing processes and unreliable observers, by the reports of callers",
    inputs=(INPUT,),
    params=PARAMS,
    analyze=Deferred("analyzers.builtin.panorama.analysis:analyze"),
    history=HISTORY,
)
