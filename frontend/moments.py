"""Moments as people type them in forms: in UTC, as everywhere in the console."""

from __future__ import annotations

from datetime import UTC, datetime


def parse_moment(text: str) -> datetime:
    """`2026-11-21T08:00` (a browser's field), `2026-11-21 08:00`, with an offset, or a day; ValueError saying what
    would be right."""
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError("must be a time such as 2026-11-21 08:00 (UTC)") from None
    moment = found.replace(tzinfo=UTC) if found.tzinfo is None else found
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("must be a time such as 2026-11-21 08:00 (UTC)") from None


def field_value(moment: datetime) -> str:
    """As a field `datetime-local` takes it."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M}"
