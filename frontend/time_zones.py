"""The clock of whoever reads a page. Browsers say their zone in a cookie (`theme.js`), or UTC where that was chosen in
the menu; everything that pages write or ask for as a time goes by it. Without the cookie it is UTC.

Not Django's current time zone: serializers would answer in it, and the API speaks UTC.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

COOKIE = "zone"
_UTC = ZoneInfo("UTC")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]{1,29}(/[A-Za-z0-9_+-]{1,29}){0,2}")
_READ_IN: ContextVar[ZoneInfo] = ContextVar("read_in", default=_UTC)


def zone_called(name: str | None) -> ZoneInfo:
    """The IANA zone of that name; UTC for what is none."""
    if not name or not _NAME.fullmatch(name):
        return _UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return _UTC


@contextmanager
def read_in(zone: ZoneInfo) -> Iterator[None]:
    """What is written inside is for somebody whose clock shows the time of `zone`."""
    token = _READ_IN.set(zone)
    try:
        yield
    finally:
        _READ_IN.reset(token)


_SHOWN_AT: ContextVar[datetime | None] = ContextVar("told_at", default=None)


@contextmanager
def shown_at(moment: datetime | None) -> Iterator[None]:
    """Relative times written inside count from `moment`, that of a page about the past; None: from now."""
    token = _SHOWN_AT.set(moment)
    try:
        yield
    finally:
        _SHOWN_AT.reset(token)


def past_moment() -> datetime | None:
    """The moment from which relative times count; None where it is now."""
    return _SHOWN_AT.get()


def here() -> ZoneInfo:
    """The zone of whoever reads."""
    return _READ_IN.get()


def local(moment: datetime) -> datetime:
    """As their clock shows it; in UTC within a day of the first and last times that there are."""
    try:
        return moment.astimezone(here())
    except OverflowError:
        return moment.astimezone(UTC)


def offset(moment: datetime) -> str:
    """How far their clock is from UTC then: `UTC`, `UTC+1`, `UTC-3:30`. Unlike CST or IST it means one thing only."""
    ahead = local(moment).utcoffset() or timedelta(0)
    if not (minutes := round(abs(ahead) / timedelta(minutes=1))):
        return "UTC"
    hours, rest = divmod(minutes, 60)
    return f"UTC{'-' if ahead < timedelta(0) else '+'}{hours}{f':{rest:02}' if rest else ''}"
