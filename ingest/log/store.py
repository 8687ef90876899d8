"""Append to the log and read it. Plain SQL through Django's connection; no transaction is opened here.

Order. Every event carries (epoch, txid, seq): the stay in a cluster, the 64-bit id of its transaction, and
a number from a sequence. Transactions commit in another order than they got their ids, so a reader that
remembered the highest id it saw would skip what commits late. `read_all` therefore stays below the
watermark: the oldest transaction id still at work (`pg_snapshot_xmin`). All below it is settled for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import groupby
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

from ingest.log import canonical, metrics, registry, wake
from ingest.log.entries import Entries, array, plain_array
from ingest.log.types import Context, Event, Head, NewEvent, Position, WrongExpectedVersion

OVERTAKEN = frozenset({"23505", "40001", "40P01"})
"""SQLSTATEs that say that another transaction was faster: a unique violation, a failure to serialize, a deadlock."""
_APPEND = "SELECT log_append(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"

# The text of txid is never called txid: ORDER BY would sort by the text, and "9999" stands after "10000".
COLUMNS = """stream, version, type, schema, body, actor, cause, trace, occurred_at, recorded_at, hash,
    epoch, txid::text AS txid_text, seq"""
BELOW_WATERMARK = "(epoch, txid, seq) < (log_live_epoch(), pg_snapshot_xmin(pg_current_snapshot()), 0)"
IN_ORDER = "ORDER BY log_event.epoch, log_event.txid, log_event.seq"

_AGE = """
SELECT extract(epoch FROM greatest(
    (SELECT max(clock_timestamp() - xact_start) FROM pg_stat_activity WHERE backend_xid IS NOT NULL),
    (SELECT max(clock_timestamp() - prepared) FROM pg_prepared_xacts),
    (SELECT clock_timestamp() - recorded_at FROM log_event
     WHERE (epoch, txid, seq) >= (log_live_epoch(), pg_snapshot_xmin(pg_current_snapshot()), 0)
     ORDER BY epoch, txid, seq LIMIT 1)
))
"""


@dataclass(frozen=True, slots=True)
class Beginning:
    """A stream that does not exist yet, the events that it begins with, and who caused them."""

    stream: str
    events: Sequence[NewEvent]
    context: Context


@dataclass(frozen=True, slots=True)
class Extension:
    """Events for the end of a stream, the head that they were decided upon, and who caused them."""

    stream: str
    events: Sequence[NewEvent]
    after: Head
    context: Context


def append(stream: str, events: Sequence[NewEvent], expected: Head, context: Context) -> list[Event]:
    """Record events at the end of a stream, in the caller's transaction or, without one, in their own.

    `expected` is the head that the caller decided upon (`Head.NEW` for a new stream). Followers are woken
    when the transaction has committed. Raises WrongExpectedVersion when the stream stands elsewhere: the
    transaction is then lost and must be tried again from its start (see `retrying`). Raises
    UnrecordableEvent for what cannot be kept exactly, UnknownEventType for a type that no app registered.
    """
    if not events:
        return []
    entries = Entries(datetime.now(UTC))
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


def begin(beginnings: Sequence[Beginning]) -> list[Event]:
    """Record the first events of several new streams with one statement; otherwise as `append`.

    The events stand in the log, and in the answer, in the order in which they are given. Raises
    WrongExpectedVersion, and records none, when one of the streams is not new.
    """
    entries = _entries(beginnings)
    if not entries.streams:
        return []
    return _insert(_call("log_begin", 11), _columns(entries), entries, 0)


def extend(extensions: Sequence[Extension]) -> list[Event]:
    """Record events at the ends of several streams, each named once, with one statement; otherwise as `append`.

    The events stand in the log, and in the answer, in the order in which they are given. Raises
    WrongExpectedVersion, and records none, when one of the streams stands elsewhere.
    """
    entries = Entries(datetime.now(UTC))
    for one in extensions:
        entries.chain(one.stream, one.events, one.after, one.context)
    if not entries.streams:
        return []
    values = (*_heads(extensions), *_columns(entries))
    first = next(one for one in extensions if one.events)
    return _insert(_call("log_extend", len(values)), values, entries, first.after.version)


def begin_through(
    function: str,
    beginnings: Sequence[Beginning],
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
    with connection.cursor() as cursor, _saying_who_was_first(entries.streams, 0):
        send(cursor, cursor.mogrify(_call(function, len(values)), values))
    transaction.on_commit(lambda: _committed(entries.types), robust=True)


def _entries(beginnings: Sequence[Beginning]) -> Entries:
    entries = Entries(datetime.now(UTC))
    for beginning in beginnings:
        entries.chain(beginning.stream, beginning.events, Head.NEW, beginning.context)
    return entries


@cache
def _call(function: str, arguments: int) -> str:
    return f"SELECT {function}({', '.join(['%s'] * arguments)})"


def extend_through(
    extensions: Sequence[Extension], send: Callable[[Sequence[Head], str, tuple[str | bytes, ...]], None]
) -> None:
    """Record events at the ends of several streams, each named once; otherwise as `append`.

    `send` gets the new head of each stream and a statement with its values. It has the database carry it out, in the
    caller's transaction or in one that it makes, together with whatever depends on it: that costs no journey of its
    own. Raises WrongExpectedVersion, and records none, when one of the streams stands elsewhere or the database says
    that others were faster (SQLSTATE 40001, 40P01).
    """
    entries = Entries(datetime.now(UTC))
    heads: list[Head] = []
    for one in extensions:
        entries.chain(one.stream, one.events, one.after, one.context)
        heads.append(
            Head(one.after.version + len(one.events), entries.hashes[-1]) if one.events else one.after
        )
    values = (*_heads(extensions), *_columns(entries))
    with _saying_who_was_first(entries.streams, 0):
        send(heads, f"SELECT log_extend_or_fail({', '.join(['%s'] * len(values))})", values)
    transaction.on_commit(lambda: _committed(entries.types), robust=True)


def _heads(extensions: Sequence[Extension]) -> tuple[str, str, str]:
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
        raise WrongExpectedVersion(entries.streams[0], expected)
    here.on_commit(lambda: _committed(entries.types), robust=True)
    epoch, txid, *numbers = placed
    return entries.events([Position(epoch, txid, seq) for seq in sorted(numbers)])


@contextmanager
def _saying_who_was_first(streams: Sequence[str], expected: int) -> Iterator[None]:
    """Raises WrongExpectedVersion when the database says that an event stands where one was to stand."""
    try:
        yield
    except (IntegrityError, OperationalError) as error:
        _raise_overtaken(error, streams, expected)
        raise


def _raise_overtaken(error: Exception, streams: Sequence[str], expected: int) -> None:
    if getattr(error.__cause__, "pgcode", None) in OVERTAKEN:
        raise WrongExpectedVersion(_taken(error, streams), expected) from error


def saying_overtaken(stream: str) -> AbstractContextManager[None]:
    """Raises WrongExpectedVersion of `stream` for what the database refuses because others were faster."""
    return _saying_who_was_first([stream], 0)


def _taken(error: Exception, streams: Sequence[str]) -> str:
    """Which of the streams the database says exists."""
    told = str(error)
    return next((stream for stream in streams if f"({stream}, " in told), streams[0])


def _committed(types: list[str]) -> None:
    for name in set(types):
        metrics.appended(name).inc(types.count(name))
    wake.notify()


def head(stream: str) -> Head:
    """Where the stream stands; `Head.NEW` when it has no event."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT version, hash FROM log_event WHERE stream = %s ORDER BY version DESC LIMIT 1", (stream,)
        )
        row = cursor.fetchone()
    return Head(row[0], bytes(row[1])) if row else Head.NEW


