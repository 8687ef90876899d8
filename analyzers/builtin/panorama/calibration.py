"""The score: how often an entry with that much evidence really was at fault, in simulations.

`SCORES` was made by `python -m tests.benchmarks.panorama --calibrate --trials 480` on tuning seeds (below
`FIRST_REPORTING_SEED`): systems of 10 to 50 processes with gray failures, hangs, crashes, overloaded observers,
lost and late reports, and nothing wrong, the bar lowered so that doubtful culprits are seen too. Each pair is the
middle of a step of evidence over the threshold at margin 0, in nats, and the share of entries in it that were truly at
fault, made monotone; between the pairs the log-odds are interpolated. It holds for a world with as many faults.
"""

from __future__ import annotations

from analyzers.builtin.scores import probability_at

SCORES: tuple[tuple[float, float], ...] = (
    (-1.5, 0.354),
    (-0.5, 0.411),
    (0.75, 0.907),
    (4.5, 0.963),
    (9.0, 0.998),
    (18.5, 0.999),
)


def probability(surplus: float) -> float:
    """The probability that a culprit is at fault, given its evidence above the threshold in nats."""
    return probability_at(SCORES, surplus)
