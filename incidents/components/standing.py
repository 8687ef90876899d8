"""How a component stands: its tickets, who would get one, and what was changed about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from django.utils import timezone

from incidents import queries
from incidents.catalog.models import routing_table
from incidents.domain.conditions import Subject
from incidents.domain.routing import Routing, route
from incidents.domain.troubled import tickets_beneath
from incidents.projections.models import IncidentRow
from ingest.queries import ReportedChange, TopologySnapshot, changes, names_of_changed

PAST = 20
"""Resolved tickets that are listed."""
CHANGED_WITHIN = timedelta(days=30)
MOST_CHANGES = 20


@dataclass(frozen=True, slots=True)
class Tickets:
    """Tickets about a component, the newest first; of `resolved` ones that many in all."""

    unresolved: list[queries.View]
    past: list[queries.View]
    resolved: int


def tickets_about(component: str) -> Tickets:
    """Those of which it is the suspect, or one of those that the data could not tell apart."""
    rows = IncidentRow.objects.filter(cause__contains=[component])
    unresolved = list(
        rows.exclude(state="resolved").order_by("-number").values_list("number", flat=True)[:100]
    )
    ended = rows.filter(state="resolved")
    resolved = ended.count()
    past = list(ended.order_by("-number").values_list("number", flat=True)[:PAST])
    return Tickets(_views(unresolved), _views(past), resolved)


def _views(numbers: list[int]) -> list[queries.View]:
    if not numbers:
        return []
    chosen = [queries.Filter("number", "in", tuple(numbers))]
    return queries.list_incidents(chosen, "newest", limit=max(1, min(len(numbers), 200))).items


@dataclass(frozen=True, slots=True)
class Trouble:
    """Tickets that are not resolved: by name those that suspect it, and those about it or what it contains."""

    own: Mapping[str, int]
    beneath: Mapping[str, int]


def trouble_in(topology: TopologySnapshot) -> Trouble:
    causes = list(IncidentRow.objects.exclude(state="resolved").values_list("cause", flat=True))
    own = Counter(name for cause in causes for name in set(cause))
    return Trouble(own, tickets_beneath(causes, topology.parents))


def owner_of(component: str) -> Routing:
    """Which team a ticket about it would go to, by which rule or service, in words."""
    return route(Subject(component), routing_table())


def changes_about(component: str) -> list[ReportedChange]:
    """The latest changes that senders told of, at most MOST_CHANGES of the last 30 days."""
    names, now = names_of_changed([("component", component)]), timezone.now()
    return changes(now - CHANGED_WITHIN, now, names, MOST_CHANGES) if names else []
