"""Append to the log: events are chained to those before them and inserted in the caller's transaction.

After the commit followers are notified, never inside a transaction: a NOTIFY there takes a lock that all databases of
the cluster share, and holds it while the commit is flushed to disk."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

import structlog
from django.db import DEFAULT_DB_ALIAS, IntegrityError, OperationalError, connection, connections, transaction
from prometheus_client import Counter

from ingest.db import database
from ingest.db.database import plain_array
from ingest.log import parts
from ingest.log.types import (
    Body,
    Context,
    Event,
    Head,
    NewEvent,
    Position,
    StreamVersionError,
    UnrecordableEventError,
    chain,
    find,
    record_body,
    time_text,
)


@dataclass(slots=True)
class Entries:
    """Events to be recorded together; every list has one entry an event."""

    recorded_at: datetime
    recorded_text: str = field(init=False)
    streams: list[str] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    contexts: list[Context] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    schemas: list[int] = field(default_factory=list)
    bodies: list[Body] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    occurred_at: list[datetime] = field(default_factory=list)
    times: list[str] = field(default_factory=list)
    hashes: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.recorded_text = time_text(self.recorded_at)

    def chain(self, stream: str, events: Sequence[NewEvent], expected: Head, context: Context) -> None:
        """Add events at the end of a stream. Raises UnrecordableEventError, UnknownEventTypeError."""
        _check_names(stream, context)
        previous, moment, occurred = expected.hash, None, ""
        for version, event in enumerate(events, expected.version + 1):
            schema = find(event.type).schema
            text, body = record_body(event.body)
            if event.occurred_at is not moment:  # what is recorded together mostly happened together
                moment, occurred = event.occurred_at, time_text(event.occurred_at)
            previous = chain(
                previous, stream, version, event.type, schema, text,
                context.actor, context.cause, context.trace, occurred, self.recorded_text,
            )  # fmt: skip
            self.streams.append(stream)
            self.versions.append(version)
            self.contexts.append(context)
            self.types.append(event.type)
            self.schemas.append(schema)
            self.bodies.append(body)
            self.texts.append(text)
            self.occurred_at.append(event.occurred_at)
            self.times.append(occurred)
            self.hashes.append(previous)

    def columns(self) -> tuple[str, str, str, str, bytes]:
        """Types, schemas and times as array literals; bodies and hashes one after the other.

        A body is a line, because JSON has no line breaks in its texts and canonical JSON none between them. A hash has
        32 bytes. As arrays of quoted texts they would cost the most of the call, on both sides.
        """
        return (
            plain_array(self.types),
            plain_array(map(str, self.schemas)),
            "\n".join(self.texts),
            plain_array(self.times),
            b"".join(self.hashes),
        )

    def events(self, positions: Sequence[Position]) -> list[Event]:
        """The events as recorded at these positions."""
        return [
            Event(
                stream, version, type_, schema, body,
                context.actor, context.cause, context.trace, occurred_at, self.recorded_at, position, digest,
            )
            for stream, version, type_, schema, body, context, occurred_at, position, digest in zip(
                self.streams, self.versions, self.types, self.schemas, self.bodies, self.contexts,
                self.occurred_at, positions, self.hashes, strict=True,
            )
        ]  # fmt: skip


def array(texts: Iterable[str | None]) -> str:
    """An array as Postgres reads it: one literal costs both sides a fraction of what a list of literals does."""
    return plain_array(map(_quoted, texts))


def _quoted(text: str | None) -> str:
    if text is None:
        return "NULL"
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _check_names(stream: str, context: Context) -> None:
    if not stream or "@" in stream or not context.actor:
        raise UnrecordableEventError(
            f"a stream needs a name without @, and an event an actor: {stream!r}, {context.actor!r}"
        )
    if context.cause == "" or context.trace == "":
        raise UnrecordableEventError("cause and trace are a text or None, never empty")


log = structlog.get_logger("log")
APPENDED = Counter("dossier_log_appended_events", "Events appended and committed by this process", ["type"])
_appended = cache(APPENDED.labels)
NO_PART = "23514"
"""SQLSTATE of a row that no partition takes, and of other checks."""
OVERTAKEN = frozenset({"23505", "40001", "40P01"})
"""SQLSTATEs that say that another transaction was faster: a unique violation, a failure to serialize, a deadlock."""
_APPEND = "SELECT log_append(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"


@dataclass(frozen=True, slots=True)
class NewStream:
    """A stream that does not exist yet, the events that it begins with, and who caused them."""

    stream: str
    events: Sequence[NewEvent]
    context: Context


@dataclass(frozen=True, slots=True)
class StreamAppend:
    """Events for the end of a stream, the head that they were decided upon, and who caused them."""

    stream: str
    events: Sequence[NewEvent]
    after: Head
    context: Context


def append(stream: str, events: Sequence[NewEvent], expected: Head, context: Context) -> list[Event]:
    """Record events at the end of a stream, in the caller's transaction or, without one, in their own.

    `expected` is the head that the caller decided upon (`Head.NEW` for a new stream). Followers are woken
    when the transaction has committed. Raises StreamVersionError when the stream stands elsewhere: the
    transaction is then lost and must be tried again from its start (see `retrying`). Raises
    UnrecordableEventError for what cannot be kept exactly, UnknownEventTypeError for a type that no app registered.
    """
    if not events:
        return []
    entries = Entries(database.now())
    entries.chain(stream, events, expected, context)
    values = (
        stream,
        expected.version,
        expected.hash,
        context.actor,
        context.cause,
        context.trace,
        entries.recorded_text,
        *entries.columns(),
    )
    return _insert(_APPEND, values, entries, expected.version)


def begin(beginnings: Sequence[NewStream]) -> list[Event]:
    """Record the first events of several new streams with one statement; otherwise as `append`.

    The events stand in the log, and in the answer, in the order in which they are given. Raises
    StreamVersionError, and records none, when one of the streams is not new.
    """
    entries = _entries(beginnings)
    if not entries.streams:
        return []
    return _insert(_call("log_begin", 11), _columns(entries), entries, 0)


def extend(extensions: Sequence[StreamAppend]) -> list[Event]:
    """Record events at the ends of several streams, each named once, with one statement; otherwise as `append`.

    The events stand in the log, and in the answer, in the order in which they are given. Raises
    StreamVersionError, and records none, when one of the streams stands elsewhere.
    """
    entries = Entries(database.now())
    for one in extensions:
        entries.chain(one.stream, one.events, one.after, one.context)
    if not entries.streams:
        return []
    values = (*_heads(extensions), *_columns(entries))
    first = next(one for one in extensions if one.events)
    return _insert(_call("log_extend", len(values)), values, entries, first.after.version)


@contextmanager
def begin_through(
    function: str, beginnings: Sequence[NewStream], more: Sequence[object]
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """As `begin`, by way of a function in the database and with whatever else there is to send to it.

    The function takes the arguments of `log_begin` and then `more`, calls it, and answers with what it answered. What
    is yielded is the statement that calls it, with its values; it is to be carried out within the block, in a
    transaction that is open or in one of its own, and other statements may be sent with it. At least one event is
    needed; the events are not made again to be answered.
    """
    entries = _entries(beginnings)
    values = (*_columns(entries), *more)
    with _naming_conflict(entries.streams, 0):
        yield _call(function, len(values)), values
    transaction.on_commit(lambda: _committed(entries.types), robust=True)


def _entries(beginnings: Sequence[NewStream]) -> Entries:
    entries = Entries(database.now())
    for beginning in beginnings:
        entries.chain(beginning.stream, beginning.events, Head.NEW, beginning.context)
    return entries


@cache
def _call(function: str, arguments: int) -> str:
    return f"SELECT {function}({', '.join(['%s'] * arguments)})"


@contextmanager
def extend_through(
    extensions: Sequence[StreamAppend],
) -> Iterator[tuple[list[Head], str, tuple[str | bytes, ...]]]:
    """Record events at the ends of several streams, each named once; otherwise as `append`.

    Yields the new head of each stream and a statement with its values, which is to be carried out within the block, in
    a transaction that is open or in one of its own, together with whatever depends on it. Raises StreamVersionError,
    and records none, when one of the streams stands elsewhere or the database says that others were faster (SQLSTATE
    40001, 40P01).
    """
    entries = Entries(database.now())
    heads: list[Head] = []
    for one in extensions:
        entries.chain(one.stream, one.events, one.after, one.context)
        heads.append(
            Head(one.after.version + len(one.events), entries.hashes[-1]) if one.events else one.after
        )
    values = (*_heads(extensions), *_columns(entries))
    with _naming_conflict(entries.streams, 0):
        yield heads, _call("log_extend", len(values)), values
    transaction.on_commit(lambda: _committed(entries.types), robust=True)


def _heads(extensions: Sequence[StreamAppend]) -> tuple[str, str, str]:
    """Streams with their expected versions, which `log_extend` compares."""
    old = [one for one in extensions if one.events and one.after.version > 0]
    return (
        array(one.stream for one in old),
        plain_array(str(one.after.version) for one in old),
        plain_array(f"\\\\x{one.after.hash.hex()}" for one in old),
    )


def _columns(entries: Entries) -> tuple[str | bytes, ...]:
    """The arguments of `log_begin`."""
    return (
        entries.recorded_text,
        array(entries.streams),
        plain_array(map(str, entries.versions)),
        array(context.actor for context in entries.contexts),
        array(context.cause for context in entries.contexts),
        array(context.trace for context in entries.contexts),
        *entries.columns(),
    )


def _insert(sql: str, values: tuple[Any, ...], entries: Entries, expected: int) -> list[Event]:
    here = connections[DEFAULT_DB_ALIAS]  # looked up once: this is the path of every event
    with here.cursor() as cursor:
        try:
            cursor.execute(sql, values)
        except (IntegrityError, OperationalError) as error:
            _raise_overtaken(error, entries.streams, expected)
            raise
        (placed,) = cursor.fetchone()
    if placed is None:
        raise StreamVersionError(entries.streams[0], expected)
    here.on_commit(lambda: _committed(entries.types), robust=True)
    epoch, txid, *numbers = placed
    return entries.events([Position(epoch, txid, seq) for seq in sorted(numbers)])


@contextmanager
def _naming_conflict(streams: Sequence[str], expected: int) -> Iterator[None]:
    """Raises StreamVersionError when the database says that an event stands where one was to stand."""
    try:
        yield
    except (IntegrityError, OperationalError) as error:
        _raise_overtaken(error, streams, expected)
        raise


def _raise_overtaken(error: Exception, streams: Sequence[str], expected: int) -> None:
    code = getattr(error.__cause__, "pgcode", None)
    if code == NO_PART and _names_log(error):
        _make_parts()
    elif code not in OVERTAKEN:
        return
    raise StreamVersionError(_taken(error, streams), expected) from error


def _names_log(error: Exception) -> bool:
    return getattr(getattr(error.__cause__, "diag", None), "table_name", None) == "log_event"


def _make_parts() -> None:
    """Make parts of the log in a session of its own: nobody made them ahead, and the transaction here has failed."""
    log.warning("the log had no part for its next event; does a worker run?")
    session = connection.copy()
    try:
        with session.cursor() as cursor:
            cursor.execute("SELECT log_make_parts(%s, %s)", (parts.size(), parts.AHEAD))
    finally:
        session.close()


def saying_overtaken(stream: str) -> AbstractContextManager[None]:
    """Raises StreamVersionError of `stream` for what the database refuses because others were faster."""
    return _naming_conflict([stream], 0)


def _taken(error: Exception, streams: Sequence[str]) -> str:
    """Stream that exists, by the database's message."""
    message = str(error)
    return next((stream for stream in streams if f"({stream})" in message), streams[0])


