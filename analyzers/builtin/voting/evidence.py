"""Evidence of a voting verdict: tables of the blamed and the cleared, losses over time, loss rates, flows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.flows.observed import Observed
from analyzers.builtin.paths import last_unusual
from analyzers.builtin.text import CHANCE, NATS, hundredths
from analyzers.builtin.vega import SCHEMA
from analyzers.builtin.voting.analyzer import SLICE
from analyzers.builtin.voting.charges import Charge, rate_interval
from analyzers.contract import Evidence, Window, chart, table
from ingest.log.types import rfc3339

Json = dict[str, Any]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

ELSEWHERE = "elsewhere"

_BARS = 60
_SERIES = 4
_WARM = ["#c0392b", "#e67e22", "#8e44ad", "#16a085"]
_GREY = "#9aa5b1"
_FLOWS = 20


@dataclass(frozen=True, slots=True)
class Words:
    """Names of an input's counts."""

    packets: str
    flows: str
    pairs: str


def words(window: Window) -> Words:
    if window.input == "probe":
        return Words("packets", "flows", "pairs of hosts")
    return Words("attempts", "failing rows", "paths")


def blamed_table(charges: Sequence[Charge], words: Words, strength: str) -> Evidence:
    rows = tuple(
        (
            one.names[0], int(one.carried), round(one.lost, 1), round(one.expected, 2),
            *_rates(one),
            int(one.flows), one.pairs, round(one.strength, 1),
            round(one.needed, 1), one.p_value, one.q_value, ", ".join(one.names[1:]),
        )
        for one in charges
    )  # fmt: skip
    columns = (
        "component", f"{words.packets} sent", "lost there", "normal", "loss rate (%)", "low (%)", "high (%)",
        words.flows, words.pairs, strength, "needed", "p", "q", "ambiguous with",
    )  # fmt: skip
    note = "The loss rate is the component's own, with the ends of its 95 % interval."
    note += f" {NATS} {CHANCE}" if "nats" in strength else ""
    return table("Blamed", columns, rows, note)


def _rates(one: Charge) -> tuple[float | None, ...]:
    """Loss rate, low and high in per cent, or nothing where they are not known."""
    if one.estimate is None:
        return (None, None, None)
    return tuple(hundredths(x) for x in (one.estimate.failure_rate, one.estimate.low, one.estimate.high))


@dataclass(frozen=True, slots=True)
class Cleared:
    """A component that lies on failing paths and is not blamed; `alone` and `left` are votes or nats."""

    component: int
    name: str
    alone: float
    left: float
    reason: str


def cleared_table(seen: Observed, cleared: Sequence[Cleared], words: Words, strength: str) -> Evidence | None:
    if not cleared:
        return None
    lost = seen.failing.per_component(seen.failing.lost, seen.components)
    rows = tuple(
        (
            one.name, int(seen.carried[one.component]), int(lost[one.component]), round(one.alone, 1),
            round(one.left, 1), one.reason,
        )
        for one in cleared
    )  # fmt: skip
    columns = (
        "component", f"{words.packets} sent", "lost on its paths", f"{strength}, alone", f"{strength}, left",
        "why it is cleared",
    )  # fmt: skip
    return table(
        "Looked into and cleared", columns, rows, "Left: with the blamed components taken into account."
    )


def flows_table(seen: Observed, blamed: Ints, names: Sequence[str], words: Words) -> Evidence | None:
    """The flows that lost most, and where; `blamed[r]` indexes `names`, -1 is noise. None without known ends."""
    failing = seen.failing
    known = [ends for ends in failing.ends if ends[0]]
    if not known:
        return None
    order = sorted(range(failing.rows), key=lambda r: (-failing.lost[r], failing.ends[r], failing.at[r]))[
        :_FLOWS
    ]
    rows = tuple(
        (
            *failing.ends[r], int(failing.sent[r]), int(failing.lost[r]),
            names[blamed[r]] if blamed[r] >= 0 else "chance, no component",
        )
        for r in order
    )  # fmt: skip
    more = f" {failing.rows - _FLOWS:,} further ones are not shown." if failing.rows > _FLOWS else ""
    note = f"For every failing flow the component that most probably lost its {words.packets}.{more}"
    return table("Flows that lost most", ("from", "to", "sent", "lost", "put down to"), rows, note)


