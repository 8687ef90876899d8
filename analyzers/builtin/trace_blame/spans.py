"""The spans of a window and of its history as one table of numbers.

A span's *own time* is its duration without the time in which one of its children is open (their union, so
that parallel children count once). A span with one child, on another instance, is the caller's side of that
call; what it lasts longer than its child is the *way*: network, queues and the two ends of the connection.
A child elsewhere that lasts longer than its parent (a consumer of a queue) takes no time of it.
Only durations of one clock are subtracted from each other: clocks of instances need not agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

import numpy as np
from numpy.typing import NDArray

from analyzers.contract import Sums, Window

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

LONGEST_US = 10**12
"""Longer durations (eleven days) are cut here, so that sums of a million of them stay exact."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """One row a span, ordered by trace, span and start; arrays have shape (spans,).

    `era` numbers the windows, the judged one last; all spans of a trace
    belong to that of its root. `service`, `instance` and `operation` number the texts of
    the same name in `traces`, `services`, `instances` and `operations`; an operation is a pair of service and name.
    `parent` is the row of the parent, -1 at the top of a trace and `LOST` where the parent is not in the table.
    `start` and `end` are microseconds since 1970.
    """

    traces: tuple[str, ...]
    services: tuple[str, ...]
    instances: tuple[str, ...]
    operations: tuple[tuple[str, str], ...]
    eras: int
    era: Ints
    trace: Ints
    service: Ints
    instance: Ints
    operation: Ints
    parent: Ints
    start: Ints
    duration: Ints
    error: Flags
    until: Ints
    """The end of each window, of shape (eras,)."""

    @property
    def rows(self) -> int:
        return len(self.era)

    @property
    def end(self) -> Ints:
        return self.start + self.duration


LOST = -2


def microseconds(when: datetime) -> int:
    return int((when - _EPOCH).total_seconds()) * 1_000_000 + when.microsecond


def spans_of(window: Window, reduction: str = "spans") -> Spans:
    """All spans of the window and its history; of several rows of one span the earliest counts."""
    eras = [past.sums[reduction] for past in window.history] + [window.sums[reduction]]
    era = np.repeat(np.arange(len(eras)), [sums.rows for sums in eras])
    texts = {name: _texts(eras, name) for name in ("trace", "span", "parent")}
    traces, names = numbered(texts["trace"])
    ids, _ = numbered([*texts["span"], *texts["parent"]])
    span, parent = ids[: len(era)], ids[len(era) :]
    services, service = _named(_texts(eras, "service"))
    instances, instance = _named(_texts(eras, "instance"))
    operations, operation = _pairs(services, service, *_named(_texts(eras, "operation")))
    start = _numbers(eras, "time")
    duration = _durations(eras)
    error = _numbers(eras, "error") > 0
    order = np.lexsort((error, operation, instance, duration, start, span, traces))
    order = order[_first_of_each(traces[order], span[order])]
    top = np.array([not text for text in texts["parent"]], dtype=np.bool_)[order]
    known = _rows_of(traces[order], span[order], parent[order])
    return Spans(
        traces=names,
        services=services,
        instances=instances,
        operations=operations,
        eras=len(eras),
        era=_era_of_root(era[order], traces[order], top),
        trace=traces[order],
        service=service[order],
        instance=instance[order],
        operation=operation[order],
        parent=np.where(top, -1, known),
        start=start[order],
        duration=duration[order],
        error=error[order],
        until=np.array([microseconds(one.end) for one in (*window.history, window)], dtype=np.int64),
    )


def numbered(texts: Sequence[str]) -> tuple[Ints, tuple[str, ...]]:
    """Equal texts get equal numbers, in the order in which they are first seen; and the distinct texts."""
    seen: dict[str, int] = {}
    numbers = np.array([seen.setdefault(text, len(seen)) for text in texts], dtype=np.int64)
    return numbers, tuple(seen)


def _named(texts: Sequence[str]) -> tuple[tuple[str, ...], Ints]:
    """The distinct texts in order, and the number of each text among them."""
    names = tuple(sorted(set(texts)))
    index = {name: i for i, name in enumerate(names)}
    return names, np.array([index[text] for text in texts], dtype=np.int64)


def _pairs(
    services: Sequence[str], service: Ints, names: Sequence[str], name: Ints
) -> tuple[tuple[tuple[str, str], ...], Ints]:
    found, numbers = np.unique(service * max(1, len(names)) + name, return_inverse=True)
    pairs = tuple((services[one // len(names)], names[one % len(names)]) for one in found.tolist())
    return pairs, numbers.astype(np.int64)


def _texts(eras: Sequence[Sums], name: str) -> list[str]:
    return [text for sums in eras for text in cast(Sequence[str], sums.keys[name])]


def _numbers(eras: Sequence[Sums], name: str) -> Ints:
    columns = [np.asarray(sums.keys[name], dtype=np.int64) for sums in eras]
    return np.concatenate(columns) if columns else np.zeros(0, dtype=np.int64)


def _durations(eras: Sequence[Sums]) -> Ints:
    """Rows that came twice are one group of the reduction, their durations summed: the mean is the span's."""
    values: list[Mapping[str, NDArray[np.int64] | NDArray[np.float64]]] = [sums.values for sums in eras]
    means = [
        np.asarray(one["duration_us"], dtype=np.float64) / np.maximum(1, np.asarray(one["rows"]))
        for one in values
    ]
    return np.clip(np.concatenate(means), 0, LONGEST_US).astype(np.int64)


