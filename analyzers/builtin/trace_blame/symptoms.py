"""Spans that show the fault of a blamed service: for times, example traces and the share of traces hit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzers.builtin.trace_blame.likelihood import ObservedWindow, Weighed
from analyzers.builtin.trace_blame.missing_spans import called_service
from analyzers.builtin.trace_blame.normal import Normal
from analyzers.builtin.trace_blame.selection import Blamed
from analyzers.builtin.trace_blame.spans import Flags, Floats, Ints, Spans

FAR = 2.5
"""Standard deviations of a span's logarithm above normal from which on it counts as slow."""

EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class Symptoms:
    """Traces that pass the blamed and how many of them show the fault; microseconds since 1970 of the first
    and the last sign, None if no single span shows it; up to five traces, the clearest first.
    """

    passed: int
    hit: int
    first: int | None
    last: int | None
    examples: tuple[str, ...]


def symptoms(seen: ObservedWindow, weighed: Weighed, one: Blamed) -> Symptoms:
    spans = seen.spans
    now = spans.era == spans.eras - 1
    passing = now & (spans.service == one.service)
    if one.instance is not None:
        passing &= spans.instance == one.instance
    else:
        passing |= now & (called_service(spans, seen.silence) == one.service)
    slow = _slow(seen, weighed, one)
    odd = _odd(seen, weighed, one)
    hit = now & ((slow > FAR) | odd)
    traces, shown = np.unique(spans.trace[passing]), np.unique(spans.trace[hit])
    both = np.intersect1d(traces, shown)
    if not hit.any():
        return Symptoms(len(traces), 0, None, None, ())
    strength = np.where(odd & now, np.maximum(slow, 10.0), np.where(hit, slow, 0.0))
    return Symptoms(
        len(traces),
        len(both),
        int(spans.start[hit].min()),
        int(spans.end[hit].max()),
        _clearest(spans, hit, strength),
    )


def _slow(seen: ObservedWindow, weighed: Weighed, one: Blamed) -> Floats:
    """By span: how many standard deviations over normal, at places that speak against the blamed; else 0."""
    spans, timing = seen.spans, seen.timing
    far = np.zeros(spans.rows)
    own = np.flatnonzero(timing.whole & (timing.called < 0) & (spans.service == one.service))
    speaking = dict(zip(weighed.own.place.tolist(), weighed.own.support.tolist(), strict=True))
    place_of = {
        int(operation): place
        for place, operation in enumerate(seen.own.operation.tolist())
        if speaking.get(place, 0.0) > 1.0
    }
    far[own] = _far(seen.own_normal, place_of, spans.operation[own], timing.own[own])
    callers = np.flatnonzero(timing.called >= 0)
    called = timing.called[callers]
    touched = (spans.service[callers] == one.service) | (spans.service[called] == one.service)
    callers, called = callers[touched], called[touched]
    width = len(spans.operations) + 1
    key = spans.service[callers] * width + spans.operation[called]
    speaking = dict(zip(weighed.way.place.tolist(), weighed.way.support.tolist(), strict=True))
    place_of = {
        int(seen.way.client[place] * width + seen.way.operation[place]): place
        for place in range(seen.way.places)
        if speaking.get(place, 0.0) > 1.0
    }
    far[callers] = _far(seen.way_normal, place_of, key, timing.way[callers])
    far = np.maximum(far, _waited(seen, weighed, one.service))
    if one.instance is not None:
        other = np.zeros(spans.rows, dtype=np.bool_)
        other[own] = spans.instance[own] != one.instance
        mine = (spans.instance[callers] == one.instance) | (spans.instance[called] == one.instance)
        other[callers] = ~mine
        far[other] = 0.0
    return far


def _waited(seen: ObservedWindow, weighed: Weighed, service: int) -> Floats:
    """The same for calls of or to the service that callers alone tell of."""
    spans, call = seen.spans, seen.call
    far = np.zeros(spans.rows)
    speaking = weighed.call.place[weighed.call.support > 1.0].tolist()
    place_of = {
        int(call.operation[place]): place
        for place in speaking
        if service in (int(call.client[place]), int(call.server[place]))
    }
    if place_of:
        rows = np.flatnonzero(seen.silence.unanswered & ~spans.error)
        us = spans.duration[rows].astype(np.float64)
        far[rows] = _far(seen.call_normal, place_of, spans.operation[rows], us)
    return far


def _far(normal: Normal, place_of: dict[int, int], key: Ints, us: Floats) -> Floats:
    known, back = np.unique(key, return_inverse=True)
    place = np.array([place_of.get(int(one), -1) for one in known.tolist()], dtype=np.int64)[back]
    spread = np.sqrt(normal.within + normal.drift)[place]
    return np.where(place >= 0, (np.log(us + normal.resolution[place]) - normal.mean[place]) / spread, 0.0)


def _odd(seen: ObservedWindow, weighed: Weighed, one: Blamed) -> Flags:
    """Spans that did what the history never saw, at places where that speaks against the blamed."""
    done, odd = seen.shapes, weighed.odd
    mine = (done.client[odd.place] == one.service) | (done.server[odd.place] == one.service)
    speaking = np.zeros(done.places, dtype=np.bool_)
    speaking[odd.place[mine & (odd.new > 1.0)]] = True
    operations = np.zeros(len(seen.spans.operations) + 1, dtype=np.bool_)
    operations[done.operation[speaking]] = True
    found = operations[seen.spans.operation] & done.surprising
    if one.instance is not None:
        found &= seen.spans.instance == one.instance
    return np.asarray(found)


def _clearest(spans: Spans, hit: Flags, strength: Floats) -> tuple[str, ...]:
    best: dict[str, float] = {}
    for row in np.flatnonzero(hit).tolist():
        name = spans.traces[int(spans.trace[row])]
        best[name] = max(best.get(name, 0.0), float(strength[row]))
    order = sorted(best, key=lambda name: (-round(best[name], 6), name))
    return tuple(order[:EXAMPLES])
