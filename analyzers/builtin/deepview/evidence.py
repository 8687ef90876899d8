"""Evidence of a verdict: failures over time, the grid of two kinds of component, and the answers of simpler methods.

Everything is inline; charts are Vega-Lite with a few hundred rows at most. The grid takes two kinds of which every
pair shares a path, as compute and storage clusters do.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.deepview.analyzer import SLICE
from analyzers.builtin.deepview.observed import Observed, component_sets, kinds_of, locate
from analyzers.builtin.paths import TITLE, incidence, last_unusual, simpler_methods
from analyzers.builtin.text import so_many
from analyzers.builtin.vega import SCHEMA
from analyzers.contract import Evidence, Paths, Window, chart, text
from ingest.log.types import rfc3339

Json = dict[str, Any]
Ints = NDArray[np.int64]

ELSEWHERE = "elsewhere"

_BARS = 72  # at most, so that a day is drawn in bars of 20 minutes
_SERIES = 4
_WARM = ["#c0392b", "#e67e22", "#8e44ad", "#16a085"]
_GREY = "#9aa5b1"


@dataclass(frozen=True, slots=True)
class Span:
    """The first and the last moment (ends of slices) at which what a component carries failed, beyond what is usual."""

    first: datetime
    last: datetime


def spans(window: Window, usual: Mapping[str, float]) -> dict[str, Span]:
    """Span of failures on the paths of each, of `usual` failures a window; components without failures are left out."""
    sums = window.sums["over_time"]
    sets = component_sets(sums)
    at = np.asarray(sums.keys["slice"])
    owner = np.repeat(np.arange(len(sets)), np.diff(sets.indptr))
    failures = np.asarray(sums.values["failures"])
    found = {}
    for name, expected in usual.items():
        if name not in sets.names:
            continue
        mine = owner[sets.indices == sets.names.index(name)]
        counts = np.bincount(at[mine], failures[mine], minlength=-(-window.length // SLICE))
        last = min(window.start + (last_unusual(counts, expected) + 1) * SLICE, window.end)
        found[name] = Span(window.start + int(at[mine].min()) * SLICE, last)
    return found


def noun(window: Window) -> str:
    """Counted noun: units where they are placed, attempts where paths are tried."""
    return "units" if window.input == "placement" else "attempts"


def charts(window: Window, seen: Observed, blamed: tuple[str, ...], counted: str) -> tuple[Evidence, ...]:
    """Failures over time and the grid, where there is anything to draw."""
    drawn = over_time(window, blamed, counted), grid_chart(window, seen, blamed, counted)
    return tuple(one for one in drawn if one is not None)


def over_time(window: Window, blamed: tuple[str, ...], counted: str) -> Evidence | None:
    """Failures per slice, those on a blamed component's paths in colour; None when nothing failed."""
    sums = window.sums["over_time"]
    if not sums.rows:
        return None
    series = blamed[:_SERIES]
    slices = max(1, -(-window.length // SLICE))
    fold = -(-slices // _BARS)
    counts = np.zeros((len(series) + 1, -(-slices // fold)))
    owner = _first_blamed(component_sets(sums), series)
    at = np.asarray(sums.keys["slice"]) // fold
    np.add.at(counts, (owner, np.minimum(at, counts.shape[1] - 1)), np.asarray(sums.values["failures"]))
    names = [*series, ELSEWHERE]
    values = _stacked(counts, names, [window.start + i * fold * SLICE for i in range(counts.shape[1] + 1)])
    spec = _bars(values, names, f"failed {counted} per {_minutes(fold)} minutes")
    return chart("Failures over time", spec, "A path through several blamed components counts for the first.")


def _first_blamed(sets: Any, series: tuple[str, ...]) -> Ints:
    """For each row the first of the series that it holds, else len(series)."""
    owner = np.repeat(np.arange(len(sets)), np.diff(sets.indptr))
    first = np.full(len(sets), len(series), dtype=np.int64)
    for number in range(len(series) - 1, -1, -1):
        if series[number] in sets.names:
            first[owner[sets.indices == sets.names.index(series[number])]] = number
    return first


def _stacked(counts: NDArray[np.float64], names: list[str], edges: list[datetime]) -> list[Json]:
    """One row a bar, from `low` to `high` in the stack of its slice."""
    high = np.cumsum(counts, axis=0)
    return [
        {
            "time": rfc3339(edges[i]),
            "until": rfc3339(edges[i + 1]),
            "where": name,
            "failures": int(counts[s, i]),
            "low": int(high[s, i] - counts[s, i]),
            "high": int(high[s, i]),
        }
        for s, name in enumerate(names)
        for i in range(counts.shape[1])
    ]


_BARE: Json = {"labelExpr": "slice(datum.label, indexof(datum.label, '/') + 1)"}
"""Names without their kind, which the title of the axis says: with it they are cut off where there is little room."""


def _bars(values: list[Json], names: list[str], title: str) -> Json:
    colours = [*_WARM[: len(names) - 1], _GREY]
    hour = {"format": "%H:%M", "labelOverlap": True}
    return {
        "$schema": SCHEMA,
        "width": "container",
        "height": 160,
        "data": {"values": values},
        "mark": {"type": "rect", "tooltip": {"content": "data"}, "stroke": "white", "strokeWidth": 0.5},
        "encoding": {
            "x": {"field": "time", "type": "temporal", "title": None, "scale": {"type": "utc"}, "axis": hour},
            "x2": {"field": "until"},
            "y": {"field": "low", "type": "quantitative", "title": title},
            "y2": {"field": "high"},
            "color": {
                "field": "where",
                "type": "nominal",
                "title": None,
                "scale": {"domain": names, "range": colours},
                "legend": {"orient": "top"},
            },
        },
    }


def grid_chart(window: Window, seen: Observed, blamed: tuple[str, ...], counted: str) -> Evidence | None:
    """Failure rates where two kinds of component cross, the blamed rows and columns framed."""
    if not seen.rows:
        return None
    grid = crossing(window, seen, blamed)
    if grid is None:
        return None
    values = [_cell(grid, r, c, blamed) for r in range(len(grid.rows)) for c in range(len(grid.columns))]
    values = [value for value in values if value["carried"] > 0]
    row_kind, column_kind = _spoken(grid.row_kind), _spoken(grid.column_kind)
    x = {"field": "column", "type": "nominal", "title": column_kind, "sort": list(grid.columns)}
    y = {"field": "row", "type": "nominal", "title": row_kind, "sort": list(grid.rows)}
    spec: Json = {
        "$schema": SCHEMA,
        "data": {"values": values},
        "encoding": {"x": {**x, "axis": {"labelAngle": -40, **_BARE}}, "y": {**y, "axis": _BARE}},
        "layer": [
            {
                "mark": {"type": "rect", "tooltip": {"content": "data"}},
                "encoding": {"color": _rate_colour(counted)},
            },
            {
                "transform": [{"filter": "datum.blamed"}],
                "mark": {"type": "rect", "filled": False, "stroke": "#111827", "strokeWidth": 1.5},
            },
        ],
        "width": {"step": 26},
        "height": {"step": 16},
        "config": {"view": {"stroke": None}},
    }
    note = "Framed cells lie on a blamed component. A whole row or column of colour is a component at fault."
    return chart(f"Failures where {row_kind} and {column_kind} cross", spec, note + grid.note)


def _rate_colour(counted: str) -> Json:
    return {
        "field": "rate",
        "type": "quantitative",
        "title": f"share of {counted} failed",
        "scale": {"domainMin": 0},
        "legend": {"format": ".1%"},
    }


def _cell(grid: Grid, r: int, c: int, blamed: tuple[str, ...]) -> Json:
    carried, failed = float(grid.carried[r, c]), float(grid.failed[r, c])
    return {
        "row": grid.rows[r],
        "column": grid.columns[c],
        "carried": int(carried),
        "failed": int(failed),
        "rate": failed / carried if carried else 0.0,
        "blamed": grid.rows[r] in blamed or grid.columns[c] in blamed,
    }


def _spoken(kind: str) -> str:
    return kind.replace("_", " ")


def _minutes(fold: int) -> str:
    return f"{fold * SLICE.total_seconds() / 60:g}"


Floats = NDArray[np.float64]

_MOST = 40  # rows or columns drawn
_FILLED = 0.5  # share of pairs that must share a path


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """`carried` and `failed` of shape (rows, columns), over the paths that hold both components."""

    row_kind: str
    column_kind: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    carried: Floats
    failed: Floats
    note: str


@dataclass(frozen=True, slots=True, eq=False)
class _Axis:
    """One kind: `member[p]` is which of `names` path p holds, -1 if none or several."""

    kind: str
    names: tuple[str, ...]
    member: Ints
    failing: Ints


def crossing(window: Window, seen: Observed, blamed: tuple[str, ...]) -> Grid | None:
    """The grid of the two kinds that cross best, a blamed component's kind among them if it crosses any."""
    sets = component_sets(window.sums["paths"])
    attempts = np.asarray(window.sums["paths"].values["attempts"], dtype=np.float64)
    axes = _axes(sets, seen)
    kinds = {name.partition("/")[0] for name in blamed}
    best: tuple[tuple[int, float, int], _Axis, _Axis] | None = None
    for i, rows in enumerate(axes):
        for columns in axes[i + 1 :]:
            filled = _filled(rows, columns)
            if filled < _FILLED:
                continue
            fits = len(rows.names) <= _MOST and len(columns.names) <= _MOST
            rank = (len(kinds & {rows.kind, columns.kind}) * 2 + fits, filled, -len(rows.names))
            if best is None or rank > best[0]:
                best = rank, rows, columns
    if best is None:
        return None
    rows, columns = sorted(best[1:], key=lambda axis: (-len(axis.names), axis.kind))
    return _grid(rows, columns, attempts, seen.failures, blamed)


def _axes(sets: Paths, seen: Observed) -> list[_Axis]:
    """The kinds of which nearly every path holds exactly one, and of which there are at least two."""
    kinds, kind_of = kinds_of(sets.names)
    owner = np.repeat(np.arange(len(sets)), np.diff(sets.indptr))
    axes = []
    for number, kind in enumerate(kinds):
        members = np.flatnonzero(kind_of == number)
        if len(members) < 2:
            continue
        local = np.full(len(sets.names), -1, dtype=np.int64)
        local[members] = np.arange(len(members))
        member = _only(owner, local[sets.indices], len(sets))
        if np.mean(member >= 0) < 0.9:
            continue
        failing = _only(seen.row, local[seen.column], seen.rows)
        axes.append(_Axis(kind, tuple(sets.names[j] for j in members.tolist()), member, failing))
    return axes


def _only(owner: Ints, local: Ints, count: int) -> Ints:
    """For each row its one member of a kind, -1 if it has none or several."""
    mine = local >= 0
    matches = np.bincount(owner[mine], minlength=count)
    member = np.full(count, -1, dtype=np.int64)
    member[owner[mine]] = local[mine]
    return np.where(matches == 1, member, -1)


def _filled(rows: _Axis, columns: _Axis) -> float:
    both = (rows.member >= 0) & (columns.member >= 0)
    pairs = np.unique(rows.member[both] * len(columns.names) + columns.member[both])
    return len(pairs) / (len(rows.names) * len(columns.names))


def _grid(rows: _Axis, columns: _Axis, attempts: Floats, failures: Floats, blamed: tuple[str, ...]) -> Grid:
    shape = len(rows.names), len(columns.names)
    carried, failed = np.zeros(shape), np.zeros(shape)
    both = (rows.member >= 0) & (columns.member >= 0)
    np.add.at(carried, (rows.member[both], columns.member[both]), attempts[both])
    lost = (rows.failing >= 0) & (columns.failing >= 0)
    np.add.at(failed, (rows.failing[lost], columns.failing[lost]), failures[lost])
    shown_rows = _worst(rows.names, failed.sum(axis=1), blamed)
    shown_columns = _worst(columns.names, failed.sum(axis=0), blamed)
    hidden = (len(rows.names) - len(shown_rows)) + (len(columns.names) - len(shown_columns))
    note = f" Not drawn: {so_many(hidden, 'component')} with fewer failures." if hidden else ""
    return Grid(
        rows.kind,
        columns.kind,
        tuple(rows.names[i] for i in shown_rows),
        tuple(columns.names[i] for i in shown_columns),
        carried[np.ix_(shown_rows, shown_columns)],
        failed[np.ix_(shown_rows, shown_columns)],
        note,
    )


def _worst(names: tuple[str, ...], failed: Floats, blamed: tuple[str, ...]) -> list[int]:
    """At most 40 in order of name: the blamed, then those with most failures."""
    order = sorted(range(len(names)), key=lambda i: (names[i] not in blamed, -failed[i], names[i]))
    return sorted(order[:_MOST], key=lambda i: names[i])


MOST_PATHS = 50_000
"""Above this they are not asked: reading all paths for them would take longer than the verdict."""

BAD_PATH = 0.005
"""Least share of units that fail on a path that the simpler methods call bad."""

_ABOVE_NORMAL = 3
"""A bad path fails so many times as much as is normal."""


def simpler(window: Window, seen: Observed, normal: float, blamed: Collection[str]) -> Evidence | None:
    """The table of `tomography.simpler_methods`, or a sentence that says why there is none; None when nothing failed.

    `normal` is the share of units that fail in health, `blamed` the names in the verdict with those that cannot be
    told from them.
    """
    if not seen.rows:
        return None
    placed = window.sums["paths"]
    sets = component_sets(placed)
    if len(sets) > MOST_PATHS:
        return text(TITLE, f"Not computed: these methods take at most {MOST_PATHS:,} paths.")
    at = locate(sets, seen.row, seen.column, seen.rows)
    known = at >= 0
    failures = np.bincount(at[known], seen.failures[known], minlength=len(sets))
    paths = incidence(sets, np.asarray(placed.values["attempts"]), failures)
    return simpler_methods(paths, max(BAD_PATH, _ABOVE_NORMAL * normal), blamed)
