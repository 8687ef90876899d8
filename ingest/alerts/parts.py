"""Parts in slots: the GPU that a slot held at a time, so that an alert names the part and its history follows the part.

A row of `placement` says it: the unit `slot/NODE:NUMBER` holds the component `gpu/SERIAL` from `time` on. Its next row
replaces it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from django.db import connection
from msgspec import structs

from ingest.integrations.gpu import slot_in
from ingest.integrations.normalized import Parsed

_HELD = """
SELECT asked.place, part.name
FROM unnest(%s::integer[], %s::text[], %s::timestamptz[]) AS asked (place, slot, at)
JOIN telemetry_name AS unit ON unit.name = asked.slot
CROSS JOIN LATERAL (
    SELECT components, active FROM telemetry_placement AS told
    WHERE told.region = (SELECT id FROM telemetry_name WHERE name = %s) AND told.unit = unit.id
        AND told."time" <= asked.at AND receipt NOT IN (SELECT number FROM telemetry_unfinished)
    ORDER BY "time" DESC, id DESC LIMIT 1
) AS held
JOIN telemetry_set AS parts ON parts.id = held.components
JOIN telemetry_name AS part ON part.id = ANY(parts.members)
WHERE held.active
ORDER BY asked.place, part.name
"""


def name_parts(parsed: Parsed, region: str, now: datetime) -> Parsed:
    """The same, alerts whose labels name a slot on the part of their component's kind that the slot held at their start
    (`now` where they name none). An alert stays as it is where no placement of the region says what its slot held.

    Raises django.db.Error.
    """
    found = list(parsed.alerts)
    named = [slot_in(alert.labels) if alert.component else "" for alert in found]
    requested = [place for place, slot in enumerate(named) if slot]
    if not requested:
        return parsed
    slots = [f"slot/{named[place]}" for place in requested]
    times = [found[place].starts_at or now for place in requested]
    with connection.cursor() as cursor:
        cursor.execute(_HELD, [requested, slots, times, region])
        for place, part in reversed(cursor.fetchall()):
            component = found[place].component or ""
            if part.partition("/")[0] == component.partition("/")[0]:
                found[place] = structs.replace(found[place], component=part)
    return replace(parsed, alerts=tuple(found))
