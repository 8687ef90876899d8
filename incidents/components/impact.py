"""Dependencies and dependents of an incident's component, by the topology in force, with present failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from weakref import WeakKeyDictionary

from django.db.models import Count

from incidents.domain.components.impact import nearest, reached, touched
from incidents.domain.components.impact_graph import BlastGraph, Trouble, blast_graph
from incidents.domain.incident.state import Incident
from incidents.domain.routing.rules import Service, Subject, service_of
from incidents.incident.models import IncidentRow
from incidents.teams.models import services_by_slug
from ingest.queries import Position, TopologySnapshot, firing_on, regions, topology_at, topology_snapshot

LOOKED_AT = 20_000
"""Components, the nearest ones, that are asked for incidents and alerts; all are counted."""


def blast_of(component: str, region: str, at: datetime, upto: Position | None = None) -> BlastGraph:
    """With `upto` what had been told of the topology by then, without services, incidents and alerts: those are known
    as they are now."""
    components = topology_at(region, at, upto).components
    far = reached(component, components.values())
    own = components.get(component)
    parents, needs = ((), ()) if own is None else (own.parents, own.depends_on)
    names = [component, *parents, *needs, *(one.component for one in far[:LOOKED_AT])]
    if upto is not None:
        return blast_graph(component, parents, needs, far, (), {}, listed=own is not None)
    services = touched(component, far, services_by_slug())
    return blast_graph(component, parents, needs, far, services, _troubles(names), listed=own is not None)


def _troubles(names: Sequence[str]) -> dict[str, Trouble]:
    incidents = IncidentRow.objects.filter(component__in=names).exclude(state="resolved")
    open_on = dict(incidents.values_list("component").annotate(n=Count("pk")).order_by())
    firing = firing_on(names)
    return {
        str(name): Trouble(open_on.get(name, 0), firing.get(str(name), 0))
        for name in open_on.keys() | firing.keys()
    }


# Counts for rows of a list
# ----------------------------------------------------------------------------------------------------------
MOST_COUNTED = 5_000
"""Components that fail with one, beyond which they are not counted on."""
MOST_REGIONS = 4
"""Of one list: as many as a process has snapshots of."""


@dataclass(frozen=True, slots=True)
class Impact:
    """Components that fail with one: their number by kind, hosts and jobs first, then the largest number; and the
    services with a part among them. `more`: there are others, not counted."""

    kinds: tuple[tuple[str, int], ...]
    services: int
    more: bool = False


_FIRST: Final = ("host", "node", "server", "machine", "vm", "job")


def impacts_of(incidents: Iterable[Incident], at: datetime) -> dict[str, Impact]:
    """By id of the incident, of those with a component that has something beneath it in the topology.

    A few statements for each of at most MOST_REGIONS regions, none for an incident. One without a region is looked for
    in each of them.
    """
    named = [one for one in incidents if one.component]
    wanted = [name for name, _ in Counter(one.region for one in named if one.region).most_common()]
    if len(named) > sum(one.region is not None for one in named):
        wanted = list(dict.fromkeys([*wanted, *regions()]))
    snapshots = {region: topology_snapshot(region, at) for region in wanted[:MOST_REGIONS]}
    services = services_by_slug() if snapshots else {}
    found: dict[str, Impact] = {}
    for one in named:
        places = snapshots.values() if one.region is None else [snapshots.get(one.region)]
        component = str(one.component)
        snapshot = next((it for it in places if it is not None and it.knows(component)), None)
        impact = None if snapshot is None else impact_of(snapshot, component, services)
        if impact is not None and (impact.kinds or impact.services):
            found[one.id] = impact
    return found


@dataclass(slots=True)
class _Counted:
    """Counts of a snapshot for the services as they are configured: a component's impact, its service."""

    services: Mapping[str, Service]
    impacts: dict[str, Impact]
    owners: dict[str, str | None]


_counted: WeakKeyDictionary[TopologySnapshot, _Counted] = WeakKeyDictionary()


def impact_of(snapshot: TopologySnapshot, component: str, services: Mapping[str, Service]) -> Impact:
    """Counted once for as long as the snapshot and the services are what they are."""
    known = _counted.get(snapshot)
    if known is None or known.services != services:
        known = _counted[snapshot] = _Counted(services, {}, {})
    if component not in known.impacts:
        known.impacts[component] = _impact(snapshot, component, known)
    return known.impacts[component]


def _impact(snapshot: TopologySnapshot, component: str, known: _Counted) -> Impact:
    names, more = nearest(component, (snapshot.contains, snapshot.needed_by), MOST_COUNTED)
    kinds = Counter(name.partition("/")[0] for name in names)
    first = {kind: place for place, kind in enumerate(_FIRST)}
    ordered = sorted(kinds.items(), key=lambda one: (first.get(one[0], len(first)), -one[1], one[0]))
    for name in (component, *names) if known.services else ():
        if name not in known.owners:
            known.owners[name] = service_of(Subject(name), known.services)
    owners = {known.owners.get(name) for name in (component, *names)}
    return Impact(tuple(ordered), len(owners - {None}), more)
