"""Records of collectives as arrays: one entry for each rank's part in an operation or transfer, by job.

A part may have been recorded several times as its state moved on; the furthest state counts, with the earliest start.
Operations of a communicator that began anew (its sequence numbers start again) belong to the newest beginning only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.contract import Sums, Window

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

SCHEDULED, STARTED, COMPLETED = 0, 1, 2
_STATE = {"scheduled": SCHEDULED, "started": STARTED, "completed": COMPLETED}

SYMMETRIC = frozenset(("allreduce", "allgather", "reducescatter", "alltoall", "barrier"))
"""Operations that no rank leaves before all have entered."""

SHOWN = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "reducescatter": "reduce_scatter",
    "alltoall": "all_to_all",
}
"""Spelling of operations in sentences, where not as `plain` leaves them."""

_ANEW, _FELL = 10, 5
"""A communicator began anew where its sequence number falls by more than `_FELL` to at most `_ANEW`."""
_APART = 3.0
"""Seconds by which the clock of a rank that joined then may be behind."""


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """Parts of one job; arrays have shape (parts,). Times are seconds after the window's start by the rank's own clock.

    `start` is the launch where the start is not known; `end` is NaN while a part is not completed or its end not known.
    `is_p2p` marks sends and receives, `is_transfer` parts between two ranks (`src`, `dst`; -1 otherwise), p2p among
    them. `op` is a place in `ops` (names without spelling), `communicator` one in `communicators`. `node` has shape
    (highest rank + 1,): a number for each rank's node, -1 where not known. `size` is the stated number of members,
    `reports` how many rows there are of the part.
    """

    job: str
    communicators: tuple[str, ...]
    ops: tuple[str, ...]
    communicator: Ints
    seq: Ints
    rank: Ints
    src: Ints
    dst: Ints
    op: Ints
    state: Ints
    start: Floats
    end: Floats
    bytes: Floats
    size: Ints
    node: Ints
    nodes: tuple[str, ...]
    is_p2p: Flags
    is_transfer: Flags
    is_symmetric: Flags
    reports: Ints

    @property
    def ranks(self) -> Ints:
        """The ranks that were seen, ascending."""
        return np.unique(self.rank)

    @property
    def duration(self) -> Floats:
        """Seconds from start to end; NaN where not completed."""
        return self.end - self.start


def jobs_of(window: Window) -> tuple[Records, ...]:
    """The records of each job in the window and its history, by name."""
    tables = [one.sums["states"] for one in (*window.history, window)]
    names = sorted({name for table in tables for name in _texts(table, "job")})
    columns = _joined(tables, window.start.timestamp())
    return tuple(_records(name, columns, columns.job == place) for place, name in enumerate(names))


@dataclass(frozen=True, slots=True, eq=False)
class _Columns:
    names: dict[str, tuple[str, ...]]
    job: Ints
    communicator: Ints
    op: Ints
    node: Ints
    state: Ints
    seq: Ints
    rank: Ints
    src: Ints
    dst: Ints
    time: Floats
    start: Floats
    end: Floats
    bytes: Floats
    size: Ints


def _texts(table: Sums, key: str) -> Sequence[str]:
    found = table.keys[key]
    assert not isinstance(found, np.ndarray)
    return found  # type: ignore[return-value]


def plain(op: str) -> str:
    """The name of an operation without spelling: `nccl:all_reduce`, `AllReduce` and `_all_reduce_` are `allreduce`."""
    word = op.rpartition(":")[2].partition(" ")[0]
    return re.sub(r"[^a-z0-9]", "", word.lower()).removesuffix("base").replace("allgatherinto", "allgather")


def _numbered(tables: Sequence[Sums], key: str, *, op: bool = False) -> tuple[tuple[str, ...], Ints]:
    """Names of all tables, sorted, and the place of each row's name among them."""
    columns = [_texts(table, key) for table in tables]
    spelled = {name: plain(name) if op else name for name in set().union(*columns)}
    names = tuple(sorted(set(spelled.values())))
    place = {name: i for i, name in enumerate(names)}
    of = {name: place[other] for name, other in spelled.items()}
    found = [np.fromiter((of[name] for name in column), np.int64, len(column)) for column in columns]
    return names, np.concatenate(found) if found else np.empty(0, dtype=np.int64)


