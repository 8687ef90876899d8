"""Times as senders write them, to microseconds since 1970. Pure."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from datetime import date, datetime
from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray

from ingest.telemetry.check import EPOCH, MICROSECOND

INT64 = 2**63
Moment = Annotated[datetime, msgspec.Meta(tz=True)]
MANY = 200
"""Texts from which on reading them all at once is faster than one by one."""
ZERO = ord("0")
PATTERN = "0000-00-00T00:00:00"  # then a fraction of up to six digits, and Z
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
    if not (digits == -1 or 1 <= digits <= 6) or set(map(len, texts)) != {width}:
        return None
    letters = np.frombuffer("".join(texts).encode(), np.uint8)
    if len(letters) != width * len(texts):
        return None
    table = letters.reshape(len(texts), width).T
    pattern = PATTERN + ("." + "0" * digits if digits > 0 else "") + "Z"
    numerals = [place for place, letter in enumerate(pattern) if letter == "0"]
    marks = [place for place, letter in enumerate(pattern) if letter != "0"]
    wanted = np.frombuffer(pattern.encode(), np.uint8)
    values = table[numerals] - ZERO
    if (table[marks] != wanted[marks, None]).any() or (values > 9).any():
        return None
    # Sums of digits by their worth; floats hold them exactly, and multiply at once.
    day, hour, minute, second, fraction = (_worths(digits) @ values.astype(np.float64)).astype(np.int64)
    days = _days(day)
    if days is None or hour.max() > 23 or minute.max() > 59 or second.max() > 59:
        return None
    micros: Micros = (((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000 + fraction
    return micros


@functools.cache
def _worths(digits: int) -> NDArray[np.float64]:
    """What each digit is worth in the date (as the number YYYYMMDD), hour, minute, second and microseconds."""
    worths = np.zeros((5, 14 + max(digits, 0)))
    for row, (start, end) in enumerate(((0, 8), (8, 10), (10, 12), (12, 14))):
        worths[row, start:end] = 10.0 ** np.arange(end - start - 1, -1, -1)
    worths[4, 14:] = 10.0 ** (5 - np.arange(max(digits, 0)))
    return worths


def _days(dates: Micros) -> Micros | None:
    """Days since 1970 of dates written as numbers YYYYMMDD, None if one is no date. Most bodies know one or two."""
    known, which = np.unique(dates, return_inverse=True)
    try:
        days = [date(int(n) // 10_000, int(n) // 100 % 100, int(n) % 100).toordinal() for n in known]
    except ValueError:
        return None
    return (np.array(days, np.int64) - EPOCH.toordinal())[which]
