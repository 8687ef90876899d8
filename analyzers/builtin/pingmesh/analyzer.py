"""Declaration of `pingmesh`: version, parameters, and what it reads. The method is imported by its first run.

What pingmesh reads of `probe` rows that carry round-trip times, and of `topology`.

- `pairs`: probes sent and lost between two servers;
- `answers`: how many answers between two servers took how long, in the few bins that tell slow from retransmitted;
- `servers`: answers to what a server sent, in fine bins, for percentiles;
- `minutes`: answers to what a server sent, by minute, in the few bins;
- `silent`: lost probes by pair and minute;
- `places` and `needs`: what contains each component and what it needs, at the window's start; of a component that was
  not there yet, as it first was within the window.

A new connection repeats its first packet after 3 seconds and again after 6 (Guo et al., Pingmesh, SIGCOMM 2015), so
an answer after about 3 s had one packet dropped and one after about 9 s had two. `SYN` are the buckets around these.
"""

from __future__ import annotations

from datetime import timedelta

from analyzers.contract import Analyzer, Count, Deferred, Each, Input, Param, Reduction, Sum

SLICE = timedelta(minutes=1)

SYN = (2_500_000.0, 4_500_000.0, 8_500_000.0, 10_500_000.0)
"""[2.5, 4.5) s counts as one packet dropped, [8.5, 10.5) s as two; microseconds."""

PER_DECADE = 24
"""Fine bins: each is 10 % wider than the one before, so a percentile is known to about 5 %."""

FEW = (2e3, 3e3, 4e3, 5e3, 6e3, 8e3, 1e4, 2e4, 5e4, 1e5, *SYN)
"""Bins of pairs and minutes. Nothing below 2 ms: nearly all answers are in the first, so a pair is about one row."""

FINE = tuple(sorted({*FEW, *(float(round(10 ** (1 + i / PER_DECADE))) for i in range(PER_DECADE * 5 + 1))}))
"""From 10 microseconds to a second, and all the edges of `FEW`."""

_PROBES = (
    Reduction("pairs", "probe", ("src", "dst", "layer"), {"sent": Sum("sent"), "lost": Sum("lost")}),
    Reduction("answers", "probe", ("src", "dst", "layer"), {"answers": Count()}, each=Each("rtt_us", FEW)),
    Reduction("servers", "probe", ("src", "layer"), {"answers": Count()}, each=Each("rtt_us", FINE)),
    Reduction(
        "minutes", "probe", ("src", "layer"), {"answers": Count()}, slice=SLICE, each=Each("rtt_us", FEW)
    ),
    Reduction("silent", "probe", ("src", "dst", "layer"), {"lost": Sum("lost")}, slice=SLICE, where="lost"),
)

PLACED = Input(
    "probe_placed",
    (
        *_PROBES,
        Reduction("places", "topology", ("component", "parents"), {"rows": Count()}, or_within=True),
        Reduction("needs", "topology", ("component", "depends_on"), {"rows": Count()}, or_within=True),
    ),
)
UNPLACED = Input("probe", _PROBES)


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
    Param("layer", "underlay", "layer of the probes to read", choices=("underlay", "overlay")),
)

ANALYZER = Analyzer(
    name="pingmesh",
    version="1.2.0",
    title="Spine, podset, pod and server faults and ToR black holes, from server-to-server probes",
    inputs=(PLACED, UNPLACED),
    params=PARAMS,
    analyze=Deferred("analyzers.builtin.pingmesh.analysis:analyze"),
)
