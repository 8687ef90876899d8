"""From lists of values, one list a field, to checked `Rows`, and the values that have several forms: times, as
microseconds since 1970, and identifiers of what happens once (traces, spans), as 128 bits. Shared by the decoders."""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime
from hashlib import blake2b
from types import MappingProxyType
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType
from numpy.typing import NDArray

from ingest.telemetry.decode.columns import (
    EPOCH,
    MICROSECOND,
    NOT_FINITE,
    Bounds,
    Codes,
    Column,
    Index,
    Known,
    Names,
    Numbers,
    Rows,
    SetIndex,
    bad_rows,
    joined_numbers,
    numbers_of,
    unfit,
)
from ingest.telemetry.errors import MOST_NAMED, BadRow, InvalidRowsError, NoRowsError
from ingest.telemetry.kinds import Field, Kind

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


_HEX = re.compile(r"[0-9A-Fa-f]{1,32}")
_ALL_LOWER = re.compile(r"[0-9a-f]*")
BYTES = 16
_ZEROS = "0" * BYTES


def canonical_id(text: str) -> str:
    """The one way to write an id: 16 hexadecimal digits where they are enough, else 32; nothing for zeros.

    Hexadecimal digits stand for themselves, whatever their case and leading zeros (W3C Trace Context: 16 digits
    for a span, 32 for a trace). Any other text becomes its BLAKE2b digest of 128 bits.
    """
    if _HEX.fullmatch(text):
        return _written(int(text, 16))
    return blake2b(text.encode(errors="surrogatepass"), digest_size=BYTES).hexdigest() if text else ""


def canonical_ids(texts: Sequence[str]) -> list[str]:
    """`canonical_id` of each; quick where nearly all are written so already, as senders of spans do."""
    if set(map(len, texts)) <= {0, BYTES, 2 * BYTES} and _ALL_LOWER.fullmatch("".join(texts)):
        return [canonical_id(text) if text.startswith(_ZEROS) else text for text in texts]
    return list(map(canonical_id, texts))


def _written(number: int) -> str:
    if not number:
        return ""
    return f"{number:016x}" if number < 2**64 else f"{number:032x}"


def as_bytes(ids: Iterable[str]) -> NDArray[np.void]:
    """Canonical ids as 16 bytes each, shape (ids,)."""
    digits = "".join(one.rjust(2 * BYTES, "0") for one in ids)
    return np.frombuffer(bytes.fromhex(digits), f"V{BYTES}")


def as_texts(ids: NDArray[np.void]) -> tuple[str, ...]:
    """Texts that `as_bytes` took."""
    digits = ids.tobytes().hex()
    wide = (digits[place : place + 2 * BYTES] for place in range(0, len(digits), 2 * BYTES))
    return tuple(canonical_id(one) if one.startswith(_ZEROS) else one for one in wide)


NAMED = ("name", "component", "text", "choice", "id", "labels", "measures")
"""Types whose columns are `Names`."""
_ABSENT = {UnsetType, type(None)}
KNOWN_BY_TYPE = ("name", "component", "text")
"""Types whose values are good or bad by themselves, so that what was good in one field is good in all of its type."""
KnownTexts = Mapping[str, Mapping[str, int]]
"""By type the numbers of texts that were checked and stored before."""
NONE_KNOWN: KnownTexts = MappingProxyType({})
Part = Codes | Known | Numbers | NDArray[np.int64] | NDArray[np.float64] | NDArray[np.bool_]


class UnknownTextError(Exception):
    """Rows hold a text that is not known, and rows before them were read as if all were: read again without."""