def heads(streams: Sequence[str]) -> dict[str, Head]:
    """As `head`, of several streams with one statement."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT named, version, hash FROM unnest(%s::text[]) AS named, LATERAL (SELECT version, hash FROM log_event"
            " WHERE stream = named ORDER BY version DESC LIMIT 1) AS newest",
            (list(streams),),
        )
        found = {stream: Head(version, bytes(digest)) for stream, version, digest in cursor.fetchall()}
    return {stream: found.get(stream, Head.NEW) for stream in streams}


def read_stream(stream: str, after_version: int = 0, upto: Position | None = None) -> list[Event]:
    """The events of one stream in order of version, as committed (and as this transaction sees them)."""
    until, place = _until(upto)
    sql = f"SELECT {COLUMNS} FROM log_event WHERE stream = %s AND version > %s{until} ORDER BY version"
    return _read(sql, [stream, after_version, *place])


def read_versions(stream: str, versions: Sequence[int]) -> list[Event]:
    """Some events of one stream, in order of version; versions that it has not are left out."""
    sql = f"SELECT {COLUMNS} FROM log_event WHERE stream = %s AND version = ANY(%s) ORDER BY version"
    return _read(sql, [stream, list(versions)])


def read_streams(streams: Sequence[str], upto: Position | None = None) -> dict[str, list[Event]]:
    """The events of several streams (up to a position), each in order of version; those without any are left out."""
    until, place = _until(upto)
    sql = f"SELECT {COLUMNS} FROM log_event WHERE stream = ANY(%s){until} ORDER BY stream, version"
    read = _read(sql, [list(streams), *place])
    return {stream: list(events) for stream, events in groupby(read, key=lambda event: event.stream)}


def begun(streams: Sequence[str], upto: Position) -> set[str]:
    """Those of the streams that had begun at a position."""
    until, place = _until(upto)
    sql = f"SELECT stream FROM log_event WHERE stream = ANY(%s) AND version = 1{until}"
    with connection.cursor() as cursor:
        cursor.execute(sql, [list(streams), *place])
        return {stream for (stream,) in cursor}


def read_newest(streams: Sequence[str], upto: Position | None = None) -> list[Event]:
    """The newest event of each of these streams, up to a position, of those that have one; in the total order."""
    until, place = _until(upto)
    sql = f"SELECT DISTINCT ON (stream) {COLUMNS} FROM log_event WHERE stream = ANY(%s){until}"
    sql += " ORDER BY stream, version DESC"
    return sorted(_read(sql, [list(streams), *place]), key=lambda event: event.position)


def _until(upto: Position | None) -> tuple[str, list[Any]]:
    """The condition that an event stands at or below a position, and its values."""
    place = [] if upto is None else [upto.epoch, str(upto.txid), upto.seq]
    return " AND (epoch, txid, seq) <= (%s, %s::xid8, %s)" if place else "", place


def read_transaction(epoch: int, txid: int) -> list[Event]:
    """All that one transaction recorded, in order; also above the watermark."""
    sql = f"SELECT {COLUMNS} FROM log_event WHERE epoch = %s AND log_event.txid = %s::text::xid8 {IN_ORDER}"
    return _read(sql, [epoch, str(txid)])


def read_all(
    after: Position, limit: int, types: Collection[str] | None = None, upto: Position | None = None
) -> list[Event]:
    """Up to `limit` events after a position, in the total order, only from below the watermark.

    Going on from the last event's position never skips or repeats one, whatever commits in between.
    """
    sql = (
        f"SELECT {COLUMNS} FROM log_event WHERE (epoch, txid, seq) > (%s, %s::xid8, %s) AND {BELOW_WATERMARK}"
    )
    values: list[Any] = [after.epoch, str(after.txid), after.seq]
    if types is not None:
        sql += " AND type = ANY(%s)"
        values.append(list(types))
    until, place = _until(upto)
    return _read(f"{sql}{until} {IN_ORDER} LIMIT %s", [*values, *place, limit])


def _read(sql: str, values: Sequence[Any]) -> list[Event]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return [_event(row) for row in cursor.fetchall()]


def _event(row: Sequence[Any]) -> Event:
    (
        stream, version, name, schema, text, actor, cause, trace, occurred_at, recorded_at,
        digest, epoch, txid, seq,
    ) = row  # fmt: skip
    newest = registry.find(name).schema
    body = canonical.read_body(text)
    if schema != newest:
        body = registry.upcast(name, schema, body)
    return Event(
        stream, version, name, newest, body, actor, cause, trace, occurred_at, recorded_at,
        Position(epoch, int(txid), seq), bytes(digest),
    )  # fmt: skip


def watermark() -> Position:
    """All events below are settled: no event will ever be added there. Readers see what lies below, no
    more."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT log_live_epoch(), pg_snapshot_xmin(pg_current_snapshot())::text")
        epoch, txid = cursor.fetchone()
    return Position(epoch, int(txid), 0)


