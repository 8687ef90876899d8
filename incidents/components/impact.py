"""What an incident's component rests on and what fails with it, as the topology in force says, with what
hurts there.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db.models import Count

from incidents.domain.components.impact import reached, touched
from incidents.domain.components.impact_graph import BlastGraph, Trouble, blast_graph
from incidents.incident.models import IncidentRow
from incidents.teams.models import services_by_slug
from ingest.queries import Position, firing_on, topology_at

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
