"""Times as they stand in event bodies: RFC 3339, UTC, `Z`, microseconds where there are any."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from incidents.domain.values import InvalidValueError, check_line


def rfc3339(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def parse_rfc3339(text: str) -> datetime:
    """Raises ValueError unless `text` is an RFC 3339 time with an offset."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None or "T" not in text.upper():
        raise ValueError(f"not an RFC 3339 time with an offset: {text}")
    return moment.astimezone(UTC)


def optional_time(text: str | None) -> datetime | None:
    return None if text is None else parse_rfc3339(text)


def optional_rfc3339(moment: datetime | None) -> str | None:
    return None if moment is None else rfc3339(moment)


def read_zone(field: str, text: object) -> ZoneInfo:
    """An IANA time zone. Raises InvalidValueError."""
    name = check_line(field, text, 60)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidValueError(
            field, f"{name!r} is not a time zone; use one such as Europe/Berlin or UTC"
        ) from None
