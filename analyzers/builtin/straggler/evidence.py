"""Evidence of a verdict: the blamed nodes and their metrics, the job's iteration times, and the cleared nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.straggler.apart import Apart
from analyzers.builtin.straggler.findings import Named, Outcome
from analyzers.builtin.straggler.pace import Slowdown
from analyzers.builtin.straggler.series import Observed, Pace
from analyzers.builtin.text import hundredths
from analyzers.builtin.vega import COLOURS, SCHEMA, colour, time_axis
from analyzers.contract import Evidence, chart, table, text
from ingest.log.types import rfc3339

Json = dict[str, Any]
Floats = NDArray[np.float64]

_ROWS, _POINTS, _CHARTS = 30, 120, 2
PEERS, LOW, HIGH = "median of its peers", "lowest tenth", "highest tenth"


def pieces(seen: Observed, outcome: Outcome, slower: Sequence[tuple[Pace, Slowdown]]) -> tuple[Evidence, ...]:
    return (
        *_blamed(seen, outcome.named),
        *[_against_peers(seen, one) for one in outcome.named[:_CHARTS] if one.metrics],
        *_iterations(seen, outcome, slower),
        *_cleared(seen, outcome),
        *_split(outcome),
        *_account(outcome),
    )


def _blamed(seen: Observed, named: Sequence[Named]) -> tuple[Evidence, ...]:
    rows: list[tuple[Any, ...]] = []
    for one in named:
        if not one.metrics:
            rows.append(
                (one.node, one.kind, "rows ended", None, _at(seen, one.first), None, round(one.evidence, 1))
            )
        rows += [
            (
                one.node,
                one.kind,
                _metric(each),
                hundredths(each.off),
                _at(seen, each.first),
                _ratio(one),
                round(each.nats, 1),
            )
            for each in one.metrics[:3]
        ]
    columns = (
        "node",
        "kind",
        "metric",
        "from its peers (%)",
        "since",
        "iterations, times as long",
        "evidence (nats)",
    )
    return (table("Blamed nodes and their metrics", columns, tuple(rows[:_ROWS])),) if rows else ()


def _ratio(one: Named) -> float | None:
    return round(one.change.ratio, 2) if one.change.state == "slower" else None


def _metric(one: Apart) -> str:
    return one.grid.name + (f" ({one.member})" if one.member else "")


def _at(seen: Observed, column: int) -> str:
    return rfc3339(seen.starts[min(column, len(seen.starts) - 1)])


def _drawn(seen: Observed) -> list[int]:
    """Columns of a chart."""
    found: list[int] = np.unique(
        np.linspace(0, len(seen.starts) - 1, min(_POINTS, len(seen.starts))).astype(int)
    ).tolist()
    return found


def _against_peers(seen: Observed, one: Named) -> Evidence:
    """The blamed node's series in its worst metric, with the middle and the tenths of its peers."""
    worst = one.metrics[0]
    values = worst.grid.values
    lines: list[tuple[str, Floats]] = [(one.node, values[worst.series])]
    drawn = _drawn(seen)
    band = np.full((3, len(drawn)), np.nan)
    for place, column in enumerate(drawn):
        there = values[np.isfinite(values[:, column]), column]
        if len(there):
            band[:, place] = np.quantile(there, [0.5, 0.1, 0.9])
    points = [
        {"time": _at(seen, column), "series": name, "value": _digits(float(series[column]))}
        for name, series in lines
        for column in drawn
        if np.isfinite(series[column])
    ]
    points += [
        {"time": _at(seen, column), "series": name, "value": _digits(float(band[row, place]))}
        for row, name in enumerate((PEERS, LOW, HIGH))
        for place, column in enumerate(drawn)
        if np.isfinite(band[row, place])
    ]
    spec = _lines(points, worst.grid.name, [one.node, PEERS, LOW, HIGH])
    return chart(f"{worst.grid.name} of {one.node} and its peers", spec)


def _iterations(
    seen: Observed, outcome: Outcome, slower: Sequence[tuple[Pace, Slowdown]]
) -> tuple[Evidence, ...]:
    """Iteration times of jobs that are slower, that wait for a blamed node, or of the first."""
    paces = (
        [one.pace for one in outcome.named if one.pace] + [pace for pace, _ in slower] + list(seen.paces[:1])
    )
    shown: list[Evidence] = []
    for pace in list(dict.fromkeys(paces))[:_CHARTS]:
        points = [
            {"time": _at(seen, column), "series": pace.shown, "value": _digits(float(pace.values[column]))}
            for column in np.flatnonzero(np.isfinite(pace.values)).tolist()
        ]
        step = max(1, len(points) // _POINTS)
        shown.append(
            chart(f"Iteration times of {pace.shown}", _lines(points[::step], "iteration time", [pace.shown]))
        )
    rows = tuple((pace.shown, _at(seen, one.first), round(one.ratio, 3)) for pace, one in slower)
    if rows:
        shown.append(table("Jobs whose iterations became slower", ("job", "since", "times as long"), rows))
    return tuple(shown)


def _cleared(seen: Observed, outcome: Outcome) -> tuple[Evidence, ...]:
    order = sorted(outcome.cleared, key=lambda each: (-each.one.nats, each.one.node, each.one.grid.name))
    rows = tuple(
        (each.one.node, _metric(each.one), hundredths(each.one.off), _at(seen, each.one.first), each.why)
        for each in order[:_ROWS]
    )
    columns = ("node", "metric", "from its peers (%)", "since", "why it is cleared")
    return (table("Looked into and cleared", columns, rows),) if rows else ()


def _split(outcome: Outcome) -> tuple[Evidence, ...]:
    rows = tuple((one.name, len(one.nodes), _labels(one.cohort)) for one in outcome.split[:_ROWS])
    note = "More than a fifth of the nodes is apart: they do different work, or are of different kinds."
    return (
        (table("Metrics that were not judged", ("metric", "nodes", "peers by"), rows, note),) if rows else ()
    )


def _labels(cohort: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{name}={value}" for name, value in cohort)


def _account(outcome: Outcome) -> tuple[Evidence, ...]:
    rows = tuple(
        (
            one.grid.name,
            _labels(one.grid.cohort),
            len(one.grid.nodes),
            {1: "above", -1: "below", 0: "either"}[one.grid.side],
            hundredths(one.chance_median),
            hundredths(one.chance_median + 7 * one.chance_scale),
        )
        for one in outcome.looked_at[:_ROWS]
    )
    columns = ("metric", "peers by", "nodes", "worse is", "usual deviation (%)", "one in a thousand (%)")
    note = "A deviation is what a node keeps up, as a share of the median of its peers."
    if not rows:
        return (
            text(
                "How this was concluded",
                "No metric covers enough nodes; only iteration times were judged.",
            ),
        )
    return (table("What nodes differ by", columns, rows, note),)


def _lines(points: list[Json], unit: str, names: Sequence[str]) -> Json:
    grey = "#9aa5b1"
    colours = (COLOURS[0], "#4b5563", grey, grey)
    return {
        "$schema": SCHEMA,
        "width": "container",
        "height": 180,
        "data": {"values": points},
        "mark": {"type": "line", "tooltip": {"content": "data"}},
        "encoding": {
            "x": time_axis("time", "%H:%M"),
            "y": {"field": "value", "type": "quantitative", "title": unit, "scale": {"zero": False}},
            "color": colour("series", names, colours),
        },
    }


def _digits(value: float) -> float:
    return float(f"{value:.5g}")
