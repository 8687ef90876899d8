"""Components, what contains them and what they depend on, as in force at a time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from django.db import connection

from ingest.log.types import Position
from ingest.telemetry.kinds.topology import KIND
from ingest.telemetry.store.tables import one_snapshot
from ingest.telemetry.windows.sql import in_force, names_of, region_number


@dataclass(frozen=True, slots=True)
class Component:
    """One component; all names sorted."""

    name: str
    parents: tuple[str, ...]
    depends_on: tuple[str, ...]
    labels: Mapping[str, str]
    since: datetime


@dataclass(frozen=True, slots=True)
class Topology:
    """The components of a region at a time, by name. Parents need not be components of their own."""

    at: datetime
    components: Mapping[str, Component]

    def above(self, name: str) -> tuple[str, ...]:
        """All that contains the component or that it depends on, at any remove, nearest first."""
        found: dict[str, None] = {}
        layer = [name]
        while layer:
            reached = [up for one in layer if one in self.components for up in self._up(one)]
            layer = [up for up in dict.fromkeys(reached) if up not in found and up != name]
            found |= dict.fromkeys(layer)
        return tuple(found)

    def _up(self, name: str) -> tuple[str, ...]:
        component = self.components[name]
        return (*component.parents, *component.depends_on)


def topology_at(region: str, time: datetime, upto: Position | None = None) -> Topology:
    """Topology in force in a region at a time."""
    with one_snapshot():
        return Topology(time, {one.name: one for one in _read(region, time, upto, None)})


def component(name: str, time: datetime, region: str = "default") -> Component | None:
    """One component as in force at a time, None when it is not."""
    with one_snapshot():
        return next(iter(_read(region, time, None, name)), None)


def read_components(region: str, time: datetime) -> list[Component]:
    """All that is in force in a region at a time, by name; inside `one_snapshot`."""
    return _read(region, time, None, None)


def _read(region: str, time: datetime, upto: Position | None, name: str | None) -> list[Component]:
    region_id, component_id = _ids(region, name or "")
    if name is None:
        component_id = 0  # the empty text is a name too, wherever a sender left a text out
    if region_id == 0 or (name is not None and component_id == 0):
        return []
    query = in_force(KIND, region_id, time, upto)
    sql = f"""
        SELECT t.component, t."time", p.members, d.members, l.name FROM {query.text} AS t
        JOIN telemetry_set p ON p.id = t.parents JOIN telemetry_set d ON d.id = t.depends_on
        JOIN telemetry_name l ON l.id = t.labels WHERE %s = 0 OR t.component = %s
    """
    with connection.cursor() as cursor:
        cursor.execute(sql, [*query.parameters, component_id, component_id])
        rows = cursor.fetchall()
    used = np.unique([n for own, _, parents, needs, _ in rows for n in (own, *parents, *needs)]).astype(int)
    names = dict(zip(used.tolist(), names_of(used), strict=True))

    def named(ids: list[int]) -> tuple[str, ...]:
        return tuple(sorted(names[n] for n in ids))

    found = [
        Component(names[own], named(parents), named(needs), json.loads(labels), since)
        for own, since, parents, needs, labels in rows
    ]
    return sorted(found, key=lambda one: one.name)


def _ids(*names: str) -> list[int]:
    """The numbers of names, 0 for one that was never seen."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, id FROM telemetry_name WHERE name = ANY(%s)", (list(names),))
        known = dict(cursor.fetchall())
    return [known.get(name, 0) for name in names]


# Components that placements name and the topology does not
# ----------------------------------------------------------------------------------------------------------
MOST_NAMES = 2_000
"""Names with that part that are looked at; whoever types more of it finds the rest."""

_PLACED = """
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
        cursor.execute(_PLACED, {"text": text.lower(), "kind": begins, "most": MOST_NAMES, "region": number})
        return {name for (name,) in cursor.fetchall()}
