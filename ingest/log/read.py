"""Read the log. Plain SQL through Django's connection.

Order. Every event carries (epoch, txid, seq): the stay in a cluster, the 64-bit id of its transaction, and
a number from a sequence. Transactions commit in another order than they got their ids, so a reader that
remembered the highest id it saw would skip what commits late. `read_all` therefore stays below the
watermark: the oldest transaction id still at work (`pg_snapshot_xmin`). All below it is settled for ever.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any

from django.db import connection

from ingest.log.types import Event, Head, Position, find, read_body, upcast

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
    newest = find(name).schema
    body = read_body(text)
    if schema != newest:
        body = upcast(name, schema, body)
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
