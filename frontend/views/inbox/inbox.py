"""The inbox: what waits for someone, what is in work, and everything else by search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse, QueryDict
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from frontend.time_input import field_value, parse_moment
from frontend.views.inbox.figures import row_figures
from frontend.views.inbox.listing import (
    ORDERS,
    PAGE,
    QUICK,
    TABS,
    Listing,
    Tab,
    address,
    listing_of,
    other_filters,
    owned_by,
    page_of,
    shortcut,
)
from frontend.views.inbox.saved import opened_with, shown
from frontend.views.incident.incident import SNOOZES, of_list
from frontend.views.oncall.context import active_people
from frontend.views.pages import page, show, user_name
from frontend.views.suppression.silences import SPANS
from incidents import bulk, queries
from incidents.commands import InvalidValueError
from incidents.domain.proposals import Proposal
from incidents.domain.search import suggestions
from incidents.domain.values import SEVERITIES
from incidents.people.permissions import refusals
from incidents.proposals.queries import MOST_SHOWN, open_proposals

MOST_COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class Group:
    """Incidents with the marks of their places in the list."""

    heading: str
    incidents: Sequence[tuple[queries.View, str]]
    count: int | None = None
    """Of a group by team, component or cause: how many incidents it has; `rest` is the address of all of them."""
    failing: int = 0
    critical: int = 0
    rest: str = ""


@page
@require_safe
def inbox(request: HttpRequest) -> HttpResponse:
    if elsewhere := _elsewhere(request):
        return HttpResponseRedirect(elsewhere)
    listing = listing_of(request)
    groups, following, preceding = _groups(request, listing)
    counts = {**counts_of(listing), **mine_of(listing, user_name(request))}
    total = _total(listing.tab, counts)
    context: dict[str, Any] = {
        "listing": listing,
        "tabs": tabs_of(listing, counts, request.GET),
        "groups": groups,
        "collapsible": bool(listing.grouping) and "in" not in request.GET,
        **row_figures([view for one in groups for view, _ in one.incidents], listing.as_of),
        "list_query": of_list(listing, request.GET),
        "next": following and address(request.GET, cursor=following),
        "previous": preceding is not None and address(request.GET, cursor=preceding or None),
        "other_filters": [
            (name, value, address(request.GET, **{"cursor": None, name: None}))
            for name, value in other_filters(request.GET)
        ],
        "filtered": bool(listing.filters or listing.problems),
        "nothing_ever": listing.as_of is None
        and not listing.filters
        and not sum(number for state, number in counts.items() if state != MINE)
        and any(state != MINE for state in counts),
        "waiting": counts.get("open", 0),
        "matching": total,
        "most_at_once": bulk.MOST_AT_ONCE,
        "here": request.GET.urlencode(),
        "carried": [
            (name, value)
            for name, value in request.GET.items()
            if name not in ("as_of", "at", "cursor", "group", "in")
        ],
        "at": field_value(_shown_moment(request)),
        "now_address": address(request.GET, as_of=None, cursor=None),
        "storm": queries.storm(timezone.now()) if listing.as_of is None else None,
        "proposals": None if listing.as_of else _proposals(user_name(request)),
        "address": request.build_absolute_uri("/").rstrip("/"),
        **_choices(listing),
        **shown(request, listing),
    }
    return show(
        request,
        "frontend/inbox/inbox.html",
        context,
        section="inbox",
        watch="" if listing.as_of else "incidents",
        status=400 if listing.problems else 200,
    )


@dataclass(frozen=True, slots=True)
class Waiting:
    """A proposal in the inbox; `refused` says why the reader may not decide on it."""

    incident: queries.Incident
    proposal: Proposal
    refused: Mapping[str, str]


def _proposals(name: str) -> dict[str, Any] | None:
    found, incidents = open_proposals()
    if not found:
        return None
    shown = [Waiting(state, one, refusals(name, {one.action}, state.id)) for state, one in found]
    return {"shown": shown, "more": max(0, incidents - MOST_SHOWN)}


def _groups(request: HttpRequest, listing: Listing) -> tuple[list[Group], str | None, str | None]:
    """The groups of one page, with the cursors of the next and the previous one."""
    if listing.problems:
        return [], None, None
    cursor = request.GET.get("cursor", "")
    if listing.grouping and "in" not in request.GET:
        return _grouped(request, listing, cursor)
    groups, following, preceding = page_of(listing, cursor, PAGE)
    return [_group(listing, heading, incidents) for heading, incidents in groups], following, preceding


def _grouped(
    request: HttpRequest, listing: Listing, cursor: str
) -> tuple[list[Group], str | None, str | None]:
    if listing.as_of is not None:
        raise InvalidValueError("group", "is available for the present only; leave it out for a past time")
    if cursor and not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 7):
        raise InvalidValueError("cursor", "must be a cursor of this list")
    start = int(cursor or 0)
    found, total = queries.grouped(listing.within, listing.grouping, listing.order, start)
    titles = {team.slug: team.name for team in queries.teams()} if listing.grouping == "team" else {}
    groups = [
        Group(
            titles.get(one.name or "", one.name or "No component"),
            [(view, "") for view in one.incidents],
            one.count,
            one.failing,
            one.critical,
            address(request.GET, **{"cursor": None, "in": one.name or ""}) + ("" if one.name else "&in="),
        )
        for one in found
    ]
    end = start + queries.MOST_GROUPS
    before = max(0, start - queries.MOST_GROUPS)
    return groups, str(end) if end < total else None, (str(before) if before else "") if start else None


def _group(listing: Listing, heading: str, incidents: Sequence[queries.View]) -> Group:
    place = [name for name, _ in listing.tab.groups].index(heading)
    return Group(heading, [(view, queries.mark(place, listing.order, view)) for view in incidents])


def _elsewhere(request: HttpRequest) -> str | None:
    """Address for a form of this page that was sent: the address alone names the choice."""
    if at := request.GET.get("at"):
        try:
            moment = parse_moment(at)
        except ValueError:
            raise InvalidValueError("at", "must be a date and a time, such as 2026-11-21T10:00") from None
        return address(request.GET, at=None, cursor=None, as_of=f"{moment:%Y-%m-%dT%H:%M:%SZ}")
    return opened_with(request) or shortcut(request.GET)


def _shown_moment(request: HttpRequest) -> datetime:
    """Moment in the field of the past: the one that is shown, else an hour ago."""
    try:
        return datetime.fromisoformat(request.GET.get("as_of", "").replace(" ", "+")).astimezone(UTC)
    except (ValueError, OverflowError):
        return timezone.now() - timedelta(hours=1)


def _choices(listing: Listing) -> dict[str, Any]:
    """Choices of the page's forms."""
    chosen = {field: listing.quick(field) for field in QUICK}
    return {
        "order": listing.order,
        "orders": ORDERS,
        "grouping": listing.grouping,
        "groupings": queries.GROUPINGS,
        "severities": SEVERITIES,
        "team_names": {team.slug: team.name for team in queries.teams()},
        "quick": {
            **chosen,
            **{f"{field}_several": True for field in QUICK if listing.has_several_values(field)},
        },
        "people": active_people(),
        "snoozes": SNOOZES,
        "silence_spans": SPANS,
        "as_of": listing.as_of,
    }