def _era_of_root(era: Ints, trace: Ints, top: Flags) -> Ints:
    """The era of each trace's root for all its spans: clocks differ, and a trace may cross the border."""
    of_trace = np.full(int(trace.max()) + 1 if len(trace) else 0, -1, dtype=np.int64)
    np.maximum.at(of_trace, trace[top], era[top])
    found = of_trace[trace]
    return np.where(found >= 0, found, era)


def _first_of_each(trace: Ints, span: Ints) -> Flags:
    """Of rows in order of trace and span, the first of each pair."""
    new = np.ones(len(trace), dtype=np.bool_)
    new[1:] = (trace[1:] != trace[:-1]) | (span[1:] != span[:-1])
    return new


def _rows_of(trace: Ints, span: Ints, parent: Ints) -> Ints:
    """The row of each parent in its own trace, `LOST` where it is not there or is the span itself."""
    if not len(trace):
        return np.zeros(0, dtype=np.int64)
    width = int(max(span.max(), parent.max())) + 1
    key, wanted = trace * width + span, trace * width + parent
    at = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
    return np.where((key[at] == wanted) & (at != np.arange(len(key))), at, LOST).astype(np.int64)


COARSEST_US, EVENLY = 1_000_000, 0.99
"""Coarsest step of a clock that is looked for, and the share of durations that it must divide."""


def clock_step(spans: Spans) -> int:
    """Microseconds that the clocks count in: the largest power of ten that divides nearly all durations."""
    requested = spans.duration[spans.duration > 0]
    step = 1
    while len(requested) and step < COARSEST_US and (requested % (step * 10) == 0).mean() >= EVENLY:
        step *= 10
    return step


LONGER, CLOCK_US = 1.05, 1000
"""A child elsewhere that lasts so many times as long as its parent, and microseconds more, was sent and not awaited."""


@dataclass(frozen=True, slots=True, eq=False)
class Timing:
    """`own` and `way` in microseconds, of shape (spans,); `way` is NaN for what is no caller's side of a call.

    `called` is the row of the child of a caller's side, else -1. `whole` marks spans all of whose children
    could be seen: they ended before the window did, by the clock that is furthest ahead.
    """

    own: Floats
    way: Floats
    called: Ints
    whole: Flags


def timing_of(spans: Spans) -> Timing:
    children = np.flatnonzero(spans.parent >= 0)
    parent = spans.parent[children]
    count = np.bincount(parent, minlength=spans.rows)
    remote = spans.instance[children] != spans.instance[parent]
    sent = remote & (spans.duration[children] > spans.duration[parent] * LONGER + CLOCK_US)
    children, parent, remote = children[~sent], parent[~sent], remote[~sent]
    called = np.full(spans.rows, -1, dtype=np.int64)
    single = remote & (count[parent] == 1)
    called[parent[single]] = children[single]
    begin, end = _within(spans, children, parent, remote)
    own = spans.duration - _union(parent, begin, end, spans.duration)
    own = own - _waiting(spans, called >= 0, count == 0)
    way = np.where(called >= 0, spans.duration - spans.duration[called], np.nan)
    return Timing(
        own=np.maximum(own, 0).astype(np.float64),
        way=np.maximum(way, 0.0),
        called=called,
        whole=spans.end + _ahead(spans, children, parent, remote) <= spans.until[spans.era],
    )


