"""Component behind the changes: each is tried as the cause of all, along the calls where they are known.

The hypothesis that a component is the cause explains its own changes, and those of the components that call it, as far
as they follow: a caller whose latency grew by more than the time that the calls to the cause can have cost it is
explained in part. Changes on resources of its own (internal) speak for a component, and nobody else explains them;
a component that merely waits for another has external changes alone (PRISM: Pham, arXiv 2601.21359, 2026). What
changed first is more likely the cause than what changed later. Without calls every component may have passed its
external changes on to every other, and the sizes and the order decide.
"""

from __future__ import annotations

import heapq
import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analyzers.builtin.metric_blame.change import Change, Changes
from analyzers.builtin.metric_blame.series import Observed

MOST_CANDIDATES = 40
MOST = 8.0
"""Nats of the change of one component that are explained or not; more is not better explained."""
_BEYOND = 0.3
"""Weight of what the cause's own changes have beyond that."""
_INTERNAL = 0.7
_LATER, _MOST_LATER = 0.5, 3.0
"""Nats that a component loses for each column that it changed after the first, and at most."""
LEAST = 1.0
"""Evidence from which on a component counts as changed."""
_PASSED = 0.7
"""Share of a change of another sort that is explained: errors below that are waited for above, and the reverse."""
_UNSEEN = 0.8
"""The same of a component that nothing is measured of, which may have passed anything on."""
_QUANTILE = re.compile(r"(?i)quantile|percentile|p[0-9]{2}|max|lat[-_]?[0-9]{2}|latency-[0-9]{2}")
_CALLS = 3.0
"""Most calls of a cause that one request of its caller makes."""


@dataclass(frozen=True, slots=True, eq=False)
class Component:
    """Changes of a component, best first. `external` and `internal` are evidence of the best change, at least 0."""

    name: str
    changes: tuple[Change, ...]
    external: float
    internal: float

    @property
    def changed(self) -> bool:
        return max(self.external, self.internal) >= LEAST

    @property
    def onset(self) -> int:
        """Column in which the first of its clear changes began."""
        best = self.changes[0].nats
        return min(one.first for one in self.changes if one.nats >= max(LEAST, 0.5 * best))


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A component as the cause: its weight in nats, its share of all, and how much of each other it explains."""

    component: Component
    weight: float
    share: float
    explained: Mapping[str, float]
    own: float


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """`symptom` is the component whose callers fare worst; candidates are the most probable first."""

    components: Mapping[str, Component]
    candidates: tuple[Candidate, ...]
    symptom: Component | None


def components_of(found: Changes) -> dict[str, Component]:
    by_name: dict[str, list[Change]] = defaultdict(list)
    for one in found.found:
        by_name[one.identity.component].append(one)
    return {name: _component(name, ones) for name, ones in sorted(by_name.items())}


def _component(name: str, ones: Sequence[Change]) -> Component:
    external = max((one.nats for one in ones if one.external), default=0.0)
    internal = max((one.nats for one in ones if one.identity.sort == "internal"), default=0.0)
    other = max((one.nats for one in ones if one.identity.sort == "other"), default=0.0)
    judged = [one for one in ones if one.identity.sort != "load"]
    ranked = sorted(judged or ones, key=lambda one: (-one.nats, one.identity))
    return Component(name, tuple(ranked), max(external, 0.0), max(internal, 0.5 * other, 0.0))


def judge(seen: Observed, found: Changes) -> Outcome:
    components = components_of(found)
    changed = {name: one for name, one in components.items() if one.changed}
    if not changed:
        return Outcome(components, (), None)
    callers = _callers(seen)
    requests = {
        one.identity.component: one.value
        for one in found.found
        if one.identity.sort == "load" and one.value > 0
    }
    tried = sorted(changed.values(), key=lambda one: (-max(one.external, one.internal), one.name))
    earliest = min(one.onset for one in tried if one.external >= LEAST or one.internal >= LEAST)
    weighed = []
    for one in tried[:MOST_CANDIDATES]:
        explained = (
            _explained(one, components, callers, requests) if seen.calls else dict.fromkeys(changed, 1.0)
        )
        covered = sum(
            share * min(changed[name].external, MOST)
            for name, share in explained.items()
            if name in changed and name != one.name
        )
        own = _capped(one.external) + _INTERNAL * _capped(one.internal)
        late = min(_MOST_LATER, _LATER * (one.onset - earliest))
        weighed.append((covered + own - late, own, explained, one))
    return Outcome(components, _shares(weighed), max(tried, key=lambda one: (one.external, one.name)))


def _capped(nats: float) -> float:
    return min(nats, MOST) + _BEYOND * max(0.0, nats - MOST)


def _shares(
    weighed: Sequence[tuple[float, float, Mapping[str, float], Component]],
) -> tuple[Candidate, ...]:
    most = max(one[0] for one in weighed)
    total = sum(math.exp(weight - most) for weight, _, _, _ in weighed)
    found = [
        Candidate(one, weight, math.exp(weight - most) / total, explained, own)
        for weight, own, explained, one in weighed
    ]
    return tuple(sorted(found, key=lambda one: (-one.weight, one.component.name)))


def _callers(seen: Observed) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for caller, needed in seen.calls.items():
        for one in needed:
            found[one].append(caller)
    return {name: sorted(ones) for name, ones in found.items()}


def _explained(
    cause: Component,
    components: Mapping[str, Component],
    callers: Mapping[str, Sequence[str]],
    requests: Mapping[str, float],
) -> dict[str, float]:
    """The share of the external changes of each component that the cause explains, by the best chain of calls."""
    best = {cause.name: 1.0}
    queue = [(-1.0, cause.name)]
    while queue:
        share, name = heapq.heappop(queue)
        if -share < best[name]:
            continue
        for caller in callers.get(name, ()):
            mine = -share * _follows(components.get(name), components.get(caller), requests)
            if mine > max(0.05, best.get(caller, 0.0)):
                best[caller] = mine
                heapq.heappush(queue, (-mine, caller))
    return best


def _follows(callee: Component | None, caller: Component | None, requests: Mapping[str, float]) -> float:
    """Share of the caller's external change that its calls to the callee can explain."""
    if callee is None or not _measured(callee) or caller is None or not _measured(caller):
        return _UNSEEN
    if caller.external < LEAST:
        return 0.3  # a change does not pass a component that did not change
    shares = []
    for mine in _best(caller):
        same = [one for one in _best(callee) if _alike(one, mine)]
        if not same:
            shares.append((mine.nats, _PASSED if callee.external >= LEAST else 0.0))
            continue
        times = _times(callee, caller, requests) if _is_mean(mine) else 1.0
        passed = max(one.rise for one in same) * times / max(mine.rise, 1e-300)
        shares.append((mine.nats, max(0.0, min(1.0, passed))))
    total = sum(nats for nats, _ in shares)
    return sum(nats * share for nats, share in shares) / total if total else _UNSEEN


