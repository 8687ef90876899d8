"""Which nodes beyond their bar are off by more than chance, over all metrics of a fleet at once.

Of the blamed at most a share is expected to be healthy, and so of healthy fleets at most this share accuses anyone
(Benjamini and Hochberg, 1995). A node is asked twice, where it was measured before: whether it has become worse by more
than nodes change by chance, and than is allowed at all; and whether it is farther off than healthy nodes are. Half of
what may be false goes to either question; what the first one explains is no witness in the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.stats import tails
from analyzers.builtin.stats.probability import q_values
from analyzers.builtin.stats.tails import Better, Tails

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """What is asked about one metric; shape (nodes,). Figures are logarithms of ratios, in which better and worse weigh
    the same, and more is worse.

    `far` are the nodes beyond their bar, `below` those that are worse by more than is allowed, whatever nodes differ
    by. `off` is how far each is from what is usual, `fell` how much worse it is than it was itself (NaN where it was
    not measured). `by_runs` is the probability of as many bad runs, and `few` says where only a part of the runs is
    bad, so that it alone counts.
    """

    nodes: tuple[str, ...]
    far: Bools
    below: Bools
    off: Floats
    fell: Floats
    by_runs: Floats
    few: Bools


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """`apart` are to blame. `by_chance` is how many healthy ones are to be expected, among all that were measured, that
    are as far off as each, or fell as far; NaN for nodes within their bar.
    """

    apart: Bools
    by_chance: Floats


def beyond_chance(
    metrics: Sequence[Metric], places: Tails, allowed: float, most_false: float, least_width: float
) -> list[Answer]:
    """The answers, in the order of `metrics` and of `places`, what was learnt of where healthy nodes stand. `allowed`
    is how much worse a node may become, as a logarithm; `least_width` the least that nodes are taken to change by.
    """
    known = [np.isfinite(one.fell) for one in metrics]
    twice = sum(int(one.sum()) for one in known)
    share = most_false / 2 if twice else most_false
    worse = [one.below & (one.fell > allowed) for one in metrics]
    changes = [_improved(one) for one in metrics]
    learnt = tails.learn(changes, least_width) if any(one.any() for one in worse) else places
    change = [learnt.chance(at, one.fell) + one.by_runs for at, one in enumerate(metrics)]
    became = _answers(change, worse, twice, share)
    rest = [one.far & ~new.apart for one, new in zip(metrics, became, strict=True)]
    off = [np.where(one.few, 0.0, places.chance(at, one.off)) + one.by_runs for at, one in enumerate(metrics)]
    stands = _answers(off, rest, sum(len(one.far) for one in metrics), share)
    return [
        Answer(new.apart | far.apart, np.where(new.apart, new.by_chance, far.by_chance))
        for new, far in zip(became, stands, strict=True)
    ]


def _improved(one: Metric) -> Better:
    """The nodes that became better than they were, and by how much."""
    places = np.flatnonzero(one.fell < 0).tolist()  # false for NaN
    return Better(tuple(one.nodes[at] for at in places), -one.fell[places])


def _answers(chance: Sequence[Floats], asked: Sequence[Bools], tests: int, share: float) -> list[Answer]:
    """One question of `tests` nodes and metrics, whose candidates are `asked`; `chance` is of all nodes."""
    found = [one[chosen] for one, chosen in zip(chance, asked, strict=True)]
    q = q_values(np.concatenate([*found, np.empty(0)]), tests)
    answers, at = [], 0
    for chosen, one in zip(asked, found, strict=True):
        apart, expected = np.zeros(len(chosen), dtype=bool), np.full(len(chosen), np.nan)
        apart[chosen], expected[chosen] = q[at : at + len(one)] <= share, one * tests
        at += len(one)
        answers.append(Answer(apart, expected))
    return answers
