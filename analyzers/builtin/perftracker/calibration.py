"""The score: how often a worker with so much evidence in nats was at fault, in simulations.

`SCORES` was made by `python -m tests.benchmarks.perftracker --calibrate` on tuning seeds: 48 profiles of the simulator
and four worlds of each case of the second generator on whose seeds nothing is reported, 244 workers with 4 nats or
more. From 4 to 6 nats 9 of 15 were at fault, from 6 to 8 9 of 11, beyond all of 218; to each share half a success and
half a failure are added, and the last are rounded down. The published rule has no probabilities.
"""

from __future__ import annotations

from analyzers.builtin.stats.probability import probability_at

SCORES: tuple[tuple[float, float], ...] = ((0.0, 0.1), (5.0, 0.59), (7.0, 0.79), (9.5, 0.97), (13.5, 0.985))


def probability(evidence: float) -> float:
    return probability_at(SCORES, evidence)
