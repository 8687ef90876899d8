"""Slow computation: the rank that arrives last in collective operations, and makes all others wait.

No rank leaves a symmetric operation before all have entered it, so the rank that enters last is in it for the shortest
time. That needs no clock but the rank's own: the lateness of a rank is how much shorter its durations are than those of
the others, as a share of the time. It is taken over blocks of recent operations; a straggler is late in nearly all.

A rank that waited longer than its peers in other communicators, by half of its lateness, is late because of another
one. Communicators whose members exchange sends and receives join stages of a pipeline, whose work differs; they are not
compared. A rank with more bytes than its peers in operations of unequal size (an expert that many chose) does more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzers.builtin.c4d.observed import COMPLETED, Flags, Floats, Ints, Records
from analyzers.builtin.stats.medians import medians

BLOCKS, FEW = 8, 5
"""Blocks of recent operations; fewer where operations are seconds apart, and then all of them must be late, by more."""
_FEW_BAR = 2.0
"""Factor on the bar for fewer blocks."""
_SECONDS = 10.0
"""Recent operations are those of so long, or of half of the record; `FEW` at least and `_MOST` at most."""
_MOST = 400
_PRESENT = 0.8
"""Share of the members that an operation needs to be compared."""
_EXPLAINED = 0.5
_STEADY = 5.0
"""Least ratio of the mean lateness of a small communicator's rank to its standard error."""
_SMALL = 3
_FEW_MEMBERS = 8
"""Members up to which the scatter between them is taken without the one that is judged."""
_OF_MEAN = 1.2533
"""Ratio of the standard deviation to the mean deviation of normal values."""
_LOADED = 1.1
"""Ratio to the bytes of its peers from which a rank has more to do."""
_LIKE = 0.25
"""Share of the present lateness from which an earlier one is like it; scatter about the bar is not."""
_CHRONIC = 2.0
"""Factor on the bar for a rank that was as late before: it may have more to do."""


@dataclass(frozen=True, slots=True)
class Late:
    """A rank whose arrival the others wait for. `share` is the time lost to it, `usual` the same before (NaN where not
    known), `blocks` in how many of `of` it was late, `since` when these begin (seconds from the window's start)."""

    rank: int
    share: float
    usual: float
    blocks: int
    of: int
    members: int
    communicator: str
    since: float


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """Durations of the operations of one communicator, shape (operations, members), NaN where not recorded, and ends by
    each member's own clock. `moment` are the ends with the clocks aligned, shape (operations,): all leave together."""

    members: Ints
    duration: Floats
    end: Floats
    moment: Floats
    communicator: int


def late_ranks(records: Records, least: float, mads: float) -> tuple[Late, ...]:
    """The stragglers of a job, the latest first."""
    tables = _tables(records)
    if not tables:
        return ()
    related = _stages(records)
    found: dict[int, list[Late]] = {}
    joined: dict[int, int] = {}
    for table in tables:
        for rank in table.members.tolist():
            joined[rank] = joined.get(rank, 0) + 1
        for one in _late_in(records, table, related, least, mads):
            found.setdefault(one.rank, []).append(one)
    best = max((len(some) / joined[rank] for rank, some in found.items()), default=0.0)
    retained = [
        max(some, key=lambda one: one.share)
        for rank, some in sorted(found.items())
        if len(some) / joined[rank] >= best - 1e-9 and not _is_loaded(records, rank)
    ]
    return tuple(sorted(retained, key=lambda one: (-one.share, one.rank)))


