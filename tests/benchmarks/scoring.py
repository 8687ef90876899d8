"""Counting in benchmarks of accuracy: intervals, calibrated shares, and trials spread over the cores."""

from __future__ import annotations

import math
import os
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing import get_context
from typing import Any, TypeVar

from analyzers.builtin.stats.probability import wilson

EDGES = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0)
"""Bins of what is stated of suspects."""
RARE = (0.0, 0.005, 0.01, 0.02, 0.04, 0.08, 0.15, 0.3, 1.0)
"""Bins of what is stated of events that hardly ever happen."""

Job = TypeVar("Job")
Result = TypeVar("Result")


def spread(function: Callable[[Job], Result], jobs: Sequence[Job]) -> list[Result]:
    """Run jobs on the cores that there are, in their order; numpy is held to one thread each."""
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    with get_context("spawn").Pool(min(2, os.cpu_count() or 1)) as pool:
        return pool.map(function, jobs, chunksize=max(1, len(jobs) // 64))


STEPS = (-3.0, -2.0, -1.0, 0.0, 1.5, 3.0, 6.0, 12.0, 25.0, math.inf)


def monotone(
    pairs: Sequence[tuple[float, bool]], edges: Sequence[float] = STEPS
) -> list[tuple[float, float]]:
    """Shares by steps of evidence between `edges`, pooled until they rise (pool adjacent violators).

    Half a success and half a failure are added to each, so that no finite record makes a certainty.
    """
    pooled: list[list[float]] = []
    for low, high in pairwise(edges):
        hits = [hit for surplus, hit in pairs if low <= surplus < high]
        if not hits:
            continue
        middle = (low + high) / 2 if math.isfinite(high) else low
        pooled.append([middle, float(sum(hits)), float(len(hits))])
        while len(pooled) > 1 and pooled[-2][1] / pooled[-2][2] > pooled[-1][1] / pooled[-1][2]:
            _, more, trials = pooled.pop()
            pooled[-1] = [pooled[-1][0], pooled[-1][1] + more, pooled[-1][2] + trials]
    return [(middle, min(0.999, round((hits + 0.5) / (trials + 1), 3))) for middle, hits, trials in pooled]


def kept_word(pairs: Sequence[tuple[float, bool]]) -> tuple[float, float, str]:
    """Whether probabilities keep their word: the Brier score of what was said, that of always saying the usual share,
    and what was true of what by thirds of probability. `pairs` are what was said and whether it was so.
    """
    true = sum(right for _, right in pairs) / max(1, len(pairs))
    brier = sum((said - right) ** 2 for said, right in pairs) / max(1, len(pairs))
    parts = []
    for low, high in ((0.0, 0.5), (0.5, 0.9), (0.9, 1.01)):
        part = [(said, right) for said, right in pairs if low <= said < high]
        if not part:
            continue
        hits, mean = sum(right for _, right in part), sum(said for said, _ in part) / len(part)
        least, most = wilson(hits, len(part))
        parts.append(f"says {mean:.3f}, true {hits / len(part):.3f} [{least:.3f}, {most:.3f}] of {len(part)}")
    return brier, true * (1 - true), "; ".join(parts)


def brier_row(name: str, pairs: Sequence[tuple[float, bool]]) -> dict[str, Any]:
    """Brier score of what was said over that of always saying the usual share: below 1 if what was said is worth
    anything. Has no bar where all of them were so, or none: then the usual share is never wrong.
    """
    brier, usual, parts = kept_word(pairs)
    return {
        "name": name,
        "value": round(brier / usual, 4) if usual else round(brier, 4),
        "unit": "" if usual else "itself",
        "bar": "< 1" if usual else None,
        "note": f"{brier:.4f} against {usual:.4f}; {parts}",
    }


def by_bins(stated: Sequence[tuple[float, bool]]) -> list[float]:
    """For each bin of `EDGES` in turn the sum of what was stated in it, how often that was true, and how many there
    are; counts of several parts add up."""
    counts = [0.0] * 3 * (len(EDGES) - 1)
    for said, right in stated:
        at = 3 * min(bisect_right(EDGES, said) - 1, len(EDGES) - 2)
        counts[at : at + 3] = [counts[at] + said, counts[at + 1] + right, counts[at + 2] + 1]
    return counts


@dataclass
class Tally:
    """Components found, wrongly named and missed over windows; for flows, how many were put down to the right one.
    `accused` are windows with a wrong name, `undecided` inconclusive ones, `alike` names beside leading ones; `unheard`
    are components at fault that left less trace than the method asks for before it may name anyone.
    """

    windows: int = 0
    found: int = 0
    false: int = 0
    missed: int = 0
    accused: int = 0
    undecided: int = 0
    alike: int = 0
    flows: int = 0
    right: int = 0
    unheard: int = 0

    @classmethod
    def of(cls, named: Sequence[str], truth: set[str]) -> Tally:
        """One window."""
        right, wrong = len(set(named) & truth), len(set(named) - truth)
        return cls(1, right, wrong, len(truth) - right, int(wrong > 0))

    def plus(self, other: Tally) -> Tally:
        return Tally(**{name: value + getattr(other, name) for name, value in vars(self).items()})

    @property
    def precision(self) -> float:
        return self.found / max(1, self.found + self.false)

    @property
    def recall(self) -> float:
        return self.found / max(1, self.found + self.missed)

    @property
    def f1(self) -> float:
        return 2 * self.found / max(1, 2 * self.found + self.false + self.missed)


def windows_until(told: Sequence[tuple[bool, bool]]) -> int | None:
    """Number of windows until an incident: `told` says of each whether it names the culprit, and
    whether surely.

    One that is sure is enough, else two of the last three.
    """
    for last, (named, sure) in enumerate(told):
        if named and (sure or sum(one for one, _ in told[max(0, last - 2) : last + 1]) >= 2):
            return last + 1
    return None


def windows_row(name: str, taken: Sequence[int | None], unit: str) -> dict[str, object]:
    """The median of such windows, and how they spread; those without an incident count as later than all others."""
    order = sorted(math.inf if one is None else one for one in taken)
    late = order[min(len(order) - 1, math.ceil(0.95 * len(order)) - 1)]
    first = f"{order.count(1)} after one, {order.count(2)} after two"
    note = f"95 % within {late:g}; {first}; {order.count(math.inf)} of {len(order)} without an incident"
    return {"name": name, "value": order[(len(order) - 1) // 2], "unit": unit, "bar": None, "note": note}


def note_of(tally: Tally) -> str:
    parts = []
    for name, hits, trials in (
        ("precision", tally.found, tally.found + tally.false),
        ("recall", tally.found, tally.found + tally.missed),
    ):
        low, high = wilson(hits, trials)
        parts.append(f"{name} {hits / max(1, trials):.3f} [{low:.3f}, {high:.3f}]")
    return f"{', '.join(parts)}, F1 {tally.f1:.3f}, {tally.windows} windows"
