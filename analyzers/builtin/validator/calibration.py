"""The score: how often a node that is worse by that much really was gray, in simulations.

`SCORES` was made by `python -m tests.benchmarks.validator --calibrate --fleets 600` on tuning seeds (below
`FIRST_REPORTING_SEED` of the simulator): fleets of 200 nodes, a fifth of them healthy, a third with a benign event,
the others with defects of 3 to 20 %, spreads of .5 to 2 % with normal and with heavy tails, the bar lowered so that
doubtful nodes are seen too. Each pair is the logarithm of how many times the spread of healthy nodes a node is
worse, and the share of nodes there that were truly defective (made monotone); between the pairs the log-odds are
interpolated. Like every such figure it holds for a world with as many faults as the simulated one.
"""

from __future__ import annotations

import math

from analyzers.builtin.scores import probability_at

SCORES: tuple[tuple[float, float], ...] = (
    (0.8, 0.018),
    (1.01, 0.032),
    (1.18, 0.055),
    (1.32, 0.12),
    (1.45, 0.212),
    (1.56, 0.366),
    (1.7, 0.505),
    (1.87, 0.619),
    (2.01, 0.67),
    (2.19, 0.882),
    (2.43, 0.975),
    (2.7, 0.984),
    (3.03, 0.997),
)


def probability(spreads: float) -> float:
    """The probability that a node is defective that is worse by so many spreads of healthy nodes."""
    return probability_at(SCORES, math.log(max(spreads, 1e-9)))
