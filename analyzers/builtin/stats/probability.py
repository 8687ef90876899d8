"""Probabilities from counts: interval of a share, upper tail of a binomial, q-values, calibrated scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_Z = 1.959963984540054


def wilson(hits: int, trials: int) -> tuple[float, float]:
    """The 95 % interval of `hits` in `trials` (Wilson, 1927); everything from 0 to 1 without a trial."""
    if trials == 0:
        return 0.0, 1.0
    share = hits / trials
    centre = share + _Z * _Z / (2 * trials)
    width = _Z * math.sqrt(share * (1 - share) / trials + _Z * _Z / (4 * trials**2))
    scale = 1 + _Z * _Z / trials
    return max(0.0, min(share, (centre - width) / scale)), min(1.0, max(share, (centre + width) / scale))


def at_least(hits: Floats, trials: Floats, share: float | Floats) -> Floats:
    """The probability of so many hits or more: the upper tail of the binomial distribution by the regularized
    incomplete beta function (Abramowitz and Stegun 1964, 26.5.24). Shapes as they broadcast.

    scipy.stats has it too, and takes a second to load.
    """
    from scipy.special import betainc  # takes a third of a second to load: at the first use

    inside = betainc(np.maximum(hits, 1), np.maximum(trials - hits + 1, 1), share)
    return np.asarray(np.where(hits <= 0, 1.0, np.where(hits > trials, 0.0, inside)), dtype=np.float64)


def q_values(p: Floats, tests: int) -> Floats:
    """The q values of `p` (Benjamini and Hochberg, 1995), shape (len(p),); the others of `tests` count as 1."""
    order = np.argsort(p, kind="stable")
    raised = p[order] * tests / np.arange(1, len(p) + 1)
    q = np.empty(len(p))
    q[order] = np.minimum.accumulate(raised[::-1])[::-1]
    return np.minimum(q, 1.0)


Points = Sequence[tuple[float, float]]
"""Evidence in nats, ascending, and the share of suspects with so much that were at fault, in (0, 1), never falling."""


def probability_at(points: Points, evidence: float) -> float:
    """The share at that evidence: log-odds are interpolated between the points and constant beyond them."""
    if evidence <= points[0][0]:
        return points[0][1]
    for (low, p), (high, q) in pairwise(points):
        if evidence <= high:
            at = (evidence - low) / (high - low)
            return min(q, _logistic((1 - at) * _logit(p) + at * _logit(q)))
    return points[-1][1]


def _logit(p: float) -> float:
    return math.log(p / (1 - p))


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x))
