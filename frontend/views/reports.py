"""Reports: the list, one of them, who gets them by mail."""

from __future__ import annotations

import json
from collections.abc import Callable
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

from frontend.views.pages import page, show
from incidents import queries
from incidents.reports import mailing, pictures, producing
from incidents.reports.models import Mailing, ReportSchedule, Subscription
from incidents.reports.periods import CADENCES
from incidents.reports.table import csv_of

MOST = 200
"""Reports on one page."""
_FILES: dict[str | None, tuple[str, Callable[[dict[str, Any]], str]]] = {
    "csv": ("text/csv; charset=utf-8", csv_of),
    "json": ("application/json", partial(json.dumps, indent=2, ensure_ascii=False)),
}


@page
@require_safe
def reports(request: HttpRequest) -> HttpResponse:
    asked = request.GET.get("schedule", "")
    now = timezone.now()
    schedules = list(ReportSchedule.objects.prefetch_related("subscriptions"))
    schedules.sort(key=lambda one: (CADENCES.index(one.cadence), one.title))
    context = {
        "schedules": [(one, producing.current(one, now)) for one in schedules],
        "asked": asked,
        "reports": producing.reports(asked)[:MOST],
        "most": MOST,
    }
    return show(request, "frontend/reports.html", context, section="reports")


@page
@require_safe
def report(request: HttpRequest, id: str) -> HttpResponse:
    try:
        found = producing.report(id, timezone.now())
    except producing.NoSuchReport as error:
        raise Http404(str(error)) from error
    if (wanted := request.GET.get("format")) in _FILES:
        media, write = _FILES[wanted]
        headers = {"Content-Disposition": f'attachment; filename="{id}.{wanted}"'}
        return HttpResponse(write(found), content_type=media, headers=headers)
    schedule = ReportSchedule.objects.filter(name=found["schedule"]).first()
    context = {
        "report": found,
        "chart": pictures.tickets_chart(found) if found["tickets"]["opened"] else None,
        "team_names": {team.slug: team.name for team in queries.teams()},
        "schedule": schedule,
        "subscriptions": Subscription.objects.filter(schedule=schedule) if schedule else [],
        "mailings": Mailing.objects.filter(report_id=id),
        "mail_is_set_up": settings.MAIL_IS_SET_UP,
        "address": getattr(request.user, "email", ""),
    }
    return show(request, "frontend/report.html", context, section="reports")


@page
@require_POST
def subscribe(request: HttpRequest, name: str) -> HttpResponse:
    """Add or take away one address (`address`, `leave`) and go back to the report."""
    schedule = ReportSchedule.objects.filter(name=name).first()
    if schedule is None:
        raise Http404(f"there is no report schedule {name}")
    address = request.POST.get("address", "").strip()
    if "leave" in request.POST:
        mailing.unsubscribe(name, address)
        messages.success(request, f"{address} gets this report no longer")
    else:
        try:
            validate_email(address)
            Subscription.objects.get_or_create(schedule=schedule, address=address)
            messages.success(request, f"{address} gets this report from now on")
        except ValidationError:
            messages.error(request, f"{address[:80]!r} is no mail address, such as alice@example.com")
    back = request.POST.get("back") or ""
    return redirect(back if back.startswith("/reports/") else "/reports")


@csrf_exempt  # the token in the address is the proof; mail programs post here without a page (RFC 8058)
@require_http_methods(["GET", "HEAD", "POST"])
def unsubscribe(request: HttpRequest, token: str) -> HttpResponse:
    """For whoever has the link of a mail, signed in or not. Looking at it changes nothing: scanners do."""
    found = mailing.subscription_of(token)
    if found is None:
        raise Http404("this link is not one of ours")
    schedule, address = found
    done = request.method == "POST"
    if done:
        mailing.unsubscribe(schedule, address)
    context = {"schedule": schedule, "address": address, "done": done}
    return render(request, "frontend/unsubscribe.html", context)
