"""The score: how often a suspect with that much evidence really was at fault, in simulations.

`SCORES` is the one place where the calibration lives. It was made by `python -m tests.benchmarks.trace_blame
--calibrate --trials 600` on tuning seeds (below 2,000,000) of `analyzers.simulators.traces`: windows of a minute, half
of them with a fault of any type, the margin lowered so that doubtful suspects are seen, too.
Each pair is the middle of a step of evidence in nats and the share of suspects in it that were at fault, made
monotone; between the pairs the log-odds are interpolated. It holds for a world with as many faults as the
simulated one: half of all windows.
"""

from __future__ import annotations

from analyzers.builtin.scores import probability_at

SCORES: tuple[tuple[float, float], ...] = (
    (-1.5, 0.417),
    (-0.5, 0.75),
    (2.0, 0.833),
    (4.5, 0.962),
    (9.0, 0.988),
    (18.5, 0.991),
    (25.0, 0.997),
)


def probability(odds: float) -> float:
    """The probability that a suspect with these log odds is at fault; the same for its whole entry."""
    return probability_at(SCORES, odds)
