"""Query of an inbox address: a tab, a search, an order, a moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import HttpRequest, QueryDict
from django.utils import timezone

from frontend.views.pages import user_name
from incidents import queries
from incidents.commands import InvalidValueError
from incidents.domain import search as searching
from incidents.domain.values import check_text
from incidents.search import query
from ingest.queries import Position

PAGE = 50
"""Incidents on a page of the inbox."""
ORDERS = (
    ("severity", "Most severe first"),
    ("newest", "Newest first"),
    ("oldest", "Oldest first"),
    ("updated", "Last changed first"),
    ("hops", "Most hand-overs first"),
)
_AS_TEXT = ("team", "severity", "state", "owner")
"""Parameters that the search says as well: they are shown in its field, so that a filter is never out of sight."""
QUICK = ("severity", "team", "owner")
"""Fields that have a shortcut beside the search."""


@dataclass(frozen=True, slots=True)
class Tab:
    """A view of the inbox: the groups it shows, each a heading and the states that belong to it."""

    name: str
    words: str
    groups: tuple[tuple[str, tuple[str, ...]], ...]
    mine: bool = False
    """Whether it shows only what the reader owns."""

    @property
    def states(self) -> tuple[str, ...]:
        return tuple(state for _, states in self.groups for state in states)


TABS = (
    Tab(
        "unresolved",
        "Unresolved",
        (("Needs response", ("open",)), ("In progress", ("acknowledged", "snoozed"))),
    ),
    Tab(
        "mine",
        "Mine",
        (("Needs response", ("open",)), ("In progress", ("acknowledged", "snoozed"))),
        mine=True,
    ),
    Tab("open", "Open", (("Needs response", ("open",)),)),
    Tab("work", "In progress", (("In progress", ("acknowledged", "snoozed")),)),
    Tab("resolved", "Resolved", (("Resolved", ("resolved",)),)),
    Tab("all", "All", (("All incidents", ("open", "acknowledged", "snoozed", "resolved")),)),
)


@dataclass(frozen=True, slots=True)
class Listing:
    """Query of the inbox. Where the search has problems, nothing is listed."""

    tab: Tab
    text: str
    search: query.SearchQuery
    filters: tuple[queries.Filter, ...]
    order: str
    as_of: Position | None
    me: str = ""
    """The reader, where the tab shows what they own: others' lists are read once for all of them."""
    grouping: str = ""
    """Key of the groups; empty: by the next action."""

    @property
    def problems(self) -> tuple[searching.Problem, ...]:
        return self.search.problems

    @property
    def within(self) -> tuple[queries.Filter, ...]:
        """The filters with those of the tab."""
        return (*self.filters, *self._own, queries.Filter("state", "in", self.tab.states))

    @property
    def _own(self) -> tuple[queries.Filter, ...]:
        return (owned_by(self.me),) if self.tab.mine else ()

    def within_group(self, group: int) -> list[queries.Filter]:
        """The filters with the states of one group of the tab."""
        return [*self.filters, *self._own, queries.Filter("state", "in", self.tab.groups[group][1])]

    def has_several_values(self, field: str) -> bool:
        """Whether the search asks a field for more than a shortcut can show."""
        return not self.quick(field) and any(
            t.field == field and not t.negated for t in self.search.search.terms
        )

    def quick(self, field: str) -> str:
        """Chosen shortcut."""
        return searching.chosen(self.search.search, field)


def owned_by(name: str) -> queries.Filter:
    """The filter of the tab `mine`."""
    return queries.Filter("owner", "in", (name,))


def listing_of(request: HttpRequest, given: QueryDict | None = None) -> Listing:
    """Query of an address, or `given` in its place. Raises InvalidValueError for values that make no sense. Raises
    InvalidValueError for what makes no sense."""
    given = request.GET if given is None else given
    tab = next((tab for tab in TABS if tab.name == given.get("tab", TABS[0].name)), None)
    if tab is None:
        raise InvalidValueError("tab", f"must be one of {', '.join(tab.name for tab in TABS)}")
    order = given.get("order") or ORDERS[0][0]
    if order not in queries.ORDERS:
        raise InvalidValueError("order", f"must be one of {', '.join(queries.ORDERS)}")
    text = search_text(given)
    requested = query.search_query(
        text, timezone.now(), user_name(request), queries.team_slugs() if text else ()
    )
    as_of = queries.parse_moment(moment) if (moment := given.get("as_of")) else None
    grouping = given.get("group", "")
    if grouping and grouping not in queries.GROUPINGS:
        raise InvalidValueError("group", f"must be one of {', '.join(queries.GROUPINGS)}")
    within = _within_group(grouping, given)
    filters = (*requested.filters, *_others(given), *within)
    return Listing(
        tab, text, requested, filters, order, as_of, user_name(request) if tab.mine else "", grouping
    )


