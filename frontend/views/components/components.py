"""Components: a browser of the topology, search, and the page of one component."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from analyzers.queries import NodeAtRisk, NodeForecast, node_forecast
from frontend.sparklines import drawn
from frontend.views.pages import page, show
from frontend.views.paging import page_of_lines
from incidents import queries
from incidents.components.health import health_of
from incidents.components.summary import OpenIncidents, changes_about, incidents_about, owner_of, trouble_in
from incidents.domain.components.impact import reached_over
from incidents.domain.values import InvalidValueError, check_component, check_line, parse_rfc3339
from incidents.incident.view import failures_of
from ingest.queries import (
    Position,
    TopologySnapshot,
    dependencies_of,
    natural,
    placed_names,
    position_at,
    regions,
    topology_snapshot,
)

PAGE = 100
"""Components of a list, and of one opening of the tree."""
OPENED = 3
"""Levels that are open without asking where each is of one component alone."""
MOST_RELATED = 12
"""Names that a relation shows at once; the rest is a page of its own."""
TITLES = {
    "contains": "Contains",
    "depends_on": "Depends on",
    "dependents": "Depended on by",
}


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the browser: `contained` counts what it contains by kind, `open` its unresolved incidents,
    `under` those of what it contains; `branch` is shown without asking. `known` is whether the topology tells of it."""

    name: str
    beneath: Sequence[tuple[str, int]]
    open: int
    under: int
    known: bool
    branch: Branch | None = None


@dataclass(frozen=True, slots=True)
class Branch:
    """Contents of a line, and the cursor of the rest; empty for none."""

    rows: Sequence[Row]
    total: int
    more: str


@page
@require_safe
def components(request: HttpRequest) -> HttpResponse:
    """The tree from its roots, or what a search finds."""
    there = regions()
    region, at = _region(request, there), _moment(request)
    text = check_line("q", request.GET.get("q", ""), blank=True)
    topology = topology_snapshot(region, at or datetime.now(UTC))
    kind = _kind(request, topology)
    searching = bool(text or kind)
    trouble = trouble_in(topology, _place(at))
    if searching:
        placed = placed_names(region, text, kind) if text else set()
        matching = topology.found(text, kind)
        names = [*matching, *sorted(placed.difference(topology.names), key=natural)]
    else:
        names = _worst_first(trouble, topology.roots)
    shown, pager = page_of_lines(request, names, PAGE)
    context = {
        "regions": there,
        "region": region,
        "at": at,
        "text": text,
        "kind": kind,
        "kinds": topology.kinds,
        "searching": searching,
        "total": len(names),
        "known": len(topology.names),
        "rows": _opened(topology, trouble, shown) if not searching else _rows(topology, trouble, shown),
        "list": pager,
        "carried": _query(region, there, at),
    }
    return show(request, "frontend/components/components.html", context, section="components")


@page
@require_safe
def contained(request: HttpRequest) -> HttpResponse:
    """Components that one contains, depends on or carries: a branch of the tree, and a page of its own."""
    there = regions()
    region, at = _region(request, there), _moment(request)
    name = check_component("of", request.GET.get("of", ""))
    relation = request.GET.get("by", "contains")
    if relation not in TITLES:
        raise InvalidValueError("by", f"must be one of {', '.join(TITLES)}")
    topology = topology_snapshot(region, at or datetime.now(UTC))
    trouble = trouble_in(topology, _place(at))
    names = _worst_first(trouble, _related(topology, name)[relation])
    shown, pager = page_of_lines(request, names, PAGE)
    context = {
        "name": name,
        "relation": relation,
        "title": TITLES[relation],
        "at": at,
        "total": len(names),
        "rows": _rows(topology, trouble, shown),
        "list": pager,
        "carried": _query(region, there, at),
    }
    return show(request, "frontend/components/contained.html", context, section="components")


@page
@require_safe
def component(request: HttpRequest, name: str = "") -> HttpResponse:
    """One component. The name is in the path, or in `?name=` where a path cannot carry it."""
    it = check_component("component", name or request.GET.get("name", ""))
    there = regions()
    at = _moment(request)
    now = at or datetime.now(UTC)
    region = request.GET.get("region") or _where(it, there, now)
    region = _region(request, there, region)
    topology = topology_snapshot(region, now)
    known = topology.components.get(it)
    incidents = incidents_about(it, _place(at))
    placed = dependencies_of(region, [it], now, 1).get(it)
    context = {
        "name": it,
        "region": region,
        "regions": there,
        "at": at,
        "known": topology.knows(it),
        "entry": known,
        "placed": () if placed is None else placed.path,
        "above": topology.above(it),
        "relations": _relations(topology, it, at),
        "fails_with": len(reached_over(it, topology.contains, topology.needed_by)),
        "owner": owner_of(it),
        "incidents": incidents,
        "failures": failures_of([*incidents.unresolved, *incidents.past], _place(at)),
        "changes": changes_about(it, at),
        "risk": _risk(it, region, at),
        "team_names": {team.slug: team.name for team in queries.teams()},
        "carried": _query(region, there, at),
        "seen": topology.knows(it) or placed is not None or bool(incidents.unresolved or incidents.past),
    }
    return show(request, "frontend/components/component.html", context, section="components")


