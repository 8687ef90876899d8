"""The score: how often a component with so much evidence was the cause, in simulations.

`python -m tests.benchmarks.metric_blame --calibrate` prints the table from tuning seeds, below `FIRST_REPORTING_SEED`
of the simulator.
"""

from __future__ import annotations

from analyzers.builtin.stats.probability import probability_at

SCORES: tuple[tuple[float, float], ...] = ((-2.0, 0.1), (0.0, 0.4), (2.0, 0.75), (4.0, 0.9), (8.0, 0.97))


def probability(evidence: float) -> float:
    return probability_at(SCORES, evidence)
