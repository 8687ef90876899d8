"""Data sources: servers that draw the metric of an alert. For staff."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.db import IntegrityError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from frontend.views.pages import context_of, page, show, staff_only
from incidents.api.data_sources import DataSourceSerializer, DataSourcesView
from incidents.api.incident.views import ConflictError
from incidents.data_sources.models import DataSource
from incidents.data_sources.prometheus import DataSourceError, query_range
from ingest.queries import StreamVersionError

FIELDS = ("name", "url", "external_url", "authorization")
ALIVE = "vector(1)"
"""A query that every Prometheus answers."""


@page
@require_http_methods(["GET", "HEAD", "POST"])
def data_sources(request: HttpRequest) -> HttpResponse:
    """The list and the form; a POST creates a source, or changes the one that `change` names. An authorization that is
    left empty stays."""
    staff_only(request)
    if request.method != "POST":
        return _listed(request, None, None)
    row = None
    if changed := request.POST.get("change", ""):
        row = DataSource.objects.filter(name=changed.replace("\0", "")).first()
        if row is None:
            raise Http404("no such data source")
    given = {name: request.POST.get(name, "").strip() for name in FIELDS}
    if row is not None:
        given["name"] = row.name
        if not given["authorization"] and request.POST.get("no_authorization") != "on":
            del given["authorization"]
    serializer = DataSourceSerializer(row, data=given, partial=row is not None)
    if not serializer.is_valid():
        return _listed(request, row, given, _errors(serializer.errors))
    try:
        DataSourcesView.acting_for(context_of(request)).put(serializer)
    except (IntegrityError, StreamVersionError):
        return _listed(request, row, given, {"name": "is already taken, or was changed at the same time"})
    except ConflictError as error:
        return _listed(request, row, given, {"name": str(error.detail)})
    messages.success(request, f"{given['name']} saved.")
    return HttpResponseRedirect(reverse("data_sources"))


def _errors(found: Any) -> dict[str, str]:
    return {name: " ".join(str(one) for one in why) for name, why in found.items()}


def _listed(
    request: HttpRequest, row: DataSource | None, typed: Any, errors: dict[str, str] | None = None
) -> HttpResponse:
    shown = typed or {}
    if typed is not None:
        shown = {name: value for name, value in typed.items() if name != "authorization"}
    context = {
        "sources": DataSource.objects.all(),
        "errors": errors or {},
        "typed": shown,
        "changed": "" if row is None else row.name,
    }
    return show(
        request,
        "frontend/settings/data_sources.html",
        context,
        section="settings",
        status=400 if errors else 200,
    )


@page
@require_POST
def act(request: HttpRequest, name: str, verb: str) -> HttpResponse:
    staff_only(request)
    row = DataSource.objects.filter(name=name).first()
    if row is None or verb not in ("test", "remove"):
        raise Http404("no such data source")
    if verb == "remove":
        try:
            DataSourcesView.acting_for(context_of(request)).perform_destroy(row)
        except (ConflictError, StreamVersionError):
            messages.error(
                request, "Not removed: changed by someone else in the meantime. Reload and try again."
            )
        else:
            messages.success(request, f"{name} removed.")
    else:
        now = timezone.now()
        try:
            query_range(row, ALIVE, now - timedelta(minutes=5), now)
        except DataSourceError as error:
            messages.error(request, f"Test failed: {error}.")
        else:
            messages.success(request, f"{name} answers queries.")
    return HttpResponseRedirect(reverse("data_sources"))
