"""Series of metrics as one table of series by minutes, with the component that each is about."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.changepoint.analyzer import SLICE
from analyzers.builtin.metric_series import columns_of, growth_of, means, slices_of
from analyzers.contract import Params, Window
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
    """Identity of a series: `component` is empty where no label names one, `rest` are the labels that do not name
    it."""

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
        """Number of columns in so many seconds, at least one."""
        return max(1, -(-int(seconds) // int(self.width.total_seconds())))


def observe(window: Window, params: Params) -> Observed:
    windows = (*window.history, window)
    pooled = max(1, -(-_searched(slices_of(windows, SLICE)) // MOST_COLUMNS))
    columns = columns_of(windows, SLICE, pooled)
    keys, values = means(
        [one.sums["series"] for one in windows], columns, lambda name, labels: (name, labels)
    )
    identities = [_identity(name, labels, str(params["component_label"])) for name, labels in keys]
    order = sorted(
        (at for at, one in enumerate(identities) if one.component),
        key=lambda at: (identities[at].component, identities[at].name, identities[at].rest),
    )
    named = tuple(identities[at] for at in order)
    return Observed(
        columns.starts,
        columns.width,
        len(columns.starts) - _searched(columns.counts),
        columns.now,
        named,
        _as_rates(named, values[order]),
        len(identities) - len(order),
    )


def _searched(counts: Sequence[int]) -> int:
    """Columns that are searched: two windows, at most two thirds of what is known."""
    return min(2 * counts[-1], 2 * sum(counts) // 3)


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
