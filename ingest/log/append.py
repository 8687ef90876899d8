"""Append to the log. Plain SQL through Django's connection; no transaction is opened here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.db import (
    DEFAULT_DB_ALIAS,
    IntegrityError,
    OperationalError,
    connection,
    connections,
    transaction,
)
from django.db.backends.utils import CursorWrapper

from ingest.db import clock
from ingest.log import metrics, notify
from ingest.log.encode import Entries, array, plain_array
from ingest.log.types import Context, Event, Head, NewEvent, Position, StreamVersionError

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
    entries = Entries(clock.now())
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
    entries = Entries(clock.now())
    for one in extensions:
        entries.chain(one.stream, one.events, one.after, one.context)
    if not entries.streams:
        return []
    values = (*_heads(extensions), *_columns(entries))
    first = next(one for one in extensions if one.events)
    return _insert(_call("log_extend", len(values)), values, entries, first.after.version)


def begin_through(
    function: str,
    beginnings: Sequence[NewStream],
    more: Sequence[object],
    send: Callable[[CursorWrapper, bytes], None],
) -> None:
    """As `begin`, by way of a function of the caller in the database and with whatever else the caller has to send.

    The function takes the arguments of `log_begin` and then `more`, calls it, and answers with what it answered.
    `send` gets a cursor and the statement that calls it, and returns when the database has done it, in the caller's
    transaction or in one that it makes; what else it does costs no journey of its own. The events are not made again
    to be answered.
    """
    entries = _entries(beginnings)
    if not entries.streams:
        return
    values = (*_columns(entries), *more)
    with connection.cursor() as cursor, _naming_conflict(entries.streams, 0):
        send(cursor, cursor.mogrify(_call(function, len(values)), values))
    transaction.on_commit(lambda: _committed(entries.types), robust=True)


def _entries(beginnings: Sequence[NewStream]) -> Entries:
    entries = Entries(clock.now())
    for beginning in beginnings:
        entries.chain(beginning.stream, beginning.events, Head.NEW, beginning.context)
    return entries


@cache
def _call(function: str, arguments: int) -> str:
    return f"SELECT {function}({', '.join(['%s'] * arguments)})"


def extend_through(
    extensions: Sequence[StreamAppend], send: Callable[[Sequence[Head], str, tuple[str | bytes, ...]], None]
) -> None:
    """Record events at the ends of several streams, each named once; otherwise as `append`.

    `send` gets the new head of each stream and a statement with its values. It has the database carry it out, in the
    caller's transaction or in one that it makes, together with whatever depends on it: that costs no journey of its
    own. Raises StreamVersionError, and records none, when one of the streams stands elsewhere or the database says
    that others were faster (SQLSTATE 40001, 40P01).
    """
    entries = Entries(clock.now())
    heads: list[Head] = []
    for one in extensions:
        entries.chain(one.stream, one.events, one.after, one.context)
        heads.append(
            Head(one.after.version + len(one.events), entries.hashes[-1]) if one.events else one.after
        )
    values = (*_heads(extensions), *_columns(entries))
    with _naming_conflict(entries.streams, 0):
        send(heads, f"SELECT log_extend_or_fail({', '.join(['%s'] * len(values))})", values)
    transaction.on_commit(lambda: _committed(entries.types), robust=True)


def _heads(extensions: Sequence[StreamAppend]) -> tuple[str, str, str]:
    """What `log_extend` compares: the streams that exist, and where they are thought to stand."""
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
    if getattr(error.__cause__, "pgcode", None) in OVERTAKEN:
        raise StreamVersionError(_taken(error, streams), expected) from error


def saying_overtaken(stream: str) -> AbstractContextManager[None]:
    """Raises StreamVersionError of `stream` for what the database refuses because others were faster."""
    return _naming_conflict([stream], 0)


def _taken(error: Exception, streams: Sequence[str]) -> str:
    """Which of the streams the database says exists."""
    told = str(error)
    return next((stream for stream in streams if f"({stream}, " in told), streams[0])


def _committed(types: list[str]) -> None:
    for name in set(types):
        metrics.appended(name).inc(types.count(name))
    notify.notify()
