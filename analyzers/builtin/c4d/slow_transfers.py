"""Slow communication: the delay matrix between ranks, and the rows, columns and elements of it that are high.

The delay of a transfer is its duration over what transfers of its size and class usually take: the median by size
among pairs within a node, or across nodes, whatever the bandwidth. Of the two ends of a send and a receive the shorter
duration counts, because the other one waited. Where many send to one rank, or one rank to many, in one operation, the
load of the busier end stands in for the size (all-to-all with uneven experts is no fault).

An element of the matrix is the median over the most recent operations of its pair. Short spans of operations come
first, so that a fault is named soon after it began; an element must be high in both halves of the span.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.c4d.observed import Flags, Floats, Ints, Records
from analyzers.builtin.c4d.places import ROW_SHARE, Pattern, patterns
from analyzers.builtin.stats.medians import medians

SPANS = (5, 8, 25, 50)
"""Operations of a pair over which its median is taken; of the shortest only rows and columns count."""
_FEW = 8
"""Transfers below which there is no matrix."""
MOST = 240
"""Operations of a pair that are looked at, the older of which say what was usual."""
_BLOCK = 25
"""Operations of a pair before the recent ones of which the median is one of its past levels."""
_SURER = {5: 1.4, 8: 1.2}
"""Factors on the cut for short spans, which scatter most."""
_OFTEN = 0.8
"""Share of the operations of a span in which a single element is above half of the cut: congestion comes and goes."""
_ROW_DELAY = 0.6
"""Share of `least_delay` that the median of a row has to exceed, because many elements agree."""
_SCATTER = 0.02
"""Least scatter between pairs that is assumed, as a share."""
_BLOCKS = (2, 4, 8, 16)
"""Ranks per node that are tried where nodes are not known."""
MOST_HOT = 0.2
"""Share of the ranks beyond which uneven delays are no fault of one rank."""


@dataclass(frozen=True, slots=True, eq=False)
class Delays:
    """`delay` and `usual` have shape (ranks, ranks) from sender to receiver: the recent delay over what is usual for
    its size and class, and the same before; NaN where nothing was sent. `found` are the patterns of what is high;
    `span` operations were looked at. `since` is when the recent operations begin, seconds after the window's start.
    """

    delay: Floats
    usual: Floats
    found: tuple[Pattern, ...]
    span: int
    cut: float
    since: float
    is_widespread: bool = False

    @property
    def explained(self) -> int:
        """Number of elements that the patterns hold."""
        return sum(len(one.pairs) for one in self.found)

    def excess(self, pattern: Pattern) -> float:
        """The median delay of the pattern's elements over the usual, 1 for no excess."""
        return float(np.median([self.delay[pair] for pair in pattern.pairs]))


@dataclass(frozen=True, slots=True, eq=False)
class _Transfers:
    """Completed transfers in order of their pair, the newest of a pair first; `place` counts from it."""

    src: Ints
    dst: Ints
    at: Floats
    delay: Floats
    place: Ints


