"""The score: how often a node that so few healthy ones are as far off as really was gray, in simulations.

`SCORES` was made by `python -m tests.benchmarks.validator --calibrate --fleets 600` on tuning seeds (below
`FIRST_REPORTING_SEED` of the simulator): fleets of 200 nodes, a fifth of them healthy, a third with a benign event,
the others with defects of 3 to 20 %, spreads of .5 to 2 % with normal and with heavy tails, the bar lowered so that
doubtful nodes are seen too. Each pair is the
logarithm of one over the number of healthy nodes to be expected as far off, and the share of nodes there that were
truly defective (made monotone); between the pairs the log-odds are
interpolated. Like every such figure it holds for a world with as many faults as the simulated one.
"""

from __future__ import annotations

import math

from analyzers.builtin.scores import probability_at

_LEAST = 1e-30

SCORES: tuple[tuple[float, float], ...] = (
    (-4.5, 0.014),
    (-3.5, 0.018),
    (-2.5, 0.041),
    (-1.5, 0.088),
    (-0.5, 0.191),
    (0.5, 0.413),
    (1.5, 0.549),
    (2.5, 0.804),
    (3.75, 0.888),
    (5.25, 0.931),
    (6.0, 0.979),
    (9.0, 0.999),
)


def against_chance(by_chance: float) -> float:
    """What speaks against chance, in nats, where so many healthy nodes are to be expected as far off."""
    return -math.log(max(by_chance, _LEAST))


def probability(by_chance: float) -> float:
    """The probability that a node is defective, where so many healthy nodes are to be expected as far off."""
    return probability_at(SCORES, against_chance(by_chance))
