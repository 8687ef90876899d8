"""Runs: what looked at the fleet, on what, and what it concluded."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from analyzers import commands
from analyzers import queries as analyzers
from analyzers.queries import Run, Schedule
from frontend.evidence import Piece
from frontend.views.pages import context_of, page, show, user_name
from frontend.views.paging import page_of_rows
from incidents.commands import InvalidValueError
from incidents.people.permissions import allow
from incidents.queries import placed_findings
from ingest.queries import regions

NEWEST = (("created_at", True), ("id", True))
FILTERS = ("analyzer", "status", "region", "schedule")
STATUSES = ("named", "quiet", "inconclusive", "failed", "unfinished")


@page
@require_safe
def runs(request: HttpRequest) -> HttpResponse:
    shown, pager = page_of_rows(request, _filtered(request), NEWEST)
    context = {
        "runs": shown,
        "list": pager,
        "statuses": STATUSES,
        "analyzers": analyzers.analyzers(),
        "regions": regions(),
        "schedules": Schedule.objects.values_list("name", flat=True),
        "filtered": any(request.GET.get(name) for name in FILTERS),
    }
    return show(request, "frontend/analysis/runs.html", context, section="analyzers", watch="runs")


def _filtered(request: HttpRequest) -> QuerySet[Run]:
    if unfit := [name for name in FILTERS if "\0" in request.GET.get(name, "")]:
        raise InvalidValueError(unfit[0], "holds a NUL character")
    found = analyzers.runs()
    if name := request.GET.get("analyzer"):
        found = found.filter(analyzer=name)
    if region := request.GET.get("region"):
        found = found.filter(region=region)
    if schedule := request.GET.get("schedule"):
        found = found.filter(schedule__name=schedule)
    status = request.GET.get("status", "")
    if status == "failed":
        return found.filter(state="failed")
    if status == "unfinished":
        return found.filter(state__in=("queued", "running"))
    return found.filter(status=status) if status else found


@page
@require_safe
def run(request: HttpRequest, id: UUID) -> HttpResponse:
    found = analyzers.runs().select_related("repeats").filter(pk=id).first()
    if found is None:
        raise Http404("no such run")
    verdict = analyzers.verdict(found)
    numbers = {placed.component: placed for placed in placed_findings(str(id))}
    suspects = [
        {**suspect, "own": True, "placed": numbers.get(suspect["component"])}
        for suspect in (verdict["suspects"] if verdict else ())
    ]
    context = {
        "run": found,
        "verdict": verdict,
        "repeatable": analyzers.is_repeatable(found),
        "suspects": suspects,
        "evidence": [Piece.of(item) for item in (verdict["evidence"] if verdict else ())],
        "repetitions": found.repetitions.order_by("created_at"),
        "late": analyzers.late_rows(found) if found.state == "done" else [],
        "installed": analyzers.analyzers().get(found.analyzer),
        "same_version": analyzers.is_installed(found),
    }
    return show(request, "frontend/analysis/run.html", context, section="analyzers", watch=str(id))


@page
@require_POST
def rerun(request: HttpRequest, id: UUID) -> HttpResponse:
    allow("analyze", context_of(request))
    try:
        again = commands.request_rerun(id, f"user:{user_name(request)}", timezone.now())
    except Run.DoesNotExist as error:
        raise Http404("no such run") from error
    except commands.RunNotRepeatableError as error:
        messages.error(request, f"Run not repeated: {error}")
        return HttpResponseRedirect(reverse("run", args=[id]))
    messages.success(request, "Queued on the same stored window. The verdict appears on this page.")
    return HttpResponseRedirect(reverse("run", args=[again.id]))
