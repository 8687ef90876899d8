"""Series of components as one table over window and history, and the call graph, from the sums of `metric` rows."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import ne
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.metric_blame.analyzer import COMPONENT, SLICE
from analyzers.builtin.metric_blame.indicators import Sort, sort_of
from analyzers.builtin.metric_series import columns_of, growth_of, slices_of
from analyzers.builtin.paths import texts, whole
from analyzers.contract import Params, Paths, Sums, Window

Floats = NDArray[np.float64]

MOST_COLUMNS = 120
"""Columns of one window: longer windows have wider ones."""
_HOSTS = frozenset(["node", "nodename", "host", "hostname", "host.name", "instance"])
_PODS = frozenset(["pod", "pod_name", "k8s.pod.name"])
_SAMPLED = 3
"""Windows of which the distance between readings is taken."""
_DELTA = "__temporality__"


class Identity(NamedTuple):
    """Identity of a series: the component, the name of the metric, what else tells it apart, and its sort."""

    component: str
    name: str
    member: str
    sort: Sort

    @property
    def shown(self) -> str:
        return f"{self.name} ({self.member})" if self.member else self.name


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """Series of components. `values` has shape (series, columns), NaN where nothing was measured; column c begins at
    `starts[c]` and is `width` long; those of the window begin at column `now`. `calls` are the components that each
    depends on. `unnamed` series have no label that names a component.
    """

    starts: tuple[datetime, ...]
    width: timedelta
    now: int
    series: tuple[Identity, ...]
    values: Floats
    calls: Mapping[str, frozenset[str]]
    unnamed: int

    def columns(self, seconds: float) -> int:
        """Number of columns in so many seconds, at least two: one reading is no change."""
        return max(2, -(-round(seconds) // round(self.width.total_seconds())))

    def until(self, column: int) -> datetime:
        return self.starts[min(column, len(self.starts) - 1)] + self.width


def observe(window: Window, params: Params) -> Observed:
    windows = (*window.history, window)
    calls = _calls(window)
    known = sorted({*calls, *(one for needed in calls.values() for one in needed)})
    identify = _Identifier(params, known)
    read = [_read(one.sums["series"], identify) for one in windows]
    pooled = max(_usual_gap(read), -(-slices_of(windows, SLICE)[-1] // MOST_COLUMNS))
    columns = columns_of(windows, SLICE, pooled)
    table = _Table(read, columns.counts, pooled)
    series, values = _derived(table.keys, table.totals, table.samples)
    return Observed(
        columns.starts,
        columns.width,
        columns.now,
        series,
        values,
        calls,
        sum(not key.component for key in table.keys),
    )


def _calls(window: Window) -> dict[str, frozenset[str]]:
    if "needs" not in window.sums:
        return {}
    sums = window.sums["needs"]
    needed = sums.keys["depends_on"]
    if not isinstance(needed, Paths):
        raise TypeError("key depends_on holds no components")
    found: dict[str, set[str]] = defaultdict(set)
    for row, component in enumerate(texts(sums, "component")):
        found[component].update(one for one in needed[row] if one != component)
    return {component: frozenset(ones) for component, ones in sorted(found.items())}


class _Key(NamedTuple):
    component: str
    name: str
    member: str
    sort: Sort
    delta: bool


class _Identifier:
    """Reads labels, each text once."""

    def __init__(self, params: Params, known: Sequence[str]) -> None:
        label = str(params["component_label"])
        self._labels = [label] if label else COMPONENT.split(",")
        self._words = str(params["internal"]), str(params["external"])
        by_name: dict[str, list[str]] = defaultdict(list)
        for one in known:
            by_name[one.partition("/")[2]].append(one)
        self._known = {name: ones[0] for name, ones in by_name.items() if len(ones) == 1}
        self._of_labels: dict[str, tuple[str, str, dict[str, str]]] = {}
        self._read: dict[tuple[str, str], _Key] = {}

    def __call__(self, name: str, text: str) -> _Key:
        found = self._read.get((name, text))
        if found is None:
            found = self._read[name, text] = self._key(name, text)
        return found

    def _key(self, name: str, text: str) -> _Key:
        if text not in self._of_labels:
            labels = json.loads(text)
            label = next((one for one in self._labels if labels.get(one)), None)
            component = "" if label is None else self._component(label, labels[label])
            rest = sorted((key, value) for key, value in labels.items() if key not in (label, _DELTA))
            self._of_labels[text] = component, ", ".join(f"{key} {value}" for key, value in rest), labels
        component, member, labels = self._of_labels[text]
        sort = sort_of(name, labels, *self._words) if component else "none"
        return _Key(component, name, member, sort, labels.get(_DELTA) == "delta")

    def _component(self, label: str, value: str) -> str:
        kind, slash, name = value.partition("/")
        if label in _HOSTS:
            value = value if slash and kind and name else re.sub(r":[0-9]+$", "", value)
        if value in self._known:
            return self._known[value]
        if kind and slash and name and re.fullmatch(r"[a-z][a-z0-9_]*", kind):
            return value
        if label in _HOSTS:
            return f"node/{value}"
        return f"{'pod' if label in _PODS else 'service'}/{value}"


class _Rows(NamedTuple):
    """Rows of one window: the key of each series, and by row its place, slice, total and count."""

    keys: list[_Key]
    place: NDArray[np.int64]
    slice: NDArray[np.int64]
    total: Floats
    samples: Floats


def _read(sums: Sums, identify: _Identifier) -> _Rows:
    nothing = np.zeros(0, dtype=np.int64)
    if not sums.rows:
        return _Rows([], nothing, nothing, nothing.astype(float), nothing.astype(float))
    places: dict[tuple[str, str], int] = {}
    names, labels = texts(sums, "name"), texts(sums, "labels")
    # Rows are in order of their series, so that texts are looked up once a run of equal ones and not once a row.
    new = np.fromiter(map(ne, names[1:], names), np.bool_, sums.rows - 1)
    new |= np.fromiter(map(ne, labels[1:], labels), np.bool_, sums.rows - 1)
    begins = np.flatnonzero(np.concatenate([[True], new]))
    runs = [places.setdefault((names[at], labels[at]), len(places)) for at in begins.tolist()]
    code = np.repeat(np.array(runs, dtype=np.int64), np.diff(np.append(begins, sums.rows)))
    keys = [identify(name, text) for name, text in places]
    return _Rows(
        keys,
        code,
        whole(sums, "slice"),
        np.asarray(sums.values["total"], dtype=np.float64),
        np.asarray(sums.values["samples"], dtype=np.float64),
    )


def _usual_gap(read: Sequence[_Rows]) -> int:
    """Slices that lie between two readings of most series: nine in ten are read at least so often."""
    gaps = []
    for rows in read[-_SAMPLED:]:
        order = np.lexsort((rows.slice, rows.place))
        same = np.diff(rows.place[order]) == 0
        apart = np.diff(rows.slice[order])[same]
        owner = rows.place[order][1:][same]
        if len(apart):
            total = np.bincount(owner, apart)
            count = np.bincount(owner)
            gaps.append(total[count > 0] / count[count > 0])
    return max(1, round(float(np.quantile(np.concatenate(gaps), 0.9)))) if gaps else 1


class _Table:
    """Totals and counts by series and column; series that are not judged are left out, unless unnamed."""

    def __init__(self, read: Sequence[_Rows], counts: Sequence[int], pooled: int) -> None:
        self.keys = sorted({key for rows in read for key in rows.keys})
        place = {key: at for at, key in enumerate(self.keys)}
        columns = sum(counts)
        self.totals = np.zeros((len(self.keys), columns))
        self.samples = np.zeros((len(self.keys), columns))
        at = 0
        for rows, count in zip(read, counts, strict=True):
            here = np.array([place[key] for key in rows.keys], dtype=np.int64)
            if len(here):
                cell = here[rows.place] * count + np.minimum(rows.slice // pooled, count - 1)
                shape = (len(self.keys), count)
                size = len(self.keys) * count
                self.totals[:, at : at + count] = np.bincount(cell, rows.total, size).reshape(shape)
                self.samples[:, at : at + count] = np.bincount(cell, rows.samples, size).reshape(shape)
            at += count


def _derived(keys: Sequence[_Key], totals: Floats, samples: Floats) -> tuple[tuple[Identity, ...], Floats]:
    """Series that can be judged: gauges as their mean, counters as their growth, pairs of `_sum` and `_count` as the
    mean of what was counted, availability as the share that is missing."""
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(samples > 0, totals / samples, np.nan)
    place = {(key.component, key.name, key.member, key.delta): at for at, key in enumerate(keys)}
    found, values = [], []
    for at, key in enumerate(keys):
        if not key.component or key.sort == "none":
            continue
        name, sort, row = key.name, key.sort, means[at]
        if name.endswith("_sum"):
            base = name.removesuffix("_sum")
            of = place.get((key.component, f"{base}_count", key.member, key.delta))
            if of is None:
                continue
            with np.errstate(invalid="ignore", divide="ignore"):
                row = _grown(key, totals[at], samples[at]) / _grown(key, totals[of], samples[of])
            name, row = base, np.where(np.isfinite(row), row, np.nan)
        elif name.endswith("_count"):
            row, sort = _grown(key, totals[at], samples[at]), "errors" if sort == "errors" else "load"
        elif name.endswith("_total") or key.delta:
            row = _grown(key, totals[at], samples[at])
        elif sort == "availability":
            finite = row[np.isfinite(row)]
            most = 100.0 if len(finite) and finite.max() > 1.5 else 1.0
            row = (most - row) / most
        found.append(Identity(key.component, name, key.member, sort))
        values.append(row)
    table = np.array(values) if values else np.zeros((0, totals.shape[1]))
    return tuple(found), table


def _grown(key: _Key, total: Floats, samples: Floats) -> Floats:
    """Growth of a counter in each column; NaN where it was set back, or not read."""
    if key.delta:
        return np.where(samples > 0, total, np.nan)
    level = np.where(samples > 0, total / np.maximum(samples, 1.0), np.nan)
    return np.asarray(growth_of(level[None, :])[0])
