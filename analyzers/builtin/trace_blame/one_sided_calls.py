"""Calls of which only the caller's side was told: is the one who was called ill, or did its spans get lost?

Both make spans go missing. What tells them apart is the caller's side, which is still there: a call that ends
without an error, and not so fast that nobody can have served it, was served by somebody; what is missing is
then the telemetry of who served it, and neither what the caller seems to do now (nothing is below it) nor
the time that it seems to spend itself is the caller's doing. What such a call lasts is compared with normal
all the same: a service may lose its spans and be slow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzers.builtin.trace_blame.places import Times, summed, totals
from analyzers.builtin.trace_blame.spans import Flags, Ints, Spans
from analyzers.builtin.trace_blame.timing import Timing

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
    """What the spans of each operation call, by their history; of several operations the most frequent one."""
    operations = len(spans.operations)
    past = np.flatnonzero((spans.era < spans.eras - 1) & timing.whole)
    told = np.bincount(spans.operation[past], minlength=operations)
    callers = past[timing.called[past] >= 0]
    asked = np.bincount(spans.operation[callers], minlength=operations)
    pair, count = np.unique(
        spans.operation[callers] * operations + spans.operation[timing.called[callers]], return_counts=True
    )
    order = np.lexsort((pair, count))  # the most frequent is written last
    callee = np.full(operations, -1, dtype=np.int64)
    callee[pair[order] // max(1, operations)] = pair[order] % max(1, operations)
    return np.where((asked >= ASKS * told) & (told >= FEWEST), callee, -1)


def unanswered_calls(spans: Spans, silence: Silence, resolution_us: float) -> Times:
    """What the callers say of calls whose other side was not told of, and of answered ones before.

    A place is an operation of a caller; the instances on both ends are the caller's. Calls that end in an error
    are left out: that they end so is what they say.
    """
    now = spans.era == spans.eras - 1
    mute = silence.unanswered & ~spans.error & now
    asked = np.zeros(len(spans.operations), dtype=np.bool_)
    asked[spans.operation[mute]] = True
    rows = np.flatnonzero(mute | (silence.answered & ~now & asked[spans.operation]))
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