@page
@require_safe
def health(request: HttpRequest) -> HttpResponse:
    """Failure rate and availability of a component, fetched beside its page."""
    name = check_component("of", request.GET.get("of", ""))
    there = regions()
    region, at = _region(request, there), _moment(request)
    context = {"name": name, "region": region, "at": at, "health": drawn(health_of(region, name, at))}
    return show(request, "frontend/components/health.html", context, section="components")


def _risk(name: str, region: str, at: datetime | None) -> tuple[NodeForecast, NodeAtRisk] | None:
    """Newest forecast for a node until its horizon is over; None for one that it does not list."""
    found = node_forecast(region, at) if name.startswith("node/") else None
    node = None if found is None or found.is_over(at or datetime.now(UTC)) else found.of(name)
    return None if found is None or node is None else (found, node)


def _related(topology: TopologySnapshot, name: str) -> dict[str, Sequence[str]]:
    known = topology.components.get(name)
    return {
        "contains": topology.contains.get(name, ()),
        "depends_on": () if known is None else known.depends_on,
        "dependents": topology.needed_by.get(name, ()),
    }


def _relations(topology: TopologySnapshot, name: str, at: datetime | None) -> list[dict[str, Any]]:
    found, trouble = [], trouble_in(topology, _place(at))
    for relation, related in _related(topology, name).items():
        if related:
            names = _worst_first(trouble, related)
            rows = _rows(topology, trouble, names[:MOST_RELATED])
            more = len(names) - len(rows)
            found.append(
                {"name": relation, "title": TITLES[relation], "total": len(names), "rows": rows, "more": more}
            )
    return found


def _worst_first(trouble: OpenIncidents, names: Iterable[str]) -> list[str]:
    """Those with most open incidents on or beneath them first, the rest as they come."""
    return sorted(names, key=lambda name: -trouble.beneath.get(name, 0))


def _rows(topology: TopologySnapshot, trouble: OpenIncidents, names: Sequence[str]) -> list[Row]:
    return [_row(topology, trouble, name) for name in names]


def _row(topology: TopologySnapshot, trouble: OpenIncidents, name: str, branch: Branch | None = None) -> Row:
    own = trouble.own.get(name, 0)
    under = max(0, trouble.beneath.get(name, 0) - own)
    return Row(name, topology.beneath(name), own, under, topology.knows(name), branch)


def _opened(
    topology: TopologySnapshot, trouble: OpenIncidents, names: Sequence[str], deep: int = OPENED
) -> list[Row]:
    """Roots; a single one is open, and so is what alone stands beneath it, some levels down."""
    if len(names) != 1 or deep == 0:
        return _rows(topology, trouble, names)
    below = _worst_first(trouble, topology.contains.get(names[0], ()))
    rows = _opened(topology, trouble, below[:PAGE], deep - 1)
    branch = Branch(rows, len(below), str(PAGE) if len(below) > PAGE else "")
    return [_row(topology, trouble, names[0], branch if below else None)]


def _where(name: str, there: Sequence[str], at: datetime) -> str:
    """The first region whose topology knows the component, else the first of all."""
    known = (region for region in there if topology_snapshot(region, at).knows(name))
    return next(known, there[0] if there else "default")


def _region(request: HttpRequest, there: Sequence[str], chosen: str = "") -> str:
    requested = check_line("region", chosen or request.GET.get("region", ""), blank=True)
    return requested or (there[0] if there else "default")


def _moment(request: HttpRequest) -> datetime | None:
    text = request.GET.get("at", "")
    if not text:
        return None
    try:
        return parse_rfc3339(text.replace(" ", "+"))
    except (ValueError, OverflowError):
        raise InvalidValueError(
            "at", "must be an RFC 3339 time with an offset, such as 2026-11-21T10:00:00Z"
        ) from None


def _place(at: datetime | None) -> Position | None:
    """In the log: incidents are told as they stood there."""
    return None if at is None else position_at(at)


def _kind(request: HttpRequest, topology: TopologySnapshot) -> str:
    kind = check_line("kind", request.GET.get("kind", ""), blank=True)
    if kind and kind not in topology.kinds and topology.kinds:
        raise InvalidValueError("kind", f"must be one of {', '.join(topology.kinds)}")
    return kind


def _query(region: str, there: Sequence[str], at: datetime | None) -> str:
    """Query that every link of these pages carries on, as its tail."""
    query = {"region": region} if there and region != there[0] else {}
    if at is not None:
        query["at"] = at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return "&" + urlencode(query) if query else ""


def _address(request: HttpRequest, **changed: object) -> str:
    given = {name: value for name, value in request.GET.items() if value and name not in changed}
    return "?" + urlencode({**given, **changed})
