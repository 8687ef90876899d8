"""What became of a body that was accepted."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ingest.log.reading import read_stream
from ingest.log.types import Position
from ingest.telemetry.events import RECEIVED


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