def _within_group(grouping: str, given: QueryDict) -> list[queries.Filter]:
    """The one group that `in` names, empty for the incidents of none."""
    if "in" not in given:
        return []
    if not grouping:
        raise InvalidValueError("in", "needs `group`, such as group=team&in=storage")
    value = check_text("in", given["in"], 1000)
    return [queries.Filter(grouping, "grouped", value or None)]


def search_text(given: QueryDict) -> str:
    """The search of an address, with what its other parameters say that a search can say."""
    words = [given.get("search", "").strip(), given.get("q", "").strip()]
    for name in _AS_TEXT:
        if values := [value for value in given.getlist(name) if value]:
            words.append(f"{name}:{','.join(searching.quoted(value) for value in values)}")
    return " ".join(word for word in words if word)


def _others(given: QueryDict) -> list[queries.Filter]:
    values = {name: [value for value in given.getlist(name) if value] for name, _ in other_filters(given)}
    return queries.parse_filters(values)


def other_filters(given: QueryDict) -> list[tuple[str, str]]:
    """Names and values of the filters of the API that a search has no words for."""
    names = [name for name in queries.PARAMETERS if name not in (*_AS_TEXT, "q")]
    return [(name, value) for name in names for value in given.getlist(name) if value]


def shortcut(given: QueryDict) -> str | None:
    """The address that a choice beside the search leads to, or None where the form was not sent: what is chosen is
    written into the search, so that there is one place where it stands.

    A select that still says what the page had (`was_`) was not touched: what was typed counts.
    """
    sent = [field for field in QUICK if f"quick_{field}" in given]
    if not sent:
        return None
    text = search_text(given)
    for field in sent:
        if given.get(f"was_{field}") == given[f"quick_{field}"]:
            continue
        value = given.get(f"quick_{field}", "")
        if value != "several":
            text = searching.changed(text, field, [value] if value else [])
    query = [(name, found) for name in ("tab", "order", "as_of", "group") if (found := given.get(name))]
    return "?" + urlencode([*query, *other_filters(given), *([("search", text)] if text else [])])


def address(given: QueryDict, **changed: str | None) -> str:
    """The address of this page with some parameters changed; None takes one away."""
    query = [(name, value) for name in given if name not in changed for value in given.getlist(name) if value]
    return "?" + urlencode([*query, *((name, value) for name, value in changed.items() if value)])


def page_of(
    listing: Listing, cursor: str, limit: int
) -> tuple[list[tuple[str, Sequence[queries.View]]], str | None, str | None]:
    """The groups of one page with the cursors of the next and the previous one ("" means the first page).

    A cursor is `place:cursor`, where place counts the tab's groups. A page ends where a group does not end;
    one that ends leaves room for the next, so that open incidents always come first.
    """
    groups = listing.tab.groups
    start, _, inside = cursor.partition(":")
    if cursor and not (start.isascii() and start.isdecimal() and int(start[:9]) < len(groups)):
        raise InvalidValueError("cursor", "must be a cursor of this list")
    first = int(start or 0)
    shown: list[tuple[str, Sequence[queries.View]]] = []
    following, preceding = None, None
    for place in range(first, len(groups)):
        heading, chosen = groups[place][0], listing.within_group(place)
        found = queries.list_incidents(chosen, listing.order, inside or None, limit, listing.as_of)
        if place == first and cursor:
            preceding = f"{place}:{found.previous}" if found.previous else ""
        inside = ""
        if found.items:
            shown.append((heading, found.items))
        if found.next:
            following = f"{place}:{found.next}"
            break
    return shown, following, preceding
