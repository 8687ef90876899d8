"""The outages that were told of one device, by index: for the page of a component."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from ingest.telemetry.store.tables import one_snapshot
from ingest.telemetry.windows.sql import region_number


@dataclass(frozen=True, slots=True)
class Outage:
    """`end` is None while it lasts."""

    start: datetime
    end: datetime | None
    cause: str
    planned: bool


def outages_of(region: str, device: str, start: datetime, end: datetime) -> list[Outage]:
    """Those that overlap [start, end), each as it was last told of, the latest first."""
    sql = """
        SELECT o."time", o."end", c.name, o.planned FROM (
            SELECT DISTINCT ON ("time") * FROM telemetry_outage
            WHERE region = %s AND device = %s AND "time" < %s
                AND receipt NOT IN (SELECT number FROM telemetry_unfinished)
            ORDER BY "time", id DESC
        ) AS o JOIN telemetry_name c ON c.id = o.cause WHERE o."end" > %s ORDER BY o."time" DESC
    """
    with one_snapshot():
        numbers = (region_number(region), region_number(device))
        with connection.cursor() as cursor:
            cursor.execute(sql, (*numbers, end, start))
            rows = cursor.fetchall()
    return [Outage(since, None if until.year >= 9999 else until, *rest) for since, until, *rest in rows]
