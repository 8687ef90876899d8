"""Tables and charts of near against far."""

from __future__ import annotations

from typing import Any

from analyzers.builtin.colocation.exposure import CLASSES, Exposure
from analyzers.builtin.stats.intervals import moment
from analyzers.builtin.stats.rate_ratio import RateRatio
from analyzers.builtin.text import figure, so_many
from analyzers.builtin.uptime.uptimes import FAR, NEAR
from analyzers.builtin.vega import SCHEMA, colour, instant, time_axis
from analyzers.contract import Evidence, chart, table, text

_POINTS = 120


def pieces(seen: Exposure, found: RateRatio | None) -> tuple[Evidence, ...]:
    out = [_rates(seen)]
    if seen.by_cause.any():
        out += [_by_cause(seen), _over_time(seen)]
    return (*out, text("What it comes to", _account(seen, found)))


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
                begun = instant(moment(int(seen.edges[first])))
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
        return f"There is nothing to compare. {method}"
    wide = ""
    if found.dispersion > 1.05:
        wide = (
            f" The strata scatter {found.dispersion:.2g} times as much as independent failures would; the interval "
            "is widened for it."
        )
    return f"{ratio_sentence(found)}{wide} {method}"


def ratio_sentence(found: RateRatio) -> str:
    """How much more often far units failed, and whether the figures can tell."""
    low, high = f"{figure(100 * found.low, 3)} %", f"{figure(100 * found.high, 3)} %"
    more = "more" if found.ratio >= 0 else "less"
    percent = f"{figure(abs(100 * found.ratio), 3)} %"
    ratio = f"Far units failed {percent} {more} often than near ones (95 % interval {low} to {high})."
    settled = (
        "The interval excludes no difference."
        if found.differs
        else "The interval includes no difference: this window cannot tell."
    )
    return f"{ratio} {settled}"
