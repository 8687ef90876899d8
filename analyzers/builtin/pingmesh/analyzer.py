"""Declaration of `pingmesh`: inputs, parameters and version. The method is imported by its first run."""

from __future__ import annotations

from analyzers.builtin.pingmesh.reductions import PLACED, UNPLACED
from analyzers.contract import Analyzer, Deferred, Param

PARAMS = (
    Param(
        "drop_alert",
        1e-3,
        "share of answered probes with a dropped packet that is too much",
        low=1e-6,
        high=0.5,
    ),
    Param(
        "p99_alert_us",
        5000.0,
        "P99 in microseconds that is too much; taken to the nearest bin",
        low=2e3,
        high=1e5,
    ),
    Param("alpha", 1e-3, "level of all tests of one kind together", low=1e-12, high=0.1),
    Param("persist_minutes", 3, "over how many minutes a fault has to be spread", low=1, high=60),
    Param(
        "black_hole_score",
        0.3,
        "least share of a ToR's servers with the symptom of a black hole",
        low=0.01,
        high=1,
    ),
    Param("min_tries", 5, "probes that a pair needs to be judged for black holes", low=2, high=10_000),
    Param("reloads_per_day", 20, "most reloads of ToRs a day that are advised", low=0, high=1000),
    Param("layer", "underlay", "which probes", choices=("underlay", "overlay")),
)

ANALYZER = Analyzer(
    name="pingmesh",
    version="1.1.0",
    title="Tells Spine, podset, pod and server faults and ToR black holes from server-to-server probes",
    inputs=(PLACED, UNPLACED),
    params=PARAMS,
    analyze=Deferred("analyzers.builtin.pingmesh.analysis:analyze"),
)
