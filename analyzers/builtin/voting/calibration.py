"""The score: how often a component with that much evidence really was at fault, in simulations."""

from __future__ import annotations

import math
from itertools import pairwise

SCORES: tuple[tuple[float, float], ...] = ((0.0, 0.9), (5.0, 0.99))


def probability(surplus: float) -> float:
    """The probability that an entry is at fault, given its evidence above the threshold in nats."""
    if surplus <= SCORES[0][0]:
        return SCORES[0][1]
    for (low, p), (high, q) in pairwise(SCORES):
        if surplus <= high:
            at = (surplus - low) / (high - low)
            return min(q, _logistic((1 - at) * _logit(p) + at * _logit(q)))
    return SCORES[-1][1]


def _logit(p: float) -> float:
    return math.log(p / (1 - p))


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x))
