"""The score: how often a suspect with that much evidence really was at fault, in simulations.

`SCORES` was made by `python -m tests.benchmarks.pingmesh --calibrate --trials 60` on tuning seeds (below
`FIRST_REPORTING_SEED`): 1,440 windows of 144 and 600 servers with faults of every kind, some in their first minutes and
some two at once, most with a benign event beside them, and benign events alone; the bar lowered by 3 nats, so that
doubtful suspects are seen too. Each pair is the middle of a step of evidence over the bar at `alpha` 1e-3, in nats, and
the share of suspects in that step that were truly at fault (made monotone). Wrong far above the bar were servers that
topology puts into the wrong pod. Like every such figure it holds for a world like the simulated one.
"""

from __future__ import annotations

import math

from analyzers.builtin.stats.probability import probability_at

SCORES: tuple[tuple[float, float], ...] = (
    (-2.5, 0.167),
    (-1.5, 0.583),
    (2.25, 0.936),
    (25.0, 0.992),
)

BAR = 1e-3
"""The level from which evidence is counted, whatever `alpha` is."""


def probability(adjusted: float) -> float:
    """The probability that a suspect is at fault, given its p value (corrected for the number of tests)."""
    return probability_at(SCORES, surplus(adjusted))


def surplus(adjusted: float) -> float:
    """Evidence above the bar, in nats."""
    return math.log(BAR) - math.log(max(adjusted, 1e-300))
