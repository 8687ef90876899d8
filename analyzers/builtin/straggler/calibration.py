"""The score: how often a node with so much evidence was at fault, in simulations.

`SCORES` are chosen cautiously by hand, in nats of evidence; `python -m tests.benchmarks.straggler --calibrate` measures
the shares on tuning seeds (below `FIRST_REPORTING_SEED` of the simulator), the bar lowered so that doubtful nodes are
seen too: jobs of 16 to 128 nodes, half of them with a fault of any kind, the others with a benign event.
"""

from __future__ import annotations

from analyzers.builtin.stats.probability import probability_at

SCORES: tuple[tuple[float, float], ...] = ((1.0, 0.1), (4.0, 0.4), (6.0, 0.7), (9.0, 0.93), (12.0, 0.98))


def probability(evidence: float) -> float:
    return probability_at(SCORES, evidence)
