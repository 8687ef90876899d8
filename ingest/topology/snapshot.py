"""Per-process cache of a region's topology at a time.

Every page of contents or dependents of a component reads it. A snapshot is invalid as soon as newer topology has been
received or a row with a future time has taken effect; both are checked on each use, without a time to live.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

from django.db import connection

from ingest.telemetry.kinds.declare import natural
from ingest.telemetry.store.tables import one_snapshot
from ingest.telemetry.windows.sql import region_number
from ingest.topology.read import Component, read_components

CACHED = 4
"""Snapshots per process; one of 20,000 components takes about 20 MB."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """`components` have rows of their own; `names` includes components that these only refer to, c2 before c10.

    `contains` and `needed_by` are the ways down: by name what it contains, and what depends on it, in that order too.
    """

    region: str
    components: Mapping[str, Component]
    names: tuple[str, ...]
    contains: Mapping[str, tuple[str, ...]]
    needed_by: Mapping[str, tuple[str, ...]]

    @cached_property
    def roots(self) -> tuple[str, ...]:
        """Components that nothing contains."""
        return tuple(name for name in self.names if not self.parents(name))

    @cached_property
    def kinds(self) -> Mapping[str, int]:
        """Number of components of each kind, by kind."""
        return dict(sorted(Counter(name.partition("/")[0] for name in self.names).items()))

    def knows(self, name: str) -> bool:
        return name in self.components or name in self.contains or name in self.needed_by

    def parents(self, name: str) -> tuple[str, ...]:
        return self.components[name].parents if name in self.components else ()

    def beneath(self, name: str) -> list[tuple[str, int]]:
        """Number of components of each kind that it contains directly, the largest number first."""
        counted = Counter(below.partition("/")[0] for below in self.contains.get(name, ()))
        return sorted(counted.items(), key=lambda one: (-one[1], one[0]))

    def above(self, name: str) -> tuple[str, ...]:
        """One way up from a component, the outermost first: of several parents the first by name."""
        way: dict[str, None] = {}
        parents = self.parents(name)
        while parents and parents[0] not in way and parents[0] != name:
            way[parents[0]] = None
            parents = self.parents(parents[0])
        return tuple(reversed(way))

    def found(self, text: str, kind: str = "") -> list[str]:
        """Names that contain a text, in any case; those that begin with it, with or without their kind, come first."""
        wanted = text.casefold()
        named = [name for name in self.names if not kind or name.startswith(f"{kind}/")]
        if not wanted:
            return named
        ranked = ((_rank(name.casefold(), wanted), name) for name in named)
        return [name for rank, name in sorted(ranked, key=lambda one: one[0]) if rank < _NOT]


_NOT = 3


def _rank(name: str, wanted: str) -> int:
    if name.startswith(wanted):
        return 0
    if name.partition("/")[2].startswith(wanted):
        return 1
    return 2 if wanted in name else _NOT


def snapshot_of(region: str, components: Iterable[Component]) -> Snapshot:
    """The snapshot that these components make. Pure."""
    fields = {one.name: one for one in components}
    contains: dict[str, list[str]] = {}
    needed_by: dict[str, list[str]] = {}
    for name in sorted(fields, key=natural):
        for parent in fields[name].parents:
            contains.setdefault(parent, []).append(name)
        for needed in fields[name].depends_on:
            needed_by.setdefault(needed, []).append(name)
    names = tuple(sorted({*fields, *contains, *needed_by}, key=natural))
    return Snapshot(region, fields, names, _frozen(contains), _frozen(needed_by))


def _frozen(found: dict[str, list[str]]) -> dict[str, tuple[str, ...]]:
    return {name: tuple(below) for name, below in found.items()}


@dataclass(frozen=True, slots=True)
class _CachedSnapshot:
    """A snapshot with what it was read from, and the span of time in which it holds."""

    version: tuple[int, int]
    since: datetime
    until: datetime
    snapshot: Snapshot


_cached: OrderedDict[tuple[str, str, datetime], _CachedSnapshot] = OrderedDict()
_lock = threading.Lock()
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def topology_snapshot(region: str, at: datetime) -> Snapshot:
    """Topology in force in a region at a time; empty for a region without any."""
    with one_snapshot():
        number = region_number(region)
        version = _version_of(number)
        database = str(connection.settings_dict["NAME"])
        with _lock:
            for key, recent in _cached.items():
                if (
                    key[:2] == (database, region)
                    and recent.version == version
                    and recent.since <= at < recent.until
                ):
                    _cached.move_to_end(key)
                    return recent.snapshot
        since, until = _holds(number, at)
        snapshot = snapshot_of(region, read_components(region, at))
    with _lock:
        for key in [
            one
            for one, recent in _cached.items()
            if one[:2] == (database, region) and recent.version != version
        ]:
            del _cached[key]
        _cached[database, region, since] = _CachedSnapshot(version, since, until, snapshot)
        while len(_cached) > CACHED:
            _cached.popitem(last=False)
    return snapshot


def _version_of(region: int) -> tuple[int, int]:
    """Key of the state of the received topology. Receipts are numbered by each process on its own, so the highest
    number would not do."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), COALESCE(sum(number), 0)::bigint FROM telemetry_receipt"
            " WHERE region = %s AND kind = 'topology'",
            (region,),
        )
        count, total = cursor.fetchone()
    return int(count), int(total)


def _holds(region: int, at: datetime) -> tuple[datetime, datetime]:
    """From when until when what is in force at a time is all the same."""
    with connection.cursor() as cursor:
        cursor.execute(
            'SELECT max("time") FILTER (WHERE "time" <= %s), min("time") FILTER (WHERE "time" > %s)'
            " FROM telemetry_topology WHERE region = %s",
            (at, at, region),
        )
        since, until = cursor.fetchone()
    return since or _FIRST, until or _LAST