def tabs_of(listing: Listing, counts: Mapping[Any, int], given: QueryDict) -> list[dict[str, Any]]:
    """The tabs of the list that an address asks for, with how many incidents each shows."""
    return [
        {
            "tab": tab,
            "count": _count(tab, counts),
            "here": tab is listing.tab,
            "query": address(given, tab=tab.name, cursor=None),
        }
        for tab in TABS
    ]


def counts_of(listing: Listing) -> Mapping[Any, int]:
    """Number of incidents in each state; nothing where the page shows none."""
    if listing.as_of is not None or listing.problems:
        return {}
    # With a search, every resolved incident is looked at to count those that fit: only where they are what is shown.
    resolved = not listing.filters or "resolved" in listing.tab.states
    return queries.counts(listing.filters, MOST_COUNTED, resolved=resolved)


MINE = "mine"


def mine_of(listing: Listing, name: str) -> Mapping[Any, int]:
    """Number of unresolved incidents that the reader owns, under `mine`; nothing where the page shows no counts."""
    if listing.as_of is not None or listing.problems:
        return {}
    return {MINE: sum(queries.counts([*listing.filters, owned_by(name)], resolved=False).values())}


def _total(tab: Tab, counts: Mapping[Any, int]) -> int:
    if tab.mine:
        return counts.get(MINE, 0)
    return sum(counts.get(state, 0) for state in tab.states)


def _count(tab: Tab, counts: Mapping[Any, int]) -> str:
    """Resolved incidents are counted only so far: to count a million takes as long as everything else on the
    page. Empty where not everything that the tab shows was counted."""
    if tab.mine:
        return f"{counts[MINE]:,}" if MINE in counts else ""
    if any(state not in counts for state in tab.states):
        return ""
    more = "+" if "resolved" in tab.states and counts.get("resolved", 0) >= MOST_COUNTED else ""
    return f"{_total(tab, counts):,}{more}"


@page
@require_safe
def matching(request: HttpRequest) -> HttpResponse:
    """The numbers of all incidents that an address asks for, as far as one action may go; and whether there
    are more.
    """
    listing = listing_of(request)
    if listing.problems or listing.as_of:
        return JsonResponse({"numbers": [], "more": False})
    numbers, more = bulk.matching(listing.within, listing.order)
    return JsonResponse({"numbers": numbers, "more": more})


@page
@require_safe
def suggest(request: HttpRequest) -> HttpResponse:
    """Continuations of the last word of a search."""
    found = suggestions(request.GET.get("search", "").replace("\0", ""), _known)
    return render(request, "frontend/inbox/suggestions.html", {"suggestions": found})


def _known(field: str, begin: str) -> Sequence[str]:
    """Values of a field that are worth being offered; those of components begin so, others may not."""
    if field == "team":
        return queries.team_slugs()
    if field == "owner":
        return ["me", "none", *active_people()]
    if field == "label":
        return queries.labels_in_use(begin)
    if field in ("component", "analyzer", "service"):
        return [*(["none"] if field != "analyzer" else []), *queries.values_in_use(field, begin)]
    return ("<1h", "<1d", ">1d", ">1w") if field == "age" else ()
