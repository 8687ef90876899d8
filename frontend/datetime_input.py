"""Moments as people type them in forms: by the clock of whoever types, as everywhere in the console."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from frontend import time_zones
from incidents.domain.oncall.spans import instant

_RIGHT = "must be a time such as 2026-11-21 08:00"


def parse_moment(text: str) -> datetime:
    """`2026-11-21T08:00` (a browser's field), `2026-11-21 08:00`, with an offset, or a day; in UTC. ValueError saying
    what would be right."""
    try:
        found = datetime.fromisoformat(text.strip())
        return instant(found, time_zones.here()) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(_RIGHT) from None


def parse_day(text: str) -> tuple[datetime, datetime]:
    """When a day such as `2026-11-21` begins and ends; ValueError where it is none."""
    first = datetime.fromisoformat(text.strip()[:10])
    try:
        return instant(first, time_zones.here()), instant(first + timedelta(days=1), time_zones.here())
    except OverflowError:
        raise ValueError("must be an existing day") from None


def field_value(moment: datetime) -> str:
    """As a field `datetime-local` takes it."""
    return f"{time_zones.local(moment):%Y-%m-%dT%H:%M}"
