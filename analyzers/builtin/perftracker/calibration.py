"""The score: how often a worker with so much evidence in nats was at fault, in simulations.

`SCORES` was made by `python -m tests.benchmarks.perftracker --calibrate` on tuning seeds: 36 profiles of the simulator
and 22 worlds of the second generator on whose seeds nothing is reported, 51 workers with 4 nats or more. From 4 to 5
nats 3 of 6 were at fault, from 5 to 11 16 of 18, from 11 to 16 all of 11, beyond all of 22; to each share half a
success and half a failure are added. The published rule has no probabilities.
"""

from __future__ import annotations

from analyzers.builtin.stats.probability import probability_at

SCORES: tuple[tuple[float, float], ...] = ((0.0, 0.1), (4.5, 0.5), (8.0, 0.87), (13.5, 0.96), (16.0, 0.978))


def probability(evidence: float) -> float:
    return probability_at(SCORES, evidence)
