"""Bins of round-trip times: which hold dropped packets, which a limit, and percentiles of counts by bin."""

from __future__ import annotations

import numpy as np

from analyzers.builtin.pingmesh.reductions import FEW, FINE, SYN

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
