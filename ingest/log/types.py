"""The words of the event log: events, where they stand, who caused them; their types, and their exact bytes.

Event types have permanent names, schema numbers, and upcasters for old schemas. A type is registered once, by the
`ready` of the app that owns it. Its name is never changed and never used again for something else. When the shape of
its body changes, `schema` goes up by one and an upcaster for the old schema is added; stored events are not rewritten.

hash = sha256(previous hash + the stored fields joined by NUL, in UTF-8). NUL can stand in no text that Postgres stores,
so the joined bytes have one reading only. The body's text is hashed and stored as it is, so checking a chain needs no
JSON at all.

Structs of msgspec instead of dataclasses: an event has thirteen fields, and making a frozen dataclass of them costs
several times what it costs to fetch its row."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, ClassVar
from uuid import UUID

import msgspec

Json = Any  # a value that json.dumps accepts; NaN, Infinity, NUL and lone surrogates are refused on append
Body = dict[str, Json]

_POSITION = re.compile(r"[0-9a-f]{36}")


class NewEvent(msgspec.Struct, frozen=True):
    """A fact to be recorded. The registry knows which schema its type is written in today."""

    type: str
    body: Mapping[str, Json]
    occurred_at: datetime


class Context(msgspec.Struct, frozen=True):
    """Actor and cause of an event.

    `actor` is `user:NAME`, `key:NAME`, `system:NAME` or `shell:NAME`; `cause` is the id (`stream@version`) of the event
    that led to this one; `trace` is the id of the request or run.
    """

    actor: str
    cause: str | None = None
    trace: str | None = None


class Head(msgspec.Struct, frozen=True):
    """The newest event of a stream: its version and its hash (32 bytes)."""

    version: int
    hash: bytes

    NEW: ClassVar[Head]
    """The head of a stream that has no event yet."""


Head.NEW = Head(0, b"")


class Position(msgspec.Struct, frozen=True, order=True):
    """A place in the total order of the log.

    Its text is opaque to the outside: 36 characters that sort as the positions do.
    """

    epoch: int
    txid: int
    seq: int

    START: ClassVar[Position]
    """Before every event."""

    def __str__(self) -> str:
        # As one number: three cost three times as much, and each event that is shown or projected writes one.
        return f"{self.epoch << 128 | self.txid << 64 | self.seq:036x}"

    @staticmethod
    def parse(text: str) -> Position:
        """The position that `str` wrote. Raises ValueError for any other text."""
        if not _POSITION.fullmatch(text):
            raise ValueError(f"not a log position: {text[:50]!r}")
        return Position(int(text[:4], 16), int(text[4:20], 16), int(text[20:], 16))


Position.START = Position(0, 0, 0)


class Event(msgspec.Struct, frozen=True):
    """A recorded fact, its body in the newest schema of its type."""

    stream: str
    version: int
    type: str
    schema: int
    body: Body
    actor: str
    cause: str | None
    trace: str | None
    occurred_at: datetime
    recorded_at: datetime
    position: Position
    hash: bytes

    @property
    def id(self) -> str:
        return f"{self.stream}@{self.version}"

    @property
    def head(self) -> Head:
        """The stream's head just after this event."""
        return Head(self.version, self.hash)


def ordered_id(at: datetime, name: str | None = None) -> UUID:
    """Id of a stream that begins at a moment: a UUID of version 7 (RFC 9562). With a `name` the same two give the same.

    Streams that begin one after the other are neighbours in every index by stream or id. With random ids each of them
    needs another page, which a large log has to fetch, and to write whole after each checkpoint.
    """
    rest = int.from_bytes(os.urandom(10) if name is None else sha256(name.encode()).digest()[:10])
    high, low = rest >> 68, rest & (1 << 62) - 1
    return UUID(int=int(at.timestamp() * 1000) << 80 | 7 << 76 | high << 64 | 0b10 << 62 | low)


class StreamVersionError(Exception):
    """The stream has moved on (or never was) where the writer thought it stood, or was last written by a
    transaction with a later id: load, decide and try again in a new transaction."""

    def __init__(self, stream: str, expected: int) -> None:
        super().__init__(f"{stream} does not stand at version {expected}")
        self.stream = stream
        self.expected = expected


class UnrecordableEventError(ValueError):
    """The event holds something that the log cannot keep exactly."""


Upcaster = Callable[[Body], Body]

_NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+")


@dataclass(frozen=True, slots=True)
class EventType:
    """`upcasters[n]` is a pure function from a body of schema n to one of schema n + 1, for every n below
    `schema`."""

    name: str
    schema: int = 1
    upcasters: Mapping[int, Upcaster] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(
                f"an event type's name is dotted lower case, such as incident.opened: {self.name!r}"
            )
        if self.schema < 1 or set(self.upcasters) != set(range(1, self.schema)):
            raise ValueError(
                f"{self.name}: schema {self.schema} needs an upcaster for each of 1..{self.schema - 1}"
            )


class UnknownEventTypeError(LookupError):
    """The type was never registered, or is stored in a schema newer than this code knows."""


_types: dict[str, EventType] = {}


def register(event_type: EventType) -> EventType:
    """Make a type known. Registering the same one twice is harmless; two types of one name are an error."""
    known = _types.setdefault(event_type.name, event_type)
    if known != event_type:
        raise ValueError(f"event type {event_type.name} is registered twice, differently")
    return event_type


def registered() -> tuple[EventType, ...]:
    """Every known type, by name."""
    return tuple(_types[name] for name in sorted(_types))


def find(name: str) -> EventType:
    """Raises UnknownEventTypeError."""
    try:
        return _types[name]
    except KeyError:
        raise UnknownEventTypeError(f"event type {name} is not registered") from None


def upcast(name: str, schema: int, body: Body) -> Body:
    """The body, stored in `schema`, as the newest schema of its type has it. Raises UnknownEventTypeError."""
    event_type = find(name)
    if not 1 <= schema <= event_type.schema:
        raise UnknownEventTypeError(
            f"{name} is stored in schema {schema}; this code knows up to {event_type.schema}"
        )
    for step in range(schema, event_type.schema):
        body = event_type.upcasters[step](body)
    return body


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
        text, read_back = _round_trip(body)
        is_canonical = read_back == body
    except (TypeError, ValueError, RecursionError):
        is_canonical = False
    if not is_canonical:
        text, read_back = _round_trip(_plain(body))
    # An escaped backslash before "u0000" gives the same six characters, hence the second look.
    if "\\u0000" in text and any("\0" in string for string in _strings(read_back)):
        raise UnrecordableEventError("the body holds a NUL character")
    return text, read_back


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


def rfc3339(moment: datetime) -> str:
    """RFC 3339 in UTC with `Z`."""
    return _encode_time(moment.astimezone(UTC)).decode()[1:-1]


def parse_rfc3339(text: str) -> datetime:
    """The time in UTC. Raises ValueError unless `text` is an RFC 3339 time with an offset."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None or "T" not in text.upper():
        raise ValueError(f"not an RFC 3339 time with an offset: {text}")
    return moment.astimezone(UTC)


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
