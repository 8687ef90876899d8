"""The heat map: P99 from each pod, or podset, to each other. Colours after the paper, and signs beside them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.pingmesh.bins import DROPPED, limit_bin, percentile
from analyzers.builtin.pingmesh.limits import SLOW_SHARE, tail
from analyzers.builtin.pingmesh.observed import Observed, pooled_bins
from analyzers.builtin.pingmesh.reductions import FEW
from analyzers.builtin.vega import SCHEMA
from analyzers.contract import Evidence, chart

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST = 40
"""More pods than so many, and podsets are drawn."""
CHANCE = 0.01
YELLOW = 0.8
SILENT, MISSING = 0.5, 0.01
"""Shares of probes without an answer from which a cell counts as without answers, or with some missing."""
STATES = ("well", "near the limit", "above a limit", "answers missing", "hardly any answers")
COLOURS = ("#7fbf7b", "#f6d55c", "#d7301f", "#c9b3e6", "#ffffff")
SIGNS = ("", "!", "✕", "?", "–")


def heat_map(seen: Observed, drop_limit: float, p99_us: float) -> Evidence | None:
    """None where no places are known."""
    where = seen.places
    podset = np.where(where.podset < 0, len(where.podsets), where.podset)
    unit, of = "pod", where.pod
    names: tuple[str, ...] = where.pods
    if len(names) > MOST:
        unit, of, names = "podset", where.podset_of(), where.podsets
    if not names or len(names) > MOST:
        return None
    order = sorted(range(len(names)), key=lambda i: (int(podset[i]) if unit == "pod" else 0, names[i]))
    values = _cells(seen, of, names, order, drop_limit, p99_us)
    shown = [names[i].partition("/")[2] for i in order]
    note = (
        f"Red: more than 1 % of the answers above {p99_us / 1000:g} ms, or packets dropped above "
        f"{100 * drop_limit:g} %, by more than chance. Violet: more than {100 * MISSING:g} % of the probes had "
        f"no answer at all; white: more than {100 * SILENT:g} %. {unit.capitalize()}s of one podset stand together."
    )
    return chart(f"Answers from {unit} to {unit}", _spec(values, shown, unit), note)


def _cells(
    seen: Observed, of: Ints, names: tuple[str, ...], order: list[int], drop_limit: float, p99_us: float
) -> list[dict[str, Any]]:
    size = len(names)
    src, dst = of[seen.src], of[seen.dst]
    cell = np.where((src >= 0) & (dst >= 0), src * size + dst, -1)
    bins = pooled_bins(seen, cell, size * size)
    total = bins.sum(axis=1)
    slow, near = (bins[:, limit_bin(one) :].sum(axis=1) for one in (p99_us, YELLOW * p99_us))
    dropped = bins[:, DROPPED].sum(axis=1)
    red = (tail(slow, total, SLOW_SHARE) <= CHANCE) | (tail(dropped, total, drop_limit) <= CHANCE)
    inside = cell >= 0
    sent, lost = (np.bincount(cell[inside], some[inside], size * size) for some in (seen.sent, seen.lost))
    mute = np.maximum(lost / np.maximum(sent, 1.0), _stopped(seen, of, size))
    state = np.select(
        [(total == 0) | (mute > SILENT), red, mute > MISSING, near > SLOW_SHARE * total], [4, 2, 3, 1], 0
    )
    out = []
    for row in order:
        for column in order:
            at = row * size + column
            out.append(
                {
                    "from": names[row].partition("/")[2],
                    "to": names[column].partition("/")[2],
                    "state": STATES[state[at]],
                    "sign": SIGNS[state[at]],
                    "P99": _time(percentile(bins[at], 0.99)),
                    "answers": int(total[at]),
                    "without an answer %": float(f"{100 * mute[at]:.3g}"),
                    "dropped %": float(f"{100 * dropped[at] / max(1.0, total[at]):.3g}"),
                }
            )
    return out


def _stopped(seen: Observed, of: Ints, size: int) -> Floats:
    """1 in the rows of places most of whose servers are silent, shape (size * size,): they lose nothing."""
    placed = of >= 0
    servers, silent = (np.bincount(of[some], minlength=size) for some in (placed, placed & seen.silent()))
    return np.repeat((silent > SILENT * np.maximum(servers, 1)).astype(np.float64), size)


def _time(microseconds: float | None) -> str:
    if microseconds is None:
        return "–"
    return f"{microseconds / 1000:.2g} ms" if microseconds >= FEW[0] else f"below {FEW[0] / 1000:g} ms"


def _spec(values: list[dict[str, Any]], names: list[str], unit: str) -> dict[str, Any]:
    axis = {"labelLimit": 80, "labelOverlap": True}
    place = {
        "x": {"field": "to", "type": "nominal", "title": f"to {unit}", "sort": names, "axis": axis},
        "y": {"field": "from", "type": "nominal", "title": f"from {unit}", "sort": names, "axis": axis},
    }
    scale = {"domain": list(STATES), "range": list(COLOURS)}
    colour = {"field": "state", "type": "nominal", "title": None, "scale": scale, "legend": {"orient": "top"}}
    step = {"step": 18 if len(names) <= 20 else 12}
    return {
        "$schema": SCHEMA,
        "width": step,
        "height": step,
        "data": {"values": values},
        "layer": [
            {
                "mark": {
                    "type": "rect",
                    "stroke": "#cccccc",
                    "strokeWidth": 0.5,
                    "tooltip": {"content": "data"},
                },
                "encoding": {**place, "color": colour},
            },
            {
                "mark": {"type": "text", "fontSize": 9},
                "encoding": {
                    **place,
                    "text": {"field": "sign", "type": "nominal"},
                    "color": {"value": "#222222"},
                },
            },
        ],
    }