def _ahead(spans: Spans, children: Ints, parent: Ints, remote: Flags) -> int:
    """Excess of calls over their callers, in microseconds: the clock of the called is ahead.

    What such an instance does at the end of a window is recorded after it. All but one call in a thousand are
    held to it.
    """
    if not remote.any():
        return 0
    late = np.maximum(0, spans.end[children[remote]] - spans.end[parent[remote]])
    return int(np.quantile(np.minimum(late, 10**12), 0.999, method="lower"))


def _within(spans: Spans, children: Ints, parent: Ints, remote: Flags) -> tuple[Ints, Ints]:
    """Begin and end of children in microseconds from their parent's start, cut to the parent's duration.

    A child on another instance has another clock: it is moved into its parent before it is cut.
    """
    lasts, room = spans.duration[children], spans.duration[parent]
    begin = np.clip(spans.start[children] - spans.start[parent], -(10**12), 10**12)
    moved = np.clip(begin, 0, np.maximum(0, room - lasts))
    begin = np.where(remote, moved, begin)
    end = begin + lasts
    return np.clip(begin, 0, room), np.clip(end, 0, room)


def _union(group: Ints, begin: Ints, end: Ints, room: Ints) -> Ints:
    """For each group the length of the union of its intervals, which lie in [0, room[group]]."""
    covered = np.zeros(len(room), dtype=np.int64)
    if not len(group):
        return covered
    order = np.lexsort((begin, group))
    group = group[order]
    ahead = np.concatenate([[0], np.cumsum(room + 1)])[:-1][group]
    begin, end = begin[order] + ahead, end[order] + ahead
    reached = np.maximum.accumulate(np.concatenate([[0], end]))[:-1]
    np.add.at(covered, group, np.maximum(0, end - np.maximum(begin, reached)))
    return covered


def _waiting(spans: Spans, caller: Flags, leaf: Flags) -> Ints:
    """For each leaf, how much of it its instance spent waiting for another one in the same trace.

    Frameworks that work on events record a handler beside the call it waits for, not above it: that wait is
    not the handler's own time.
    """
    waits = np.zeros(spans.rows, dtype=np.int64)
    place = spans.trace * (len(spans.instances) + 1) + spans.instance
    groups, group = np.unique(place, return_inverse=True)
    awaited = np.zeros(len(groups), dtype=np.bool_)
    awaited[group[caller]] = True
    requested = np.flatnonzero(leaf & awaited[group])
    if not len(requested):
        return waits
    used = np.concatenate([np.flatnonzero(caller), requested])
    first = np.full(len(groups), np.iinfo(np.int64).max)
    np.minimum.at(first, group[used], spans.start[used])
    begin = np.minimum(spans.start - first[group], 10**12)
    room = np.zeros(len(groups), dtype=np.int64)
    np.maximum.at(room, group[used], (begin + spans.duration)[used])
    ahead = np.concatenate([[0], np.cumsum(room + 1)])[:-1]
    begin = begin + ahead[group]
    starts, ends = _disjoint(begin[caller], begin[caller] + spans.duration[caller])
    return _put(
        waits,
        requested,
        _overlap(starts, ends, begin[requested], begin[requested] + spans.duration[requested]),
    )


def _put(into: Ints, rows: Ints, values: Ints) -> Ints:
    into[rows] = values
    return into


def _disjoint(begin: Ints, end: Ints) -> tuple[Ints, Ints]:
    """The union of intervals as disjoint ones, in order."""
    order = np.argsort(begin, kind="stable")
    begin, reached = begin[order], np.maximum.accumulate(end[order])
    fresh = np.ones(len(begin), dtype=np.bool_)
    fresh[1:] = begin[1:] > reached[:-1]
    last = np.concatenate([np.flatnonzero(fresh)[1:] - 1, [len(begin) - 1]])
    return begin[fresh], reached[last]


def _overlap(starts: Ints, ends: Ints, begin: Ints, end: Ints) -> Ints:
    """Length of each [begin, end] that the disjoint intervals cover."""
    total = np.concatenate([[0], np.cumsum(ends - starts)])

    def before(moment: Ints) -> Ints:
        at = np.searchsorted(starts, moment, side="right")
        inside = np.where(at > 0, np.minimum(moment, ends[at - 1]) - starts[at - 1], 0)
        return np.asarray(total[np.maximum(at - 1, 0)] + np.maximum(inside, 0), dtype=np.int64)

    return before(end) - before(begin)
