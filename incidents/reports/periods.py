"""Days, ISO weeks and months in a time zone: when they begin and end, what they are called. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

Cadence = Literal["daily", "weekly", "monthly"]
CADENCES: tuple[Cadence, ...] = ("daily", "weekly", "monthly")
PAUSE = timedelta(minutes=15)
"""After the end of a period, for the runs of its last windows."""
MOST_MADE_UP = {"daily": 7, "weekly": 4, "monthly": 2}
"""Missed periods that are made up; older ones can be looked at but are not recorded."""

_NAMES = {
    "daily": re.compile(r"(\d{4})-(\d\d)-(\d\d)"),
    "weekly": re.compile(r"(\d{4})-W(\d\d)"),
    "monthly": re.compile(r"(\d{4})-(\d\d)"),
}
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Period:
    """The days from `first` to `last`, both included, as they are counted in `zone`."""

    cadence: Cadence
    first: date
    zone: str = "UTC"

    @property
    def last(self) -> date:
        return self.next().first - _DAY

    @property
    def start(self) -> datetime:
        return _midnight(self.first, self.zone)

    @property
    def end(self) -> datetime:
        """The first moment after it. A day on which clocks change has 23 or 25 hours."""
        return _midnight(self.next().first, self.zone)

    @property
    def name(self) -> str:
        """`2026-05-04`, `2026-W19` (ISO 8601) or `2026-05`."""
        if self.cadence == "weekly":
            year, week, _ = self.first.isocalendar()
            return f"{year}-W{week:02}"
        return self.first.isoformat() if self.cadence == "daily" else f"{self.first:%Y-%m}"

    @property
    def words(self) -> str:
        """For people: `Mon 4 May 2026`, `week 19 of 2026 (4 to 10 May)`, `May 2026`."""
        if self.cadence == "daily":
            return f"{self.first:%a %-d %b %Y}"
        if self.cadence == "monthly":
            return f"{self.first:%B %Y}"
        year, week, _ = self.first.isocalendar()
        return f"week {week} of {year} ({self.first:%-d %b} to {self.last:%-d %b})"

    def next(self) -> Period:
        if self.cadence == "monthly":
            return Period("monthly", (self.first + 31 * _DAY).replace(day=1), self.zone)
        return Period(self.cadence, self.first + (7 if self.cadence == "weekly" else 1) * _DAY, self.zone)

    def previous(self) -> Period:
        return period_of(self.cadence, self.first - _DAY, self.zone)


def period_of(cadence: Cadence, day: date, zone: str) -> Period:
    """The period that a day lies in."""
    if cadence == "weekly":
        day -= day.weekday() * _DAY
    elif cadence == "monthly":
        day = day.replace(day=1)
    return Period(cadence, day, zone)


def period_at(cadence: Cadence, moment: datetime, zone: str) -> Period:
    """The period that a moment lies in."""
    return period_of(cadence, moment.astimezone(ZoneInfo(zone)).date(), zone)


def named(cadence: Cadence, name: str, zone: str) -> Period:
    """The period of that name. Raises ValueError for a name that no such period has."""
    found = _NAMES[cadence].fullmatch(name)
    if found is None:
        raise ValueError(f"{name!r} is not the name of a {cadence} period")
    numbers = [int(number) for number in found.groups()]
    if cadence == "weekly":
        period = Period(cadence, date.fromisocalendar(numbers[0], numbers[1], 1), zone)
    else:
        period = Period(cadence, date(*(*numbers, 1)[:3]), zone)
    if not 2000 <= period.first.year <= 9000:
        raise ValueError(f"{name!r} lies outside of the years 2000 to 9000")
    return period


def over(cadence: Cadence, zone: str, hour: int, since: datetime, now: datetime) -> list[Period]:
    """The periods, from the one that `since` lies in, whose report is due at `now`, oldest first.

    A report is due `hour` hours after the period's end, at least `PAUSE`. At most `MOST_MADE_UP` of them.
    """
    oldest = period_at(cadence, since, zone)
    found: list[Period] = []
    period = period_at(cadence, now, zone)
    while len(found) < MOST_MADE_UP[cadence] and period.first > oldest.first:
        period = period.previous()
        if period.end + max(PAUSE, timedelta(hours=hour)) <= now:
            found.append(period)
    return found[::-1]


def is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def _midnight(day: date, zone: str) -> datetime:
    """The first moment of a day in UTC; where clocks skip midnight, the moment at which they do."""
    return datetime.combine(day, time(), ZoneInfo(zone)).astimezone(UTC)
