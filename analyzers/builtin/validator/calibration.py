"""The score: how often a node that so few healthy ones are as far off as really was gray, in simulations.

`SCORES` was made by `python -m tests.benchmarks.validator --calibrate --fleets 700` on tuning seeds (below
`FIRST_REPORTING_SEED` of the simulator): fleets of 3 to 200 nodes with 1 to 30 runs, a fifth of them healthy, some
with better nodes or a benign event, the others with defects of 3 to 20 %, spreads of .5 to 2 % with normal and with
heavy tails, the bar lowered so that doubtful nodes are seen too. Each pair is the logarithm of one over the number of
healthy nodes to be expected as far off, and the share of nodes there that were truly defective (made monotone);
between the pairs the log-odds are interpolated. Like every such figure it holds for a world with as many faults as
the simulated one.
"""

from __future__ import annotations

import math

from analyzers.builtin.stats.probability import probability_at

_LEAST = 1e-30

SCORES: tuple[tuple[float, float], ...] = (
    (-8.0, 0.022),
    (-2.5, 0.034),
    (-1.5, 0.065),
    (-0.5, 0.141),
    (0.5, 0.251),
    (1.5, 0.464),
    (2.5, 0.693),
    (3.75, 0.879),
    (5.25, 0.962),
    (6.0, 0.974),
)


def against_chance(by_chance: float) -> float:
    """Evidence against chance, in nats, where so many healthy nodes are to be expected as far off."""
    return -math.log(max(by_chance, _LEAST))


def probability(by_chance: float) -> float:
    """The probability that a node is defective, where so many healthy nodes are to be expected as far off."""
    return probability_at(SCORES, against_chance(by_chance))
