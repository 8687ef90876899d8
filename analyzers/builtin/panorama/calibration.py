"""The score: how often an entry with that much evidence really was at fault, in simulations.

`SCORES` was made by `python -m tests.benchmarks.panorama --calibrate --trials 480` on tuning seeds (below
`FIRST_REPORTING_SEED`): systems of 10 to 50 processes with gray failures, hangs, crashes, overloaded observers,
lost and late reports, and nothing wrong, the bar lowered so that doubtful culprits are seen too. Each pair is the
middle of a step of evidence over the threshold at margin 0, in nats, and the share of entries in it that were truly at
fault, made monotone; between the pairs the log-odds are interpolated. It holds for a world with as many faults.
"""

from __future__ import annotations

import math
from itertools import pairwise

SCORES: tuple[tuple[float, float], ...] = (
    (-1.5, 0.354),
    (-0.5, 0.411),
    (0.75, 0.907),
    (4.5, 0.963),
    (9.0, 0.998),
    (18.5, 0.999),
)


def probability(surplus: float) -> float:
    """The probability that a culprit is at fault, given its evidence above the threshold in nats."""
    points = SCORES
    if surplus <= points[0][0]:
        return points[0][1]
    for (low, p), (high, q) in pairwise(points):
        if surplus <= high:
            at = (surplus - low) / (high - low)
            return min(q, _logistic((1 - at) * _logit(p) + at * _logit(q)))
    return points[-1][1]


def _logit(p: float) -> float:
    return math.log(p / (1 - p))


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x))
