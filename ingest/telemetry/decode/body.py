"""Rows of a request body, by its media type: NDJSON and JSON here, Arrow in `decode.arrow`. Pure.

The fast way decodes megabytes at a time into structs generated from the kind. It stops at the first fault
without saying where in the row it was and lets repeated keys pass; so whatever it refuses or cannot vouch for
is read again line by line, the slow way, which knows row, field and reason.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from ingest.telemetry.decode.builder import INT64, NONE_KNOWN, Assembly, KnownTexts, Moment, UnknownTextError
from ingest.telemetry.decode.columns import Bounds, Rows
from ingest.telemetry.errors import InvalidBodyError
from ingest.telemetry.kinds import Field, Kind
from ingest.telemetry.kinds.declare import MAX_COMPONENTS, MAX_NUMBERS
from ingest.telemetry.messages import called, fault, printable

MAX_LINE = 2**20
"""Bytes in one line of NDJSON."""
COLON, QUOTE, SPACE = b':" '
MARK = b"\xef\xbb\xbf"
"""Some editors write it before the first character (a byte order mark)."""
BLANK = re.compile(r"[ \t\n\r]*")
CHUNK = 4 * 2**20
"""Bytes decoded at a time: the structs of one chunk are gone before the next is read."""

_TYPES: dict[str, Any] = {
    "time": int | Moment,
    "component": str,
    "name": str,
    "text": str,
    "components": Annotated[list[str], msgspec.Meta(max_length=MAX_COMPONENTS)],
    "count": int,
    "amount": float,
    "flag": bool,
    "choice": str,
    "id": str,
    "numbers": Annotated[list[float], msgspec.Meta(max_length=MAX_NUMBERS)],
    "labels": dict[str, str],
    "measures": dict[str, float],
}


class _Repeats(dict[str, Any]):
    """An object of JSON in which a key was given twice."""

    repeated: str = ""


@dataclass(frozen=True, slots=True)
class _Unread:
    """Stands where a value cannot be read, and says why."""

    reason: str


@functools.cache
def _struct(kind: Kind) -> type[msgspec.Struct]:
    def declared(field: Field) -> Any:
        # Texts of times are read all at once, later.
        type_ = int | str if field.type == "time" else _TYPES[field.type]
        return (field.name, type_ | None | UnsetType, UNSET) if field.optional else (field.name, type_)

    # Required fields first, because that is how structs are.
    fields = sorted(kind.all_fields, key=lambda field: field.optional)
    return msgspec.defstruct(kind.name, [declared(f) for f in fields], forbid_unknown_fields=True, gc=False)


@functools.cache
def _lines_decoder(kind: Kind) -> msgspec.json.Decoder[msgspec.Struct]:
    return msgspec.json.Decoder(_struct(kind))


@functools.cache
def _array_decoder(kind: Kind) -> msgspec.json.Decoder[list[msgspec.Struct]]:
    return msgspec.json.Decoder(list[_struct(kind)])  # type: ignore[misc]


def decode_ndjson(
    kind: Kind, body: bytes, region: str, bounds: Bounds, known: KnownTexts = NONE_KNOWN
) -> Rows:
    """Rows of a body of NDJSON, one object a line; empty lines are passed over. Raises InvalidRowsError,
    InvalidBodyError, UnknownTextError."""
    assembly = Assembly(kind, region, known)
    first = 1
    for chunk in _chunks(body.removeprefix(MARK)):
        lines = chunk.count(b"\n") + (not chunk.endswith(b"\n"))
        if not _add_fast(assembly, chunk, first, lines):
            _add_lines(assembly, chunk, first)
        if assembly.full:
            break
        first += lines
    return assembly.rows(bounds)


def decode_array(
    kind: Kind, body: bytes, region: str, bounds: Bounds, known: KnownTexts = NONE_KNOWN
) -> Rows:
    """Rows of a body that is one JSON array of objects. Raises InvalidRowsError, InvalidBodyError."""
    assembly = Assembly(kind, region, known)
    body = body.removeprefix(MARK)
    try:
        structs = _array_decoder(kind).decode(body)
        values = _values(kind, structs)
        if _no_key_twice(kind, body, values):
            assembly.add(values, np.arange(1, len(structs) + 1))
            return assembly.rows(bounds)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, OverflowError):
        assembly = Assembly(kind, region)
    _add_slowly(assembly, _items(body))
    return assembly.rows(bounds)


def _chunks(body: bytes) -> Iterator[bytes]:
    """Whole lines, about CHUNK bytes at a time. A longer line comes whole and is refused later."""
    start = 0
    while start < len(body):
        end = start + CHUNK
        if end < len(body):
            end = body.rfind(b"\n", start, end) + 1 or body.find(b"\n", end) + 1 or len(body)
        yield body[start:end]
        start = end


def _add_fast(assembly: Assembly, chunk: bytes, first: int, lines: int) -> bool:
    if not _lines_are_short(chunk):
        return False
    kind = assembly.kind
    try:
        structs = _lines_decoder(kind).decode_lines(chunk)
        # Fewer rows than lines: some are empty. More: some hold two. Either way numbers need counting.
        if len(structs) != lines:
            return False
        values = _values(kind, structs)
        if not _no_key_twice(kind, chunk, values):
            return False
        assembly.add(values, np.arange(first, first + lines))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, OverflowError):
        return False
    return True


def _lines_are_short(chunk: bytes) -> bool:
    """Hops from newline to newline in steps of MAX_LINE."""
    start = 0
    while start + MAX_LINE < len(chunk):
        start = chunk.rfind(b"\n", start, start + MAX_LINE + 1) + 1
        if not start:
            return False
    return True


def _values(kind: Kind, structs: Sequence[msgspec.Struct]) -> dict[str, list[Any]]:
    return {field.name: list(map(attrgetter(field.name), structs)) for field in kind.all_fields}


def _no_key_twice(kind: Kind, text: bytes, values: dict[str, list[Any]]) -> bool:
    """Whether it is certain that no object gives a key twice.

    Every key ends with `":` when no colon has white space before it, and texts can only add to their number. So when
    there are as many as the structs have fields, every key was there once.
    """
    letters = np.frombuffer(text, np.uint8)
    colon, before = letters[1:] == COLON, letters[:-1]
    if (colon & (before <= SPACE)).any():
        return False
    keys = 0
    for field in kind.all_fields:
        column = values[field.name]
        absent = field.optional and UnsetType in set(map(type, column))  # asked first: to count takes longer
        keys += len(column) - (column.count(UNSET) if absent else 0)
        if field.type in ("labels", "measures"):
            keys += sum(len(value) for value in column if value)
    return int(np.count_nonzero(colon & (before == QUOTE))) == keys


def _add_lines(assembly: Assembly, chunk: bytes, first: int) -> None:
    def parsed() -> Iterator[tuple[int, Any]]:
        for number, line in enumerate(chunk.split(b"\n"), first):
            if len(line) > MAX_LINE:
                assembly.refuse(number, "", f"the line is longer than {MAX_LINE} bytes")
            elif line.strip():
                yield number, _parsed(line)
            if assembly.full:
                return

    _add_slowly(assembly, parsed())


def _add_slowly(assembly: Assembly, parsed: Iterator[tuple[int, Any]]) -> None:
    numbers, good = [], []
    for number, row in parsed:
        found = len(assembly.bad)
        values = _checked_row(assembly, number, row)
        if len(assembly.bad) == found:
            numbers.append(number)
            good.append(values)
        if assembly.full:
            break
    if good:
        columns = {field.name: [row[field.name] for row in good] for field in assembly.kind.all_fields}
        assembly.add(columns, np.array(numbers, np.int64))


def _items(body: bytes) -> Iterator[tuple[int, Any]]:
    """The rows of an array with their numbers, up to the first that cannot be read. Raises InvalidBodyError if it is
    none."""
    broken = None
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        text, broken = body[: error.start].decode(), _Unread(_why(error))
    number, place = 0, _next(text, 0)
    while text.startswith("," if number else "[", place):
        number += 1
        try:
            row, place = _DECODER.raw_decode(text, _next(text, place + 1))
        except (ValueError, RecursionError) as error:
            yield number, broken or _Unread(_why(error))
            return
        yield number, row
        place = _next(text, place)
    if not number:
        whole = _parsed(body)
        if isinstance(whole, _Unread):
            raise InvalidBodyError(f"the body {whole.reason}")
        raise InvalidBodyError(f"the body is {called(whole)}, not an array of rows")
    ended = text.startswith("]", place)
    if broken or not ended or _next(text, place + 1) < len(text):
        wrong = json.JSONDecodeError(
            "Extra data" if ended else "Expecting ',' delimiter", text, place + ended
        )
        yield number + 1, broken or _Unread(_why(wrong))


def _next(text: str, place: int) -> int:
    """End of the white space at the place."""
    found = BLANK.match(text, place)
    return found.end() if found else place


def _parsed(text: bytes) -> Any:
    try:
        return _DECODER.decode(text.decode())
    except (ValueError, RecursionError) as error:
        return _Unread(_why(error))


def _why(error: ValueError | RecursionError) -> str:
    match error:
        case UnicodeDecodeError():
            return f"is not valid UTF-8 (byte {error.start + 1})"
        case json.JSONDecodeError():
            return f"is not JSON: {error.msg} (character {error.pos + 1})"
        case RecursionError():
            return "is nested too deeply"
    return f"is not JSON: {error}"  # NaN, or an integer of thousands of digits


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) == len(pairs):
        return row
    seen: set[str] = set()
    repeats = _Repeats(row)
    repeats.repeated = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
    return repeats


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not a number")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_refuse_constant)


def _checked_row(assembly: Assembly, number: int, row: Any) -> dict[str, Any]:
    kind = assembly.kind
    if isinstance(row, _Unread):
        assembly.refuse(number, "", row.reason)
        return {}
    if not isinstance(row, dict):
        assembly.refuse(number, "", f"is {called(row)}, not an object")
        return {}
    if isinstance(row, _Repeats):
        assembly.refuse(number, printable(row.repeated), "is given twice")
        return {}
    for name in row:
        if not kind.has(name):
            assembly.refuse(number, printable(name), f"is not a field of {kind.name}")
    values = {}
    for field in kind.all_fields:
        value = row.get(field.name, UNSET)
        if not (field.optional and (value is UNSET or value is None)):
            wrong, value = _converted(field, value)
            if wrong:
                assembly.refuse(number, field.name, wrong)
        values[field.name] = value
    return values


def _converted(field: Field, value: Any) -> tuple[str, Any]:
    """Fault of the value (empty: none), and the value as the struct would hold it."""
    if value is UNSET:
        return "is missing", None
    if isinstance(value, list) and field.type == "components" and len(value) > MAX_COMPONENTS:
        return f"has more than {MAX_COMPONENTS} components", None
    if isinstance(value, list) and field.type == "numbers" and len(value) > MAX_NUMBERS:
        return f"has more than {MAX_NUMBERS} numbers", None
    if isinstance(value, _Repeats):
        return f"gives {printable(value.repeated)!r} twice", None
    try:
        converted = msgspec.convert(value, _TYPES[field.type])
    except msgspec.ValidationError as error:
        return fault(field, value, str(error)), None
    except UnicodeEncodeError:
        return "holds half a surrogate pair", None
    if isinstance(converted, int) and not -INT64 <= converted < INT64:
        return "is an integer beyond 64 bits", None
    return "", converted


Decode = Callable[[Kind, bytes, str, Bounds, KnownTexts], Rows]


def _decode_arrow(kind: Kind, body: bytes, region: str, bounds: Bounds, known: KnownTexts) -> Rows:
    from ingest.telemetry.decode.arrow import decode_stream  # loads pyarrow: only where somebody sends Arrow

    return decode_stream(kind, body, region, bounds, known)


FORMATS: dict[str, Decode] = {
    "application/x-ndjson": decode_ndjson,
    "application/json": decode_array,
    "application/vnd.apache.arrow.stream": _decode_arrow,
}
"""Media types, and what makes rows of a body. Each raises InvalidRowsError (the first bad rows), InvalidBodyError or
UnknownTextError."""


def decode(media_type: str, kind: Kind, body: bytes, region: str, bounds: Bounds, known: KnownTexts) -> Rows:
    """Rows of a body; `region` is that of rows that name none. Raises InvalidRowsError, InvalidBodyError.

    With `known`, columns of texts that are all in it come by their numbers.
    """
    try:
        return FORMATS[media_type](kind, body, region, bounds, known)
    except UnknownTextError:
        return FORMATS[media_type](kind, body, region, bounds, NONE_KNOWN)
