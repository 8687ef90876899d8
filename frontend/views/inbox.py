"""The inbox: what waits for someone, what is in work, and everything else by filter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from frontend.views.pages import page, show
from incidents import queries
from incidents.commands import Invalid
from ingest.queries import Position

PAGE = 50
MOST_COUNTED = 10_000
ORDERS = (
    ("severity", "Most severe first"),
    ("newest", "Newest first"),
    ("oldest", "Oldest first"),
    ("updated", "Last changed first"),
    ("hops", "Most hand-overs first"),
)
SEVERITIES = ("critical", "error", "warning", "info")


@dataclass(frozen=True, slots=True)
class Tab:
    """A view of the inbox: the groups it shows, each a heading and the states that belong to it."""

    name: str
    words: str
    groups: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def states(self) -> tuple[str, ...]:
        return tuple(state for _, states in self.groups for state in states)


TABS = (
    Tab(
        "unresolved",
        "Unresolved",
        (("Waiting for someone", ("open",)), ("In work", ("acknowledged", "snoozed"))),
    ),
    Tab("open", "Open", (("Waiting for someone", ("open",)),)),
    Tab("work", "In work", (("In work", ("acknowledged", "snoozed")),)),
    Tab("resolved", "Resolved", (("Resolved", ("resolved",)),)),
    Tab("all", "All", (("All tickets", ("open", "acknowledged", "snoozed", "resolved")),)),
)


@dataclass(frozen=True, slots=True)
class Group:
    heading: str
    tickets: Sequence[queries.View]


@page
@require_safe
def inbox(request: HttpRequest) -> HttpResponse:
    tab = next((tab for tab in TABS if tab.name == request.GET.get("tab", TABS[0].name)), None)
    if tab is None:
        raise Invalid("tab", f"must be one of {', '.join(tab.name for tab in TABS)}")
    filters = _filters(request)
    order = request.GET.get("order") or ORDERS[0][0]
    as_of = queries.parse_moment(request.GET["as_of"]) if request.GET.get("as_of") else None
    groups, following, preceding = _groups(tab, filters, order, request.GET.get("cursor", ""), as_of)
    counts = queries.counts(filters, MOST_COUNTED) if as_of is None else {}
    context: dict[str, Any] = {
        "tabs": [
            {
                "tab": one,
                "count": _count(one, counts),
                "here": one is tab,
                "query": _query(request, tab=one.name, cursor=None),
            }
            for one in TABS
        ],
        "groups": groups,
        "next": following and _query(request, cursor=following),
        "previous": preceding is not None and _query(request, cursor=preceding or None),
        "filtered": bool(filters),
        "nothing_ever": as_of is None and not filters and not sum(counts.values()),
        "waiting": counts.get("open", 0),
        "order": order,
        "orders": ORDERS,
        "severities": SEVERITIES,
        "team_names": {team.slug: team.name for team in queries.teams()},
        "as_of": as_of,
        "address": request.build_absolute_uri("/").rstrip("/"),
    }
    return show(
        request,
        "frontend/inbox.html",
        context,
        section="inbox",
        watch="" if as_of else "incidents",
    )


def _count(tab: Tab, counts: Mapping[Any, int]) -> str:
    """Resolved tickets are counted only so far: to count a million takes as long as everything else on the page."""
    more = "+" if "resolved" in tab.states and counts.get("resolved", 0) >= MOST_COUNTED else ""
    return f"{sum(counts.get(state, 0) for state in tab.states):,}{more}"


def _filters(request: HttpRequest) -> list[queries.Filter]:
    given = {name: [value for value in request.GET.getlist(name) if value] for name in queries.PARAMETERS}
    return queries.parse_filters({name: values for name, values in given.items() if values})


def _groups(
    tab: Tab, filters: list[queries.Filter], order: str, cursor: str, as_of: Position | None
) -> tuple[list[Group], str | None, str | None]:
    """The groups of one page with the cursors of the next and the previous one ("" means the first page).

    A cursor is `place:cursor`, where place counts the tab's groups. A page ends where a group does not end;
    one that ends leaves room for the next, so that open tickets always come first.
    """
    start, _, inside = cursor.partition(":")
    if cursor and not (start.isdecimal() and int(start) < len(tab.groups)):
        raise Invalid("cursor", "is not a cursor of this list")
    first = int(start or 0)
    shown, following, preceding = [], None, None
    for place in range(first, len(tab.groups)):
        heading, states = tab.groups[place]
        chosen = [*filters, queries.Filter("state", "in", states)]
        found = queries.list_incidents(chosen, order, inside or None, PAGE, as_of)
        if place == first and cursor:
            preceding = f"{place}:{found.previous}" if found.previous else ""
        inside = ""
        if found.items:
            shown.append(Group(heading, found.items))
        if found.next:
            following = f"{place}:{found.next}"
            break
    return shown, following, preceding


def _query(request: HttpRequest, **changed: str | None) -> str:
    """The address of this page with some parameters changed; None takes one away."""
    given = {name: value for name, value in request.GET.items() if value and name not in changed}
    return "?" + urlencode({**given, **{name: value for name, value in changed.items() if value}})
