"""Undo of a removal: the button in its message, and beside it in the audit."""

from __future__ import annotations

from typing import Final

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from analyzers.api import schedules as analysis
from analyzers.api.schedules import KIND as ANALYSIS
from analyzers.api.serializers import ScheduleSerializer
from frontend.rights import rights
from frontend.views.pages import context_of, page
from incidents.api.config.restore import RESTORABLE, RestoreError, made_again, restore
from incidents.reports.views import ReportSchedulesView
from ingest.queries import Context, StreamVersionError

PAGES: Final = {
    "team": "teams",
    "service": "services",
    "route": "routes",
    "escalation_policy": "policies",
    "schedule": "on_call_schedules",
    "maintenance": "maintenance",
    "inhibition": "inhibitions",
    "saved_view": "inbox",
    "status_page": "status_pages",
    ANALYSIS: "schedules",
    ReportSchedulesView.kind: "reports",
}
"""Pages of each kind that can be restored."""
ANEW: Final = {ReportSchedulesView.kind: " Subscribers must subscribe again."}
"""Fields of a kind that the log does not store."""
TAG: Final = "restore"


def removed(request: HttpRequest, kind: str, key: str, words: str) -> None:
    """Say that something is gone, with a button that puts it back."""
    messages.success(request, words, extra_tags=f"{TAG} {kind} {key}")


@page
@require_POST
def put_back(request: HttpRequest) -> HttpResponse:
    kind, key = request.POST.get("kind", ""), request.POST.get("key", "").replace("\0", "")[:300]
    if kind not in PAGES:
        raise Http404("this kind of object cannot be restored")
    allowed = rights(request)
    if not (allowed.staff or (allowed.some and _by_team(kind, context_of(request)))):
        raise PermissionDenied("You do not have permission to restore this.")
    try:
        messages.success(
            request, f"{_restored(kind, key, context_of(request))} restored.{ANEW.get(kind, '')}"
        )
    except RestoreError as error:
        text = str(error)
        messages.error(request, f"{text[:1].upper()}{text[1:]}.")
    except StreamVersionError:
        messages.error(
            request, "Not restored: changed by someone else in the meantime. Reload and try again."
        )
    return HttpResponseRedirect(reverse(PAGES[kind]))


def _by_team(kind: str, context: Context) -> bool:
    """Whether those who manage a team may configure what is of this kind."""
    return kind in RESTORABLE and RESTORABLE[kind].acting_for(context).by_team


def _restored(kind: str, key: str, context: Context) -> str:
    """Its name. Raises RestoreError, ForbiddenError."""
    if kind == ANALYSIS:
        return made_again(kind, key, ScheduleSerializer, lambda value: analysis.put(value, context))
    if kind == ReportSchedulesView.kind:
        view = ReportSchedulesView.acting_for(context)
        return made_again(kind, key, view.get_serializer, view.put)
    return restore(kind, key, context)
