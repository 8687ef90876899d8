"""Calls of which only the caller's side was told: is the one who was called ill, or did its spans get lost?

Both make spans go missing. What tells them apart is the caller's side, which is still there: a call that ends
without an error, and not so fast that nobody can have served it, was served by somebody; what is missing is
then the telemetry of who served it, and neither what the caller seems to do now (nothing is below it) nor
the time that it seems to spend itself is the caller's doing. What such a call lasts is compared with normal
all the same: a service may lose its spans and be slow.

Instances whose spans stopped arriving while they were still called: lost telemetry, or a crash.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from analyzers.builtin.text import moment, percent
from analyzers.builtin.trace_blame.places import Times, summed, totals
from analyzers.builtin.trace_blame.spans import LOST, Flags, Ints, Spans, Timing
from analyzers.contract import Evidence, table

ASKS = 0.8
"""Share of an operation's spans that must have been callers' sides of calls for the others to be unanswered."""

FEWEST = 5
"""Spans of an operation in the history, below which nothing is known of it."""

FAST = 3.0
"""Standard deviations of a call's logarithm below normal from which on nobody can have served it."""


@dataclass(frozen=True, slots=True, eq=False)
class Silence:
    """`answered` marks callers' sides of calls, `unanswered` those whose other side was not told of, and `served`
    those of these that somebody served all the same; all of shape (spans,).

    `callee` is the operation that the spans of each operation call, -1 where they are no callers' sides, of shape
    (operations,).
    """

    answered: Flags
    unanswered: Flags
    served: Flags
    callee: Ints


def silence_of(spans: Spans, timing: Timing, resolution_us: float) -> Silence:
    operations = len(spans.operations)
    callee = _callees(spans, timing)
    log = np.log(spans.duration + resolution_us)
    answered = np.flatnonzero((timing.called >= 0) & (spans.era < spans.eras - 1))
    at = spans.operation[answered]
    count = np.bincount(at, minlength=operations)
    mean = totals(at, log[answered], operations) / np.maximum(count, 1)
    apart = (log[answered] - mean[at]) ** 2
    spread = np.sqrt((totals(at, apart, operations) + 0.5) / np.maximum(count, 1))
    alone = np.bincount(spans.parent[spans.parent >= 0], minlength=spans.rows) == 0
    unanswered = alone & timing.whole & (callee[spans.operation] >= 0)
    low = (mean - FAST * spread)[spans.operation]
    return Silence(timing.called >= 0, unanswered, unanswered & ~spans.error & (log >= low), callee)


