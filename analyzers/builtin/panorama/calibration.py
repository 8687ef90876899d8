"""The probability that a culprit is at fault, from its evidence, where all assumptions hold.

Two calibrations on tuning seeds (below `FIRST_REPORTING_SEED`), each with the bar lowered so that doubtful culprits are
seen too: `python -m tests.benchmarks.panorama --calibrate --trials 96` (systems of 10 to 50 processes of which next to
no healthy call fails) gives .78 at .75 nats and .99 at 2.25; systems whose healthy calls fail at shares that differ by
subject, pair and hour give .0 up to 3 nats, .6 from 5 to 8, and .97 above. The pairs lie between the two: where noise
is as learnt they understate, and `assumptions.lowered` takes off what they would overstate where it is not. Each pair
is evidence over the threshold at margin 0, in nats, and a probability; between the pairs the log-odds are interpolated.
"""

from __future__ import annotations

from analyzers.builtin.stats.probability import probability_at

SCORES: tuple[tuple[float, float], ...] = (
    (-1.5, 0.1),
    (-0.5, 0.2),
    (0.75, 0.55),
    (2.25, 0.88),
    (5.0, 0.95),
    (9.0, 0.98),
    (18.5, 0.99),
)


def probability(surplus: float) -> float:
    """The probability that a culprit is at fault, given its evidence above the threshold in nats."""
    return probability_at(SCORES, surplus)
