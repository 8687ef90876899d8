"""From evidence to a probability, by a table that simulations made. Each method has a table of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

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
