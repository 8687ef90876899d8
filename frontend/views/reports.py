"""The daily reports, as pages."""

from __future__ import annotations

from datetime import UTC, date

from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from frontend.views.pages import page, show
from incidents import queries
from incidents.reports import producing


@page
@require_safe
def reports(request: HttpRequest) -> HttpResponse:
    today = timezone.now().astimezone(UTC).date()
    context = {"today": producing.report(today, timezone.now()), "reports": producing.reports()}
    return show(request, "frontend/reports.html", context, section="reports")


@page
@require_safe
def report(request: HttpRequest, id: str) -> HttpResponse:
    try:
        found = producing.report(date.fromisoformat(id), timezone.now())
    except ValueError:
        found = None
    if found is None:
        raise Http404("no such report")
    context = {"report": found, "team_names": {team.slug: team.name for team in queries.teams()}}
    return show(request, "frontend/report.html", context, section="reports")
