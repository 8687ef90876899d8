"""Samples of time series, as OTLP and remote write bring them, made into rows of the kind `metric`. Pure.

Both tell many samples of few series, and both must be able to refuse one point and keep the others; what was refused is
counted by its reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ingest.telemetry.decode.builder import Assembly
from ingest.telemetry.decode.columns import Bounds, Names, Rows
from ingest.telemetry.kinds import KINDS

METRIC = KINDS["metric"]
FARTHEST = 2**56
"""Microseconds; times beyond are as wrong as this one, and fit where they are counted."""


@dataclass(slots=True)
class Refusals:
    """Refused samples, by reason, with the name of the first one."""

    counts: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)

    def add(self, reason: str, name: str = "", count: int = 1) -> None:
        self.counts[reason] += count
        self.first.setdefault(reason, name)

    @property
    def total(self) -> int:
        return self.counts.total()

    def sentence(self, most: int = 5) -> str:
        """`2: value is not a finite number (such as load1); 1: …`, the most frequent first; empty for nothing."""
        entries = []
        for reason, count in self.counts.most_common(most):
            such = f" (such as {self.first[reason][:100]})" if self.first[reason] else ""
            entries.append(f"{count}: {reason}{such}")
        if len(self.counts) > most:
            entries.append(f"{len(self.counts) - most} reasons more")
        return "; ".join(entries)


class Samples:
    """Collects samples. A point of a histogram is several samples, which are taken or refused together."""

    def __init__(self) -> None:
        self.points = 0
        self._series: dict[tuple[str, str], int] = {}
        self._codes: list[int] = []
        self._times: list[int] = []
        self._values: list[float] = []
        self._owners: list[int] = []
        self._bulk: list[tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.float64]]] = []

    def series(self, named: tuple[str, str]) -> int:
        """The number of a series by its name and its labels, which are canonical JSON."""
        return self._series.setdefault(named, len(self._series))

    def add(self, series: int, time: int, value: float) -> None:
        """A point that is one sample."""
        self._codes.append(series)
        self._times.append(time)
        self._values.append(value)
        self._owners.append(self.points)
        self.points += 1

    def add_many(self, time: int, samples: Mapping[int, float]) -> None:
        """A point that is several samples, by series."""
        for series, value in samples.items():
            self.add(series, time, value)
            self.points -= 1
            self._owners[-1] = self.points
        self.points += 1

    def add_bulk(
        self, series: NDArray[np.int32], times: NDArray[np.int64], values: NDArray[np.float64]
    ) -> None:
        """Points that are one sample each, shapes (points,). Nothing may be added after them but more of them."""
        self._bulk.append((series, times, values))
        self._owners += range(self.points, self.points + len(series))
        self.points += len(series)

    def rows(
        self, region: str, bounds: Bounds, in_second: int, refusals: Refusals
    ) -> tuple[Rows, NDArray[np.bool_]]:
        """The rows of all points that are good, and which points those are, shape (points,).

        Times were given as integers, `in_second` of them a second.
        """
        assembly = Assembly(METRIC, region)
        self._assemble(assembly, in_second)
        rows, unfit = assembly.fit_rows(bounds)
        if not unfit:
            return rows, np.ones(self.points, np.bool_)
        owners = np.array(self._owners)
        bad = np.zeros(self.points, np.bool_)
        names = rows.names("name")
        for which, reason in unfit:
            new = np.unique(owners[which][~bad[owners[which]]])
            bad[new] = True
            if len(new):
                refusals.add(reason, names.names[names.codes[which[0]]], len(new))
        return keep(rows, ~bad[owners]), ~bad

    def _assemble(self, assembly: Assembly, in_second: int) -> None:
        count = len(self._owners)
        codes = np.concatenate((np.array(self._codes, np.int32), *(bulk[0] for bulk in self._bulk)))
        times = np.concatenate((whole(self._times), *(bulk[1] for bulk in self._bulk)))
        values = np.concatenate((np.array(self._values, np.float64), *(bulk[2] for bulk in self._bulk)))
        keys = list(self._series)
        assembly.add_columns(
            {
                "time": microseconds(times, in_second),
                "name": assembly.indexes["name"].codes([name for name, _ in keys])[codes],
                "labels": assembly.indexes["labels"].codes([labels for _, labels in keys])[codes],
                "value": values + 0.0,  # no negative zero
                "region": assembly.constant(METRIC.field("region"), count),
            },
            np.arange(1, count + 1),
        )


def keep(rows: Rows, good: NDArray[np.bool_]) -> Rows:
    """The good rows alone. Names that only bad ones held go too: the database might not take them."""
    taken = rows.take(good)
    columns = {
        name: column.used() if isinstance(column, Names) else column for name, column in taken.columns.items()
    }
    return Rows(rows.kind, taken.count, columns)


def whole(times: list[int]) -> NDArray[np.int64]:
    """Integers as a column; what is beyond 64 bits with a sign becomes the last of them."""
    try:
        return np.array(times, np.int64)
    except OverflowError:  # OTLP's are unsigned
        return np.array([min(time, 2**63 - 1) for time in times], np.int64)


def microseconds(times: NDArray[np.int64], in_second: int) -> NDArray[np.int64]:
    """Times to microseconds since 1970, half up; what no column holds becomes FARTHEST."""
    if in_second <= 10**6:
        each = 10**6 // in_second
        return np.clip(times, -FARTHEST // each, FARTHEST // each) * each
    each = in_second // 10**6
    return times // each + (times % each >= each / 2)