def delays_of(records: Records, least: float, mads: float) -> Delays | None:
    """The delay matrix and its patterns, None where there are too few transfers between ranks."""
    sent = _transfers(records)
    if sent is None:
        return None
    ranks = int(records.rank.max()) + 1
    pair = sent.src * ranks + sent.dst
    pairs, row = np.unique(pair, return_inverse=True)
    table = np.full((len(pairs), MOST), np.nan)
    table[row, sent.place] = sent.delay
    moments = np.full((len(pairs), MOST), np.nan)
    moments[row, sent.place] = sent.at
    seen = (~np.isnan(table)).sum(axis=1)
    result: Delays | None = None
    for span in SPANS:
        enough = seen >= max(min(span, 6), span // 2)
        if enough.sum() < 4:
            break
        surer = mads * _SURER.get(span, 1.0)
        wider = _matrix(table, moments, pairs, enough, ranks, span, least, surer)
        if result is not None and result.found:
            # Rows were found in the shortest span; the next also tells single elements.
            return wider if wider.explained >= result.explained else result
        result = wider
        if result.is_widespread or (result.found and span != SPANS[0]):
            return result
    return result


def _matrix(
    table: Floats,
    moments: Floats,
    pairs: Ints,
    enough: Flags,
    ranks: int,
    span: int,
    least: float,
    mads: float,
) -> Delays:
    recent = table[enough, :span]
    now = _square(medians(recent), pairs[enough], ranks)
    newer = _square(medians(recent[:, : span // 2]), pairs[enough], ranks)
    older = _square(medians(recent[:, span // 2 :]), pairs[enough], ranks)
    before = table[enough, span:]
    known = (~np.isnan(before)).sum(axis=1) >= 8
    past = np.full(len(before), np.nan)
    past[known] = medians(before[known])
    usual = _square(past, pairs[enough], ranks)
    width = _width(recent)
    lowest, error = _lowest(before, recent, width)
    lowest, error = _square(lowest, pairs[enough], ranks), _square(error, pairs[enough], ranks)
    always = _always(table[enough], width, np.log1p(least), mads)
    slow = _square(always, pairs[enough], ranks) > 0
    hot, cut = _hot(now, newer, older, (usual, lowest), error, slow, least, mads, (recent, pairs[enough]))
    found = patterns(~np.isnan(now), hot)
    if span == SPANS[0]:
        found = tuple(one for one in found if one.place.side != "channel")
    touched = {rank for one in found for rank in one.place.ranks}
    seen = int((~np.isnan(now)).any(axis=0).sum())
    widespread = len(touched) > max(4, MOST_HOT * seen)
    since = float(np.nanmedian(moments[enough, min(span, MOST) - 1 : span])) if hot.any() else 0.0
    if np.isnan(since):
        since = float(np.nanmin(moments[enough, :span]))
    return Delays(np.exp(now), np.exp(usual), () if widespread else found, span, cut, since, widespread)


def _square(values: Floats, pairs: Ints, ranks: int) -> Floats:
    square = np.full(ranks * ranks, np.nan)
    square[pairs] = values
    return square.reshape(ranks, ranks)


def _width(recent: Floats) -> float:
    """Scatter of the transfers of one pair: that of the middle pair, as a fault may have begun in any."""
    return float(np.median(1.4826 * medians(np.abs(recent - medians(recent)[:, None]))))


def _lowest(before: Floats, recent: Floats, width: float) -> tuple[Floats, Floats]:
    """The lowest level that each pair had over `_BLOCK` operations before the recent ones, and the standard error of
    its difference from the recent ones; shape (rows,), NaN where the past is not known.

    A fault that lasts for most of the record is what was usual by the median of the past, not by this.
    """
    blocks = [before[:, at : at + _BLOCK] for at in range(0, before.shape[1], _BLOCK)]
    level, error = np.full(len(before), np.nan), np.full(len(before), np.nan)
    for block in blocks:
        known = (~np.isnan(block)).sum(axis=1) >= _FEW
        if not known.any():
            continue
        middle = np.full(len(before), np.nan)
        middle[known] = medians(block[known])
        lower = known & ~(level <= middle)
        level[lower] = middle[lower]
        error[lower] = _errors(width, recent[lower], block[lower])
    return level, error


def _errors(width: float, *tables: Floats) -> Floats:
    """Standard errors of the median of each row, or of the difference of those of two tables, shape (rows,)."""
    counts = [np.maximum((~np.isnan(table)).sum(axis=1), 1) for table in tables]
    return np.asarray(width * np.sqrt(np.pi / 2 * sum(1 / count for count in counts)))


def _always(table: Floats, width: float, least: float, mads: float) -> Floats:
    """By how much each pair is slow over all its transfers beyond twice `least` and beyond chance, shape (pairs,).

    A few transfers say little of a pair that did not rise over its own past: in a ring of four the longest way of all
    is above any cut between pairs now and then.
    """
    middle = medians(table)
    least_excess = np.maximum(2 * least, least + mads * _errors(width, table))
    return np.asarray(middle - np.median(middle) - least_excess)


def _scatter(values: Floats) -> float:
    return max(_SCATTER, 1.4826 * float(np.median(np.abs(values - np.median(values)))))


def _hot(
    now: Floats,
    newer: Floats,
    older: Floats,
    past: tuple[Floats, Floats],
    error: Floats,
    slow: Flags,
    least: float,
    mads: float,
    recent: tuple[Floats, Ints],
) -> tuple[Flags, float]:
    """Elements that are high alone, or in a row or column that is high as a whole; and the cut for single ones.

    `past` are the usual level of each element and its lowest. The cut is twice as high for an element that is not
    known to have risen above its lowest, and it has to be `slow` over all its transfers: a longer way is no fault.
    """
    usual, lowest = past
    seen = ~np.isnan(now)
    filled = np.where(seen, now, -np.inf)
    level = float(np.median(now[seen]))
    chronic = ~np.isnan(usual) & (now - usual < np.log1p(least) / 2)
    rose = now - lowest >= np.maximum(np.log1p(least), mads * error)
    cut = max(np.log1p(least), mads * _scatter(now[seen]))
    lasting = (np.nan_to_num(newer, nan=-np.inf) - level > cut / 2) & (
        np.nan_to_num(older, nan=np.inf) - level > cut / 2
    )
    table, pairs = recent
    above = (table - level > cut / 2).sum(axis=1) >= _OFTEN * (~np.isnan(table)).sum(axis=1)
    often = np.zeros(now.size, dtype=np.bool_)
    often[pairs] = above
    hot = (filled - level > np.where(rose, cut, 2 * cut)) & (rose | slow) & lasting & seen
    hot &= often.reshape(now.shape)
    for axis in (0, 1):
        sums = seen.sum(axis=1 - axis)
        rows = np.flatnonzero(sums >= 2)
        if len(rows) < 3:
            continue
        lines = now if axis == 0 else now.T
        middle = medians(lines[rows]) - level
        bar = max(np.log1p(_ROW_DELAY * least), (mads + 1) * _scatter(middle))
        for row, high in zip(rows.tolist(), middle.tolist(), strict=True):
            if high > bar and sums[row] >= 3:
                _mark(hot, axis, row, _warm(filled, newer, older, chronic, axis, row, level, high))
    return hot, float(np.exp(cut))


def _warm(
    filled: Floats,
    newer: Floats,
    older: Floats,
    chronic: Flags,
    axis: int,
    row: int,
    level: float,
    high: float,
) -> Flags:
    """Elements of a row (axis 0) or column that are nearly as high as its median, in both halves of the span."""
    taken = (row, slice(None)) if axis == 0 else (slice(None), row)
    near = filled[taken] - level > 0.6 * high
    for half in (newer, older):
        middle = float(medians(half[taken][None])[0]) - level
        if not middle > 0.6 * high:
            return np.zeros(len(near), dtype=np.bool_)
    seen = np.isfinite(filled[taken])
    if (near & chronic[taken]).sum() > 0.5 * near.sum() and high < 0.4:
        return np.zeros(len(near), dtype=np.bool_)
    return near if near.sum() >= ROW_SHARE * seen.sum() else np.zeros(len(near), dtype=np.bool_)


def _mark(hot: Flags, axis: int, row: int, near: NDArray[np.bool_]) -> None:
    if axis == 0:
        hot[row] |= near
    else:
        hot[:, row] |= near


def _transfers(records: Records) -> _Transfers | None:
    duration = records.duration
    used = np.flatnonzero(records.is_transfer & (duration > 0))
    if len(used) < _FEW:
        return None
    keys = (
        records.communicator[used],
        records.seq[used],
        records.src[used],
        records.dst[used],
        records.is_p2p[used],
    )
    order = np.lexsort((duration[used], *keys[::-1]))
    used = used[order]
    first = np.append(True, np.any([key[order][1:] != key[order][:-1] for key in keys], axis=0))
    begin = np.flatnonzero(first)
    by_sender = np.where(records.rank[used] == records.src[used], records.start[used], np.inf)
    sender, either = np.minimum.reduceat(by_sender, begin), np.minimum.reduceat(records.start[used], begin)
    at = np.where(np.isfinite(sender), sender, either)
    sides = np.diff(np.append(begin, len(used)))
    used = used[first]
    # Of a send or a receive alone it is not known how long it waited.
    retained = (sides > 1) | ~records.is_p2p[used]
    used, at = used[retained], at[retained]
    if len(used) < _FEW:
        return None
    src, dst = records.src[used], records.dst[used]
    load = _load(records, used)
    delay = _over_usual(
        np.log(duration[used]), np.log(np.maximum(load, 1.0)), _classes(records, used, duration[used])
    )
    pair = src * (int(records.rank.max()) + 1) + dst
    # By the sender's clock where it recorded the transfer, so that two clocks do not mix.
    order = np.lexsort((records.seq[used], -at, pair))
    begin = np.append(True, pair[order][1:] != pair[order][:-1])
    place = np.arange(len(order)) - np.flatnonzero(begin)[np.cumsum(begin) - 1]
    retained = place < MOST
    order = order[retained]
    return _Transfers(src[order], dst[order], at[order], delay[order], place[retained])


def _load(records: Records, used: Ints) -> Floats:
    """Bytes of each transfer, or the mean of its sender's or receiver's transfers in the operation if that is more."""
    size = records.bytes[used]
    stream = records.communicator[used] * (int(records.seq.max()) + 1) + records.seq[used]
    loads = [size]
    for end in (records.src[used], records.dst[used]):
        _, row, count = np.unique(
            stream * (int(records.rank.max()) + 1) + end, return_inverse=True, return_counts=True
        )
        loads.append((np.bincount(row, size) / count)[row])
    found: Floats = np.max(loads, axis=0)
    return found


def _classes(records: Records, used: Ints, duration: Floats) -> Ints:
    """0 for transfers within a node, 1 across nodes; blocks of ranks stand in for nodes that are not known."""
    src, dst = records.src[used], records.dst[used]
    node = records.node
    known = (src < len(node)) & (dst < len(node))
    if known.all() and (node[src] >= 0).all() and (node[dst] >= 0).all():
        return np.asarray(node[src] != node[dst], dtype=np.int64)
    delay = np.log(duration / np.maximum(records.bytes[used], 1.0))
    ranks = int(records.rank.max()) + 1
    pairs, row = np.unique(src * ranks + dst, return_inverse=True)
    middle = np.array([np.median(delay[row == i]) for i in range(len(pairs))]) if len(pairs) < 4096 else None
    best, classes = 0.5, np.zeros(len(used), dtype=np.int64)
    if middle is None:
        return classes
    spread = _residual(middle, np.zeros(len(pairs), dtype=np.int64))
    for size in _BLOCKS:
        apart = (pairs // ranks // size != pairs % ranks // size).astype(np.int64)
        if 0 < apart.sum() < len(apart):
            retained = _residual(middle, apart) / max(spread, 1e-9)
            if retained < best:
                best, classes = retained, apart[row]
    return classes


def _residual(values: Floats, classes: Ints) -> float:
    """Mean distance from the median of the class."""
    parts = [values[classes == one] for one in (0, 1) if (classes == one).any()]
    return float(np.mean(np.concatenate([np.abs(part - np.median(part)) for part in parts])))


def _over_usual(duration: Floats, size: Floats, classes: Ints) -> Floats:
    """Log duration less the usual for its size, by class: medians in bins of size, interpolated between them."""
    found = np.empty(len(duration))
    for one in np.unique(classes):
        mine = np.flatnonzero(classes == one)
        order = mine[np.argsort(size[mine], kind="stable")]
        if np.ptp(size[order]) < 1e-9:
            found[mine] = duration[mine] - np.median(duration[mine])
            continue
        bins = np.round(size[order] * 2).astype(np.int64)
        middles = [
            (np.median(size[order][bins == b]), np.median(duration[order][bins == b]))
            for b in np.unique(bins)
        ]
        x, y = np.array(middles).T
        found[mine] = duration[mine] - np.interp(size[mine], x, y)
    return found
