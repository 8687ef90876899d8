"""What pingmesh reads of `probe` rows that carry round-trip times, and of `topology`.

- `pairs`: probes sent and lost between two servers;
- `answers`: how many answers between two servers took how long, in the few bins that tell slow from retransmitted;
- `servers`: answers to what a server sent, in fine bins, for percentiles;
- `minutes`: answers to what a server sent, by minute, in the few bins;
- `silent`: lost probes by pair and minute;
- `places` and `needs`: what contains each component and what it needs, at the window's start; of a component that was
  not there yet, as it first was within the window.

A new connection repeats its first packet after 3 seconds and again after 6 (Guo et al., Pingmesh, SIGCOMM 2015), so an
answer after about 3 s had one packet dropped and one after about 9 s had two. `SYN` are the buckets around these.
"""

from __future__ import annotations

from datetime import timedelta

import numpy as np

from analyzers.contract import Count, Each, Input, Reduction, Sum

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

DROPPED = np.array([FEW.index(SYN[0]) + 1, FEW.index(SYN[2]) + 1])
"""The bins of `FEW` that say that a packet was dropped."""

FINE_DROPPED = np.array([i + 1 for i, edge in enumerate(FINE) if edge in (SYN[0], SYN[2])])
"""The same of `FINE`."""


def limit_bin(microseconds: float) -> int:
    """The first bin of `FEW` that lies above a limit, which is taken to the nearest edge (by ratio)."""
    return int(np.argmin(np.abs(np.log(FEW) - np.log(max(microseconds, 1.0))))) + 1


def percentile(counts: np.ndarray[tuple[int, ...], np.dtype[np.float64]], share: float) -> float | None:
    """The time (microseconds) below which a share of the answers lie, from counts by bin of `FINE` or `FEW`.

    Interpolated within the bin on a logarithmic scale; None without answers. The ends are open: below the first edge it
    is half of it, above the last it is that edge.
    """
    edges = FINE if len(counts) == len(FINE) + 1 else FEW
    total = float(counts.sum())
    if total <= 0:
        return None
    reached = np.cumsum(counts)
    at = int(np.searchsorted(reached, share * total))
    if at >= len(edges):
        return edges[-1]
    low = edges[at - 1] if at else edges[0] / 2
    inside = (share * total - (reached[at] - counts[at])) / counts[at]
    return float(low * (edges[at] / low) ** inside)
