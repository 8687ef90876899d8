"""Runs: what looked at the fleet, on what, and what it concluded."""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from analyzers import commands
from analyzers import queries as analyzers
from analyzers.queries import Run, Schedule
from frontend.evidence import Piece
from frontend.views.pages import context_of, page, show, user_name
from incidents.commands import InvalidValueError
from incidents.permissions import allow
from incidents.queries import placed_findings
from ingest.queries import regions

PAGE = 50
FILTERS = ("analyzer", "status", "region", "schedule")
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
    asked = {name: request.GET[name] for name in FILTERS if request.GET.get(name)}
    context = {
        "runs": shown[:PAGE],
        "next": following and urlencode({**asked, "before": following}),
        "statuses": STATUSES,
        "analyzers": analyzers.analyzers(),
        "regions": regions(),
        "schedules": Schedule.objects.values_list("name", flat=True),
        "filtered": bool(asked),
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


def _write_cursor(run: Run) -> str:
    return base64.urlsafe_b64encode(f"{run.created_at.isoformat()} {run.id}".encode()).decode()


def _read_cursor(text: str) -> tuple[datetime, UUID]:
    try:
        at, _, id = base64.urlsafe_b64decode(text[:200]).decode().partition(" ")
        return datetime.fromisoformat(at).astimezone(UTC), UUID(id)
    except (ValueError, binascii.Error) as error:
        raise InvalidValueError("before", "is not a place in this list") from error


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