@dataclass
class Assembly:
    """Takes rows in parts and makes one `Rows` of them; names and sets are numbered across the parts.

    A text of `known`, such as a name that comes every minute, is looked for once and not checked again: a column of
    nothing else is `Known`, and no `Names`.
    """

    kind: Kind
    region: str
    known: KnownTexts = field(default_factory=dict)
    as_known: dict[str, bool] = field(default_factory=dict)
    indexes: dict[str, Index] = field(default_factory=dict)
    set_indexes: dict[str, SetIndex] = field(default_factory=dict)
    parts: list[dict[str, Part]] = field(default_factory=list)
    numbers: list[NDArray[np.int64]] = field(default_factory=list)
    bad: list[BadRow] = field(default_factory=list)

    def __post_init__(self) -> None:
        for each in self.kind.all_fields:
            if each.type == "components":
                self.set_indexes[each.name] = SetIndex()
            elif each.type in NAMED:
                self.indexes[each.name] = Index()

    def default(self, each: Field) -> Any:
        if each.name == "region":
            return self.region
        return () if each.type in ("components", "numbers") else each.default

    def add(self, values: Mapping[str, Sequence[Any]], numbers: NDArray[np.int64]) -> None:
        """Values as decoded from JSON: texts, lists, numbers; UNSET or None where an optional field is
        absent.

        Raises OverflowError for integers beyond 64 bits, msgspec.ValidationError for a text that is no time.
        """
        self.add_columns(
            {each.name: self.column(each, values[each.name]) for each in self.kind.all_fields}, numbers
        )

    def add_columns(self, columns: dict[str, Part], numbers: NDArray[np.int64]) -> None:
        self.parts.append(columns)
        self.numbers.append(numbers)

    def column(self, each: Field, values: Sequence[Any]) -> Part:
        if each.optional and (absent := set(map(type, values)) & _ABSENT):
            if absent == {UnsetType} and values.count(UNSET) == len(values):
                return self.constant(each, len(values))
            if each.type == "time":
                return self._some_times(each, values)
            values = self._filled(each, values)
        match each.type:
            case "time":
                return times(values)
            case "count":
                return np.fromiter(values, np.int64, len(values))
            case "amount":
                return np.fromiter(values, np.float64, len(values)) + 0.0  # no negative zero
            case "flag":
                return np.fromiter(values, np.bool_, len(values))
            case "components":
                return self.set_indexes[each.name].codes(values)
            case "numbers":
                return numbers_of(values)
            case "labels" | "measures":
                values = [v if isinstance(v, str) else canonical_json(v) for v in values]
            case "id":
                values = canonical_ids(values)
        return self.texts(each, values)

    def texts(self, each: Field, values: Sequence[str]) -> Codes | Known:
        """Raises UnknownTextError when the column began as known texts and does not go on so."""
        known = self.known.get(each.type) if each.type in KNOWN_BY_TYPE and each.name != "region" else None
        if known and self.as_known.get(each.name, True):
            with suppress(KeyError):
                ids = np.fromiter(map(known.__getitem__, values), np.int32, len(values))
                self.as_known[each.name] = True
                return Known(ids)
        return self._index(each).codes(values)

    def _index(self, each: Field) -> Index:
        if self.as_known.setdefault(each.name, False):
            raise UnknownTextError
        return self.indexes[each.name]

    def constant(self, each: Field, rows: int) -> Part:
        """The column of an optional field that no row has."""
        default = self.default(each)
        if each.type == "components":
            return np.full(rows, self.set_indexes[each.name][default], np.int32)
        if each.name in self.indexes:
            return np.full(rows, self._index(each)[default], np.int32)
        if each.type == "numbers":
            return numbers_of([default] * rows)
        return np.full(rows, default)

    def _some_times(self, each: Field, values: Sequence[Any]) -> Part:
        there = np.fromiter(
            (value is not UNSET and value is not None for value in values), np.bool_, len(values)
        )
        found = np.full(len(values), self.default(each), np.int64)
        found[there] = times([value for value, known in zip(values, there.tolist(), strict=True) if known])
        return found

    def _filled(self, each: Field, values: Sequence[Any]) -> Sequence[Any]:
        default = self.default(each)
        return [default if value is UNSET or value is None else value for value in values]

    def refuse(self, row: int, where: str, reason: str) -> None:
        self.bad.append(BadRow(row, where, reason))

    @property
    def full(self) -> bool:
        """Whether no more bad rows need to be found."""
        return len(self.bad) >= MOST_NAMED

    def rows(self, bounds: Bounds) -> Rows:
        """All parts as one, checked. Raises InvalidRowsError with the first bad rows, NoRowsError when there is no
        row at all."""
        if not any(map(len, self.numbers)) and not self.bad:
            raise NoRowsError
        rows = self._joined() if self.parts else None
        found = self.bad
        if rows is not None:
            numbers = self.numbers[0] if len(self.numbers) == 1 else np.concatenate(self.numbers)
            found = found + bad_rows(self.kind, rows.columns, bounds, numbers)
        if found:
            raise InvalidRowsError(sorted(set(found))[:MOST_NAMED])
        assert rows is not None
        return rows

    def fit_rows(self, bounds: Bounds) -> tuple[Rows, list[tuple[NDArray[np.intp], str]]]:
        """All parts as one, and which rows of it are bad (indices from 0) and why, see `unfit`."""
        rows = self._joined() if self.parts else no_rows(self.kind, self.region)
        return rows, unfit(self.kind, rows.columns, bounds)

    def _joined(self) -> Rows:
        columns: dict[str, Column] = {}
        for each in self.kind.all_fields:
            parts: list[Any] = [part[each.name] for part in self.parts]
            if each.type == "numbers":
                columns[each.name] = joined_numbers(parts)
                continue
            if isinstance(parts[0], Known):
                columns[each.name] = Known(np.concatenate([part.ids for part in parts]))
                continue
            joined: Any = parts[0] if len(parts) == 1 else np.concatenate(parts)
            if each.type == "components":
                columns[each.name] = self.set_indexes[each.name].column(joined.astype(np.int32, copy=False))
            elif each.name in self.indexes:
                columns[each.name] = Names(
                    joined.astype(np.int32, copy=False), tuple(self.indexes[each.name])
                )
            else:
                columns[each.name] = joined
        return Rows(self.kind, len(columns[self.kind.time]), columns)


def no_rows(kind: Kind, region: str) -> Rows:
    """Rows of which there are none."""
    assembly = Assembly(kind, region)
    assembly.add({each.name: () for each in kind.all_fields}, np.zeros(0, np.int64))
    return assembly._joined()


def canonical_json(values: Mapping[str, str | float]) -> str:
    """Labels or measures: keys sorted, no blanks; measures are floats, none of them a negative zero."""
    if any(isinstance(value, float) and not math.isfinite(value) for value in values.values()):
        return NOT_FINITE
    plain = {key: value if isinstance(value, str) else value + 0.0 for key, value in values.items()}
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
