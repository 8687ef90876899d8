"""Amount of telemetry in files, and of that which waits to be moved."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection

from ingest.db.storage import unreadable_file
from ingest.telemetry.kinds import KINDS
from ingest.telemetry.store.tables import existing


@dataclass(frozen=True, slots=True)
class ColdStatus:
    """`overdue` is how long ago the oldest partition that is still in Postgres should have begun to move."""

    files: int
    rows: int
    bytes: int
    overdue: timedelta


def cold_status(now: datetime) -> ColdStatus:
    """Files, their rows and bytes, and the delay of the moves; no delay while telemetry stays in Postgres."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), COALESCE(sum(rows), 0), COALESCE(sum(bytes), 0) FROM telemetry_cold"
            " WHERE state = 'cold'"
        )
        files, rows, size = cursor.fetchone()
    overdue = timedelta()
    if settings.TELEMETRY_COLD:
        limit = (now - settings.TELEMETRY_HOT).timestamp()
        ends = [spans[0][1] for kind in KINDS.values() if kind.is_event and (spans := _filled(kind.name))]
        overdue = timedelta(seconds=max(0.0, limit - min(ends, default=limit)))
    return ColdStatus(int(files), int(rows), int(size), overdue)


def unreadable() -> str | None:
    """Reason why this machine cannot read the oldest or the newest file."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT file, rows FROM telemetry_cold WHERE state = 'cold' ORDER BY until, id")
        found = cursor.fetchall()
    return unreadable_file(list(dict.fromkeys((*found[:1], *found[-1:]))))


def _filled(kind: str) -> list[tuple[int, int]]:
    """The spans of partitions that hold rows, of the oldest few."""
    found = []
    for start, end in existing(KINDS[kind])[:3]:
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT 1 FROM telemetry_{kind}_p{start}_{end - start} LIMIT 1")
            if cursor.fetchone() is not None:
                found.append((start, end))
    return found