def over_time(
    window: Window, seen: Observed, owner: Ints, names: Sequence[str], words: Words
) -> Evidence | None:
    """Losses per slice, those put down to a blamed component in colour; None when nothing was lost."""
    failing = seen.failing
    if not failing.rows:
        return None
    series = [*names[:_SERIES], ELSEWHERE]
    slices = max(1, -(-window.length // SLICE))
    fold = -(-slices // _BARS)
    counts = np.zeros((len(series), -(-slices // fold)))
    place = np.where((owner >= 0) & (owner < _SERIES), owner, len(series) - 1)
    np.add.at(counts, (place, np.minimum(failing.at // fold, counts.shape[1] - 1)), failing.lost)
    high = np.cumsum(counts, axis=0)
    values = [
        {
            "time": rfc3339(window.start + i * fold * SLICE),
            "until": rfc3339(min(window.start + (i + 1) * fold * SLICE, window.end)),
            "where": name,
            "lost": int(counts[s, i]),
            "low": int(high[s, i] - counts[s, i]),
            "high": int(high[s, i]),
        }
        for s, name in enumerate(series)
        for i in range(counts.shape[1])
        if counts[s, i]
    ]
    title = f"lost {words.packets} per {fold * SLICE.total_seconds():g} seconds"
    return chart(f"Lost {words.packets} over time", _bars(values, series, title))


def _bars(values: list[Json], names: list[str], title: str) -> Json:
    colours = [*_WARM[: len(names) - 1], _GREY]
    axis = {"format": "%H:%M:%S", "labelOverlap": True}
    return {
        "$schema": SCHEMA,
        "width": "container",
        "height": 160,
        "data": {"values": values},
        "mark": {"type": "rect", "tooltip": {"content": "data"}, "stroke": "white", "strokeWidth": 0.5},
        "encoding": {
            "x": {
                "field": "time", "type": "temporal", "title": "time (UTC)", "scale": {"type": "utc"},
                "axis": axis,
            },
            "x2": {"field": "until"},
            "y": {"field": "low", "type": "quantitative", "title": title},
            "y2": {"field": "high"},
            "color": {
                "field": "where", "type": "nominal", "title": None,
                "scale": {"domain": names, "range": colours}, "legend": {"orient": "top"},
            },
        },
    }  # fmt: skip


def rates_chart(
    seen: Observed, charges: Sequence[Charge], cleared: Sequence[Cleared], owner: Ints, words: Words
) -> Evidence | None:
    """Loss rates of the blamed and of the cleared in per cent, with their intervals, on one logarithmic axis; None
    where rates are not known.
    """
    if any(one.estimate is None for one in charges):
        return None
    lost = seen.failing.per_component(seen.failing.lost * (owner < 0), seen.components)
    values = [_rate(one.names[0], one.lost, one.carried, "blamed") for one in charges[:12]]
    values += [
        _rate(one.name, float(lost[one.component]), float(seen.carried[one.component]), "cleared")
        for one in cleared
    ]
    if not values:
        return None
    y = {"field": "component", "type": "nominal", "title": None, "sort": None, "axis": {"labelLimit": 260}}
    x = {"type": "quantitative", "scale": {"type": "log"}, "axis": {"format": "~g"}}
    colour = {
        "field": "verdict", "type": "nominal", "title": None, "legend": {"orient": "top"},
        "scale": {"domain": ["blamed", "cleared"], "range": [_WARM[0], _GREY]},
    }  # fmt: skip
    spec: Json = {
        "$schema": SCHEMA,
        "width": "container",
        "height": {"step": 18},
        "data": {"values": values},
        "encoding": {"y": y, "color": colour},
        "layer": [
            {
                "mark": {"type": "rule", "strokeWidth": 2},
                "encoding": {
                    "x": {**x, "field": "low", "title": f"% of {words.packets} lost"},
                    "x2": {"field": "high"},
                },
            },
            {
                "mark": {"type": "point", "filled": True, "size": 60, "tooltip": {"content": "data"}},
                "encoding": {"x": {**x, "field": "rate"}},
            },
        ],
    }
    note = "With 95 % intervals. Of the cleared: what is left once the losses of the blamed are taken away."
    return chart("Loss rates", spec, note)


def _rate(name: str, lost: float, carried: float, verdict: str) -> Json:
    found = rate_interval(lost, carried)
    least = 0.1 / max(carried, 1.0)
    shares = (found.failure_rate, found.low, found.high)
    rate, low, high = (hundredths(max(value, least)) for value in shares)
    return {
        "component": name,
        "rate": rate,
        "low": low,
        "high": high,
        "lost": round(lost, 1),
        "verdict": verdict,
    }


def span(window: Window, seen: Observed, charge: Charge) -> tuple[datetime, datetime] | None:
    """Span in which its rows lost packets: the first slice, and the last in which that was more than usual."""
    if not len(charge.rows):
        return None
    at = seen.failing.at[charge.rows]
    lost = np.bincount(at, seen.failing.lost[charge.rows], minlength=-(-window.length // SLICE))
    last = last_unusual(lost, charge.expected)
    return window.start + int(at.min()) * SLICE, min(window.start + (last + 1) * SLICE, window.end)
