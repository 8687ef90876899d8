"""Pages that compare two times: of an incident, of the grid, of the configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from frontend.time_input import field_value, parse_moment
from frontend.views.inbox.listing import address
from frontend.views.pages import page, show, staff_only
from incidents import queries
from incidents.commands import InvalidValueError
from incidents.comparison.queries import (
    Span,
    compare_configuration,
    compare_grid,
    compare_incident,
    span_from,
)
from incidents.domain.components.grid_query import grid_query_from
from incidents.domain.values import optional_rfc3339
from ingest.queries import PathSumsTooSlow

TYPED = {"from_time": "from", "to_time": "to"}
"""Fields of the form, by the reader's clock, and the parameters of the address that they become."""
PRESETS = (("10 min", 10), ("1 h", 60), ("6 h", 360), ("24 h", 1_440), ("7 d", 10_080))
Compare = Callable[[Span], Any]


@page
@require_safe
def compare_incident_page(request: HttpRequest, number: int) -> HttpResponse:
    incident = queries.get(str(number)).incident
    context = {"i": incident, "back": reverse("incident", args=[number]), "usual": incident.opened_at}
    return _compared(
        request,
        "frontend/compare/incident.html",
        context,
        lambda span: compare_incident(str(number), span),
        "inbox",
    )


@page
@require_safe
def compare_grid_page(request: HttpRequest) -> HttpResponse:
    requested = grid_query_from(request.GET.dict(), request.GET.getlist("within"))
    names = ("region", "telemetry", "rows", "columns", "window", "within")
    stored = [(name, value) for name in names for value in request.GET.getlist(name) if value]
    return _compared(
        request,
        "frontend/compare/grid.html",
        {"kept": stored, "back": reverse("grid"), "window": requested.window},
        lambda span: compare_grid(requested, span),
        "grid",
    )


@page
@require_safe
def compare_configuration_page(request: HttpRequest) -> HttpResponse:
    staff_only(request, "Only staff can see configuration changes.")
    return _compared(
        request,
        "frontend/compare/configuration.html",
        {"back": reverse("audit")},
        compare_configuration,
        "settings",
    )


def _compared(
    request: HttpRequest, template: str, context: Mapping[str, Any], compare: Compare, section: str
) -> HttpResponse:
    """The page of a comparison; without times it leads to the usual ones, wrong ones have the reason beside them."""
    now = timezone.now()
    shown: dict[str, Any] = {**context, "presets": _presets(request, now), "problem": "", "found": None}
    try:
        if any(name in request.GET for name in TYPED):
            return HttpResponseRedirect(_from_form(request))
        if "from" not in request.GET and "to" not in request.GET:
            usual = context.get("usual") or now - timedelta(hours=1)
            return HttpResponseRedirect(address(request.GET, **{"from": optional_rfc3339(usual)}))
        span = span_from(request.GET.get("from", ""), request.GET.get("to", ""))
        shown["found"] = compare(span)
    except InvalidValueError as error:
        shown["problem"] = f"`{error.field}` {error.reason}."
    except PathSumsTooSlow as error:
        shown["problem"] = f"The grid {error}."
    start = _moment(request, "from") or context.get("usual") or now - timedelta(hours=1)
    shown["from_time"], shown["to_time"] = field_value(start), field_value(_moment(request, "to") or now)
    status = 400 if shown["problem"] else 200
    return show(request, template, shown, section=section, status=status)


def _from_form(request: HttpRequest) -> str:
    """The address that a form leads to: its times are read by the reader's clock and written in UTC."""
    times: dict[str, str | None] = dict.fromkeys(TYPED)
    for field, name in TYPED.items():
        if text := request.GET.get(field, "").strip():
            try:
                times[name] = optional_rfc3339(parse_moment(text))
            except ValueError as error:
                raise InvalidValueError(name, str(error)) from None
    return address(request.GET, **times)


def _presets(request: HttpRequest, now: datetime) -> list[tuple[str, str]]:
    return [
        (
            words,
            address(request.GET, **{"from": optional_rfc3339(now - timedelta(minutes=minutes)), "to": None}),
        )
        for words, minutes in PRESETS
    ]


def _moment(request: HttpRequest, name: str) -> datetime | None:
    """Moment of a field; None for text that is no time, whose reason stands beside it."""
    try:
        return datetime.fromisoformat(request.GET.get(name, "").replace(" ", "+")).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
