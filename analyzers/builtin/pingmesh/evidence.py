"""Evidence of a pingmesh verdict: the blamed and the cleared, heat map, SLA, black holes, next steps.

The heat map holds P99 from each pod, or podset, to each other, in the colours of the paper with signs beside them.
The SLA is drop rate, P50 and P99 of the probes sent from each server, pod, podset and data centre, with alerts.

The published alert is a drop rate above 1e-3 or a P99 above 5 ms. A handful of probes is above by chance now and
then, so an alert also needs a binomial tail, corrected for the number of scopes of its level.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.pingmesh.analyzer import FEW
from analyzers.builtin.pingmesh.black_holes import Symptoms
from analyzers.builtin.pingmesh.observed import (
    DROPPED,
    FINE_DROPPED,
    SLOW_SHARE,
    Measure,
    Observed,
    limit_bin,
    percentile,
    pooled_bins,
    tail,
)
from analyzers.builtin.pingmesh.verdict import WHAT, Named, span
from analyzers.builtin.text import hundredths, listed, so_many
from analyzers.builtin.vega import SCHEMA
from analyzers.contract import Evidence, Window, chart, table, text

MOST_LINES = 20
_SHARES = (
    "Affected are probes that lost a packet or took too long, servers that are silent, or pairs of servers that lose "
    "everything, over the whole window; p is how probable as much is by chance."
)
MOST_SCOPES = {"data centre": 10, "podset": 10, "pod": 10, "server": 5}


def blamed(window: Window, culprits: list[Named], title: str, note: str) -> Evidence:
    rows = []
    for one in culprits:
        first, last = span(window, one)
        rows.append(
            (
                one.component,
                WHAT[one.blamed.kind],
                one.blamed.measure.replace("_", " "),
                int(one.blamed.hits),
                int(one.blamed.tries),
                hundredths(one.blamed.hits / one.blamed.tries),
                float(f"{one.blamed.p:.3g}"),
                f"{first:%H:%M} to {last:%H:%M}",
                round(one.minutes.spread, 1),
                ", ".join(one.alike) or "–",
            )
        )
    columns = (
        "component",
        "what",
        "measure",
        "affected",
        "of all",
        "affected (%)",
        "p",
        "seen",
        "minutes",
        "ambiguous with",
    )
    return table(title, columns, tuple(rows), note)


def sla(found: list[Scope]) -> Evidence:
    """Every alert, then the scopes of each level that are nearest to a limit."""
    shown: list[Scope] = []
    for level in LEVELS:
        mine = [one for one in found if one.level == level]
        broken = [one for one in mine if one.broken]
        shown += [*broken, *(one for one in mine if not one.broken)][
            : max(MOST_SCOPES[level], min(len(broken), 20))
        ]
    rows = tuple(
        (
            one.level,
            one.name,
            int(one.answers),
            hundredths(one.drop_rate),
            None if one.p50 is None else round(one.p50 / 1000, 3),
            None if one.p99 is None else round(one.p99 / 1000, 3),
            {"dropped": "drops", "slow": "P99", None: "–"}[one.broken],
        )
        for one in shown
    )
    columns = ("level", "from", "answers", "dropped (%)", "P50 (ms)", "P99 (ms)", "alert")
    note = (
        "Of answered probes only: an unanswered probe may also mean a dead server. Times are known to 5 %. "
        "An alert is above its limit by more than chance."
    )
    return table("Service level", columns, rows, note)


def cleared(seen: Observed, found: list[Scope], culprits: list[Named]) -> Evidence | None:
    """Pods and servers nearest to a limit that are not blamed, with their numbers."""
    blamed_servers = np.zeros(len(seen.servers), dtype=bool)
    for one in culprits:
        blamed_servers[one.blamed.members] = True
    rows: list[tuple[str, str, int, int, float, str]] = []
    for scope in found:
        if (
            scope.level not in ("pod", "server")
            or len(rows) >= MOST_LINES
            or not (scope.dropped or scope.broken)
        ):
            continue
        members = (
            seen.places.pod == scope.place
            if scope.level == "pod"
            else np.arange(len(seen.servers)) == scope.place
        )
        if blamed_servers[members].any():
            continue
        why = "above a limit, but not to and from nearly all peers" if scope.broken else "within chance"
        rows.append(
            (scope.name, scope.level, int(scope.answers), int(scope.dropped), float(f"{scope.p:.3g}"), why)
        )
    if not rows:
        return None
    columns = ("component", "level", "answers", "with a dropped packet", "p", "why it is cleared")
    return table("Looked into and cleared", columns, tuple(rows[:8]))


def black_holes(seen: Observed, found: Symptoms) -> Evidence | None:
    """ToRs by their score."""
    ranked = [one for one in np.lexsort((-found.struck, -found.score)).tolist() if found.struck[one]]
    if not ranked:
        return None
    rows = tuple(
        (
            seen.places.pods[one],
            int(found.struck[one]),
            int(found.servers[one]),
            round(float(found.score[one]), 4),
        )
        for one in ranked[:MOST_LINES]
    )
    note = (
        "A server has the symptom if pairs with it lose more than its other pairs and than the other end's. The far "
        "ends of a bad ToR's pairs have it, too: what one ToR explains is not held against the next."
    )
    columns = ("ToR", "servers with the symptom", "servers", "score")
    return table("Black holes: servers that cannot reach some of their peers", columns, rows, note)


def advice(culprits: list[Named], budget: int) -> Evidence | None:
    """Next steps for black holes, as text; no action is taken."""
    tors = [one.component for one in culprits if one.blamed.kind == "black_hole"]
    above = [one.component for one in culprits if one.blamed.kind in ("black_hole_leaf", "black_hole_spine")]
    parts = []
    if tors:
        now, later = tors[:budget], tors[budget:]
        parts.append(
            f"Reload {listed(tuple(now), 20)}: a reload clears a black hole of a ToR. No more than {budget} reloads a "
            "day, counting those of other windows."
        )
        if later:
            parts.append(f"Let wait until tomorrow: {listed(tuple(later), 20)}.")
    if above:
        parts.append(
            f"Do not reload ToRs for {listed(tuple(above), 20)}: nearly all of them show the symptom, so the switches "
            "above are to be looked into by the network team."
        )
    return text("Next steps", " ".join(parts)) if parts else None


def method(window: Window, seen: Observed, drop_limit: float, p99_us: float, persist: int) -> Evidence:
    placed = int((seen.places.pod >= 0).sum())
    later = window.sums["places"].later if "places" in window.sums else 0
    later_note = f" (first known after the window's start: {so_many(later, 'place')})" if later else ""
    return text(
        "Method",
        f"{int(seen.sent.sum()):,} probes between {seen.pairs:,} pairs of {len(seen.servers):,} servers, of which "
        f"{placed:,} have a pod{later_note}. "
        "A packet was dropped where the answer took about 3 s or 9 s (the first packet of a "
        "connection is repeated after 3 s and again after 6 s); 9 s count once, and probes without an answer not at "
        f"all. What is above a limit (drops {100 * drop_limit:g} %, 1 % of the answers above {p99_us / 1000:g} ms) by "
        "more than chance, also without the worst quarter of its parts and of its peers, is put down to the Spine, a "
        f"podset, a pod or a server, the largest first, if it was spread over {persist} minutes or more (Guo et al., "
        "Pingmesh, SIGCOMM 2015; the tests and the order are ours).",
    )


def pieces(
    window: Window,
    seen: Observed,
    culprits: list[Named],
    passing: list[Named],
    scopes: list[Scope],
    symptoms: Symptoms,
    limits: tuple[float, float],
    budget: int,
    persist: int,
) -> tuple[Evidence, ...]:
    shown: list[Evidence | None] = []
    if culprits:
        shown.append(
            blamed(
                window,
                culprits[:50],
                "Blamed",
                _SHARES,
            )
        )
    shown.append(advice(culprits, budget))
    if passing:
        shown.append(blamed(window, passing[:10], "Seen, but not for long enough", "A burst is no fault."))
    shown += [
        heat_map(seen, *limits),
        black_holes(seen, symptoms),
        sla(scopes),
        cleared(seen, scopes, culprits),
        method(window, seen, *limits, persist),
    ]
    return tuple(one for one in shown if one is not None)


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


LEVELS = ("data centre", "podset", "pod", "server")


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """Probes of the servers of one place; times in microseconds, None without answers. `broken` is the measure that
    is above its limit by more than chance, if any.
    """

    level: str
    name: str
    place: int
    answers: float
    dropped: float
    p50: float | None
    p99: float | None
    broken: str | None
    p: float

    @property
    def drop_rate(self) -> float:
        return self.dropped / self.answers if self.answers else 0.0


def scopes(seen: Observed, compared: tuple[Measure, ...], alpha: float) -> list[Scope]:
    """Of all levels, the largest first; within a level those further above a limit first."""
    where = seen.places
    grouped = (
        (where.dc_of(), where.dcs),
        (where.podset_of(), where.podsets),
        (where.pod, where.pods),
        (np.arange(len(seen.servers)), seen.servers),
    )
    out: list[Scope] = []
    for level, (of, names) in zip(LEVELS, grouped, strict=True):
        out += _level(seen, level, of, names, compared, alpha)
    return out


def _level(
    seen: Observed, level: str, of: Ints, names: tuple[str, ...], compared: tuple[Measure, ...], alpha: float
) -> list[Scope]:
    size = len(names)
    if not size:
        return []
    members = np.flatnonzero(of >= 0)
    fine = np.zeros((size, seen.fine.shape[1]))
    np.add.at(fine, of[members], seen.fine[members])
    quick = np.zeros((size, 3))
    np.add.at(quick, of[members], seen.quick[members].sum(axis=1))
    answers = fine.sum(axis=1)
    struck = {"dropped": fine[:, FINE_DROPPED].sum(axis=1), "slow": quick[:, 1]}
    p = np.stack([tail(struck[one.name], answers, one.limit) for one in compared])
    excess = np.stack([struck[one.name] / np.maximum(answers, 1.0) / one.limit for one in compared])
    above = p <= alpha / (len(compared) * size)
    found = [
        Scope(
            level,
            names[one],
            one,
            float(answers[one]),
            float(struck["dropped"][one]),
            percentile(fine[one], 0.5),
            percentile(fine[one], 0.99),
            compared[int((excess[:, one] * above[:, one]).argmax())].name if above[:, one].any() else None,
            float(p[:, one].min()),
        )
        for one in np.lexsort((-answers, -excess.max(axis=0))).tolist()
    ]
    return [one for one in found if one.answers]
