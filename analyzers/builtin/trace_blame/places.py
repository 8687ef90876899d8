"""Places that can be compared with normal: own times, ways between services, and outcomes of spans.

A *place* is one of

- `own`: the own time of an operation;
- `way`: what calls from one service to an operation of another spend on the way;
- `shape`: what spans of an operation do: which operations they call, and whether they end in an error of
  their own.

Each belongs to the one or two services that could have changed it, and is summed in *cells*: by era, quarter
of the window, and the instances on both ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from analyzers.builtin.trace_blame.spans import LOST, Flags, Floats, Ints, Spans, Timing

Kind = Literal["own", "way", "call"]

QUARTERS = 4


@dataclass(frozen=True, slots=True, eq=False)
class Times:
    """Own times or ways, summed. Places have a `server` and a `client` service (the same for own times) and
    the operation of the server; cells point to their place and hold the instances on both ends.

    `log` are logarithms of microseconds plus the place's resolution (`resolution`, of shape (places,)), `log2` their
    squares, `us` plain microseconds.
    """

    kind: Kind
    client: Ints
    server: Ints
    operation: Ints
    place: Ints
    era: Ints
    quarter: Ints
    client_instance: Ints
    server_instance: Ints
    count: Floats
    log: Floats
    log2: Floats
    us: Floats
    resolution: Floats

    @property
    def places(self) -> int:
        return len(self.server)


def quarter_of(spans: Spans) -> Ints:
    """The quarter of the judged window's own time in which a span starts; 0 in other eras."""
    now = spans.era == spans.eras - 1
    if not now.any():
        return np.zeros(spans.rows, dtype=np.int64)
    first = int(spans.start[now].min())
    length = max(1, int(spans.start[now].max()) - first + 1)
    return np.where(now, np.clip((spans.start - first) * QUARTERS // length, 0, QUARTERS - 1), 0)


def own_times(spans: Spans, timing: Timing, unanswered: Flags, resolution_us: float) -> Times:
    """The own times of spans that are not a caller's side of a call, answered or `unanswered`."""
    rows = np.flatnonzero(timing.whole & (timing.called < 0) & ~unanswered)
    own, where = spans.operation[rows], spans.service[rows]
    return summed("own", spans, rows, rows, (where, where, own), timing.own[rows], resolution_us)


def ways(spans: Spans, timing: Timing, resolution_us: float) -> Times:
    rows = np.flatnonzero(timing.called >= 0)
    called = timing.called[rows]
    keys = spans.service[rows], spans.service[called], spans.operation[called]
    return summed("way", spans, rows, called, keys, timing.way[rows], resolution_us)


def summed(
    kind: Kind,
    spans: Spans,
    client: Ints,
    server: Ints,
    keys: tuple[Ints, Ints, Ints],
    us: Floats,
    resolution_us: float,
) -> Times:
    """Times by the places of `keys` (client, server, operation); `client` and `server` are rows of spans."""
    place, firsts = grouped(*keys)
    resolution = resolution_of(place, us, spans.era[client] < spans.eras - 1, len(firsts), resolution_us)
    quarter = quarter_of(spans)[client]
    columns = place, spans.era[client], quarter, spans.instance[client], spans.instance[server]
    cell, heads = grouped(*columns)
    log = np.log(us + resolution[place])
    count = len(heads)
    return Times(
        kind,
        client=keys[0][firsts],
        server=keys[1][firsts],
        operation=keys[2][firsts],
        place=place[heads],
        era=spans.era[client][heads],
        quarter=quarter[heads],
        client_instance=spans.instance[client][heads],
        server_instance=spans.instance[server][heads],
        count=totals(cell, np.ones(len(cell)), count),
        log=totals(cell, log, count),
        log2=totals(cell, log * log, count),
        us=totals(cell, us, count),
        resolution=resolution,
    )


UNSEEN_US, UNSEEN_WINDOWS = 1000.0, 4.0
"""Microseconds of jitter that are reckoned with whatever the history shows. From `UNSEEN_WINDOWS` windows on they fall
with the square of their number, since pauses of collectors, disks and schedulers are rarely seen in a few."""


def resolution_of(place: Ints, us: Floats, past: Flags, places: int, least_us: float) -> Floats:
    """By place the microseconds below which times are all alike, of shape (places,).

    What the faster half of its times spreads in the history (the median less the lower quartile, which slow windows do
    not move), and at least `least_us`.
    """
    rows = np.flatnonzero(past)
    order = rows[np.lexsort((us[rows], place[rows]))]
    count = np.bincount(place[rows], minlength=places)
    begin = np.concatenate([[0], np.cumsum(count)])[:-1]
    known = count > 0
    middle, low = (us[order[(begin + (count - 1) * part // 4)[known]]] for part in (2, 1))
    found = np.full(places, least_us)
    found[known] = np.maximum(found[known], middle - low)
    return found


def jitter_us(spans: Spans, timing: Timing) -> float:
    """Microseconds by which own times of short operations differ between windows of the history: the standard deviation
    (by the median absolute one) of geometric means at the shorter half of operations, and what too few windows do not
    show.
    """
    rows = np.flatnonzero(timing.whole & (timing.called < 0) & (spans.era < spans.eras - 1))
    place, us, era = spans.operation[rows], timing.own[rows], spans.era[rows]
    windows = len(np.unique(era))
    unseen = UNSEEN_US * min(1.0, (UNSEEN_WINDOWS / max(1, windows)) ** 2)
    pair, heads = grouped(place, era)
    count = totals(pair, np.ones(len(pair)), len(heads))
    mean = np.expm1(totals(pair, np.log1p(us), len(heads)) / np.maximum(count, 1))
    where = place[heads]
    _, number, seen = np.unique(where, return_inverse=True, return_counts=True)
    if not (seen >= 3).any():
        return unseen
    order = np.lexsort((mean, number))
    begin = np.concatenate([[0], np.cumsum(seen)])[:-1]
    middle = (mean[order[begin + (seen - 1) // 2]] + mean[order[begin + seen // 2]]) / 2
    short = (seen >= 3) & (middle <= np.median(middle[seen >= 3]))
    return max(unseen, 1.4826 * float(np.median(np.abs(mean - middle[number])[short[number]])))


def totals(group: Ints, values: Floats, groups: int) -> Floats:
    """The sum of the values by group."""
    return np.bincount(group, values, minlength=groups).astype(np.float64)


def grouped(*columns: Ints) -> tuple[Ints, Ints]:
    """The number of each row's group (rows alike in all columns), and a row of each group."""
    number = np.zeros(len(columns[0]), dtype=np.int64)
    heads = np.zeros(0, dtype=np.int64)
    for column in columns:
        width = int(column.max()) + 1 if len(column) else 1
        _, heads, number = np.unique(number * width + column, return_index=True, return_inverse=True)
    return number.astype(np.int64), heads.astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Shapes:
    """Counts of spans by outcome. A place is an operation; `client` and `server` are the services that could have
    changed it: the caller and the called where a span is one side of one call, else its own service twice; `asks`
    tells that most spans of the operation are a caller's side of some call.

    Cells count the spans of a place, era, quarter and instance that had one outcome; `outcome` numbers the
    outcomes, and `outcomes[n]` is whether it ends in an error of its own, and the operations that it calls.
    `surprising` marks the spans (of shape (spans,)) whose outcome no window of the history saw and nothing
    further down explains. `torn` is the share of spans of the judged window that seem to have got lost:
    parents named and missing.
    """

    operation: Ints
    client: Ints
    server: Ints
    asks: Flags
    place: Ints
    era: Ints
    quarter: Ints
    instance: Ints
    outcome: Ints
    count: Floats
    outcomes: tuple[tuple[bool, tuple[int, ...]], ...]
    surprising: Flags
    torn: float

    @property
    def places(self) -> int:
        return len(self.operation)


def shapes(spans: Spans, timing: Timing, served: Flags) -> Shapes:
    """Outcomes of spans whose children could all be seen and whose oddity no other service explains.

    Calls that were `served` by somebody who told nothing of it are left out: what they called is not known.
    """
    sets, members = _called_sets(spans)
    own_error = spans.error & ~_any_child(spans, spans.error)
    outcome, heads = grouped(sets, own_error.astype(np.int64))
    known = _known_before(spans, outcome)
    odd = spans.error | ~known
    judged = timing.whole & ~_explained_below(spans, odd) & ~_broken(spans) & ~served
    rows = np.flatnonzero(judged)
    place, firsts = grouped(spans.operation[rows])
    quarter = quarter_of(spans)[rows]
    cell, cells = grouped(place, spans.era[rows], quarter, spans.instance[rows], outcome[rows])
    operation = spans.operation[rows][firsts]
    client, server, asks = _sides(spans, timing, operation)
    return Shapes(
        operation=operation,
        client=client,
        server=server,
        asks=asks,
        place=place[cells],
        era=spans.era[rows][cells],
        quarter=quarter[cells],
        instance=spans.instance[rows][cells],
        outcome=outcome[rows][cells],
        count=totals(cell, np.ones(len(cell)), len(cells)),
        outcomes=tuple((bool(own_error[row]), members[int(sets[row])]) for row in heads.tolist()),
        surprising=judged & ~known,
        torn=_torn(spans),
    )


def _called_sets(spans: Spans) -> tuple[Ints, tuple[tuple[int, ...], ...]]:
    """The number of each span's set of called operations, and the members of each set.

    Operations that no window of the history saw are left out: a new version may call something new.
    """
    past = np.zeros(len(spans.operations), dtype=np.bool_)
    past[spans.operation[spans.era < spans.eras - 1]] = True
    children = np.flatnonzero((spans.parent >= 0) & past[spans.operation])
    parent, called = spans.parent[children], spans.operation[children]
    _, heads = grouped(parent, called)
    parent, called = parent[heads], called[heads]
    order = np.lexsort((called, parent))
    parent, called = parent[order], called[order]
    marks = np.random.default_rng(0).integers(0, 2**63 - 1, len(spans.operations), dtype=np.int64)
    sums = np.zeros(spans.rows, dtype=np.uint64)
    np.add.at(sums, parent, marks[called].astype(np.uint64))
    _, first, number = np.unique(sums, return_index=True, return_inverse=True)
    begin, end = np.searchsorted(parent, first, "left"), np.searchsorted(parent, first, "right")
    sets = tuple(tuple(called[a:b].tolist()) for a, b in zip(begin.tolist(), end.tolist(), strict=True))
    return number.astype(np.int64), sets


def _any_child(spans: Spans, flag: Flags) -> Flags:
    found = np.zeros(spans.rows, dtype=np.bool_)
    found[spans.parent[(spans.parent >= 0) & flag]] = True
    return found


def _known_before(spans: Spans, outcome: Ints) -> Flags:
    """Whether the history saw the span's operation end in this outcome."""
    pair, _ = grouped(spans.operation, outcome)
    seen = np.zeros(int(pair.max()) + 1 if len(pair) else 0, dtype=np.bool_)
    seen[pair[spans.era < spans.eras - 1]] = True
    return np.asarray(seen[pair], dtype=np.bool_)


def _explained_below(spans: Spans, odd: Flags) -> Flags:
    """Whether a span of another service, further down the same calls, is odd: then the cause is there."""
    explained = np.zeros(spans.rows, dtype=np.bool_)
    for level in _levels_upward(spans):
        parent = spans.parent[level]
        elsewhere = spans.service[level] != spans.service[parent]
        explained[parent[explained[level] | (odd[level] & elsewhere)]] = True
    return explained


def _levels_upward(spans: Spans) -> list[Ints]:
    """Rows that have a parent, by depth, deepest first; rows on a circle of parents are in none."""
    depth = np.where(spans.parent < 0, 0, -1)
    child = np.flatnonzero(spans.parent >= 0)
    order = child[np.argsort(spans.parent[child], kind="stable")]
    begin = np.searchsorted(spans.parent[order], np.arange(spans.rows), "left")
    end = np.searchsorted(spans.parent[order], np.arange(spans.rows), "right")
    levels: list[Ints] = []
    frontier = np.flatnonzero(depth == 0)
    while len(frontier):
        counts = end[frontier] - begin[frontier]
        offsets = np.repeat(begin[frontier] - np.concatenate([[0], np.cumsum(counts)])[:-1], counts)
        frontier = order[offsets + np.arange(int(counts.sum()))]
        if len(frontier):
            levels.append(frontier)
    return levels[::-1]


def _broken(spans: Spans) -> Flags:
    """Spans of traces in which some span's parent is missing: there, calls seem missing that were made."""
    broken = np.zeros(int(spans.trace.max()) + 1 if spans.rows else 0, dtype=np.bool_)
    broken[spans.trace[spans.parent == LOST]] = True
    return np.asarray(broken[spans.trace], dtype=np.bool_)


def _torn(spans: Spans) -> float:
    """The share of parents that are missing in the judged window, among all that are named."""
    now = spans.era == spans.eras - 1
    lost = int((spans.parent[now] == LOST).sum())
    parents = len(np.unique(spans.parent[now & (spans.parent >= 0)]))
    return lost / max(1, lost + parents)


def _sides(spans: Spans, timing: Timing, operations: Ints) -> tuple[Ints, Ints, Flags]:
    """For each operation its service, the one that it calls (its own if none or several), and whether its
    spans are callers' sides of calls.
    """
    service_of = np.zeros(len(spans.operations), dtype=np.int64)
    service_of[spans.operation] = spans.service
    client = service_of[operations]
    past = spans.era < spans.eras - 1
    callers = np.flatnonzero((timing.called >= 0) & past)
    to = spans.service[timing.called[callers]]
    share = np.bincount(spans.operation[callers], minlength=len(service_of)) / np.maximum(
        1, np.bincount(spans.operation[past], minlength=len(service_of))
    )
    target = np.full(len(service_of), -1, dtype=np.int64)
    _, heads = grouped(spans.operation[callers], to)
    for head in heads.tolist():
        row = spans.operation[callers[head]]
        target[row] = to[head] if target[row] == -1 else -2
    asks = share[operations] >= 0.5
    one = asks & (target[operations] >= 0)
    return client, np.where(one, target[operations], client), asks
