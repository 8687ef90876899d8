"""The score: how often a component with that much evidence really was at fault, in simulations.

`SCORES` was made by `python -m tests.benchmarks.voting --calibrate --share 0.3` (552 windows) on tuning seeds (below
`FIRST_REPORTING_SEED` of the simulator): the network of 007, half of the windows healthy, the others with one to four
faint links of U(1e-4, 2e-3), noise U(0, 1e-6), U(0, 1e-5) and U(0, 1e-4); 120 of the windows with the bar lowered by
4 nats so that doubtful links are seen too, 432 with the usual one. Each pair is the middle of a step of evidence over
the threshold (`charges.over_threshold`), in nats, and the share of entries in that step that held a bad link (made
monotone); between the pairs the log-odds are interpolated. Like every such figure it holds for a world like the
simulated one.
"""

from __future__ import annotations

from analyzers.builtin.stats.probability import probability_at

SCORES: tuple[tuple[float, float], ...] = (
    (-2.5, 0.019),
    (-1.5, 0.113),
    (-0.5, 0.239),
    (0.75, 0.531),
    (2.25, 0.761),
    (4.5, 0.919),
    (9.0, 0.991),
    (18.5, 0.993),
    (25.0, 0.998),
)


def probability(surplus: float) -> float:
    """The probability that an entry is at fault, given its evidence above the threshold in nats."""
    return probability_at(SCORES, surplus)


OUTVOTED: tuple[tuple[float, float], ...] = (
    (-3.0, 0.1),
    (-1.5, 0.3),
    (0.5, 0.45),
    (2.0, 0.72),
    (4.5, 0.88),
    (9.5, 0.92),
    (15.0, 0.955),
    (25.0, 0.98),
    (50.0, 0.995),
)
"""The same where only failing flows name their path: the share of entries that were right in some 400 windows with the
bar lowered by 4 nats, of two generators that share no code (`analyzers.simulators.voting`, 90 windows with 0 to 14 bad
links; all such cases of `tests.worlds.voting`, seeds 100 and 101, among them missing hops, congestion and a busy rack),
made monotone and rounded downwards. Figures are reported of other seeds and of `tests.worlds.voting_drawn`.
"""


def probability_of_outvoting(surplus: float) -> float:
    """The same where only failing flows name their path."""
    return probability_at(OUTVOTED, surplus)
