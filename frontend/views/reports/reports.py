"""Reports: the list, one of them, who gets them by mail."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from frontend import times
from frontend.evidence import Piece
from frontend.views.pages import context_of, page, show, staff_only, typed_in
from frontend.views.paging import page_of_rows
from incidents import queries
from incidents.reports import charts, mail, on_demand
from incidents.reports import produce as producing
from incidents.reports.csv import csv_of
from incidents.reports.models import ProducedReport, ReportEmail, ReportSchedule, Subscription
from incidents.reports.periods import CADENCES

NEWEST = (("end", True), ("id", False))
"""Reports on one page."""
_FILES: dict[str | None, tuple[str, Callable[[dict[str, Any]], str]]] = {
    "csv": ("text/csv; charset=utf-8", csv_of),
    "json": ("application/json", partial(json.dumps, indent=2, ensure_ascii=False)),
}


@page
@require_safe
def reports(request: HttpRequest) -> HttpResponse:
    chosen = request.GET.get("schedule", "").replace("\0", "")
    now = timezone.now()
    schedules = list(ReportSchedule.objects.prefetch_related("subscriptions"))
    schedules.sort(key=lambda one: (CADENCES.index(one.cadence), one.title))
    shown = ProducedReport.objects.filter(schedule=chosen) if chosen else ProducedReport.objects.all()
    rows, pager = page_of_rows(request, shown, NEWEST)
    context = {
        "schedules": [(one, producing.current(one, now)) for one in schedules],
        "requested": chosen,
        "reports": rows,
        "list": pager,
        "yesterday": (now - timedelta(days=1)).date().isoformat(),
    }
    return show(request, "frontend/reports/reports.html", context, section="reports")


@page
@require_safe
def report(request: HttpRequest, id: str) -> HttpResponse:
    made = on_demand.production(id)
    if made is not None and not ProducedReport.objects.filter(pk=id).exists():
        context = {"made": made, "id": id}
        return show(request, "frontend/reports/making.html", context, section="reports")
    if "HX-Request" in request.headers:  # a page that waited for the report gets all of it, with its charts
        return HttpResponse(headers={"HX-Refresh": "true"})
    try:
        found = producing.report(id, timezone.now())
    except producing.ReportNotFoundError as error:
        raise Http404(str(error)) from error
    if (wanted := request.GET.get("format")) in _FILES:
        media, write = _FILES[wanted]
        headers = {"Content-Disposition": f'attachment; filename="{id}.{wanted}"'}
        return HttpResponse(write(found), content_type=media, headers=headers)
    schedule = ReportSchedule.objects.filter(name=found["schedule"]).first()
    context = {
        "report": found,
        "analyses": [_with_pieces(one) for one in found["analyses"]],
        "chart": charts.incidents_chart(found) if found["incidents"]["opened"] else None,
        "team_names": {team.slug: team.name for team in queries.teams()},
        "schedule": schedule,
        "subscriptions": Subscription.objects.filter(schedule=schedule) if schedule else [],
        "mailings": ReportEmail.objects.filter(report_id=id),
        "mail_is_set_up": settings.EMAIL_IS_SET_UP,
        "address": getattr(request.user, "email", ""),
    }
    with times.read_in(times.zone_called(found["period"]["zone"])):  # the same document for every reader
        return show(request, "frontend/reports/report.html", context, section="reports")


def _with_pieces(analysis: Mapping[str, Any]) -> dict[str, Any]:
    """An analyzer's part of a report, its evidence as a page shows it."""
    return {**analysis, "evidence": [Piece.of(one) for one in analysis["evidence"]]}


@page
@require_POST
def produce(request: HttpRequest) -> HttpResponse:
    """Have the report of a past period made and recorded: of `schedule`, over the period that `day` lies in."""
    staff_only(request, "Only staff can generate reports.")
    schedule = ReportSchedule.objects.filter(name=request.POST.get("schedule", "").replace("\0", "")).first()
    if schedule is None:
        raise Http404("no such report schedule")
    try:
        day = date.fromisoformat(request.POST.get("day", ""))
        id = on_demand.demand(schedule, day, context_of(request).actor, timezone.now())
    except on_demand.InvalidPeriodError as error:
        messages.error(request, f"Not generated: {error}")
        return redirect("reports")
    except ValueError:
        messages.error(request, "Not generated: the day must be a date such as 2026-11-20")
        return redirect("reports")
    return redirect("report", id)


@page
@require_POST
def subscribe(request: HttpRequest, name: str) -> HttpResponse:
    """Add or take away one address (`address`, `leave`) and go back to the report. Of others than staff their own."""
    schedule = ReportSchedule.objects.filter(name=name).first()
    if schedule is None:
        raise Http404(f"no report schedule {name}")
    address, context = typed_in(request).get("address", "").strip(), context_of(request)
    if address != getattr(request.user, "email", ""):
        staff_only(request, "Only staff can subscribe or unsubscribe other addresses.")
    if "leave" in request.POST:
        mail.unsubscribe(name, address, context)
        messages.success(request, f"{address} no longer receives this report")
    else:
        try:
            validate_email(address)
            mail.subscribe(schedule, address, context)
            messages.success(request, f"{address} now receives this report")
        except ValidationError:
            messages.error(request, f"{address[:80]!r} is not an e-mail address, such as alice@example.com")
    back = request.POST.get("back") or ""
    return redirect(back if back.startswith("/reports/") else "/reports")


@csrf_exempt  # the token in the address is the proof; mail programs post here without a page (RFC 8058)
@require_http_methods(["GET", "HEAD", "POST"])
def unsubscribe(request: HttpRequest, token: str) -> HttpResponse:
    """For whoever has the link of a mail, signed in or not. Looking at it changes nothing: scanners do."""
    found = mail.subscription_of(token)
    if found is None:
        raise Http404("invalid unsubscribe link")
    schedule, address = found
    done = request.method == "POST"
    if done:
        mail.unsubscribe(schedule, address)
    context = {"schedule": schedule, "address": address, "done": done}
    return render(request, "frontend/reports/unsubscribe.html", context)
