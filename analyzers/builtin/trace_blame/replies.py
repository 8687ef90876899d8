"""Called services whose changed replies may be what a blamed caller shows.

A service that returns something else may end as it ended before now and then: nothing in its own spans is new. Its
caller then leaves out what it would have called next, which no window of the history saw, and stands out in its place.
Spans alone cannot tell the two apart: the caller may as well have decided otherwise. The service that was called last
before the calls were left out is therefore one entry with its caller; it comes first where its own spans or records
show something, or where the caller writes new records that name it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from analyzers.builtin.trace_blame.likelihood import FAILING, ObservedWindow, Weighed
from analyzers.builtin.trace_blame.logs import newly_named
from analyzers.builtin.trace_blame.selection import Blamed, Decision
from analyzers.builtin.trace_blame.spans import Flags, Ints

MOSTLY = 0.5
"""Least share of the caller's spans that ended otherwise in which the service was called last before the gap."""

USUALLY = 0.5
"""Least share of the spans of the history that call a service, for it to be missing where it is not called."""


def with_replies(seen: ObservedWindow, decision: Decision) -> Decision:
    """The decision with those whom the data cannot tell from the blamed: the called leads if it shows anything."""
    services = {one.service for one in decision.blamed}
    blamed = []
    for one in decision.blamed:
        called = _called(seen, decision.weighed, one)
        if called is None or called in services:
            blamed.append(one)
        elif _shows(seen, decision.weighed, called) or _is_named(seen, decision.weighed, one, called):
            blamed.append(Blamed(called, None, one.odds, alike=one.service))
        else:
            blamed.append(replace(one, alike=called))
    return replace(decision, blamed=tuple(blamed))


def _called(seen: ObservedWindow, weighed: Weighed, one: Blamed) -> int | None:
    """The service whose reply may be behind what the blamed leaves out; None where the blamed ends as before, in
    errors, or called nobody last in most of these spans."""
    rows = _shortened(seen, weighed, one)
    services, count = np.unique(_called_before(seen, rows), return_counts=True)
    if not len(count) or count.max() < MOSTLY * len(rows):
        return None
    return int(services[np.argmax(count)])


def _shortened(seen: ObservedWindow, weighed: Weighed, one: Blamed) -> Ints:
    """Spans of the blamed that ended, without an error, as none did in the history, where that speaks against it."""
    spans, odd, done = seen.spans, weighed.odd, seen.shapes
    speaking = (odd.new >= FAILING) & (2 * odd.failed < odd.unseen)
    place = odd.place[speaking]
    place = place[(done.client[place] == one.service) & (done.server[place] == one.service)]
    chosen: Flags = done.surprising & ~spans.error & np.isin(spans.operation, done.operation[place])
    return np.flatnonzero(chosen & (spans.era == spans.eras - 1))


def _called_before(seen: ObservedWindow, rows: Ints) -> Ints:
    """By span of `rows`, the service that it called last before the first call that it leaves out of those that the
    history usually makes; spans without such a service are left out."""
    spans = seen.spans
    found = []
    for operation in np.unique(spans.operation[rows]).tolist():
        past = np.flatnonzero((spans.operation == operation) & (spans.era < spans.eras - 1))
        parent, callee, after = _calls(seen, past)
        services = np.unique(callee)
        usual = [int(one) for one in services if len(np.unique(parent[callee == one])) >= USUALLY * len(past)]
        place = {int(one): float(np.median(after[callee == one])) for one in services}
        parent, callee, _ = _calls(seen, rows[spans.operation[rows] == operation])
        for row in np.unique(parent).tolist():
            target = callee[parent == row].tolist()
            gap = min((place[one] for one in usual if one not in target), default=np.inf)
            before = [one for one in target if place.get(one, np.inf) < gap]
            found += [max(before, key=lambda one: (place[one], one))] if before else []
    return np.array(found, dtype=np.int64)


def _calls(seen: ObservedWindow, rows: Ints) -> tuple[Ints, Ints, Ints]:
    """Calls of spans to other services: row of the caller, the called service, microseconds from the caller's start."""
    spans = seen.spans
    child = np.flatnonzero(np.isin(spans.parent, rows))
    target = np.where(seen.timing.called[child] >= 0, seen.timing.called[child], child)
    other = spans.service[target] != spans.service[spans.parent[child]]
    child, target = child[other], target[other]
    parent = spans.parent[child]
    return parent, spans.service[target], spans.start[child] - spans.start[parent]


def _shows(seen: ObservedWindow, weighed: Weighed, service: int) -> bool:
    """Whether spans or records of the service itself speak for a fault of it."""
    own, odd, done = weighed.own, weighed.odd, seen.shapes
    alone = (done.client[odd.place] == service) & (done.server[odd.place] == service)
    supports = (
        own.support[seen.own.server[own.place] == service],
        np.maximum(odd.new, odd.mix)[alone],
        np.array([sign.support for sign in weighed.logs.get(service, ())]),
    )
    return max(float(each.max(initial=0.0)) for each in supports) >= FAILING


def _is_named(seen: ObservedWindow, weighed: Weighed, one: Blamed, service: int) -> bool:
    return seen.logs is not None and service in newly_named(seen.logs, weighed.since, one.service)
