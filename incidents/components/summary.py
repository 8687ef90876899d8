"""Summary of a component: its incidents, the team that would get one, and its changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from incidents import queries
from incidents.domain.components.incidents_below import incidents_below
from incidents.domain.routing.rules import Routing, Subject, route
from incidents.incident.models import IncidentRow
from incidents.teams.models import routing_table
from ingest.queries import Position, ReportedChange, TopologySnapshot, changes, names_of_changed

OPEN = 100
"""Unresolved incidents that are listed."""
PAST = 20
"""Resolved incidents that are listed."""
CHANGED_WITHIN = timedelta(days=30)
MOST_CHANGES = 20


@dataclass(frozen=True, slots=True)
class Incidents:
    """Incidents about a component, the newest first; of `resolved` ones that many in all."""

    unresolved: list[queries.View]
    past: list[queries.View]
    resolved: int


def incidents_about(component: str, as_of: Position | None = None) -> Incidents:
    """Those of which it is the suspect, or one of those that the data could not tell apart; also as of a moment."""
    then = None if as_of is None else queries.AsOfListing(as_of)
    every = IncidentRow.objects.all() if then is None else then.unmoved
    rows = every.filter(cause__contains=[component])
    ended = rows.filter(state="resolved")
    unresolved = _newest(map(queries.view_of, rows.exclude(state="resolved").order_by("-number")[:OPEN]))
    past, resolved = _newest(map(queries.view_of, ended.order_by("-number")[:PAST])), ended.count()
    if then is None:
        return Incidents(unresolved, past, resolved)
    moved = [view for view in then.moved() if component in view.incident.cause]
    over = [view for view in moved if view.incident.state == "resolved"]
    waiting = [view for view in moved if view.incident.state != "resolved"]
    return Incidents(
        _newest([*unresolved, *waiting])[:OPEN], _newest([*past, *over])[:PAST], resolved + len(over)
    )


def open_about(components: Collection[str]) -> dict[str, int]:
    """The number of the newest unresolved incident about each component that has one."""
    rows = IncidentRow.objects.exclude(state="resolved").filter(cause__overlap=[*components])
    numbers = rows.order_by("number").values_list("number", "cause")
    return {name: number for number, cause in numbers for name in cause if name in components}


def _newest(views: Iterable[queries.View]) -> list[queries.View]:
    return sorted(views, key=lambda view: -view.incident.number)


@dataclass(frozen=True, slots=True)
class OpenIncidents:
    """Incidents that are not resolved: by name those that suspect it, and those about it or what it contains."""

    own: Mapping[str, int]
    beneath: Mapping[str, int]


def trouble_in(topology: TopologySnapshot, as_of: Position | None = None) -> OpenIncidents:
    """Now, or as of a moment."""
    then = None if as_of is None else queries.AsOfListing(as_of)
    rows = IncidentRow.objects.all() if then is None else then.unmoved
    causes = list(rows.exclude(state="resolved").values_list("cause", flat=True))
    if then is not None:
        moved = (view.incident for view in then.moved())
        causes += [sorted(one.cause) for one in moved if one.state != "resolved"]
    own = Counter(name for cause in causes for name in set(cause))
    return OpenIncidents(own, incidents_below(causes, topology.parents))


def owner_of(component: str) -> Routing:
    """Team that an incident about it would go to, with the rule or service, in words."""
    return route(Subject(component), routing_table())


def changes_about(component: str, at: datetime | None = None) -> list[ReportedChange]:
    """The latest changes that senders told of, at most MOST_CHANGES of the 30 days up to then."""
    names, now = names_of_changed([("component", component)]), at or timezone.now()
    return changes(now - CHANGED_WITHIN, now, names, MOST_CHANGES) if names else []
