"""Outcome of a body that was accepted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from ingest.db import database
from ingest.log.read import read_stream
from ingest.log.source import hot_from, in_files, of_numbers
from ingest.log.types import Position
from ingest.log.verify import LogIntegrityError
from ingest.telemetry.events import RECEIVED
from ingest.telemetry.kinds import KINDS
from ingest.telemetry.store.tables import FORGOTTEN_AFTER, retention_of


@dataclass(frozen=True, slots=True)
class StoredRows:
    """The rows of one region that a body brought; times are RFC 3339."""

    region: str
    rows: int
    first: str
    last: str
    position: Position


@dataclass(frozen=True, slots=True)
class TelemetryReceipt:
    """An accepted body: its kind, size as sent, SHA-256 after decompression, who sent it and when it was
    recorded."""

    id: str
    kind: str
    rows: int
    bytes: int
    sha256: str
    key: str
    recorded_at: datetime
    stored: tuple[StoredRows, ...]


def receipt(id: str) -> TelemetryReceipt | None:
    """The receipt of that id, None when it is not one of telemetry."""
    events = [event for event in read_stream(f"receipt/{id}") if event.type == RECEIVED.name]
    if not events:
        return None
    first = events[0]
    stored = tuple(
        StoredRows(e.body["region"], e.body["rows"], e.body["first"], e.body["last"], e.position)
        for e in events
    )
    return TelemetryReceipt(
        id,
        first.body["kind"],
        sum(one.rows for one in stored),
        first.body["bytes"],
        first.body["sha256"],
        first.body["key"],
        first.recorded_at,
        stored,
    )


# `{events}` are those of the log in Postgres, or some that were read from files.
_DIFFERING = """
SELECT stored.number, event.stream || '@' || event.version
FROM telemetry_receipt AS stored
LEFT JOIN telemetry_name AS name ON name.id = stored.region
LEFT JOIN {events} AS event ON event.type = %s
    AND (event.epoch, event.txid, event.seq) = (stored.epoch, stored.txid, stored.seq)
LEFT JOIN LATERAL json_to_record(event.body::json)
    AS told (kind text, region text, rows integer, first timestamptz, last timestamptz) ON true
WHERE stored.seq {numbers}
    AND ('receipt/' || stored.receipt, stored.kind, name.name, stored.rows, stored.first, stored.last,
        stored.received_at)
    IS DISTINCT FROM (event.stream, told.kind, told.region, told.rows, told.first, told.last, event.recorded_at)
ORDER BY stored.number LIMIT 1
"""
_MISSING = """
SELECT event.stream || '@' || event.version
FROM {events} AS event, json_to_record(event.body::json) AS told (kind text, last timestamptz)
WHERE event.type = %s AND event.seq {numbers} AND told.kind = %s AND (told.last >= %s OR event.recorded_at >= %s)
    AND NOT EXISTS (
        SELECT 1 FROM telemetry_receipt AS stored
        WHERE (event.epoch, event.txid, event.seq) = (stored.epoch, stored.txid, stored.seq))
ORDER BY event.epoch, event.txid, event.seq LIMIT 1
"""
_GIVEN = """(SELECT * FROM unnest(%s::text[], %s::integer[], %s::text[], %s::text[], %s::timestamptz[], %s::integer[],
    %s::xid8[], %s::bigint[]) AS given (stream, version, type, body, recorded_at, epoch, txid, seq))"""
_COLUMNS = ("stream", "version", "type", "body", "recorded_at", "epoch", "txid", "seq")
_TOGETHER = 1_000
"""Receipts that are compared with files at once."""


def check_receipts() -> int:
    """Number of rows of `telemetry_receipt` that equal their `telemetry.received`. Raises LogIntegrityError for the
    first that was edited, put in, or deleted within its retention."""
    hot = f">= {hot_from()}"
    _expect_equal("log_event", (), hot)
    _expect_stored("log_event", (), hot)
    after = -1
    while numbers := _cold_numbers(after):
        listed = ",".join(map(str, numbers))
        _expect_equal(*_given(of_numbers(_COLUMNS, numbers)), f"= ANY('{{{listed}}}')")
        after = numbers[-1]
    for rows in in_files(_COLUMNS):
        if received := [row for row in rows if row[2] == RECEIVED.name]:
            _expect_stored(*_given(received), ">= 0")
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM telemetry_receipt")
        return int(cursor.fetchone()[0])


def _cold_numbers(after: int) -> list[int]:
    """The next numbers of receipts whose events are in files."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT seq FROM telemetry_receipt WHERE seq > %s AND seq < %s ORDER BY seq LIMIT %s",
            (after, hot_from(), _TOGETHER),
        )
        return [number for (number,) in cursor.fetchall()]


def _given(rows: Sequence[tuple[Any, ...]]) -> tuple[str, list[list[Any]]]:
    """Events as a part of a query, and its values."""
    return _GIVEN, [[row[place] for row in rows] for place in range(len(_COLUMNS))]


def _expect_equal(events: str, given: Sequence[Any], numbers: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_DIFFERING.format(events=events, numbers=numbers), (*given, RECEIVED.name))
        if (differing := cursor.fetchone()) is not None:
            number, event = differing
            what = "has a receipt that says something else" if event else "stands for no event of the log"
            raise LogIntegrityError(event or f"telemetry receipt {number}", what)


def _expect_stored(events: str, given: Sequence[Any], numbers: str) -> None:
    for kind in KINDS.values():
        keep_from = database.now() - retention_of(kind)
        values = (*given, RECEIVED.name, kind.name, keep_from, keep_from - FORGOTTEN_AFTER)
        with connection.cursor() as cursor:
            cursor.execute(_MISSING.format(events=events, numbers=numbers), values)
            if (missing := cursor.fetchone()) is not None:
                raise LogIntegrityError(
                    missing[0],
                    "has no telemetry receipt, though retention keeps it (unless retention was shorter until now)",
                )
