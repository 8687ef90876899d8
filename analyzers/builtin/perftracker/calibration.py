"""The score: a cautious reading of evidence in nats.

`SCORES` are chosen by hand; `python -m tests.benchmarks.perftracker` says how often suspects with each were at fault.
The published rule has no probabilities.
"""

from __future__ import annotations

from analyzers.builtin.stats.probability import probability_at

SCORES: tuple[tuple[float, float], ...] = ((0.0, 0.1), (2.0, 0.4), (4.0, 0.8), (7.0, 0.93), (12.0, 0.98))


def probability(evidence: float) -> float:
    return probability_at(SCORES, evidence)
