"""Similarity of nodes' samples, and the norm of the fleet as a whole.

A node's sample is its whole distribution of runs, not a mean (Xiong et al., "SuperBench: Improving Cloud AI
Infrastructure Reliability with Proactive Validation", USENIX ATC 2024). The distance of two samples is the area
between their cumulative distributions, the Wasserstein-1 distance, divided by the mean of the criteria; a node that
is slower by a share q in every run is q away. On one line that area is the mean difference of quantiles, so that
samples are kept as quantiles, and the sum of distances to all others costs a sort instead of all pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_QUANTILES = 64
TRIMMED_FROM = 8
"""Runs from which on the best and the worst do not count: one absurd reading, say over a clock step, is no fault."""

_TIE = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Criteria:
    """Norm of one metric: the medoid's `quantiles` (shape (quantiles,)), its mean as `scale`, the nodes it was
    learnt from (`accepted`, shape (nodes,)), and the scatter of healthy nodes (`spread`, a share of `scale`).

    `noise` is the variance of single runs of a node, in units of `scale` squared, and `runs` how many a node has.
    """

    quantiles: Floats
    scale: float
    accepted: NDArray[np.bool_]
    spread: float
    noise: float
    runs: float


def grid_size(runs: Ints) -> int:
    """Number of quantiles that hold samples of so many runs exactly, if all are alike and few; else
    `MOST_QUANTILES`."""
    counted = np.unique(np.where(runs >= TRIMMED_FROM, runs - 2, runs))
    return int(counted[0]) if len(counted) == 1 and counted[0] <= MOST_QUANTILES else MOST_QUANTILES


def quantiles_of(values: Floats, times: Ints, starts: Ints, size: int) -> tuple[Floats, Ints]:
    """Quantiles at the middles of `size` equal steps, shape (samples, size), and runs by sample, shape (samples,).

    `values` ascend within each sample, `times` say how often each occurred, and sample i begins at `starts[i]`.
    """
    ends = np.append(starts[1:], len(values))
    upto = np.concatenate([[0], np.cumsum(times)])
    runs = upto[ends] - upto[starts]
    trimmed = (runs >= TRIMMED_FROM).astype(np.int64)
    middle = (np.arange(size) + 0.5) / size
    rank = np.floor(middle[None, :] * (runs - 2 * trimmed)[:, None]).astype(np.int64)
    at = np.searchsorted(upto, (upto[starts] + trimmed)[:, None] + rank, side="right") - 1
    return values[at], runs


def total_distances(quantiles: Floats) -> Floats:
    """The sum of distances (in the metric's unit) of each sample to all others; shape (samples,)."""
    count = len(quantiles)
    order = np.argsort(quantiles, axis=0, kind="stable")
    ascending = np.take_along_axis(quantiles, order, axis=0)
    before = np.cumsum(ascending, axis=0) - ascending
    after = ascending.sum(axis=0) - before - ascending
    place = np.arange(count)[:, None]
    sums = np.empty_like(quantiles)
    np.put_along_axis(
        sums, order, ascending * place - before + after - ascending * (count - 1 - place), axis=0
    )
    return np.asarray(sums.mean(axis=1))


def medoid(quantiles: Floats) -> int:
    """The sample that is nearest to all others; of equals the one with the smallest quantiles."""
    total = total_distances(quantiles)
    least = total.min()
    near = np.flatnonzero(total <= least + _TIE * max(abs(least), np.abs(quantiles).max(initial=0)))
    return int(near[np.lexsort(quantiles[near].T[::-1])[0]])


def distances(quantiles: Floats, criteria: Floats, scale: float) -> Floats:
    """The distance of each sample to the criteria, as a share of `scale`."""
    return np.asarray(np.abs(quantiles - criteria).mean(axis=1) / scale)


def worse_by(quantiles: Floats, criteria: Floats, scale: float, higher: bool) -> Floats:
    """The part of each distance in which the sample is worse than the criteria, as a share of `scale`.

    Where runs are better than those of the criteria they do not make up for others that are worse.
    """
    off = criteria - quantiles if higher else quantiles - criteria
    return np.asarray(np.maximum(off, 0).mean(axis=1) / scale)


def levels(quantiles: Floats) -> Floats:
    """The typical value of each sample: the mean of its middle half, so that a few odd runs do not move it; shape
    (samples,).
    """
    size = quantiles.shape[1]
    cut = size // 4
    return np.asarray(quantiles[:, cut : size - cut].mean(axis=1))


def learn(quantiles: Floats, runs: Ints, similarity: float) -> Criteria | None:
    """Criteria of a fleet: take the medoid, drop what is less similar to it than `similarity`, repeat until all that
    is left is similar. None if the medoid's mean is not positive: shares of it would mean nothing.
    """
    active = np.arange(len(quantiles))
    while True:
        centre = quantiles[active[medoid(quantiles[active])]]
        scale = float(centre.mean())
        if not scale > 0:
            return None
        similar = active[distances(quantiles[active], centre, scale) <= 1 - similarity]
        if len(similar) == len(active):
            break
        active = similar
    accepted = np.zeros(len(quantiles), dtype=bool)
    accepted[active] = True
    noise = float(np.median(quantiles.var(axis=1))) / scale**2
    return Criteria(centre, scale, accepted, math.nan, noise, float(np.median(runs)))


def scatter(criteria: Criteria, runs: Ints) -> Floats:
    """Expected scatter of a healthy node with so many runs, shape (nodes,), as a share of the scale.

    Fewer runs than others have make a mean less certain.
    """
    extra = np.maximum(1 / runs - 1 / criteria.runs, 0) * criteria.noise
    return np.asarray(np.sqrt(criteria.spread**2 + extra))


def repeated(now: Floats, before: Floats, scale: float) -> float:
    """The mean similarity of the same nodes' samples at two times; both of shape (nodes, quantiles)."""
    return float(1 - np.mean(np.abs(now - before).mean(axis=1) / scale))
