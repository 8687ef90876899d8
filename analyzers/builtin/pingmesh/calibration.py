"""The score: how often a suspect with that much evidence really was at fault, in simulations."""

from __future__ import annotations

import math

from analyzers.builtin.scores import probability_at

SCORES: tuple[tuple[float, float], ...] = ((0.0, 0.5), (10.0, 0.99))


def probability(adjusted: float, alpha: float) -> float:
    """The probability that a suspect is at fault, given its p value (corrected for the number of tests)."""
    return probability_at(SCORES, surplus(adjusted, alpha))


def surplus(adjusted: float, alpha: float) -> float:
    """Evidence above the bar, in nats; bounded, because p values as small as 1e-300 say no more than 1e-30."""
    return min(60.0, math.log(alpha) - math.log(max(adjusted, 1e-300)))