def _joined(tables: Sequence[Sums], origin: float) -> _Columns:
    def whole(key: str) -> Ints:
        return np.concatenate([np.asarray(table.keys[key], dtype=np.int64) for table in tables])

    def mean(key: str) -> Floats:
        rows = np.concatenate([np.asarray(table.values["rows"], dtype=np.float64) for table in tables])
        total = np.concatenate([np.asarray(table.values[key], dtype=np.float64) for table in tables])
        return np.asarray(total / rows, dtype=np.float64)

    def moments(key: str) -> Floats:
        given = mean(key)
        return np.where(given > 0, (given - origin * 1e9) / 1e9, np.nan)

    named = {
        key: _numbered(tables, key, op=key == "op") for key in ("job", "communicator", "op", "node", "state")
    }
    level = np.array([_STATE[name] for name in named["state"][0]], dtype=np.int64)
    return _Columns(
        names={key: names for key, (names, _) in named.items()},
        job=named["job"][1],
        communicator=named["communicator"][1],
        op=named["op"][1],
        node=named["node"][1],
        state=level[named["state"][1]] if len(level) else named["state"][1],
        seq=whole("seq"),
        rank=whole("rank"),
        src=whole("src"),
        dst=whole("dst"),
        time=np.asarray((whole("time") - origin * 1e6) / 1e6, dtype=np.float64),
        start=moments("start_ns"),
        end=moments("end_ns"),
        bytes=mean("bytes"),
        size=np.round(mean("ranks")).astype(np.int64),
    )


def _records(job: str, columns: _Columns, mine: Flags) -> Records:
    used = np.flatnonzero(mine)
    start = np.where(np.isnan(columns.start[used]), columns.time[used], columns.start[used])
    used = used[_newest(columns.communicator[used], columns.rank[used], columns.seq[used], start)]
    names = columns.names
    is_p2p = np.array([name.startswith(("send", "recv")) for name in names["op"]] or [False])
    keys = (columns.communicator, columns.seq, columns.rank, columns.src, columns.dst, is_p2p[columns.op])
    order = used[
        np.lexsort(
            (columns.bytes[used], columns.op[used], columns.state[used], *(key[used] for key in keys[::-1]))
        )
    ]
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = np.any([key[order][1:] != key[order][:-1] for key in keys], axis=0)
    at = np.flatnonzero(first)
    last = np.append(at[1:], len(order)) - 1
    retained = order[last] if len(order) else order
    known = columns.start[order]
    time = columns.time[order]
    start = _least(known, at)
    start = np.where(np.isnan(start), _least(time, at), start)
    end = -_least(-columns.end[order], at)
    seen_twice = last > at if len(order) else np.empty(0, dtype=np.bool_)
    end = np.where(np.isnan(end) & seen_twice, time[last] if len(order) else end, end)
    state = columns.state[retained]
    op = columns.op[retained]
    src, dst = columns.src[retained], columns.dst[retained]
    symmetric = np.array([name in SYMMETRIC for name in names["op"]] or [False])
    return Records(
        job=job,
        communicators=names["communicator"],
        ops=names["op"],
        communicator=columns.communicator[retained],
        seq=columns.seq[retained],
        rank=columns.rank[retained],
        src=src,
        dst=dst,
        op=op,
        state=state,
        start=start,
        end=np.where(state == COMPLETED, end, np.nan),
        bytes=columns.bytes[retained],
        size=columns.size[retained],
        node=_nodes(columns.rank[retained], columns.node[retained], names["node"]),
        nodes=names["node"],
        is_p2p=is_p2p[op],
        is_transfer=(src >= 0) & (dst >= 0) & (src != dst),
        is_symmetric=symmetric[op],
        reports=last - at + 1,
    )


def _least(values: Floats, at: Ints) -> Floats:
    """The least of each run of values that begins at `at`, NaN where none is known."""
    if not len(at):
        return np.empty(0)
    found = np.minimum.reduceat(np.where(np.isnan(values), np.inf, values), at)
    return np.where(np.isinf(found), np.nan, found)


def _newest(communicator: Ints, rank: Ints, seq: Ints, start: Floats) -> Ints:
    """Rows of the newest beginning of each communicator, as places; ranks of older beginnings only are left out."""
    order = np.lexsort((seq, start, rank, communicator))
    if not len(order):
        return order
    c, r, s = communicator[order], rank[order], seq[order]
    same = (c[1:] == c[:-1]) & (r[1:] == r[:-1])
    anew = np.append(False, same & (s[1:] <= _ANEW) & (s[:-1] > s[1:] + _FELL))
    if not anew.any():
        return np.arange(len(order))
    stream = np.cumsum(np.append(True, ~same)) - 1
    total = np.cumsum(anew)
    base = total[np.flatnonzero(np.append(True, ~same))]
    began = anew[np.flatnonzero(np.append(True, ~same))]
    epoch = total - (base - began)[stream]
    newest = np.zeros(communicator.max() + 1, dtype=np.int64)
    np.maximum.at(newest, c, epoch)
    began_at = np.full(len(newest), np.inf)
    np.minimum.at(began_at, c[anew & (epoch == newest[c])], start[order][anew & (epoch == newest[c])])
    latest = np.zeros(stream[-1] + 1, dtype=np.int64)
    np.maximum.at(latest, stream, epoch)
    joined = (latest[stream] == 0) & (start[order] >= began_at[c] - _APART)
    return np.sort(order[(epoch == newest[c]) | joined])


def _nodes(rank: Ints, node: Ints, names: tuple[str, ...]) -> Ints:
    found = np.full(int(rank.max(initial=-1)) + 1, -1, dtype=np.int64)
    np.maximum.at(found, rank, np.where(np.array([bool(name) for name in names] or [False])[node], node, -1))
    return found