def _times(callee: Component, caller: Component, requests: Mapping[str, float]) -> float:
    """Calls of the callee for each request of the caller, as far as both are counted; several callers share them."""
    if callee.name not in requests or caller.name not in requests:
        return 1.0
    return min(_CALLS, requests[callee.name] / requests[caller.name])


def _is_mean(one: Change) -> bool:
    """Whether a change is of a mean over all requests, that calls add to; a quantile takes over that of its calls."""
    return _QUANTILE.search(one.identity.shown) is None


def _measured(one: Component) -> bool:
    return any(change.external for change in one.changes)


def _best(one: Component) -> list[Change]:
    """Its clear external changes, the best of each name and member."""
    return [each for each in one.changes if each.external and each.nats >= LEAST]


def _alike(one: Change, other: Change) -> bool:
    """Whether two changes are of one measure, so that their sizes can be held against each other."""
    return one.identity[1:] == other.identity[1:]


def path_of(outcome: Outcome, candidate: Candidate, seen: Observed) -> tuple[str, ...]:
    """Components from the cause to the symptom: by the calls over changed components to the farthest that nobody
    changed calls; empty where no calls lead away."""
    callers = _callers(seen)
    changed = {name for name, one in outcome.components.items() if one.external >= LEAST}
    before: dict[str, str] = {candidate.component.name: ""}
    queue = [candidate.component.name]
    for name in queue:
        for caller in callers.get(name, ()):
            if caller not in before and (caller in changed or caller not in outcome.components):
                before[caller] = name
                queue.append(caller)
    ends = [name for name in queue if name in changed]
    last = ends[-1] if ends else candidate.component.name
    found = [last]
    while before.get(found[-1]):
        found.append(before[found[-1]])
    return tuple(reversed(found)) if len(found) > 1 else ()