def _tables(records: Records) -> list[_Table]:
    used = np.flatnonzero(
        records.is_symmetric & ~records.is_transfer & (records.state == COMPLETED) & (records.duration >= 0)
    )
    found = []
    for communicator in np.unique(records.communicator[used]).tolist():
        mine = used[records.communicator[used] == communicator]
        members, column = np.unique(records.rank[mine], return_inverse=True)
        seqs, row = np.unique(records.seq[mine], return_inverse=True)
        if len(members) < 2 or len(seqs) < FEW:
            continue
        if len(members) <= _SMALL < int(np.median(records.size[mine])):
            # Of a larger communicator too few are seen: among three, two that are usually alike look late together.
            continue
        duration = np.full((len(seqs), len(members)), np.nan)
        end = np.full((len(seqs), len(members)), np.nan)
        duration[row, column] = records.duration[mine]
        end[row, column] = records.end[mine]
        present = (~np.isnan(duration)).sum(axis=1)
        whole = present >= max(2.0, np.ceil(_PRESENT * len(members) - 1e-9))
        if whole.sum() < FEW:
            whole = present >= max(2, len(members) // 2)
        if whole.sum() >= FEW:
            end = end[whole]
            ahead = medians((end - medians(end)[:, None]).T)
            found.append(_Table(members, duration[whole], end, medians(end - ahead), communicator))
    return found


def _late_in(records: Records, table: _Table, related: Ints, least: float, mads: float) -> list[Late]:
    stages = related[table.members]
    if len(set(stages[stages >= 0].tolist())) < (stages >= 0).sum():
        return []
    for count in _spans(table):
        if found := _late_over(records, table, count, least, mads):
            return found
    return []


def _late_over(records: Records, table: _Table, count: int, least: float, mads: float) -> list[Late]:
    """The stragglers of a communicator by its last `count` operations."""
    late = _lateness(table.duration)
    now = _shares(late[-count:], table.moment[-count:])
    if now is None:
        return []
    middle = np.median(now, axis=0)
    past = _past(late[:-count], table.moment[:-count], count)
    least_blocks = BLOCKS - 1 if len(now) == BLOCKS else len(now)
    found = []
    for place in np.flatnonzero(middle > least).tolist():
        bar = _bar(middle, past, place, least, mads) * (_FEW_BAR if len(now) < BLOCKS else 1.0)
        if middle[place] <= bar:
            continue
        blocks = int((now[:, place] > bar / 2).sum())
        if blocks < least_blocks or not _is_steady(now[:, place], len(middle)):
            continue
        usual = past[:, place]
        before = float(np.median(usual)) if len(usual) else np.nan
        if _is_usual(usual, float(middle[place]), before, bar, len(middle)):
            continue
        since = float(table.end[-count, place] - table.duration[-count, place])
        if np.isnan(since):
            since = float(np.nanmin(table.end[-count:]))
        if _is_explained(records, table, place, count, float(np.nansum(late[-count:, place]))):
            continue
        found.append(
            Late(
                int(table.members[place]),
                float(middle[place]),
                before,
                blocks,
                len(now),
                len(middle),
                records.communicators[table.communicator],
                since,
            )
        )
    return found


def _bar(middle: Floats, past: Floats, place: int, least: float, mads: float) -> float:
    """Lateness from which a member is late: by the scatter between members.

    In a communicator of a few its own lateness is a large part of that scatter. A member that was in time before is
    therefore measured by the scatter of the others alone, by their mean deviation: the median of three says little.
    """
    if len(middle) <= _SMALL:
        return least
    bar = max(least, mads * 1.4826 * float(np.median(np.abs(middle - np.median(middle)))))
    if len(middle) > _FEW_MEMBERS or not (past[:, place] < _LIKE * middle[place]).any():
        return bar
    others = np.delete(middle, place)
    apart = float(np.mean(np.abs(others - np.median(others))))
    return min(bar, max(least, mads * _OF_MEAN * apart))


def _spans(table: _Table) -> list[int]:
    """Numbers of the newest operations to look at: those of some seconds, and fewer where they are far apart."""
    span = min(_SECONDS, float(table.moment[-1] - table.moment[0]) / 2)
    recent = int((table.moment > table.moment[-1] - span).sum())
    counts = {max(recent, BLOCKS), max(recent, FEW)}
    return sorted((min(count, _MOST) for count in counts if count <= len(table.moment)), reverse=True)


def _lateness(duration: Floats) -> Floats:
    """Difference of each duration from the median of the others'; of three members or fewer, from the longest."""
    if duration.shape[1] <= _SMALL:
        return np.asarray(np.nanmax(duration, axis=1, keepdims=True) - duration)
    return np.asarray(medians(duration)[:, None] - duration)


def _shares(late: Floats, moments: Floats) -> Floats | None:
    """Lateness as a share of the time, by block and member; None where too few operations are there."""
    if len(late) < FEW:
        return None
    parts = np.array_split(np.arange(len(late)), min(BLOCKS, len(late)))
    span = float(moments[-1] - moments[0]) / max(1, len(moments) - 1)
    if span <= 0:
        return None
    known = ~np.isnan(late)
    filled = np.where(known, late, 0.0)
    return np.array(
        [filled[part].sum(axis=0) / np.maximum(known[part].sum(axis=0), 1) / span for part in parts]
    )


def _past(late: Floats, moments: Floats, count: int) -> Floats:
    """Lateness of earlier spans of the same length, newest first, as a share of the time; shape (spans, members)."""
    found = []
    while len(late) >= max(FEW, count // 2):
        shares = _shares(late[-count:], moments[-count:])
        if shares is None:
            break
        found.append(np.median(shares, axis=0))
        late, moments = late[:-count], moments[:-count]
    return np.array(found).reshape(len(found), late.shape[1])


def _is_steady(shares: Floats, members: int) -> bool:
    if members > _SMALL:
        return True
    error = float(np.std(shares)) / np.sqrt(len(shares))
    return bool(np.mean(shares) > _STEADY * error)


def _is_usual(usual: Floats, now: float, before: float, bar: float, members: int) -> bool:
    """Whether the rank was as late before without harm: always so and little, or now and then, as beside a job. What is
    less than `_LIKE` of the present lateness is no such time."""
    if not len(usual):
        return False
    on = usual > max(bar / 2, _LIKE * now)
    if not on[0] and on[1:].any():
        return True
    if on.any() and not on.all():
        turns = int((on[1:] != on[:-1]).sum())
        return turns >= 2
    return bool(on.all() and now < before + bar / 2 and (now < _CHRONIC * bar or members <= _SMALL))


def _is_explained(records: Records, table: _Table, place: int, count: int, late: float) -> bool:
    """Whether the rank waited longer in other communicators than the median of its peers, by half of its lateness."""
    waits = np.array(
        [_busy(records, table, other, count) for other in range(len(table.members))], dtype=np.float64
    )
    others = np.delete(waits, place)
    return bool(waits[place] - np.median(others) >= _EXPLAINED * late)


def _busy(records: Records, table: _Table, place: int, count: int) -> float:
    """Seconds that a member spent in operations of other communicators while the recent operations went on."""
    rank = int(table.members[place])
    ends = table.end[-count:, place]
    if np.isnan(ends).all():
        return 0.0
    low, high = float(np.nanmin(ends)), float(np.nanmax(ends))
    own = np.flatnonzero(
        (records.rank == rank) & (records.communicator != table.communicator) & (records.state == COMPLETED)
    )
    own = own[~records.is_transfer[own] | records.is_p2p[own]]
    start, end = records.start[own], records.end[own]
    inside = (end > low) & (start < high)
    return float(np.sum(np.minimum(end[inside], high) - np.maximum(start[inside], low)))


def _stages(records: Records) -> Ints:
    """By rank, the pipeline it belongs to: a number shared by ranks that sends and receives join; -1 without any."""
    size = int(records.rank.max()) + 1
    parent = np.arange(size)
    used = records.is_p2p & records.is_transfer
    if not used.any():
        return np.full(size, -1)
    pairs = np.unique(np.stack([records.src[used], records.dst[used]]), axis=1)
    for src, dst in pairs.T.tolist():
        if max(src, dst) < size:
            parent[parent == parent[max(src, dst)]] = parent[min(src, dst)]
    joined: Flags = np.zeros(size, dtype=np.bool_)
    joined[pairs[pairs < size]] = True
    return np.where(joined, parent, -1)


def _is_loaded(records: Records, rank: int) -> bool:
    """Whether the rank has more bytes than its peers in operations whose sizes differ between ranks."""
    used = (records.bytes > 0) & ~records.is_p2p & ~records.is_transfer & records.is_symmetric
    if not used.any():
        return False
    op = np.array([name == "alltoall" for name in records.ops])[records.op]
    used &= op
    mine = records.bytes[used & (records.rank == rank)]
    others = records.bytes[used & (records.rank != rank)]
    if not len(mine) or not len(others):
        return False
    return bool(np.mean(mine) > _LOADED * np.mean(others))
