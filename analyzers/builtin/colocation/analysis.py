"""Failure rate of units placed far from what they depend on, against units placed near (Zhang et al., NetAI 2018).

Uptime and failures of near and far units are compared stratum by stratum; the assumptions behind the ratio of rates
are checked on each window.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.stats.intervals import (
    MINUTE,
    Segments,
    Spells,
    main_label,
    microseconds,
    moment,
    spells,
    sweep,
)
from analyzers.builtin.stats.rate_ratio import RateRatio, Stratum, TooFewCountsError, rate_ratio
from analyzers.builtin.text import figure, percent, so_many
from analyzers.builtin.uptime import FAR, NEAR, UNTOLD, Uptimes, uptimes_of
from analyzers.builtin.vega import SCHEMA, colour, time_axis
from analyzers.contract import Assumption, Evidence, Params, Verdict, Window, chart, quiet, table, text
from ingest.log.types import rfc3339

_MOST_STRATA = 1000


def analyze(window: Window, params: Params) -> Verdict:
    edges = strata_edges(window, float(params["stratum_hours"]))
    seen = exposure_of(uptimes_of(window.sums["uptimes"]), edges)
    measures = _measures(seen)
    try:
        found = rate_ratio(seen.strata(), seen.of_units)
    except TooFewCountsError as error:
        shown = pieces(seen, None)
        reason = f"{str(error)[0].upper()}{str(error)[1:]}."
        return Verdict("inconclusive", (), reason, measures, shown, checked(seen, None))
    figures = {
        "ratio": found.ratio,
        "low": found.low,
        "high": found.high,
        "differs": found.differs,
        "dispersion": found.dispersion,
        **measures,
    }
    return quiet(figures, pieces(seen, found), checked(seen, found))


def strata_edges(window: Window, hours: float) -> NDArray[np.int64]:
    """Ends of strata aligned to the epoch, the first and last cut at the window; at most 1,000 strata."""
    start, end = microseconds(window.start), microseconds(window.end)
    length = max(timedelta(hours=hours) // timedelta(microseconds=1), -(-(end - start) // _MOST_STRATA))
    inner = np.arange(start // length + 1, -(-end // length)) * length
    return np.concatenate([[start], inner, [end]]).astype(np.int64)


def _measures(seen: Exposure) -> dict[str, Any]:
    return {
        "near_failures": int(seen.failures[NEAR].sum()),
        "far_failures": int(seen.failures[FAR].sum()),
        "near_unit_days": float(seen.days[NEAR].sum()),
        "far_unit_days": float(seen.days[FAR].sum()),
        "strata": len(seen.edges) - 1,
        "failures_untold": seen.untold,
    }


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

DAY_MINUTES = 1440.0
CLASSES = ("near", "far")


@dataclass(frozen=True, slots=True, eq=False)
class Exposure:
    """`days` (unit-days at risk) and `failures` have shape (2, strata), near first; `edges` (strata + 1,).

    `by_cause` of shape (2, causes) counts failures, `units` those ever at risk in each class; `untold` is the
    number of failures of units of which nobody says how far they were placed. `of_units` is how much more the failures
    of single units scatter than if all of a class failed equally often.
    """

    edges: Ints
    days: Floats
    failures: Ints
    causes: tuple[str, ...]
    by_cause: Ints
    units: tuple[int, int]
    untold: int
    of_units: float

    def strata(self) -> list[Stratum]:
        return [
            Stratum(float(nf), float(nt), float(ff), float(ft))
            for nf, nt, ff, ft in zip(
                self.failures[NEAR], self.days[NEAR], self.failures[FAR], self.days[FAR], strict=True
            )
        ]


def exposure_of(rows: Uptimes, edges: Ints) -> Exposure:
    """Cut at `edges` (microseconds, ascending). A failure is the start of a stretch of down time; a stretch
    that began before the first edge is none. A unit is at risk while it is up.
    """
    low, high = int(edges[0]), int(edges[-1])
    pieces, places = _swept(rows, low, high)
    down = pieces.any(range(len(rows.causes)))
    risk = [pieces.active[len(rows.causes)] & ~down & place for place in places]
    found = spells(pieces, down)
    begun = _began_inside(rows, found, low)
    first = np.searchsorted(found.of_segment[down], np.arange(len(found)))
    at_start = np.flatnonzero(down)[first]
    where = np.select([places[NEAR][at_start], places[FAR][at_start]], [NEAR, FAR], UNTOLD)
    cause = main_label(pieces, found, range(len(rows.causes)))
    stratum = np.searchsorted(edges, found.start, side="right") - 1
    failures = np.zeros((2, len(edges) - 1), dtype=np.int64)
    by_cause = np.zeros((2, len(rows.causes)), dtype=np.int64)
    for side in (NEAR, FAR):
        mine = begun & (where == side)
        failures[side] = np.bincount(stratum[mine], minlength=len(edges) - 1)
        by_cause[side] = np.bincount(cause[mine], minlength=len(rows.causes))
    days = np.stack([_days(pieces, one, edges) for one in risk])
    near_units, far_units = (len(np.unique(pieces.owner[one])) for one in risk)
    untold = int(np.sum(begun & (where == UNTOLD)))
    of_units = _scatter(pieces, risk, [found.owner[begun & (where == side)] for side in (NEAR, FAR)])
    return Exposure(edges, days, failures, rows.causes, by_cause, (near_units, far_units), untold, of_units)


def _scatter(pieces: Segments, risk: list[Bools], failed: list[Ints]) -> float:
    """Squared deviations of the failures of units from those that the rate of their class leads to expect, over the
    number expected: the variance of a sum over units that differ, over that of independent failures.
    """
    units, squares, expected = int(pieces.owner.max(initial=-1)) + 1, 0.0, 0.0
    for mine, owner in zip(risk, failed, strict=True):
        time = pieces.time(mine, units)
        count = np.bincount(owner, minlength=units).astype(np.float64)
        usual = time * (count.sum() / max(float(time.sum()), 1.0))
        squares, expected = squares + float(np.sum((count - usual) ** 2)), expected + float(usual.sum())
    return squares / expected if expected else 1.0


def _swept(rows: Uptimes, low: int, high: int) -> tuple[Segments, list[Bools]]:
    """Segments with a label for each cause of being down and one for being up; and where each class holds."""
    causes = len(rows.causes)
    up = causes
    state = np.where(rows.down, rows.cause, up)
    place = causes + 1 + rows.placed
    twice = [np.concatenate([column, column]) for column in (rows.unit, rows.start, rows.end)]
    label = np.concatenate([state, place])
    pieces = sweep(twice[0], twice[1], twice[2], label, causes + 4, low, high)
    near, far = pieces.active[causes + 1 + NEAR], pieces.active[causes + 1 + FAR]
    return pieces, [near & ~far, far & ~near]


def _began_inside(rows: Uptimes, found: Spells, low: int) -> Bools:
    """Whether each stretch of down time began at `low` or later, not before it."""
    earlier = np.unique(rows.unit[rows.down & (rows.start < low) & (rows.end > low)])
    return np.asarray((found.start != low) | ~np.isin(found.owner, earlier))


def _days(pieces: Segments, where: Bools, edges: Ints) -> Floats:
    """Unit-days in each stratum over the segments where `where` holds."""
    start, end = np.sort(pieces.start[where]), np.sort(pieces.end[where])
    return np.diff(_elapsed(start, edges) - _elapsed(end, edges)) / (MINUTE * DAY_MINUTES)


def _elapsed(moments: Ints, edges: Ints) -> Floats:
    """For each edge the sum, over the sorted moments before it, of the time from the moment to the edge."""
    before = np.searchsorted(moments, edges)
    relative = (moments - edges[0]).astype(np.float64)
    total = np.concatenate([[0.0], np.cumsum(relative)])
    return np.asarray(before * (edges - edges[0]).astype(np.float64) - total[before])


_LEAST_FAILURES = 10
"""Failures of each class from which on the interval of the logarithm is as good as normal."""
_MOST_SCATTER = 2.0
"""Dispersion of the strata from which on failures come in clumps."""
_MOST_UNTOLD = 0.05
"""Share of the failures of units of unknown placement that may be left out."""


def checked(seen: Exposure, found: RateRatio | None) -> tuple[Assumption, ...]:
    near, far = int(seen.failures[NEAR].sum()), int(seen.failures[FAR].sum())
    untold = seen.untold / max(1, seen.untold + near + far)
    out = [
        Assumption(
            "sampling",
            min(near, far) >= _LEAST_FAILURES,
            f"{near:,} near and {far:,} far failures; {_LEAST_FAILURES} of each are needed for the interval to hold.",
        ),
        Assumption(
            "topology",
            untold <= _MOST_UNTOLD,
            f"{percent(untold)} of the failures are of units of unknown placement and left out; up to "
            f"{percent(_MOST_UNTOLD)} is taken as complete.",
        ),
    ]
    if found is not None:
        out.append(
            Assumption(
                "noise",
                found.dispersion < _MOST_SCATTER,
                f"Failures scatter {found.dispersion:.2g} times as much as independent ones would; the interval is "
                "widened for it.",
            )
        )
    return tuple(out)


_POINTS = 120


def pieces(seen: Exposure, found: RateRatio | None) -> tuple[Evidence, ...]:
    out = [_rates(seen)]
    if seen.by_cause.any():
        out += [_by_cause(seen), _over_time(seen)]
    return (*out, text("Result", _account(seen, found)))


def per_thousand(failures: float, days: float) -> float | None:
    """Failures in a thousand unit-days."""
    return round(1000 * failures / days, 4) if days > 0 else None


def _rates(seen: Exposure) -> Evidence:
    rows = tuple(
        (
            name,
            seen.units[side],
            round(float(seen.days[side].sum()), 1),
            int(seen.failures[side].sum()),
            per_thousand(float(seen.failures[side].sum()), float(seen.days[side].sum())),
        )
        for side, name in enumerate(CLASSES)
    )
    columns = ("placed", "units", "unit-days up", "failures", "failures per 1,000 unit-days")
    note = "A failure is a change from up to down; only time up counts as time at risk."
    if seen.untold:
        note += f" Left out: {so_many(seen.untold, 'failure')} of units with no hops_class."
    return table("Failures, near and far", columns, rows, note)


def _by_cause(seen: Exposure) -> Evidence:
    days = seen.days.sum(axis=1)
    rows = []
    for number, cause in enumerate(seen.causes):
        near, far = int(seen.by_cause[NEAR][number]), int(seen.by_cause[FAR][number])
        if near + far:
            rates = per_thousand(near, days[NEAR]), per_thousand(far, days[FAR])
            ratio = round(rates[1] / rates[0] - 1, 3) if rates[0] and rates[1] is not None else None
            rows.append((cause, near, far, *rates, ratio))
    rows.sort(key=lambda row: (-(row[1] + row[2]), row[0]))
    columns = (
        "cause", "near", "far", "near per 1,000 unit-days", "far per 1,000 unit-days", "far more often by",
    )  # fmt: skip
    note = "The last column is far over near, less one, without regard to days: 0.114 is 11.4 % more."
    return table("Failures by cause", columns, tuple(rows), note)


def _over_time(seen: Exposure) -> Evidence:
    """Rates by stratum, neighbouring strata joined where there are too many to draw."""
    strata = len(seen.edges) - 1
    fold = -(-strata // _POINTS)
    values: list[dict[str, Any]] = []
    for first in range(0, strata, fold):
        until = min(first + fold, strata)
        for side, name in enumerate(CLASSES):
            days = float(seen.days[side][first:until].sum())
            failures = int(seen.failures[side][first:until].sum())
            if days > 0:
                begun = rfc3339(moment(int(seen.edges[first])))
                rate = per_thousand(failures, days)
                values.append({"time": begun, "placed": name, "rate": rate, "failures": failures})
    long = seen.edges[-1] - seen.edges[0] > 2 * 86_400_000_000
    y = {"field": "rate", "type": "quantitative", "title": "failures per 1,000 unit-days"}
    spec = {
        "$schema": SCHEMA,
        "width": "container",
        "height": 160,
        "data": {"values": values},
        "mark": {"type": "line", "point": True, "tooltip": {"content": "data"}},
        "encoding": {
            "x": time_axis("time", "%-d %b" if long else "%H:%M"),
            "y": y,
            "color": colour("placed", CLASSES, ("#2980b9", "#c0392b")),
        },
    }
    return chart("Failure rates over time", spec)


def _account(seen: Exposure, found: RateRatio | None) -> str:
    method = (
        f"{len(seen.edges) - 1} strata; rate ratio of Mantel and Haenszel, interval of Greenland and Robins "
        "(1985). The published finding is 11.4 % more failures at three hops than at two (Zhang et al., NetAI "
        "2018, three months of Azure)."
    )
    if found is None:
        return f"Near and far units cannot be compared. {method}"
    wide = ""
    if found.dispersion > 1.05:
        wide = (
            f" Days and units scatter {found.dispersion:.2g} times as much as independent failures would; the interval "
            "is widened for it."
        )
    return f"{ratio_sentence(found)}{wide} {method}"


def ratio_sentence(found: RateRatio) -> str:
    """Ratio of the failure rates of far and near units, and whether the figures can tell."""
    low, high = f"{figure(100 * found.low, 3)} %", f"{figure(100 * found.high, 3)} %"
    more = "more" if found.ratio >= 0 else "less"
    percent = f"{figure(abs(100 * found.ratio), 3)} %"
    ratio = f"Far units failed {percent} {more} often than near ones (95 % interval {low} to {high})."
    settled = (
        "The interval excludes no difference."
        if found.differs
        else "The interval includes no difference: this window does not decide."
    )
    return f"{ratio} {settled}"
