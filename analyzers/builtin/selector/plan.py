"""Benchmarks to run on a node, their order, and the break-even.

The coverage of a set of benchmarks is the share of past defects that it shows: C(B) = |union of D_b| / |D|, and what
is left of a node's probability p after it is p (1 - C(B)) (the selection of Xiong et al., USENIX ATC 2024).
Benchmarks are taken greedily by new coverage per hour; for one node that order is the same whatever its p.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.nodes.defects import judge
from analyzers.builtin.nodes.outcome import Rules
from analyzers.builtin.nodes.samples import samples, words_of
from analyzers.contract import Sums, Window

_DAY = 86_400_000_000
_LASTS = {"duration", "runtime"}
_UNITS = {
    "hours": 1.0,
    "hour": 1.0,
    "h": 1.0,
    "minutes": 1 / 60,
    "min": 1 / 60,
    "seconds": 1 / 3600,
    "s": 1 / 3600,
}

Defect = tuple[str, int]  # the node, and the day on which it was found


@dataclass(frozen=True, slots=True)
class Past:
    """Past findings of benchmarks: `found[b]` are the defects that benchmark b showed; `hours[b]` its duration, None
    where it is not known.
    """

    found: Mapping[str, frozenset[Defect]]
    hours: Mapping[str, float | None]

    @property
    def defects(self) -> frozenset[Defect]:
        return frozenset().union(*self.found.values())


@dataclass(frozen=True, slots=True)
class Step:
    """One more benchmark: `coverage` and `hours` are of all up to it."""

    benchmark: str
    coverage: float
    hours: float


@dataclass(frozen=True, slots=True)
class Choice:
    """Benchmarks for one node: `left` is its probability afterwards, `saved` the node-hours expected to be saved,
    the benchmarks' own taken off.
    """

    benchmarks: tuple[str, ...]
    hours: float
    left: float
    saved: float


def past_of(window: Window) -> Past:
    """Past findings by the benchmark results of the window and its history, a round of results being a day's."""
    found: dict[str, set[Defect]] = {}
    hours: dict[str, list[float]] = {}
    for one in (*window.history, window):
        sums = one.sums.get("results")
        for day, round_ in _by_day(sums) if sums is not None else ():
            outcome = judge(samples(round_), [], Rules())
            for judged in outcome.judged:
                found.setdefault(judged.stratum.benchmark, set()).update(
                    (node, day) for node, failing in zip(judged.nodes, judged.failing, strict=True) if failing
                )
            for unjudged in outcome.unjudged:
                found.setdefault(unjudged.stratum.benchmark, set())
            for benchmark, lasted in _durations(round_).items():
                hours.setdefault(benchmark, []).extend(lasted)
    taken = {name: float(np.median(hours[name])) if name in hours else None for name in found}
    return Past({name: frozenset(one) for name, one in sorted(found.items())}, dict(sorted(taken.items())))


def greedy(past: Past, usual_hours: float) -> tuple[Step, ...]:
    """The benchmarks in the order in which to run them, until one adds nothing."""
    total, steps, covered, hours = len(past.defects), [], set[Defect](), 0.0
    left = dict(past.found)
    while left and total:
        gains = {
            name: len(found - covered) / (past.hours[name] or usual_hours) for name, found in left.items()
        }
        best = min(gains, key=lambda name: (-gains[name], name))
        if gains[best] <= 0:
            break
        covered |= left.pop(best)
        hours += past.hours[best] or usual_hours
        steps.append(Step(best, len(covered) / total, hours))
    return tuple(steps)


def choose(chance: float, steps: Sequence[Step], target: float, incident_hours: float) -> Choice:
    """The benchmarks of one node: until what is left is at most `target`, as long as each pays for itself.

    A benchmark pays if the probability that it takes away, times what an incident costs, exceeds its hours.
    """
    taken: list[str] = []
    coverage = hours = 0.0
    for step in steps:
        if chance * (1 - coverage) <= target:
            break
        if chance * (step.coverage - coverage) * incident_hours <= step.hours - hours:
            break
        taken.append(step.benchmark)
        coverage, hours = step.coverage, step.hours
    return Choice(tuple(taken), hours, chance * (1 - coverage), chance * coverage * incident_hours - hours)


def _by_day(sums: Sums) -> list[tuple[int, Sums]]:
    """The results of each day, as the sums that `samples` takes."""
    days = np.asarray(sums.keys["time"], dtype=np.int64) // _DAY
    return [(int(day), _taken(sums, np.flatnonzero(days == day))) for day in np.unique(days).tolist()]


def _taken(sums: Sums, rows: NDArray[np.int64]) -> Sums:
    picked = rows.tolist()
    keys: dict[str, Any] = {}
    for name in ("node", "benchmark", "metric", "sku"):
        texts = sums.keys[name]
        assert isinstance(texts, Sequence)
        keys[name] = tuple(texts[row] for row in picked)
    keys["value"] = np.asarray(sums.keys["value"], dtype=np.float64)[rows]
    return Sums(keys, {"times": np.asarray(sums.values["times"], dtype=np.int64)[rows]}, len(picked))


def _durations(sums: Sums) -> dict[str, list[float]]:
    """Hours by benchmark, from metrics called its duration or runtime (in seconds unless the name says otherwise)."""
    found: dict[str, list[float]] = {}
    benchmarks, metrics, values = (sums.keys[name] for name in ("benchmark", "metric", "value"))
    assert isinstance(benchmarks, tuple)
    assert isinstance(metrics, tuple)
    units = {metric: _unit(metric) for metric in set(metrics)}
    for benchmark, metric, value in zip(benchmarks, metrics, np.asarray(values).tolist(), strict=True):
        unit = units[metric]
        if unit is not None and value > 0:
            found.setdefault(benchmark, []).append(value * unit)
    return found


def _unit(metric: str) -> float | None:
    """The hours that one unit of a metric of duration is, None if it is none."""
    words = words_of(metric)
    if not _LASTS & set(words):
        return None
    return next((_UNITS[word] for word in reversed(words) if word in _UNITS), 1 / 3600)
