"""Changes by component: which are common to all, which are for the better, and which components they name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from analyzers.builtin.changepoint.detect import (
    BESIDE,
    EXCESS,
    Change,
    Detected,
    Floats,
    usual_step,
)
from analyzers.builtin.changepoint.series import Observed
from analyzers.builtin.nodes.samples import direction_of, words_given, words_of
from analyzers.builtin.stats.medians import medians

COMMON = 0.5
"""Share of the components with a metric that change alike from which on the change is common to all."""
LEAST_COMMON = 4
_TOGETHER_SECONDS = 900
"""Onsets no further apart than this happen at the same time."""
AT_EARLIER_TIMES = "the level is the one of the same time a day before"
DRIFTS = "the metric drifts, without a step"
BETTER = "the metric changed for the better"
BUSIER = "requests to all components grew at the same time, which explains as much"
_WAITING = 2.0
"""Power of the load of all by which the metrics of one component may follow it: queues grow faster than load."""
_REQUESTS = "requests"
_DEMAND = words_given("request requests reqs rps qps queries calls hits arrivals invocations")
_NO_DEMAND = words_given(
    "duration latency time seconds size bytes errors error failed failures queue queued pending"
)
_USED = words_given("memory mem rss swap used usage heap resident")
_FREE = words_given("available memavailable free memfree swapfree idle")


@dataclass(frozen=True, slots=True)
class Changed:
    """A component with its changes, the one with the most evidence first; `since` is the earliest of them."""

    component: str
    changes: tuple[Change, ...]

    @property
    def since(self) -> Change:
        return min(self.changes, key=lambda one: (one.at, one.last, one.series))

    @property
    def evidence(self) -> float:
        return self.changes[0].evidence


@dataclass(frozen=True, slots=True)
class CommonChange:
    """A metric that changed alike on `changed` of `components`."""

    name: str
    changes: tuple[Change, ...]
    changed: int
    components: int


@dataclass(frozen=True, slots=True)
class Outcome:
    named: tuple[Changed, ...]
    common: tuple[CommonChange, ...]
    cleared: tuple[tuple[Change, str], ...]
    steady: tuple[str, ...]
    """Components none of whose judged series changed."""


def conclude(seen: Observed, found: Detected) -> Outcome:
    common = _common(seen, found)
    aside = {one.series for each in common for one in each.changes}
    cleared = [(one, AT_EARLIER_TIMES) for one in found.daily] + [(one, DRIFTS) for one in found.drifts]
    demand = _Demand(seen, found)
    by_component = defaultdict[str, list[Change]](list)
    for one in found.changes:
        if one.series in aside:
            continue
        if _is_better(seen, one):
            cleared.append((one, BETTER))
        elif demand.explains(one):
            cleared.append((one, BUSIER))
        else:
            by_component[seen.series[one.series].component].append(one)
    named = [
        Changed(name, tuple(sorted(changes, key=lambda one: (-one.evidence, seen.series[one.series].name))))
        for name, changes in by_component.items()
    ]
    moved = {seen.series[one.series].component for one in (*found.changes, *found.daily, *found.drifts)}
    judged = {seen.series[at].component for at in found.judged.tolist()}
    return Outcome(
        tuple(sorted(named, key=lambda one: (-one.evidence, one.component))),
        common,
        tuple(cleared),
        tuple(sorted(judged - moved)),
    )


def _common(seen: Observed, found: Detected) -> tuple[CommonChange, ...]:
    having = defaultdict[str, set[str]](set)
    for at in found.judged.tolist():
        having[_kind(seen.series[at].name)].add(seen.series[at].component)
    changes = defaultdict[tuple[str, bool], list[Change]](list)
    for one in found.changes:
        changes[_kind(seen.series[one.series].name), one.shift > 0].append(one)
    common = []
    for (kind, _), alike in sorted(changes.items()):
        together = _at_the_same_time(seen, alike)
        components = {seen.series[one.series].component for one in together}
        if len(components) >= max(LEAST_COMMON, COMMON * len(having[kind])):
            name = seen.series[together[0].series].name
            common.append(CommonChange(name, tuple(together), len(components), len(having[kind])))
    return tuple(common)


class _Demand:
    """Requests to all: whether they grew at an onset, and by how much."""

    def __init__(self, seen: Observed, found: Detected) -> None:
        self._seen = seen
        demands = [at for at in found.judged.tolist() if _is_demand(seen.series[at].name)]
        self._values = seen.values[demands]
        self._components = np.array([seen.series[at].component for at in demands])
        grown = (one for one in found.changes if _is_demand(seen.series[one.series].name))
        self._onsets = list({(one.first, one.last, one.end): one for one in grown}.values())
        self._growths = dict[tuple[int, int, int], float]()

    @cached_property
    def _usual(self) -> Floats:
        return np.array([usual_step(values[: self._seen.first], BESIDE) for values in self._values])

    def explains(self, one: Change) -> bool:
        """Whether the metric grew, and by no more than the requests to all that grew at the same time explain."""
        (before,), (after,) = _beside(self._seen.values[[one.series]], one)
        if not 0 < before < after:
            return False
        within = self._seen.columns(_TOGETHER_SECONDS)
        onsets = [one, *(each for each in self._onsets if abs(each.at - one.at) <= within)]
        return bool(after <= before * max(self._growth(each) for each in onsets) ** _WAITING)

    def _growth(self, one: Change) -> float:
        when = (one.first, one.last, one.end)
        if when not in self._growths:
            self._growths[when] = self._median_growth(one)
        return self._growths[when]

    def _median_growth(self, one: Change) -> float:
        """Median ratio of those that grew; 1 unless most components are asked more, each by more than is usual."""
        if not len(self._values):
            return 1.0
        before, after = _beside(self._values, one)
        grew = (before > 0) & (after - before > EXCESS * self._usual)
        components = set(self._components[grew].tolist())
        if len(components) < max(LEAST_COMMON, COMMON * len(set(self._components.tolist()))):
            return 1.0
        return float(np.median(after[grew] / before[grew]))


def _beside(values: Floats, one: Change) -> tuple[Floats, Floats]:
    """Medians of each row just before and just after an onset; NaN where nothing was measured."""
    before = values[:, max(0, one.first - BESIDE) : one.first]
    return medians(before), medians(values[:, one.last : one.end][:, :BESIDE])


def _kind(name: str) -> str:
    """Metrics that count what a component is asked are one, whatever each component calls it."""
    return _REQUESTS if _is_demand(name) else name


def _is_demand(name: str) -> bool:
    words = frozenset(words_of(name))
    return not words.isdisjoint(_DEMAND) and words.isdisjoint(_NO_DEMAND)


def _at_the_same_time(seen: Observed, changes: Sequence[Change]) -> list[Change]:
    """The largest number of changes whose onsets lie within a quarter of an hour."""
    within = seen.columns(_TOGETHER_SECONDS)
    ordered = sorted(changes, key=lambda one: (one.at, one.series))
    best = list[Change]()
    start = 0
    for end, one in enumerate(ordered):
        while ordered[start].at < one.at - within:
            start += 1
        if end + 1 - start > len(best):
            best = ordered[start : end + 1]
    return best


def _is_better(seen: Observed, one: Change) -> bool:
    name = seen.series[one.series].name
    if _is_demand(name):
        return one.shift > 0
    worse = {"higher": -1, "lower": 1, "zero": 1}.get(direction_of("", name, _FREE, _USED) or "", 0)
    return worse * one.shift < 0