def _callees(spans: Spans, timing: Timing) -> Ints:
    """Operation that the spans of each operation call, by their history; of several operations the most frequent
    one."""
    operations = len(spans.operations)
    past = np.flatnonzero((spans.era < spans.eras - 1) & timing.whole)
    recorded = np.bincount(spans.operation[past], minlength=operations)
    callers = past[timing.called[past] >= 0]
    requested = np.bincount(spans.operation[callers], minlength=operations)
    pair, count = np.unique(
        spans.operation[callers] * operations + spans.operation[timing.called[callers]], return_counts=True
    )
    order = np.lexsort((pair, count))  # the most frequent is written last
    callee = np.full(operations, -1, dtype=np.int64)
    callee[pair[order] // max(1, operations)] = pair[order] % max(1, operations)
    return np.where((requested >= ASKS * recorded) & (recorded >= FEWEST), callee, -1)


def unanswered_calls(spans: Spans, silence: Silence, resolution_us: float) -> Times:
    """Callers' times of calls whose other side is missing, and of answered ones before.

    A place is an operation of a caller; the instances on both ends are the caller's. Calls that end in an error
    are left out: that they end so is what they say.
    """
    now = spans.era == spans.eras - 1
    mute = silence.unanswered & ~spans.error & now
    requested = np.zeros(len(spans.operations), dtype=np.bool_)
    requested[spans.operation[mute]] = True
    rows = np.flatnonzero(mute | (silence.answered & ~now & requested[spans.operation]))
    service_of = np.zeros(len(spans.operations), dtype=np.int64)
    service_of[spans.operation] = spans.service
    operation = spans.operation[rows]
    keys = spans.service[rows], service_of[silence.callee[operation]], operation
    return summed("call", spans, rows, rows, keys, spans.duration[rows].astype(np.float64), resolution_us)


def called_service(spans: Spans, silence: Silence) -> Ints:
    """By span the service that it called without an answer that was told of; -1 for all others."""
    service_of = np.zeros(len(spans.operations) + 1, dtype=np.int64)
    service_of[spans.operation] = spans.service
    return np.where(silence.unanswered, service_of[silence.callee[spans.operation]], -1)


EXPECTED = 10.0
"""Spans that an instance should have told of since its last one, before it counts as silent."""

FEWEST_CALLS = 3
"""Calls without their other side, or calls without a caller, that show that it is still at work."""

FAILING = 0.05
"""Share of the calls that failed, above which silence is more than lost telemetry."""

_MOST = 20


@dataclass(frozen=True, slots=True)
class Silent:
    """`before` is spans a window; `last` microseconds since 1970, None if none came in the judged window. `calls` are
    calls of its service since then of which only the caller told, `failed` those of them that ended in an error,
    `orphans` calls made by its service since then of which only the called told.
    """

    instance: int
    service: int
    before: float
    last: int | None
    calls: int
    failed: int
    orphans: int


def silent_instances(spans: Spans, silence: Silence) -> tuple[Silent, ...]:
    """Instances that should have told of at least `EXPECTED` spans since their last one, and are still at work.

    One that was drained, stopped or replaced is not called any more, and is not among them.
    """
    now = spans.era == spans.eras - 1
    if not now.any() or spans.eras < 2:
        return ()
    size = len(spans.instances)
    before = np.bincount(spans.instance[~now], minlength=size) / (spans.eras - 1)
    first = int(spans.start[now].min())
    length = max(1, int(spans.start[now].max()) - first)
    last = np.full(size, first - 1, dtype=np.int64)
    np.maximum.at(last, spans.instance[now], spans.start[now])
    missed = before * (first + length - last) / length
    service_of = np.zeros(size, dtype=np.int64)
    service_of[spans.instance] = spans.service
    called, caller = called_service(spans, silence), _calling_service(spans)
    found = []
    for instance in np.flatnonzero(missed >= EXPECTED).tolist():
        service, since = int(service_of[instance]), int(last[instance])
        unheard = now & (called == service) & (spans.start > since)
        orphans = int((now & (caller == service) & (spans.start > since)).sum())
        calls, failed = int(unheard.sum()), int(spans.error[unheard].sum())
        if max(calls, orphans) >= FEWEST_CALLS:
            end = since if since >= first else None
            found.append(Silent(instance, service, float(before[instance]), end, calls, failed, orphans))
    return tuple(sorted(found, key=lambda one: (-one.before, spans.instances[one.instance])))


def _calling_service(spans: Spans) -> Ints:
    """By span whose parent is lost, the service that mostly calls its operation; -1 for all others."""
    children = np.flatnonzero((spans.parent >= 0) & (spans.era < spans.eras - 1))
    width = max(1, len(spans.services))
    pair, count = np.unique(
        spans.operation[children] * width + spans.service[spans.parent[children]], return_counts=True
    )
    order = np.lexsort((pair, count))
    mostly = np.full(len(spans.operations), -1, dtype=np.int64)
    mostly[pair[order] // width] = pair[order] % width
    lost: Flags = spans.parent == LOST
    return np.where(lost, mostly[spans.operation], -1)


def silent_table(spans: Spans, found: tuple[Silent, ...]) -> Evidence:
    rows = tuple(
        (
            f"instance/{spans.instances[one.instance]}",
            f"service/{spans.services[one.service]}",
            round(one.before, 1),
            "none in this window" if one.last is None else _clock(one.last),
            one.calls,
            one.failed,
            one.orphans,
            _reading(one),
        )
        for one in found[:_MOST]
    )
    columns = (
        "instance", "service", "spans a window before", "last span", "calls of the service reported by callers only",
        "of them failed", "calls it made, reported by the called service only", "reading",
    )  # fmt: skip
    note = (
        "A call that ends without an error, and not too fast to have been served, was served: its missing side is "
        "lost telemetry, not a fault. Its duration and outcome still count."
    )
    return table("Spans that stopped arriving", columns, rows, note)


def _reading(one: Silent) -> str:
    if one.failed > FAILING * one.calls:
        return f"its spans stopped arriving, and {percent(one.failed / one.calls)} of these calls failed"
    if one.calls:
        return "its spans stopped arriving, its callers saw no failures: lost telemetry"
    return "its spans stopped arriving, what it calls is still called: lost telemetry"


def _clock(microseconds: int) -> str:
    return moment(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds))
