"""The score: how often a node with so much evidence was at fault, in simulations.

`SCORES` are read cautiously, in nats of evidence: `python -m tests.benchmarks.straggler --calibrate` on 56 tuning seeds
(below `FIRST_REPORTING_SEED` of the simulator; half of the jobs with a fault, many beside a benign event, the bar
lowered) gives 29 of 29 nodes at fault where iteration times are there, 5 of them with 8 nats, and 6 of 8 where they are
not, whatever the evidence: that is what the assumption `pace` takes off.
"""

from __future__ import annotations

from analyzers.builtin.stats.probability import probability_at

SCORES: tuple[tuple[float, float], ...] = ((1.0, 0.1), (4.0, 0.4), (6.0, 0.7), (9.0, 0.93), (12.0, 0.98))


def probability(evidence: float) -> float:
    return probability_at(SCORES, evidence)
