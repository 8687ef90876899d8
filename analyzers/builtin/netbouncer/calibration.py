"""The score: how often a component with that much evidence really lost probes, in simulations.

`SCORES` was made by `python -m tests.benchmarks.netbouncer --calibrate --trials 200` (1,200 epochs) on tuning
seeds: half of the epochs healthy, the others with one to four links of U(.005, .06) in a network of k = 8;
noise U(0, 1e-5), U(0, 1e-4) and U(0, 1e-3); bursts of U(.02, .2) on none, 0.1 and 1 % of the paths; the bar
lowered by 3 nats so that doubtful links are seen too. Each pair is the middle of a step of evidence over the
bar, in nats, and the share of entries in that step that held a bad link (made monotone). Like every such figure
it holds for a world like the simulated one.
"""

from __future__ import annotations

from analyzers.builtin.netbouncer.stages import bar_of
from analyzers.builtin.stats.probability import probability_at

ALPHA = 1e-4
"""The default level of the test."""
SURE = 12.0
"""Nats over the bar of a single blamed one from which one window is enough."""

SCORES: tuple[tuple[float, float], ...] = (
    (-2.5, 0.045),
    (-1.5, 0.101),
    (-0.5, 0.295),
    (0.75, 0.476),
    (2.25, 0.798),
    (4.5, 0.954),
    (9.0, 0.992),
    (18.5, 0.996),
)


def surplus_of(ratio: float, components: int, blamed: int = 1) -> float:
    """Nats by which evidence is above the bar of one of so many blamed ones, at the default level whatever was set."""
    return (ratio - bar_of(ALPHA, components)(blamed)) / 2


def probability(surplus: float) -> float:
    """The probability that a component is at fault, given its evidence above the bar in nats."""
    return probability_at(SCORES, surplus)
