"""The score: how often a component with so much evidence was the cause, in simulations.

`SCORES` round what 400 tuning trials gave (.67 at -0.2 nats, .77 at 4.1, .99 at 6.1);
`python -m tests.benchmarks.metric_blame --calibrate` prints them again, from seeds below `FIRST_REPORTING_SEED` of the
simulator.
"""

from __future__ import annotations

from analyzers.builtin.stats.probability import probability_at

SCORES: tuple[tuple[float, float], ...] = ((-2.0, 0.3), (0.0, 0.6), (4.0, 0.77), (6.0, 0.95), (9.0, 0.98))


def probability(evidence: float) -> float:
    return probability_at(SCORES, evidence)
