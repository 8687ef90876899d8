"""Vega-Lite specifications of the plain charts that several methods draw; data inline, axes with units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
COLOURS = ("#c0392b", "#e67e22", "#8e44ad", "#16a085", "#2980b9", "#9aa5b1")

Json = dict[str, Any]


def time_axis(field: str, shown: str) -> Json:
    """The x channel of a time; `shown` is how ticks read, such as `%H:%M`. Where they read as days, a day has one."""
    axis: Json = {"format": shown, "labelOverlap": True}
    if "%H" not in shown:
        axis["tickCount"] = "day"
    return {"field": field, "type": "temporal", "title": None, "scale": {"type": "utc"}, "axis": axis}


def colour(field: str, names: Sequence[str], colours: Sequence[str] = COLOURS) -> Json:
    """A nominal colour with its legend above the chart."""
    used = [colours[i % len(colours)] for i in range(len(names))]
    scale = {"domain": list(names), "range": used}
    return {"field": field, "type": "nominal", "title": None, "scale": scale, "legend": {"orient": "top"}}


def bars_over_time(values: list[Json], unit: str, names: Sequence[str], shown: str) -> Json:
    """Stacked bars; each value has `time`, `until`, `part` (one of `names`) and `amount` in `unit`."""
    return {
        "$schema": SCHEMA,
        "width": "container",
        "height": 160,
        "data": {"values": values},
        # Stacked by hand: a bar with two ends on the time axis would lie on its side.
        "transform": [{"stack": "amount", "groupby": ["time"], "as": ["low", "high"]}],
        "mark": {"type": "rect", "tooltip": {"content": "data"}, "stroke": "white", "strokeWidth": 0.5},
        "encoding": {
            "x": time_axis("time", shown),
            "x2": {"field": "until"},
            "y": {"field": "low", "type": "quantitative", "title": unit},
            "y2": {"field": "high"},
            "color": colour("part", names),
        },
    }


def ranked_bars(values: list[Json], unit: str, names: Sequence[str]) -> Json:
    """Horizontal stacked bars in the order given; each value has `name`, `part` (one of `names`), `amount`."""
    order = list(dict.fromkeys(value["name"] for value in values))
    return {
        "$schema": SCHEMA,
        "width": "container",
        "height": {"step": 16},
        "data": {"values": values},
        "mark": {"type": "bar", "tooltip": {"content": "data"}},
        "encoding": {
            "y": {"field": "name", "type": "nominal", "title": None, "sort": order},
            "x": {"field": "amount", "type": "quantitative", "title": unit, "stack": "zero"},
            "color": colour("part", names),
        },
    }
