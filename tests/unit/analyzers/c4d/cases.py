"""Windows of records of collectives that are written by hand, and what c4d concludes from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from analyzers.builtin.c4d import ANALYZER
from analyzers.contract import Sums, Window
from analyzers.runner import judge

START = datetime(2026, 3, 1, tzinfo=UTC)
BASE = int(START.timestamp())


@dataclass(frozen=True, slots=True)
class Part:
    """The state of one rank in one operation; `end` of None is not completed. Seconds after `START`."""

    communicator: str
    seq: int
    rank: int
    start: float
    end: float | None = None
    op: str = "all_reduce"
    src: int = -1
    dst: int = -1
    size: float = 1e6
    time: float | None = None
    node: str = ""
    job: str = "train"
    state: str = ""
    ranks: int = 0


def iterations(
    ranks: Iterable[int], count: int, communicator: str = "dp", late: Mapping[int, float] | None = None
) -> list[Part]:
    """An all-reduce a second of 100 ms; a rank that is `late` enters so many seconds after the others."""
    late = late or {}
    last = max(late.values(), default=0.0)
    return [
        Part(communicator, seq, rank, seq + late.get(rank, 0.0), seq + last + 0.1)
        for seq in range(count)
        for rank in ranks
    ]


def blocked(
    ranks: Iterable[int], seq: int, communicator: str = "dp", op: str = "all_reduce", size: float = 1e6
) -> list[Part]:
    return [Part(communicator, seq, rank, float(seq), None, op, size=size) for rank in ranks]


def window_of(parts: Iterable[Part], end: float = 60.0) -> Window:
    rows = sorted(parts, key=lambda one: (one.communicator, one.seq, one.rank, one.src, one.dst, one.start))
    keys: dict[str, Any] = {
        "job": tuple(one.job for one in rows),
        "communicator": tuple(one.communicator for one in rows),
        "seq": np.array([one.seq for one in rows], dtype=np.int64),
        "op": tuple(one.op for one in rows),
        "rank": np.array([one.rank for one in rows], dtype=np.int64),
        "src": np.array([one.src for one in rows], dtype=np.int64),
        "dst": np.array([one.dst for one in rows], dtype=np.int64),
        "state": tuple(one.state or ("started" if one.end is None else "completed") for one in rows),
        "time": np.array(
            [int((BASE + (one.start if one.time is None else one.time)) * 1e6) for one in rows],
            dtype=np.int64,
        ),
        "node": tuple(one.node for one in rows),
    }
    values: dict[str, Any] = {
        "rows": np.ones(len(rows), dtype=np.int64),
        "start_ns": np.array([(BASE + one.start) * 1e9 for one in rows]),
        "end_ns": np.array([0.0 if one.end is None else (BASE + one.end) * 1e9 for one in rows]),
        "bytes": np.array([one.size for one in rows], dtype=np.float64),
        "ranks": np.array([one.ranks for one in rows], dtype=np.float64),
    }
    sums = {"states": Sums(keys=keys, values=values, rows=len(rows))}
    return Window(START, START + timedelta(seconds=end), "default", "collective", sums)


def verdict_of(parts: Iterable[Part], end: float = 60.0, **params: object) -> dict[str, Any]:
    return judge(ANALYZER, window_of(parts, end), params)


def named(verdict: Mapping[str, Any]) -> list[str]:
    return [one["component"] for one in verdict["suspects"]]
