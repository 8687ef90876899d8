"""The score: how often a suspect with that much evidence really was at fault, in simulations.

`SCORES` is the one place where the calibration lives. It was made by `python -m tests.benchmarks.trace_blame
--calibrate --trials 150` on tuning seeds (below 2,000,000) of `analyzers.simulators.traces`: windows of a minute, half
of them with a fault of any type, the margin lowered so that doubtful suspects are seen, too.
Each pair is the middle of a step of evidence in nats and the share of suspects in it that were at fault, made
monotone; between the pairs the log-odds are interpolated. It holds for a world with as many faults as the
simulated one: half of all windows; evidence is lowered first where assumptions fail (`assumptions`).
"""

from __future__ import annotations

from analyzers.builtin.stats.probability import probability_at

SCORES: tuple[tuple[float, float], ...] = (
    (-1.5, 0.167),
    (-0.5, 0.75),
    (4.5, 0.944),
    (9.0, 0.945),
    (18.5, 0.975),
    (25.0, 0.986),
)


def probability(odds: float) -> float:
    """The probability that a suspect with these log odds is at fault; the same for its whole entry."""
    return probability_at(SCORES, odds)