def watermark_age() -> float:
    """Seconds since the oldest writing transaction of the cluster began, or since the oldest event that
    readers cannot see yet was recorded, whichever is longer; 0 when the log is settled to its end.

    Transactions of other roles show only to members of pg_monitor; the second term needs no privilege.
    """
    with connection.cursor() as cursor:
        cursor.execute(_AGE)
        (seconds,) = cursor.fetchone()
    return max(0.0, float(seconds or 0))


def moment_of(position: Position) -> datetime | None:
    """When the last event up to a position was recorded; None where there is none."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT recorded_at FROM log_event WHERE (epoch, txid, seq) <= (%s, %s::text::xid8, %s)"
            " ORDER BY epoch DESC, log_event.txid DESC, seq DESC LIMIT 1",
            (position.epoch, str(position.txid), position.seq),
        )
        row = cursor.fetchone()
    return row[0] if row else None


def position_at(moment: datetime) -> Position:
    """The position of the last event recorded up to `moment`; `Position.START` when there is none.

    Looks backwards from the end of the log: the time it takes grows with the events recorded since.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT epoch, txid::text AS txid_text, seq FROM log_event WHERE recorded_at <= %s"
            " ORDER BY epoch DESC, log_event.txid DESC, seq DESC LIMIT 1",
            (moment,),
        )
        row = cursor.fetchone()
    return Position(row[0], int(row[1]), row[2]) if row else Position.START
