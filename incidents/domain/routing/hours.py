"""Hours of the week in a time zone, such as `mon-fri 09:00-17:00`: when a rule counts. Pure.

Hours are those of the wall clock there, also when it is put forward or back. A span that ends before it begins ends the
next day and belongs to the day on which it began.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

from incidents.domain.values import InvalidValueError, check_line

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
FORM = "such as `mon-fri 09:00-17:00`, `sat,sun 00:00-24:00` or `22:00-06:00` (every day)"
MOST_SPANS = 20
_SPAN = re.compile(
    r"(?:(?P<days>[a-z]{3}(?:-[a-z]{3})?(?:,[a-z]{3}(?:-[a-z]{3})?)*) )?"
    r"(?P<from>[0-2][0-9]:[0-5][0-9])-(?P<to>[0-2][0-9]:[0-5][0-9])"
)
_DAY = 24 * 60


@dataclass(frozen=True, slots=True)
class Span:
    """`days` count from Monday, 0; `start` and `end` are minutes since midnight, `end` at most 24 hours."""

    text: str
    days: frozenset[int]
    start: int
    end: int

    def holds(self, day: int, minute: int) -> bool:
        if self.start < self.end:
            return day in self.days and self.start <= minute < self.end
        return (day in self.days and minute >= self.start) or (
            (day - 1) % 7 in self.days and minute < self.end
        )


@dataclass(frozen=True, slots=True)
class Hours:
    spans: tuple[Span, ...]
    zone: str = "UTC"

    def hold(self, at: datetime) -> bool:
        """Whether the moment is within one of the spans; `at` must know its offset."""
        there = at.astimezone(_zone(self.zone))
        minute = 60 * there.hour + there.minute
        return any(span.holds(there.weekday(), minute) for span in self.spans)

    def __str__(self) -> str:
        return f"{', '.join(span.text for span in self.spans)} {self.zone}"


def hours_from(field: str, spans: Sequence[object], zone: object) -> Hours:
    """Raises InvalidValueError. `zone` is a name of the IANA database."""
    if not 1 <= len(spans) <= MOST_SPANS:
        raise InvalidValueError(field, f"must be a list of 1 to {MOST_SPANS} spans, {FORM}")
    return Hours(tuple(_span(field, text) for text in spans), check_zone("zone", zone))


def check_zone(field: str, zone: object) -> str:
    name = check_line(field, zone, 60)
    try:
        _zone(name)
    except (LookupError, ValueError, OSError):
        raise InvalidValueError(field, "must be a time zone such as UTC or Europe/Berlin") from None
    return name


@lru_cache(maxsize=100)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


def _span(field: str, text: object) -> Span:
    line = check_line(field, text, 60).lower()
    found = _SPAN.fullmatch(line)
    if found is None:
        raise InvalidValueError(field, f"must be {FORM}, not {line!r}")
    start, end = _minutes(field, found["from"]), _minutes(field, found["to"])
    if start in (end, _DAY):
        raise InvalidValueError(field, f"must end at another time than it begins, before 24:00: {line!r}")
    return Span(line, _days(field, found["days"]), start, end)


def _minutes(field: str, text: str) -> int:
    minutes = 60 * int(text[:2]) + int(text[3:])
    if minutes > _DAY:
        raise InvalidValueError(field, f"must hold times up to 24:00, not {text}")
    return minutes


def _days(field: str, text: str | None) -> frozenset[int]:
    if text is None:
        return frozenset(range(7))
    days: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first not in DAYS or (last or first) not in DAYS:
            raise InvalidValueError(field, f"must name days as {', '.join(DAYS)}, not {part!r}")
        start, end = DAYS.index(first), DAYS.index(last or first)
        days |= {day % 7 for day in range(start, end + (1 if start <= end else 8))}
    return frozenset(days)
