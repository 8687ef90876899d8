"""The score: how often a component with that much evidence really was at fault, in simulations.

`SCORES` is the one place where the calibration lives. It was made by `python -m tests.benchmarks.accuracy
--calibrate --trials 3000` on tuning seeds (below `FIRST_REPORTING_SEED` of the simulator): windows of preset
M, half of them healthy, the others faint, gray or several faults at once, with independent and with clumped
backgrounds, the bar lowered by 3 nats so that doubtful components are seen too. Each pair is the middle of a
step of evidence over the threshold at margin 0, in nats, and the share of suspects in that step that were
truly at fault (made monotone); between the pairs the log-odds are interpolated. Like every such figure it
holds for a world with as many faults as the simulated one: half of all windows.
"""

from __future__ import annotations

from analyzers.builtin.scores import probability_at

SCORES: tuple[tuple[float, float], ...] = (
    (-2.5, 0.3),
    (-1.5, 0.484),
    (-0.5, 0.691),
    (0.75, 0.952),
    (2.25, 0.952),
    (4.5, 0.988),
    (9.0, 0.994),
    (18.5, 0.997),
    (25.0, 0.999),
)


def probability(surplus: float) -> float:
    """The probability that a suspect is at fault, given its evidence above the threshold.

    The figure is for the whole entry, the suspect or one of those that the data cannot tell apart from it:
    nothing in the data says which of them it is.
    """
    return probability_at(SCORES, surplus)
