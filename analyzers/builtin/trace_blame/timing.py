"""Where the time of a trace goes: what each span spends itself, and what each call spends on the way.

A span's *own time* is its duration without the time in which one of its children is open (their union, so
that parallel children count once). A span with one child, on another instance, is the caller's side of that
call; what it lasts longer than its child is the *way*: network, queues and the two ends of the connection.
A child elsewhere that lasts longer than its parent (a consumer of a queue) takes no time of it.
Only durations of one clock are subtracted from each other: clocks of instances need not agree.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzers.builtin.trace_blame.spans import Flags, Floats, Ints, Spans

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
    """How far, in microseconds, calls seem to outlast their callers: the clock of the called is ahead.

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
    asked = np.flatnonzero(leaf & awaited[group])
    if not len(asked):
        return waits
    used = np.concatenate([np.flatnonzero(caller), asked])
    first = np.full(len(groups), np.iinfo(np.int64).max)
    np.minimum.at(first, group[used], spans.start[used])
    begin = np.minimum(spans.start - first[group], 10**12)
    room = np.zeros(len(groups), dtype=np.int64)
    np.maximum.at(room, group[used], (begin + spans.duration)[used])
    ahead = np.concatenate([[0], np.cumsum(room + 1)])[:-1]
    begin = begin + ahead[group]
    starts, ends = _disjoint(begin[caller], begin[caller] + spans.duration[caller])
    return _put(waits, asked, _overlap(starts, ends, begin[asked], begin[asked] + spans.duration[asked]))


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
    """How much of each [begin, end] the disjoint intervals cover."""
    total = np.concatenate([[0], np.cumsum(ends - starts)])

    def before(moment: Ints) -> Ints:
        at = np.searchsorted(starts, moment, side="right")
        inside = np.where(at > 0, np.minimum(moment, ends[at - 1]) - starts[at - 1], 0)
        return np.asarray(total[np.maximum(at - 1, 0)] + np.maximum(inside, 0), dtype=np.int64)

    return before(end) - before(begin)
