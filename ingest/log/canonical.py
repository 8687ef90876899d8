"""The exact bytes of an event, and the hash that chains it to the one before it in its stream.

hash = sha256(previous hash + the stored fields joined by NUL, in UTF-8). NUL can stand in no text that
Postgres stores, so the joined bytes have one reading only. The body's text is hashed and stored as it is,
so checking a chain needs no JSON at all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import msgspec

from ingest.log.types import Body, Json, UnrecordableEventError

_encode = msgspec.json.Encoder(order="deterministic").encode
_encode_strictly = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True).encode
_encode_time = msgspec.json.Encoder().encode
_WITH_MICROSECONDS = len('"2026-01-02T03:04:05.000006Z"')

read_body: Callable[[str | bytes], Body] = msgspec.json.Decoder(dict[str, Any]).decode
"""The body that a text was made of. Several times faster than the standard library's, and equal to it."""


def record_body(body: Mapping[str, Json]) -> tuple[str, Body]:
    """A body as canonical JSON (sorted keys, no blanks, no escapes but the required ones), and as it will be read.

    Raises UnrecordableEventError for what JSON or Postgres cannot hold: NaN, infinities, NUL, values of other
    types.
    """
    try:
        text, kept = _round_trip(body)
        is_kept = kept == body
    except (TypeError, ValueError, RecursionError):
        is_kept = False
    if not is_kept:
        text, kept = _round_trip(_plain(body))
    # An escaped backslash before "u0000" gives the same six characters, hence the second look.
    if "\\u0000" in text and any("\0" in string for string in _strings(kept)):
        raise UnrecordableEventError("the body holds a NUL character")
    return text, kept


def _round_trip(body: Mapping[str, Json]) -> tuple[str, Body]:
    """Several times faster than the standard library's, but it writes what it cannot keep, too: NaN becomes null, and
    a time a text. That shows in what comes back."""
    text = _encode(body)
    return text.decode(), read_body(text)


def _plain(body: Mapping[str, Json]) -> Body:
    """A body of nothing but what JSON has. Raises UnrecordableEventError."""
    try:
        return read_body(_encode_strictly(dict(body)))  # sorting refuses 1 beside "1", which would be one key
    except (TypeError, ValueError, RecursionError) as error:
        raise UnrecordableEventError(f"the body is not JSON: {error}") from error


def _strings(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from _strings(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _strings(inner)


def time_text(moment: datetime) -> str:
    """RFC 3339 in UTC with microseconds, as precise as Postgres keeps it. Refuses a time without a zone."""
    if moment.tzinfo is None:
        raise UnrecordableEventError(f"a time without a zone: {moment.isoformat()}")
    text = _encode_time(moment if moment.tzinfo is UTC else moment.astimezone(UTC)).decode()
    # Quicker than isoformat, but it writes "2026-01-02T03:04:05Z" where the microseconds are zero.
    return f"{text[1:27]}+00:00" if len(text) == _WITH_MICROSECONDS else f"{text[1:20]}.000000+00:00"


def chain(
    previous: bytes,
    stream: str,
    version: int,
    type_: str,
    schema: int,
    body: str,
    actor: str,
    cause: str | None,
    trace: str | None,
    occurred_at: str,
    recorded_at: str,
) -> bytes:
    """The hash (32 bytes) of an event whose predecessor has the hash `previous` (empty for the first)."""
    fields = (
        stream, str(version), type_, str(schema), actor, cause or "", trace or "", occurred_at, recorded_at,
        body
    )  # fmt: skip
    joined = "\0".join(fields)
    if joined.count("\0") != len(fields) - 1:
        raise UnrecordableEventError(f"{stream}@{version}: a field holds a NUL character")
    try:
        return sha256(previous + joined.encode()).digest()
    except UnicodeEncodeError as error:
        raise UnrecordableEventError(
            f"{stream}@{version}: a text is not valid Unicode: {error.reason}"
        ) from None
