"""Slots that hold a part: `placement` read backwards, from the component to its units."""

from __future__ import annotations

from datetime import datetime

from django.db import connection

from ingest.telemetry.store.tables import one_snapshot
from ingest.telemetry.windows.sql import region_number

_RECORDED = "receipt NOT IN (SELECT number FROM telemetry_unfinished)"
_SLOTS = f"""
WITH units AS (
    SELECT DISTINCT told.unit FROM telemetry_placement told JOIN telemetry_set parts ON parts.id = told.components
    JOIN telemetry_name part ON part.name = %(part)s AND part.id = ANY(parts.members)
    WHERE told.region = %(region)s AND told."time" <= %(at)s AND told.{_RECORDED}
)
SELECT unit.name FROM units JOIN telemetry_name unit ON unit.id = units.unit
CROSS JOIN LATERAL (
    SELECT components, active FROM telemetry_placement told
    WHERE told.region = %(region)s AND told.unit = units.unit AND told."time" <= %(at)s AND told.{_RECORDED}
    ORDER BY "time" DESC, id DESC LIMIT 1
) AS held
JOIN telemetry_set parts ON parts.id = held.components
JOIN telemetry_name part ON part.name = %(part)s AND part.id = ANY(parts.members)
WHERE held.active AND unit.name LIKE 'slot/%%' ORDER BY unit.name
"""


def slots_of(part: str, region: str, at: datetime) -> list[str]:
    """The slots (`slot/NODE:NUMBER`) that hold a part in a region at a time, by name."""
    with one_snapshot(), connection.cursor() as cursor:
        cursor.execute(_SLOTS, {"part": part, "region": region_number(region), "at": at})
        return [name for (name,) in cursor.fetchall()]
