"""Runs, analyzers and schedules: what looks at the fleet, when, and what it concluded."""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from analyzers import commands
from analyzers import queries as analyzers
from analyzers.queries import Run, Schedule
from frontend.durations import parse_span
from frontend.evidence import Piece
from frontend.views.pages import page, show, staff_only, user_name
from incidents.commands import Invalid
from incidents.queries import placed_findings
from incidents.scorecards.queries import scorecards

PAGE = 50
STATUSES = ("named", "quiet", "inconclusive", "failed", "unfinished")


@page
@require_safe
def runs(request: HttpRequest) -> HttpResponse:
    found = _filtered(request)
    if cursor := request.GET.get("before"):
        at, id = _read_cursor(cursor)
        found = found.filter(Q(created_at__lt=at) | Q(created_at=at, id__lt=id))
    shown = list(found[: PAGE + 1])
    following = _write_cursor(shown[PAGE - 1]) if len(shown) > PAGE else None
    context = {
        "runs": shown[:PAGE],
        "next": following,
        "statuses": STATUSES,
        "analyzers": analyzers.analyzers(),
        "filtered": any(request.GET.get(name) for name in ("analyzer", "status")),
    }
    return show(request, "frontend/runs.html", context, section="analyzers", watch="runs")


def _filtered(request: HttpRequest) -> QuerySet[Run]:
    found = analyzers.runs()
    if name := request.GET.get("analyzer"):
        found = found.filter(analyzer=name)
    status = request.GET.get("status", "")
    if status == "failed":
        return found.filter(state="failed")
    if status == "unfinished":
        return found.filter(state__in=("queued", "running"))
    return found.filter(status=status) if status else found


def _write_cursor(run: Run) -> str:
    return base64.urlsafe_b64encode(f"{run.created_at.isoformat()} {run.id}".encode()).decode()


def _read_cursor(text: str) -> tuple[datetime, UUID]:
    try:
        at, _, id = base64.urlsafe_b64decode(text[:200]).decode().partition(" ")
        return datetime.fromisoformat(at).astimezone(UTC), UUID(id)
    except (ValueError, binascii.Error) as error:
        raise Invalid("before", "is not a place in this list") from error


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
    }
    return show(request, "frontend/run.html", context, section="analyzers", watch=str(id))


@page
@require_POST
def rerun(request: HttpRequest, id: UUID) -> HttpResponse:
    try:
        again = commands.request_rerun(id, f"user:{user_name(request)}", timezone.now())
    except Run.DoesNotExist as error:
        raise Http404("no such run") from error
    except commands.NotRepeatable as error:
        messages.error(request, f"Not run again: {error}")
        return HttpResponseRedirect(reverse("run", args=[id]))
    messages.success(request, "Queued on the same kept window. This page shows the verdict when it is there.")
    return HttpResponseRedirect(reverse("run", args=[again.id]))


@page
@require_safe
def analyzer_list(request: HttpRequest) -> HttpResponse:
    installed = analyzers.analyzers()
    context = {"analyzers": installed.values(), "cards": scorecards(list(installed))}
    return show(request, "frontend/analyzers.html", context, section="analyzers")


@page
@require_http_methods(["GET", "HEAD", "POST"])
def schedules(request: HttpRequest) -> HttpResponse:
    problem: dict[str, str] = {}
    if request.method == "POST":
        problem = _edit(request)
        if not problem:
            messages.success(request, f"Saved {request.POST.get('name')}")
            return HttpResponseRedirect(reverse("schedules"))
    found = list(Schedule.objects.order_by("analyzer", "length", "name"))
    context = {"schedules": found, "problem": problem, "typed": request.POST}
    return show(
        request,
        "frontend/schedules.html",
        context,
        section="analyzers",
        status=400 if problem else 200,
    )


def _edit(request: HttpRequest) -> dict[str, str]:
    """Change one schedule; the reason by field when it cannot be."""
    staff_only(request)
    schedule = Schedule.objects.filter(name=request.POST.get("name", "")).first()
    if schedule is None:
        raise Http404("no such schedule")
    spans: dict[str, timedelta] = {}
    for field in ("every", "length", "grace"):
        try:
            spans[field] = parse_span(request.POST.get(field, ""))
        except ValueError as error:
            return {"name": schedule.name, "reason": f"{field.capitalize()} {error}."}
    for field, span in spans.items():
        setattr(schedule, field, span)
    schedule.enabled = request.POST.get("enabled") == "on"
    try:
        schedule.full_clean()
    except ValidationError as error:
        return {"name": schedule.name, "reason": " ".join(error.messages)}
    schedule.save()
    return {}
