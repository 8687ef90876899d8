"""Small drawings as coordinates for SVG, titles by the reader's clock: a component's health, the trend of a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from frontend import times
from incidents.components.health import Health
from incidents.incident.trends import HOURS

WIDTH, HEIGHT, GAP, LEAST = 480.0, 64.0, 2.0, 2.0
HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Bar:
    x: str
    y: str
    width: str
    height: str
    tone: str
    title: str


def drawn(health: Health) -> Mapping[str, Any]:
    """Values for the template: the figures, the bars of the hours and those of the days."""
    return {
        "rates": health.rates,
        "slow": health.slow,
        "availability": health.availability,
        "named": health.named,
        "bars": _hours(health),
        "days": _days(health),
    }


def _hours(health: Health) -> list[Bar]:
    if health.rates is None:
        return []
    hours, most = health.rates.hours, health.rates.most or 1.0
    wide, bars = WIDTH / len(hours), []
    for place, one in enumerate(hours):
        tall = max(LEAST, HEIGHT * (one.share or 0.0) / most)
        label = "nothing was carried" if one.share is None else f"{one.failed:,} of {one.carried:,} failed"
        tone = "rate" if one.failed else "none"
        bars.append(_bar(place * wide, HEIGHT - tall, wide, tall, tone, f"until {_clock(one.end)}: {label}"))
    return bars


def _days(health: Health) -> list[Bar]:
    if health.availability is None:
        return []
    days = health.availability.days
    wide, bars = WIDTH / len(days), []
    for place, one in enumerate(days):
        out = (1 - one.up) * (one.end - one.start)
        tone = "up" if out <= timedelta(0) else "some" if out <= HOUR else "down"
        tall = 24.0 if tone != "some" else 14.0
        label = "up" if tone == "up" else f"out for {out.total_seconds() / 60:.0f} min"
        bars.append(_bar(place * wide, 24 - tall, wide, tall, tone, f"{_clock(one.start)}: {label}"))
    return bars


def _bar(x: float, y: float, wide: float, tall: float, tone: str, title: str) -> Bar:
    return Bar(f"{x:.2f}", f"{y:.2f}", f"{wide - GAP:.2f}", f"{tall:.2f}", tone, title)


def _clock(moment: datetime) -> str:
    return f"{times.local(moment):%-d %b %H:%M} {times.offset(moment)}"


# Rows of the inbox
# ----------------------------------------------------------------------------------------------------------
TREND_WIDTH, TREND_HEIGHT = 72.0, 20.0


@dataclass(frozen=True, slots=True)
class Trend:
    """A bar for each hour: reports, and pale ones where the incident failed without a new one."""

    bars: tuple[Bar, ...]
    title: str


def trend_of(hours: Sequence[float], failing: tuple[datetime, datetime] | None, end: datetime) -> Trend:
    """`hours` are reports by the hour up to `end`, empty where there were none; `failing` is its span."""
    count = len(hours) or HOURS
    reports = hours or [0.0] * count
    most, wide = max(*reports, 1.0), TREND_WIDTH / count
    bars = []
    for place, amount in enumerate(reports):
        until = end - (count - 1 - place) * HOUR
        lasts = failing is not None and failing[0] < until and failing[1] > until - HOUR
        if amount <= 0 and not lasts:
            continue
        tall = LEAST if amount <= 0 else max(2 * LEAST, TREND_HEIGHT * amount / most)
        bars.append(
            Bar(
                f"{place * wide:.1f}",
                f"{TREND_HEIGHT - tall:.1f}",
                f"{wide - 1:.1f}",
                f"{tall:.1f}",
                "report" if amount > 0 else "lasts",
                "",
            )
        )
    total = sum(reports)
    words = f"{total:,.0f} report{'' if round(total) == 1 else 's'} in the last {count} h"
    return Trend(tuple(bars), f"{words}, at most {most:,.0f} in an hour" if total > 1 else words)


# Rows of the on-call load
# ----------------------------------------------------------------------------------------------------------
def weekly_trend(hours: Sequence[float], interruptions: Sequence[int]) -> Trend:
    """A bar for each week, the oldest first: as high as the hours of on-call time, marked where there were
    interruptions."""
    most, wide = max(*hours, 1.0), TREND_WIDTH / len(hours)
    bars = [
        Bar(
            f"{place * wide:.1f}",
            f"{TREND_HEIGHT - tall:.1f}",
            f"{wide - 1:.1f}",
            f"{tall:.1f}",
            "report" if calls else "lasts",
            "",
        )
        for place, (amount, calls) in enumerate(zip(hours, interruptions, strict=True))
        if (tall := max(2 * LEAST if amount or calls else 0.0, TREND_HEIGHT * amount / most))
    ]
    return Trend(
        tuple(bars),
        f"Hours by week, oldest first: {', '.join(f'{one:.0f}' for one in hours)};"
        f" interruptions: {', '.join(map(str, interruptions))}",
    )
