"""Outcome of a body that was accepted."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from ingest.db import database
from ingest.log.read import read_stream
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


_DIFFERING = """
SELECT stored.number, event.stream || '@' || event.version
FROM telemetry_receipt AS stored
LEFT JOIN telemetry_name AS name ON name.id = stored.region
LEFT JOIN log_event AS event ON event.type = %s
    AND (event.epoch, event.txid, event.seq) = (stored.epoch, stored.txid, stored.seq)
LEFT JOIN LATERAL json_to_record(event.body::json)
    AS told (kind text, region text, rows integer, first timestamptz, last timestamptz) ON true
WHERE ('receipt/' || stored.receipt, stored.kind, name.name, stored.rows, stored.first, stored.last, stored.received_at)
    IS DISTINCT FROM (event.stream, told.kind, told.region, told.rows, told.first, told.last, event.recorded_at)
ORDER BY stored.number LIMIT 1
"""
_MISSING = """
SELECT event.stream || '@' || event.version
FROM log_event AS event, json_to_record(event.body::json) AS told (kind text, last timestamptz)
WHERE event.type = %s AND told.kind = %s AND (told.last >= %s OR event.recorded_at >= %s) AND NOT EXISTS (
    SELECT 1 FROM telemetry_receipt AS stored
    WHERE (event.epoch, event.txid, event.seq) = (stored.epoch, stored.txid, stored.seq))
ORDER BY event.epoch, event.txid, event.seq LIMIT 1
"""


def check_receipts() -> int:
    """Number of rows of `telemetry_receipt` that equal their `telemetry.received`. Raises LogIntegrityError for the
    first that was edited, put in, or deleted within its retention."""
    with connection.cursor() as cursor:
        cursor.execute(_DIFFERING, (RECEIVED.name,))
        if (differing := cursor.fetchone()) is not None:
            number, event = differing
            what = "has a receipt that says something else" if event else "stands for no event of the log"
            raise LogIntegrityError(event or f"telemetry receipt {number}", what)
        for kind in KINDS.values():
            keep_from = database.now() - retention_of(kind)
            cursor.execute(_MISSING, (RECEIVED.name, kind.name, keep_from, keep_from - FORGOTTEN_AFTER))
            if (missing := cursor.fetchone()) is not None:
                raise LogIntegrityError(
                    missing[0],
                    "has no telemetry receipt, though retention keeps it (unless retention was shorter until now)",
                )
        cursor.execute("SELECT count(*) FROM telemetry_receipt")
        return int(cursor.fetchone()[0])
