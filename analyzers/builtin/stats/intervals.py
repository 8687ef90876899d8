"""Overlapping intervals of many owners, taken apart into segments in which nothing changes.

Outages overlap, are reported twice, begin before a window and end after it. A sweep over all ends cuts each
owner's time into segments; in each one every label (a cause, a state) is in force or not. Everything else is
sums over segments. Times are int64 microseconds.

`believed_ends` closes outages whose end was never reported. Where the report of the end is lost, by a crash of the
sender or on the way, the device looks down for weeks. An outage that began shortly before the end is taken as
reported; an older one is believed to have lasted as long as those with a known end, and the time after is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.stats.nines import OutageMix
from analyzers.contract import STILL_GOING

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

MINUTE = 60_000_000
HOUR = 60 * MINUTE
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def microseconds(moment: datetime) -> int:
    """Microseconds since 1970."""
    return (moment - _EPOCH) // _MICROSECOND


def moment(microseconds: int) -> datetime:
    return _EPOCH + int(microseconds) * _MICROSECOND


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """Pieces of owners' time, sorted by owner and start, without gaps inside an owner.

    `owner`, `start` and `end` have shape (segments,); `active[label]` of the same shape says where a label is
    in force.
    """

    owner: Ints
    start: Ints
    end: Ints
    active: tuple[Bools, ...]

    @property
    def length(self) -> Ints:
        return self.end - self.start

    def any(self, labels: Sequence[int]) -> Bools:
        """Times at which at least one of the labels is in force."""
        found = np.zeros(len(self.owner), dtype=bool)
        for label in labels:
            found |= self.active[label]
        return found

    def time(self, where: Bools, owners: int) -> Floats:
        """Minutes per owner over the segments where `where` holds, shape (owners,)."""
        return np.bincount(self.owner[where], self.length[where], minlength=owners) / MINUTE


@dataclass(frozen=True, slots=True, eq=False)
class Spells:
    """Longest stretches in which something held without a break; all of shape (spells,), sorted by owner and
    start.

    `of_segment` has the shape of the segments: which spell each is part of, -1 for none.
    """

    owner: Ints
    start: Ints
    end: Ints
    of_segment: Ints

    def __len__(self) -> int:
        return len(self.owner)

    @property
    def minutes(self) -> Floats:
        return (self.end - self.start) / MINUTE


def sweep(owner: Ints, start: Ints, end: Ints, label: Ints, labels: int, low: int, high: int) -> Segments:
    """Segments of the intervals `[start, end)` clipped to `[low, high)`; those outside are left out.

    All arrays have shape (intervals,); `label` holds numbers below `labels`.
    """
    start, end = np.maximum(start, low), np.minimum(end, high)
    valid = start < end
    owner, start, end, label = owner[valid], start[valid], end[valid], label[valid]
    owners = np.concatenate([owner, owner])
    times = np.concatenate([start, end])
    order = np.lexsort((times, owners))
    owners, times = owners[order], times[order]
    step = np.concatenate([np.ones(len(start), np.int64), -np.ones(len(end), np.int64)])[order]
    which = np.concatenate([label, label])[order]
    changes = np.ones(len(times), dtype=bool)
    changes[1:] = (owners[1:] != owners[:-1]) | (times[1:] != times[:-1])
    first = np.flatnonzero(changes)
    edge_owner, edge_time = owners[first], times[first]
    inside = np.zeros(len(first), dtype=bool)
    inside[:-1] = edge_owner[1:] == edge_owner[:-1]
    edge = np.cumsum(changes) - 1
    active = []
    for number in range(labels):
        mine = which == number
        depth = np.cumsum(np.bincount(edge[mine], step[mine], minlength=len(first)))
        active.append((np.rint(depth) > 0)[inside])
    following = np.flatnonzero(inside) + 1
    return Segments(edge_owner[inside], edge_time[inside], edge_time[following], tuple(active))


def spells(segments: Segments, where: Bools) -> Spells:
    """The stretches without a break over the segments where `where` holds."""
    begins = where.copy()
    joined = where[:-1] & (segments.owner[1:] == segments.owner[:-1])
    begins[1:] &= ~joined
    number = np.cumsum(begins) - 1
    of_segment = np.where(where, number, -1)
    first = np.flatnonzero(begins)
    hits = np.flatnonzero(where)
    end = np.zeros(len(first), dtype=np.int64)
    np.maximum.at(end, of_segment[hits], segments.end[hits])
    return Spells(segments.owner[first], segments.start[first], end, of_segment)


def main_label(segments: Segments, found: Spells, labels: Sequence[int]) -> Ints:
    """For each spell the label that was in force for most of it, the first of `labels` where they tie; shape
    (spells,).
    """
    inside = found.of_segment >= 0
    time = np.zeros((len(labels), len(found)))
    for row, label in enumerate(labels):
        mine = inside & segments.active[label]
        time[row] = np.bincount(found.of_segment[mine], segments.length[mine], minlength=len(found))
    return np.asarray(labels, dtype=np.int64)[np.argmax(time, axis=0)] if len(found) else _NONE


_NONE = np.zeros(0, dtype=np.int64)


def believed_ends(start: Ints, end: Ints, planned: Bools, high: int, open_hours: float) -> tuple[Ints, Bools]:
    """Believed end of each outage, and the doubted ones; arrays of shape (outages,).

    All times are microseconds; `high` is the end of what is judged. A doubted outage is believed to have taken the mean
    of the ended ones of its sort, planned or not; where none has ended, what the talk on Deepview at NetAI 2018 says.
    """
    going = end >= STILL_GOING
    doubted = going & (high - start > round(open_hours * HOUR))
    believed = end.copy()
    for sort in (planned, ~planned):
        ended = sort & ~going
        known = (
            float((end[ended] - start[ended]).mean()) if ended.any() else OutageMix().mean_minutes * MINUTE
        )
        mine = doubted & sort
        believed[mine] = np.minimum(start[mine] + round(known), high)
    return believed, doubted
