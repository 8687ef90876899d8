"""The list of the inbox as CSV: the incidents of a tab, search, order and moment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from frontend.views.inbox.listing import Listing, listing_of, page_of
from frontend.views.incident.downloads import csv_file
from frontend.views.pages import page
from incidents import queries
from incidents.commands import InvalidValueError
from incidents.domain.values import optional_rfc3339

MOST: Final = 10_000
AT_ONCE: Final = 200
COLUMNS: Final = (
    "number",
    "title",
    "state",
    "severity",
    "component",
    "team",
    "owner",
    "verdict",
    "confidence",
    "alerts",
    "hops",
    "confirmed_cause",
)
TIMES: Final = ("opened_at", "acknowledged_at", "resolved_at", "failing_since", "last_failure")


@page
@require_safe
def export(request: HttpRequest) -> HttpResponse:
    """At most MOST incidents; more get a line at the end that says so."""
    listing = listing_of(request)
    if listing.problems:
        raise InvalidValueError("search", str(listing.problems[0]))
    rows = [_row(view) for view in _views(listing)]
    cut = len(rows) > MOST
    if cut:
        rows[MOST:] = [[f"Cut after {MOST} incidents; search for less"]]
    return csv_file("incidents", (*COLUMNS, *TIMES), rows)


def _views(listing: Listing) -> Iterator[queries.View]:
    cursor, count = "", 0
    while count <= MOST:
        groups, following, _ = page_of(listing, cursor, AT_ONCE)
        for _, views in groups:
            yield from views
            count += len(views)
        if following is None:
            return
        cursor = following


def _row(view: queries.View) -> list[Any]:
    incident = view.incident
    return [
        *(getattr(incident, name) for name in COLUMNS),
        *(optional_rfc3339(getattr(incident, name)) for name in TIMES),
    ]
