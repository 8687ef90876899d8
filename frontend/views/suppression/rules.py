"""Pages of planned suppression: maintenance windows and inhibition rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, groupby
from typing import Any

from django.contrib import messages
from django.db import IntegrityError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST
from rest_framework.serializers import BaseSerializer

from frontend import times
from frontend.time_input import parse_span
from frontend.views.pages import context_of, page, show
from frontend.views.paging import listed
from frontend.views.restore import removed
from frontend.views.suppression.silences import AGAIN, typed_start
from incidents.api.suppression.views import (
    InhibitionSerializer,
    InhibitionsView,
    MaintenanceSerializer,
    MaintenanceView,
    MatcherTexts,
    SuppressionCatalog,
)
from incidents.commands import InvalidValueError
from incidents.domain.values import read_zone
from incidents.suppression.models import InhibitionRule, MaintenanceWindow
from incidents.suppression.silences import suppressed_counts

WORDS = {"unreadable": "Invalid", "active": "Now", "pending": "Scheduled", "over": "Ended"}
Typed = Mapping[str, str]


@page
@require_http_methods(["GET", "HEAD", "POST"])
def maintenance(request: HttpRequest) -> HttpResponse:
    typed = {name: str(value).strip() for name, value in request.POST.items()}
    errors: dict[str, str] = {}
    if request.method == "POST":
        errors = _create_window(request, typed)
        if not errors:
            messages.success(request, "Scheduled.")
            return HttpResponseRedirect(reverse("maintenance"))
    states = list(WORDS)
    lines = [(MaintenanceSerializer().get_state(row), row) for row in MaintenanceWindow.objects.all()]
    lines.sort(key=lambda line: states.index(line[0]))
    found = listed(request, lines, _words_of_window, lambda line: (line[1].slug,))
    context = {
        "groups": _groups(found.rows),
        "list": found,
        "again": [words for words, _ in AGAIN],
        "typed": typed,
        "errors": errors,
    }
    return show(
        request,
        "frontend/suppression/maintenance.html",
        context,
        section="settings",
        status=400 if errors else 200,
    )


def _words_of_window(line: tuple[str, MaintenanceWindow]) -> str:
    state, row = line
    matchers = MatcherTexts().to_representation(row.matchers)
    return " ".join((row.slug, WORDS[state], row.reason, row.rule, *row.components, *row.services, *matchers))


def _groups(lines: Sequence[tuple[str, MaintenanceWindow]]) -> list[dict[str, Any]]:
    suppressed = suppressed_counts()
    return [
        {
            "state": state,
            "words": WORDS[state],
            "windows": [
                {
                    "it": row,
                    "shown": MaintenanceSerializer(row).data,
                    "suppressed": suppressed.get(str(row.edition), 0),
                }
                for _, row in rows
            ],
        }
        for state, rows in groupby(lines, key=lambda line: line[0])
    ]


def _create_window(request: HttpRequest, typed: Typed) -> dict[str, str]:
    fields: dict[str, Any] = {
        "slug": typed.get("slug", ""),
        "reason": typed.get("reason", ""),
        "components": _lines(typed, "components"),
        "services": typed.get("services", "").replace(",", " ").split(),
        "matchers": _lines(typed, "matchers"),
        "rule": typed.get("rule", "") or dict(AGAIN).get(typed.get("again", ""), ""),
        "time_zone": typed.get("time_zone", "") or times.here().key,
        "mode": typed.get("mode", "") or "hold",
    }
    try:
        read_zone("time_zone", fields["time_zone"])
        starts = typed_start(request.POST) or timezone.now()
        span = parse_span(typed.get("span", ""))
    except InvalidValueError as invalid:
        return {"starts_at" if invalid.field == "recurrence" else invalid.field: invalid.reason}
    except ValueError as error:
        return {"span": str(error)}
    fields |= {"starts_at": starts.isoformat(), "ends_at": (starts + span).isoformat()}
    return _saved(request, MaintenanceView, MaintenanceSerializer(data=fields))


def _lines(typed: Typed, name: str) -> list[str]:
    return [line.strip() for line in typed.get(name, "").splitlines() if line.strip()]


def _saved(
    request: HttpRequest, catalog: type[SuppressionCatalog], serializer: BaseSerializer[Any]
) -> dict[str, str]:
    """Make what was typed; the reason by field where it cannot be."""
    if not request.user.is_staff:
        return {"slug": "requires staff permissions"}
    if not serializer.is_valid():
        return {name: _first(entry) for name, entry in dict(serializer.errors).items()}
    try:
        catalog.acting_for(context_of(request)).put(serializer)
    except IntegrityError:
        return {"slug": "is taken"}
    return {}


def _first(value: Any) -> str:
    """One reason of those that a serializer gives, which may be nested by place."""
    while isinstance(value, Mapping | list) and value:
        value = next(iter(value.values())) if isinstance(value, Mapping) else value[0]
    return str(value).rstrip(".")


@page
@require_http_methods(["GET", "HEAD", "POST"])
def inhibitions(request: HttpRequest) -> HttpResponse:
    typed = {name: str(value).strip() for name, value in request.POST.items()}
    errors: dict[str, str] = {}
    if request.method == "POST":
        fields = {
            "slug": typed.get("slug", ""),
            "source_matchers": _lines(typed, "source_matchers"),
            "target_matchers": _lines(typed, "target_matchers"),
            "equal": typed.get("equal", "").replace(",", " ").split(),
            "comment": typed.get("comment", ""),
        }
        errors = _saved(request, InhibitionsView, InhibitionSerializer(data=fields))
        if not errors:
            messages.success(
                request,
                "Active. Open incidents whose firing alerts all match page no one until the window ends.",
            )
            return HttpResponseRedirect(reverse("inhibitions"))
    found = listed(request, list(InhibitionRule.objects.all()), _words_of_rule, lambda row: (row.slug,))
    rules = [
        {
            "it": row,
            "shown": InhibitionSerializer(row).data,
            "fires": row.sources.values("alert").distinct().count(),
        }
        for row in found.rows
    ]
    context = {"rules": rules, "list": found, "typed": typed, "errors": errors}
    return show(
        request,
        "frontend/suppression/inhibitions.html",
        context,
        section="settings",
        status=400 if errors else 200,
    )


def _words_of_rule(row: InhibitionRule) -> str:
    matchers = MatcherTexts()
    sides = (matchers.to_representation(one) for one in (row.source_matchers, row.target_matchers))
    return " ".join((row.slug, row.comment, *row.equal, *chain.from_iterable(sides)))


@page
@require_POST
def remove_window(request: HttpRequest, slug: str) -> HttpResponse:
    return _removed(request, MaintenanceView, slug, "maintenance")


@page
@require_POST
def remove_inhibition(request: HttpRequest, slug: str) -> HttpResponse:
    return _removed(request, InhibitionsView, slug, "inhibitions")


def _removed(request: HttpRequest, kind: type[SuppressionCatalog], slug: str, back: str) -> HttpResponse:
    catalog = kind.acting_for(context_of(request))
    row = catalog.get_queryset().filter(slug=slug).first()
    if row is None:
        raise Http404("no entry with this name")
    if getattr(request.user, "is_staff", False):
        catalog.perform_destroy(row)
        words = f"{slug} removed. Suppressed alerts that still fire open incidents within a minute."
        removed(request, kind.kind, slug, words)
    else:
        messages.error(request, "Requires staff permissions.")
    return HttpResponseRedirect(reverse(back))
