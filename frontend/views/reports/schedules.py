"""Schedules of reports: subject, interval, time zone, analyzers. Everybody reads, staff change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from zoneinfo import available_timezones

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST
from rest_framework.serializers import BaseSerializer

from analyzers.queries import analyzers
from frontend import times
from frontend.views.pages import context_of, page, show, staff_only, typed_in
from frontend.views.restore import removed
from frontend.views.serializer_forms import Read, edited, named
from incidents import queries
from incidents.reports.models import ReportSchedule
from incidents.reports.periods import CADENCES
from incidents.reports.serializers import ReportScheduleSerializer
from incidents.reports.views import ReportSchedulesView
from ingest.queries import regions

STAFF = "Only staff can change report schedules."
_TEXTS = ("name", "title", "cadence", "region", "team", "zone", "hour")


@page
@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, name: str | None = None) -> HttpResponse:
    """One schedule; a new one without `name`."""
    staff_only(request, STAFF)
    row = None if name is None else _found(name)

    def keep(serializer: BaseSerializer[Any]) -> str:
        ReportSchedulesView.acting_for(context_of(request)).put(serializer)
        messages.success(request, f"Saved {serializer.validated_data['title']}")
        return reverse("reports")

    return edited(
        request,
        lambda: _begun(row),
        lambda: _read(request, row),
        lambda data: ReportScheduleSerializer(row, data=data),
        keep,
        lambda typed, problems: _form(request, row, typed, problems),
    )


def _read(request: HttpRequest, row: ReportSchedule | None) -> tuple[dict[str, Any], Read]:
    form = typed_in(request)
    typed: dict[str, Any] = {field: form.get(field, "").strip() for field in _TEXTS}
    stored = {one["analyzer"]: one for one in (row.analyses if row else ())}
    chosen = request.POST.getlist("analyses")
    typed |= {
        "enabled": request.POST.get("enabled") == "on",
        "analyses": [stored.get(one, {"analyzer": one, "params": {}}) for one in chosen],
    }
    if row is not None:
        typed["name"] = row.name
    return typed, Read(typed)


@page
@require_POST
def remove(request: HttpRequest, name: str) -> HttpResponse:
    staff_only(request, STAFF)
    row = _found(name)
    ReportSchedulesView.acting_for(context_of(request)).perform_destroy(row)
    words = f"Removed {row.title}. Its reports are kept; no new ones are sent."
    removed(request, ReportSchedulesView.kind, name, words)
    return redirect("reports")


def _found(name: str) -> ReportSchedule:
    return named(ReportSchedule.objects.all(), name, "report schedule")


def _begun(row: ReportSchedule | None) -> dict[str, Any]:
    if row is None:
        return {
            "cadence": "weekly",
            "zone": times.here().key,
            "hour": 0,
            "enabled": True,
            "analyses": [],
        }
    return {field: getattr(row, field) for field in (*_TEXTS, "enabled", "analyses")}


def _form(
    request: HttpRequest, row: ReportSchedule | None, typed: Mapping[str, Any], problems: Mapping[str, str]
) -> HttpResponse:
    context = {
        "schedule": row,
        "typed": typed,
        "chosen": [one["analyzer"] for one in typed["analyses"]],
        "problems": problems,
        "cadences": CADENCES,
        "teams": queries.teams(),
        "regions": regions(),
        "analyzers": analyzers().values(),
        "zones": sorted(available_timezones()),
    }
    status = 400 if problems else 200
    return show(request, "frontend/reports/schedule.html", context, section="reports", status=status)
