"""Components that placements name and the topology does not: found by a part of their name."""

from __future__ import annotations

from django.db import connection

from ingest.telemetry.windows.sql import one_snapshot, region_number

MOST_NAMES = 2_000
"""Names with that part that are looked at; whoever types more of it finds the rest."""

_SQL = """
WITH named AS (
    SELECT id, name FROM telemetry_name
    WHERE position(%(text)s IN lower(name)) > 0 AND name LIKE %(kind)s ORDER BY id LIMIT %(most)s
), sets AS (
    SELECT s.id, named.name FROM telemetry_set s CROSS JOIN LATERAL unnest(s.members) AS member
    JOIN named ON named.id = member
)
SELECT DISTINCT sets.name FROM sets
WHERE sets.id IN (SELECT components FROM telemetry_placement WHERE region = %(region)s)
"""


def placed_names(region: str, text: str, kind: str = "") -> set[str]:
    """Names with `text` in them, in any case, on which units of the region were placed at any time that is kept."""
    if not text:
        return set()
    with one_snapshot(), connection.cursor() as cursor:
        number = region_number(region)
        begins = (kind or "%").replace("\\", "\\\\").replace("_", "\\_") + "/%"
        cursor.execute(_SQL, {"text": text.lower(), "kind": begins, "most": MOST_NAMES, "region": number})
        return {name for (name,) in cursor.fetchall()}
