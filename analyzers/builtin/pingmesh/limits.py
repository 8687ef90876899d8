"""Whether a share is above its limit by more than chance, also without the worst of its parts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.stats.probability import at_least

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SLOW_SHARE = 0.01
"""P99 is above a time if more than so many answers are."""
TRIMMED = 4
"""A group has to be above its limit without the worst one in so many of its parts, and of its peers,"""
STILL = 0.05
"""at this level."""


@dataclass(frozen=True, slots=True)
class Measure:
    """What is compared: `dropped` (an answer after about 3 or 9 s) or `slow` (an answer above the P99 limit)."""

    name: str
    limit: float


def measures(drop_limit: float) -> tuple[Measure, Measure]:
    return Measure("dropped", drop_limit), Measure("slow", SLOW_SHARE)


def totals(place: Ints, values: Floats, size: int) -> Floats:
    """The sum of `values` at each place, shape (size,)."""
    return np.bincount(place, values, minlength=size).astype(np.float64, copy=False)


def tail(hits: Floats, tries: Floats, limit: float | Floats) -> Floats:
    """The probability of so many hits or more if the true share is the limit; 1 without tries."""
    return at_least(hits, tries, limit)


def p_of(hits: Floats, tries: Floats, limit: float) -> float:
    """The tail of a table (rows are parts, columns peers) if it is not above the limit by its worst parts and peers
    alone, else 1. Without them the evidence is weaker and the share a little too low, so there 5 % are enough.
    """
    kept, among = without_worst(hits, tries)
    if float(tail(kept.sum(), among.sum(), limit)) > STILL:
        return 1.0
    return float(tail(hits.sum(), tries.sum(), limit))


def without_worst(hits: Floats, tries: Floats) -> tuple[Floats, Floats]:
    """The table without the quarter of its rows, then of its columns, of the highest share: one at least, of two."""
    for axis in (1, 0):
        lost, seen = hits.sum(axis=axis), tries.sum(axis=axis)
        there = np.flatnonzero(seen > 0)
        if len(there) < 2:
            continue
        share = lost[there] / seen[there]
        worst = there[np.lexsort((-lost[there], -share))[: max(1, len(there) // TRIMMED)]]
        kept = np.setdiff1d(there, worst)
        hits, tries = (one[kept] if axis == 1 else one[:, kept] for one in (hits, tries))
    return hits, tries
