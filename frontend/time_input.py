"""Times and durations as people type them in forms; times by the clock of the reader, as everywhere in the console."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from frontend import times
from incidents.domain.oncall.spans import instant

_RIGHT = "must be a time such as 2026-11-21 08:00"


def parse_moment(text: str) -> datetime:
    """`2026-11-21T08:00` (a browser's field), `2026-11-21 08:00`, with an offset, or a day; in UTC. ValueError saying
    what would be right."""
    try:
        found = datetime.fromisoformat(text.strip())
        return instant(found, times.here()) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(_RIGHT) from None


def parse_day(text: str) -> tuple[datetime, datetime]:
    """Begin and end of a day such as `2026-11-21`; raises ValueError for other text."""
    first = datetime.fromisoformat(text.strip()[:10])
    try:
        return instant(first, times.here()), instant(first + timedelta(days=1), times.here())
    except OverflowError:
        raise ValueError("must be an existing day") from None


def field_value(moment: datetime) -> str:
    """As a field `datetime-local` takes it."""
    return f"{times.local(moment):%Y-%m-%dT%H:%M}"


_UNITS = {"s": 1, "min": 60, "m": 60, "h": 3600, "d": 86400}
LONGEST = timedelta(days=31)


def parse_span(text: str) -> timedelta:
    """`5 min`, `1 h 30 min`, `90s`; ValueError saying what would be right."""
    parts = re.findall(r"(\d{1,7})\s*(s|min|m|h|d)\b", text.strip())
    if not parts or re.sub(r"(\d{1,7})\s*(s|min|m|h|d)\b", "", text).strip():
        raise ValueError("must be a duration such as 5 min, 1 h or 90 s")
    span = timedelta(seconds=sum(int(count) * _UNITS[unit] for count, unit in parts))
    if not timedelta(0) <= span <= LONGEST:
        raise ValueError(f"must be at most {LONGEST.days} days")
    return span
