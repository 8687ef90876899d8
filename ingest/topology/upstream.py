"""Dependencies of given components, layer by layer: read by name, so that a storm on a few racks reads a few racks."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from django.db import connection

from ingest.telemetry.kinds import KINDS
from ingest.telemetry.kinds.declare import Kind
from ingest.telemetry.store.tables import one_snapshot
from ingest.telemetry.windows.sql import in_force, names_of


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Direct dependencies of one component: its containers, its needs, and the path of its placement."""

    parents: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    path: tuple[str, ...] = ()


_Row = tuple[list[int], list[int], list[int]]


def dependencies_of(
    region: str, names: Collection[str], time: datetime, hops: int
) -> dict[str, Dependencies]:
    """By name: what these components, and what they rest on in up to `hops` steps, rest on directly.

    From `topology` (parents, depends_on) and `placement` (a unit's components), as in force in a region at a time.
    Those of which nothing is known are left out. Two statements a step, by index, however large the region is.
    """
    with one_snapshot():
        numbers = _numbers([region, *names])
        at = numbers.pop(region, None)
        if at is None:
            return {}
        layer, found = set(numbers.values()), dict[int, _Row]()
        for _ in range(hops):
            reached = _directly(at, layer - found.keys(), time)
            found |= reached
            layer = {up for row in reached.values() for ups in row for up in ups}
            if not layer - found.keys():
                break
        used = np.unique([one for own, row in found.items() for one in (own, *_all(row))]).astype(int)
        known = dict(zip(used.tolist(), names_of(used), strict=True))
    return {
        known[own]: Dependencies(*(tuple(sorted(known[up] for up in ups)) for ups in row))
        for own, row in found.items()
    }


def _all(row: _Row) -> Iterable[int]:
    return (up for ups in row for up in ups)


def _numbers(names: Collection[str]) -> dict[str, int]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, id FROM telemetry_name WHERE name = ANY(%s)", (list(names),))
        return dict(cursor.fetchall())


def _directly(region: int, wanted: Collection[int], time: datetime) -> dict[int, _Row]:
    if not wanted:
        return {}
    found: dict[int, _Row] = {}
    for own, sets in _sets(KINDS["topology"], region, wanted, time, ("parents", "depends_on")):
        found[own] = (sets[0], sets[1], [])
    for own, sets in _sets(KINDS["placement"], region, wanted, time, ("components",)):
        parents, needs, _ = found.get(own, ([], [], []))
        found[own] = (parents, needs, sets[0])
    return found


def _sets(
    kind: Kind, region: int, wanted: Collection[int], time: datetime, fields: tuple[str, ...]
) -> list[tuple[int, tuple[list[int], ...]]]:
    query = in_force(kind, region, time, None)
    joins = " ".join(f"JOIN telemetry_set s{n} ON s{n}.id = t.{field}" for n, field in enumerate(fields))
    members = ", ".join(f"s{n}.members" for n in range(len(fields)))
    # A condition on what DISTINCT ON is over: Postgres pushes it down to the index.
    sql = f'SELECT t."{kind.key}", {members} FROM {query.text} AS t {joins} WHERE t."{kind.key}" = ANY(%s)'
    with connection.cursor() as cursor:
        cursor.execute(sql, [*query.parameters, list(wanted)])
        return [(own, tuple(sets)) for own, *sets in cursor.fetchall()]
