"""What a verdict shows: the blamed, the cleared, failures over time, the grid, and how it was concluded.

Everything is inline; charts are Vega-Lite with a few hundred rows at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.deepview.grid import Grid, crossing
from analyzers.builtin.deepview.observed import Observed, component_sets
from analyzers.builtin.deepview.reductions import SLICE
from analyzers.builtin.stats.onset import last_unusual
from analyzers.contract import Evidence, Window, chart

Json = dict[str, Any]
Ints = NDArray[np.int64]

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
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
    """When the paths of each failed, of `usual` failures a window; who did not fail is left out."""
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
    """What is counted: units where they are placed, attempts where paths are tried."""
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
            "time": _instant(edges[i]),
            "until": _instant(edges[i + 1]),
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


def _instant(when: datetime) -> str:
    return when.astimezone(UTC).isoformat().replace("+00:00", "Z")
