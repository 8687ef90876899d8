"""Series of metrics as one table of series by minutes, with the component that each is about."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.changepoint.analyzer import SLICE
from analyzers.builtin.paths import numbered, texts, whole
from analyzers.builtin.stats.changepoint import growth_of
from analyzers.contract import Params, Sums, Window
from ingest.integrations.normalized import component_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_COLUMNS = 360
"""Columns that are searched for changes: longer windows have wider ones."""
_COUNTERS = ("_total", "_count", "_sum", "_bucket")
_GROWING = 0.5
"""Share of readings that are higher than the one before, from which on a series that never falls is a counter."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose series it is: `component` is empty where no label names one, `rest` are the labels that do not name it."""

    name: str
    component: str
    rest: str

    @property
    def shown(self) -> str:
        return f"{self.name} ({self.rest})" if self.rest else self.name


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """Series of components, shape (series, columns), NaN where nothing was measured. Column c begins at `starts[c]`
    and is `width` long. What is usual is learnt before column `first`, changes are searched from there on, and the
    window's own begin at `now`. `unnamed` counts series that name no component.
    """

    starts: tuple[datetime, ...]
    width: timedelta
    first: int
    now: int
    series: tuple[Identity, ...]
    values: Floats
    unnamed: int

    def columns(self, seconds: float) -> int:
        """How many columns so many seconds are, at least one."""
        return max(1, -(-int(seconds) // int(self.width.total_seconds())))


def observe(window: Window, params: Params) -> Observed:
    windows = (*window.history, window)
    slices = [max(1, -(-one.length // SLICE)) for one in windows]
    pooled = max(1, -(-_searched(slices) // MOST_COLUMNS))
    counts = [-(-one // pooled) for one in slices]
    width = pooled * SLICE
    starts = tuple(
        one.start + at * width for one, count in zip(windows, counts, strict=True) for at in range(count)
    )
    places: dict[tuple[str, str], int] = {}
    tables = [
        _table(one.sums["series"], places, count, pooled) for one, count in zip(windows, counts, strict=True)
    ]
    values = np.full((len(places), len(starts)), np.nan)
    at = 0
    for table, count in zip(tables, counts, strict=True):
        values[: len(table), at : at + count] = table
        at += count
    identities = [_identity(name, labels, str(params["component_label"])) for name, labels in places]
    order = sorted(
        (at for at, one in enumerate(identities) if one.component),
        key=lambda at: (identities[at].component, identities[at].name, identities[at].rest),
    )
    named = tuple(identities[at] for at in order)
    return Observed(
        starts,
        width,
        len(starts) - _searched(counts),
        len(starts) - counts[-1],
        named,
        _as_rates(named, values[order]),
        len(identities) - len(order),
    )


def _searched(counts: list[int]) -> int:
    """Columns that are searched: two windows, at most two thirds of what is known."""
    return min(2 * counts[-1], 2 * sum(counts) // 3)


def _table(sums: Sums, places: dict[tuple[str, str], int], columns: int, pooled: int) -> Floats:
    """Means by series and column; series are numbered in `places`, which grows."""
    if not sums.rows:
        return np.full((len(places), columns), np.nan)
    names, name = numbered(texts(sums, "name"))
    labels, label = numbered(texts(sums, "labels"))
    distinct, code = np.unique(name * len(labels) + label, return_inverse=True)
    place = np.array(
        [
            places.setdefault((names[one // len(labels)], labels[one % len(labels)]), len(places))
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


def _identity(name: str, text: str, label: str) -> Identity:
    labels: Mapping[str, str] = json.loads(text)
    component = component_of({"component": _given(label, labels)} if label else labels) or ""
    bare = component.partition("/")[2]
    rest = {one: value for one, value in labels.items() if value not in (component, bare)}
    return Identity(name, component, ", ".join(f"{one} {value}" for one, value in sorted(rest.items())))


def _given(label: str, labels: Mapping[str, str]) -> str:
    value = labels.get(label, "")
    return value if not value or "/" in value else f"{label}/{value}"


def _as_rates(series: tuple[Identity, ...], values: Floats) -> Floats:
    """Counters as what they grew by a column; the others as they are."""
    if not len(values):
        return values
    known = np.array([one.name.endswith(_COUNTERS) for one in series])
    there = np.isfinite(values)
    pairs = there[:, 1:] & there[:, :-1]
    steps = np.diff(np.where(there, values, 0.0), axis=1)
    rises, falls = (pairs & (steps > 0)).sum(axis=1), (pairs & (steps < 0)).sum(axis=1)
    grows = (falls == 0) & (rises > _GROWING * np.maximum(pairs.sum(axis=1), 1))
    counters = known | grows
    found = values.copy()
    if counters.any():
        found[counters] = growth_of(values[counters])
    return found
