"""Updates of an open inbox: changed incidents, and the counts around its list.

A change reaches every open console at once, and all of them request updates at the same moment. The shared part is read
once per log position; rendering the whole page would take six times as long.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from frontend.views.inbox.figures import row_figures
from frontend.views.inbox.inbox import counts_of, mine_of, tabs_of
from frontend.views.inbox.listing import PAGE, Listing, listing_of
from frontend.views.incident.incident import of_list
from frontend.views.pages import page, user_name
from incidents import queries
from incidents.domain.incident.alerts import Storm

MOST: Final = 100
"""Largest number of rows in one update."""
CACHED: Final = 64
"""Cached lists, one per search that is open somewhere, each at its latest position."""
_UUID: Final = 36


@dataclass(frozen=True, slots=True)
class Around:
    """State that all readers of one list share: `first` are the ids of its first page."""

    counts: Mapping[Any, int]
    first: frozenset[str]
    storm: Storm | None
    team_names: Mapping[str, str]


@page
@require_safe
def rows(request: HttpRequest) -> HttpResponse:
    """Current rows by id, flagged "still in this list" and "on its first page", for a page that keeps its rows in
    place."""
    ids = [value for value in request.GET.getlist("row") if len(value) == _UUID][:MOST]
    given = request.GET.copy()
    given.pop("row", None)
    listing = listing_of(request, given)
    wanted = queries.parse_filters({"id": ids}) if ids else []
    shown = queries.list_incidents(wanted, "newest", None, MOST).items if wanted else []
    fits = frozenset[str]()
    if shown and not listing.problems:
        fits = frozenset(queries.first([*listing.within, *wanted], listing.order, MOST))
    position = request.log_position  # type: ignore[attr-defined]
    around = _around(connection.settings_dict["NAME"], position, listing)
    context = {
        "incidents": [(view, view.incident.id in fits, view.incident.id in around.first) for view in shown],
        **row_figures(shown),
        "tabs": tabs_of(listing, {**around.counts, **mine_of(listing, user_name(request))}, given),
        "waiting": around.counts.get("open", 0),
        "storm": around.storm,
        "team_names": around.team_names,
        "position": position,
        "list_query": of_list(listing, given),
        "next_address": f"/?{given.urlencode()}",
    }
    return render(request, "frontend/inbox/rows.html", context)


@lru_cache(maxsize=CACHED)
def _around(database: str, position: str, listing: Listing) -> Around:
    """State at `position` or later; a page that hears of a newer change requests a later position."""
    del database, position
    first: list[str] = []
    for group in () if listing.problems else range(len(listing.tab.groups)):
        chosen = listing.within_group(group)
        first += queries.first(chosen, listing.order, PAGE - len(first)) if len(first) < PAGE else []
    return Around(
        counts_of(listing),
        frozenset(first),
        queries.storm(timezone.now()),
        {team.slug: team.name for team in queries.teams()},
    )
