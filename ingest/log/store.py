"""Append to the log and read it. Plain SQL through Django's connection; no transaction is opened here.

Order. Every event carries (epoch, txid, seq): the stay in a cluster, the 64-bit id of its transaction, and
a number from a sequence. Transactions commit in another order than they got their ids, so a reader that
remembered the highest id it saw would skip what commits late. `read_all` therefore stays below the
watermark: the oldest transaction id still at work (`pg_snapshot_xmin`). All below it is settled for ever.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from django.db import IntegrityError, connection, transaction

from ingest.log import canonical, metrics, registry, wake
from ingest.log.types import Context, Event, Head, NewEvent, Position, UnrecordableEvent, WrongExpectedVersion

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


def append(stream: str, events: Sequence[NewEvent], expected: Head, context: Context) -> list[Event]:
    """Record events at the end of a stream, in the caller's transaction or, without one, in their own.

    `expected` is the head that the caller decided upon (`Head.NEW` for a new stream). Followers are woken
    when the transaction has committed. Raises WrongExpectedVersion when the stream stands elsewhere: the
    transaction is then lost and must be tried again from its start (see `retrying`). Raises
    UnrecordableEvent for what cannot be kept exactly, UnknownEventType for a type that no app registered.
    """
    if not events:
        return []
    _check_names(stream, context)
    recorded_at = datetime.now(UTC)
    recorded_text = canonical.time_text(recorded_at)
    types, schemas, bodies, times, hashes = [], [], [], [], []
    previous = expected.hash
    for version, event in enumerate(events, expected.version + 1):
        schema, body = registry.find(event.type).schema, canonical.body_text(event.body)
        occurred = canonical.time_text(event.occurred_at)
        previous = canonical.chain(
            previous, stream, version, event.type, schema, body,
            context.actor, context.cause, context.trace, occurred, recorded_text,
        )  # fmt: skip
        types.append(event.type)
        schemas.append(schema)
        bodies.append(body)
        times.append(occurred)
        hashes.append(previous)
    columns = (
        _array(types),
        f"{{{','.join(map(str, schemas))}}}",
        _array(bodies),
        f"{{{','.join(times)}}}",
        "{" + ",".join([f"\\\\x{digest.hex()}" for digest in hashes]) + "}",
    )
    values = (
        stream,
        expected.version,
        expected.hash,
        context.actor,
        context.cause,
        context.trace,
        recorded_text,
        *columns,
    )
    positions = _insert(stream, expected, values)
    transaction.on_commit(lambda: _committed(types), robust=True)
    return [
        Event(
            stream, version, type_, schema, canonical.read_body(body),
            context.actor, context.cause, context.trace, event.occurred_at, recorded_at, position, digest,
        )
        for version, (event, type_, schema, body, digest, position) in enumerate(
            zip(events, types, schemas, bodies, hashes, positions, strict=True), expected.version + 1
        )
    ]  # fmt: skip


def _array(texts: Iterable[str]) -> str:
    """An array as Postgres reads it: one literal costs both sides a fraction of what a list of literals does."""
    joined = '","'.join([text.replace("\\", "\\\\").replace('"', '\\"') for text in texts])
    return f'{{"{joined}"}}'


def _check_names(stream: str, context: Context) -> None:
    if not stream or "@" in stream or not context.actor:
        raise UnrecordableEvent(
            f"a stream needs a name without @, and an event an actor: {stream!r}, {context.actor!r}"
        )
    if context.cause == "" or context.trace == "":
        raise UnrecordableEvent("cause and trace are a text or None, never empty")


def _insert(stream: str, expected: Head, values: tuple[Any, ...]) -> list[Position]:
    with connection.cursor() as cursor:
        try:
            cursor.execute(_APPEND, values)
        except IntegrityError as error:
            if getattr(error.__cause__, "pgcode", None) == "23505":  # unique_violation
                raise WrongExpectedVersion(stream, expected.version) from error
            raise
        (placed,) = cursor.fetchone()
    if placed is None:
        raise WrongExpectedVersion(stream, expected.version)
    epoch, txid, *numbers = placed
    return [Position(epoch, txid, seq) for seq in sorted(numbers)]


def _committed(types: Iterable[str]) -> None:
    for name, count in Counter(types).items():
        metrics.appended(name).inc(count)
    wake.notify()


def head(stream: str) -> Head:
    """Where the stream stands; `Head.NEW` when it has no event."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT version, hash FROM log_event WHERE stream = %s ORDER BY version DESC LIMIT 1", (stream,)
        )
        row = cursor.fetchone()
    return Head(row[0], bytes(row[1])) if row else Head.NEW


def read_stream(stream: str, after_version: int = 0, upto: Position | None = None) -> list[Event]:
    """The events of one stream in order of version, as committed (and as this transaction sees them)."""
    sql = f"SELECT {COLUMNS} FROM log_event WHERE stream = %s AND version > %s"
    values: list[Any] = [stream, after_version]
    if upto is not None:
        sql += " AND (epoch, txid, seq) <= (%s, %s::xid8, %s)"
        values += [upto.epoch, str(upto.txid), upto.seq]
    return _read(f"{sql} ORDER BY version", values)


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
    if upto is not None:
        sql += " AND (epoch, txid, seq) <= (%s, %s::xid8, %s)"
        values += [upto.epoch, str(upto.txid), upto.seq]
    return _read(f"{sql} {IN_ORDER} LIMIT %s", [*values, limit])


def _read(sql: str, values: Sequence[Any]) -> list[Event]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return [_event(row) for row in cursor.fetchall()]


def _event(row: Sequence[Any]) -> Event:
    (
        stream, version, name, schema, text, actor, cause, trace, occurred_at, recorded_at,
        digest, epoch, txid, seq,
    ) = row  # fmt: skip
    body = registry.upcast(name, schema, canonical.read_body(text))
    return Event(
        stream, version, name, registry.find(name).schema, body, actor, cause, trace, occurred_at, recorded_at,
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
