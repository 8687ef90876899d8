"""The score: how often a component with that much evidence really was at fault, in simulations.

`SCORES` is the one place where the calibration lives. It is made by `python -m tests.benchmarks.accuracy
--calibrate` on tuning seeds (below `FIRST_REPORTING_SEED` of the simulator): windows of preset M, half of
them healthy, the others with faults of every kind, with independent and with clumped backgrounds, the bar
lowered so that doubtful components are seen too. Each pair is the surplus of evidence over the threshold, in
nats, and the share of suspects with that surplus that were truly at fault (made monotone); between the pairs
the log-odds are interpolated.
"""

from __future__ import annotations

import math
from itertools import pairwise

SCORES: tuple[tuple[float, float], ...] = (
    (-3.0, 0.70),
    (0.0, 0.90),
    (3.0, 0.97),
    (8.0, 0.99),
    (20.0, 0.995),
)


def probability(surplus: float) -> float:
    """The probability that a suspect is at fault, given its evidence above the threshold.

    The figure is for the whole entry, the suspect or one of those that the data cannot tell apart from it:
    nothing in the data says which of them it is.
    """
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
