"""Times as senders write them, to microseconds since 1970. Pure."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from datetime import date, datetime
from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray

from ingest.telemetry.decode.validate import EPOCH, MICROSECOND

INT64 = 2**63
Moment = Annotated[datetime, msgspec.Meta(tz=True)]
MANY = 20
"""Texts from which on reading them all at once is faster than one by one."""
ZERO = ord("0")
PATTERN = "0000-00-00T00:00:00"  # then a fraction of up to six digits, and Z
MINUTE, SECOND, FRACTION = 14, 17, 20  # places in it, and after it
HOUR = 3_600_000_000
DAY = 24 * HOUR
Micros = NDArray[np.int64]


def times(values: Sequence[object]) -> Micros:
    """Times given as integer nanoseconds, RFC 3339 texts or datetimes with a zone, in any mixture.

    Raises OverflowError for an integer beyond 64 bits, msgspec.ValidationError for a text that is no such time.
    """
    types = set(map(type, values))
    if types <= {int}:
        return from_nanoseconds(np.fromiter(values, np.int64, len(values)))
    if types == {str} and len(values) >= MANY and (read := _alike(values)) is not None:  # type: ignore[arg-type]
        return read
    return _one_by_one(msgspec.convert(values, list[int | Moment]))


def from_nanoseconds(values: Micros) -> Micros:
    """To the nearest microsecond, half up, as msgspec rounds the digits of an RFC 3339 time."""
    return values // 1000 + (values % 1000 >= 500)


def _one_by_one(values: Sequence[int | datetime]) -> Micros:
    def one(value: int | datetime) -> int:
        if isinstance(value, int):
            if not -INT64 <= value < INT64:
                raise OverflowError
            return (value + 500) // 1000
        return (value - EPOCH) // MICROSECOND

    return np.fromiter(map(one, values), np.int64, len(values))


def _alike(texts: Sequence[str]) -> Micros | None:
    """Times that are all written with the same number of digits and Z; None for any others, good or bad."""
    width = len(texts[0])
    digits = width - len(PATTERN) - 2  # of the fraction, whose point they follow
    if not (digits == -1 or 1 <= digits <= 6):
        return None
    joined = "".join(texts).encode()
    if len(joined) != width * len(texts) or set(map(len, texts)) != {width}:
        return None
    pattern, most, worths = _form(digits)
    # What differs from the pattern: the values of the digits, and nothing elsewhere.
    values = np.frombuffer(joined, np.uint8).reshape(len(texts), width) ^ pattern
    if (values > most).any():
        return None
    # Sums of digits by their worth; floats hold them exactly, and multiply at once.
    day, hour, micros = (values.astype(np.float64) @ worths).T.astype(np.int64)
    days = _days(day)
    if days is None or hour.max() > 23:
        return None
    read: Micros = days * DAY + hour * HOUR + micros
    return read


@functools.cache
def _form(digits: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.float64]]:
    """The letters of the pattern, how far each may be exceeded, and what each digit is worth in the date (as the number
    YYYYMMDD), in hours, and in microseconds since the hour."""
    pattern = np.frombuffer((PATTERN + ("." + "0" * digits if digits > 0 else "") + "Z").encode(), np.uint8)
    most = np.where(pattern == ZERO, 9, 0).astype(np.uint8)
    most[[MINUTE, SECOND]] = 5  # tens
    worths = np.zeros((len(pattern), 3))
    worths[[0, 1, 2, 3, 5, 6, 8, 9], 0] = 10.0 ** np.arange(7, -1, -1)
    worths[[11, 12], 1] = 10, 1
    for first, unit in ((MINUTE, 60_000_000), (SECOND, 1_000_000)):
        worths[[first, first + 1], 2] = 10 * unit, unit
    fraction = np.arange(max(digits, 0))
    worths[FRACTION + fraction, 2] = 10.0 ** (5 - fraction)
    return pattern, most, worths


def _days(dates: Micros) -> Micros | int | None:
    """Days since 1970 of dates written as numbers YYYYMMDD, None if one is no date. Most bodies know one or two."""
    first = int(dates[0])
    try:
        if (dates == first).all():
            return _day(first)
        known, which = np.unique(dates, return_inverse=True)
        days: Micros = np.array([_day(int(number)) for number in known], np.int64)[which]
    except ValueError:
        return None
    return days


def _day(number: int) -> int:
    return date(number // 10_000, number // 100 % 100, number % 100).toordinal() - EPOCH.toordinal()
