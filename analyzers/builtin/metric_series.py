"""Series of `metric` rows as tables of series by columns, for the analyzers that read the reduction `metric_series`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.paths import numbered, texts, whole
from analyzers.contract import Sums, Window

Floats = NDArray[np.float64]
Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of several windows, the last of which is judged: when each begins, how long they are, how many each
    window has, and how many slices are pooled in one."""

    starts: tuple[datetime, ...]
    width: timedelta
    counts: tuple[int, ...]
    pooled: int

    @property
    def now(self) -> int:
        """The first column of the last window."""
        return len(self.starts) - self.counts[-1]


def slices_of(windows: Sequence[Window], slice: timedelta) -> list[int]:
    return [max(1, -(-one.length // slice)) for one in windows]


def columns_of(windows: Sequence[Window], slice: timedelta, pooled: int) -> Columns:
    counts = tuple(-(-one // pooled) for one in slices_of(windows, slice))
    width = pooled * slice
    starts = tuple(
        one.start + at * width for one, count in zip(windows, counts, strict=True) for at in range(count)
    )
    return Columns(starts, width, counts, pooled)


def means(
    sums: Sequence[Sums], columns: Columns, key_of: Callable[[str, str], Key]
) -> tuple[list[Key], Floats]:
    """Means of the samples by series and column, shape (series, columns), NaN where there were none, and what
    `key_of(name, labels)` says of each series: those of which it says the same are one. `sums` holds those of each
    window."""
    places: dict[Key, int] = {}
    tables = [
        _table(one, key_of, places, count, columns.pooled)
        for one, count in zip(sums, columns.counts, strict=True)
    ]
    values = np.full((len(places), len(columns.starts)), np.nan)
    at = 0
    for table, count in zip(tables, columns.counts, strict=True):
        values[: len(table), at : at + count] = table
        at += count
    return list(places), values


def _table(
    sums: Sums, key_of: Callable[[str, str], Key], places: dict[Key, int], columns: int, pooled: int
) -> Floats:
    """Means of one window; series are numbered in `places`, which grows."""
    if not sums.rows:
        return np.full((len(places), columns), np.nan)
    names, name = numbered(texts(sums, "name"))
    labels, label = numbered(texts(sums, "labels"))
    distinct, code = np.unique(name * len(labels) + label, return_inverse=True)
    place = np.array(
        [
            places.setdefault(key_of(names[one // len(labels)], labels[one % len(labels)]), len(places))
            for one in distinct.tolist()
        ],
        dtype=np.int64,
    )
    cell = place[code] * columns + whole(sums, "slice") // pooled
    size = len(places) * columns
    samples = np.bincount(cell, np.asarray(sums.values["samples"], dtype=np.float64), size)
    total = np.bincount(cell, np.asarray(sums.values["total"], dtype=np.float64), size)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(samples > 0, total / samples, np.nan).reshape(len(places), columns)


def growth_of(totals: Floats) -> Floats:
    """Growth of counters since their last reading, a column; NaN where one was set back, or not read."""
    there = np.isfinite(totals)
    columns = np.arange(totals.shape[1])
    last = np.maximum.accumulate(np.where(there, columns, -1), axis=1)
    before = np.concatenate([np.full((len(totals), 1), -1), last[:, :-1]], axis=1)
    known = there & (before >= 0)
    grown = totals - np.take_along_axis(totals, np.maximum(before, 0), axis=1)
    found = grown / np.maximum(columns - before, 1)
    return np.asarray(np.where(known & (found >= 0), found, np.nan))