def _committed(types: list[str]) -> None:
    for name in set(types):
        _appended(name).inc(types.count(name))
    notify()


CHANNEL = "dossier_log"
QUIET = 0.2
"""Seconds between two notifications from one process. A follower that was woken looks again every few
milliseconds for longer than this (`follow.ALERT`), so that what is held back here is seen all the same."""

_last: dict[str, float] = {}  # by database


def notify() -> None:
    """Wake the followers, unless this process just did. Call it after the commit, in autocommit mode."""
    known_as, now = database.name(), time.monotonic()
    if now - _last.get(known_as, 0.0) < QUIET:
        return
    _last[known_as] = now
    with connection.cursor() as cursor:
        cursor.execute(f"NOTIFY {CHANNEL}")


T = TypeVar("T")

FIRST_PAUSE = 0.002
LONGEST_PAUSE = 0.2


def retrying(fn: Callable[[], T], attempts: int = 8) -> T:
    """`fn()`, called again after a short random pause while it raises StreamVersionError or was the victim of a
    deadlock, `attempts` times in all.

    `fn` loads, decides and appends within one `transaction.atomic`. The pause doubles each time and is
    drawn from the whole span ("full jitter"), so that writers who met once do not meet again.
    """
    for attempt in range(attempts - 1):
        try:
            return fn()
        except StreamVersionError:
            pass
        except OperationalError as error:
            # Within a transaction of the caller nothing can be done again: it has failed as a whole.
            if not database.is_deadlock(error) or connection.in_atomic_block:
                raise
        time.sleep(random.uniform(0, min(LONGEST_PAUSE, FIRST_PAUSE * 2**attempt)))
    return fn()
