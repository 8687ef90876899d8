"""Undo of a removal: the button in its message, and beside it in the audit."""

from __future__ import annotations

from typing import Final

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from frontend.rights import rights
from frontend.views.pages import context_of, page
from incidents.api.restoring import RESTORABLE, NotRestored, restore
from ingest.queries import WrongExpectedVersion

PAGES: Final = {
    "team": "teams",
    "service": "services",
    "route": "routes",
    "escalation_policy": "policies",
    "schedule": "on_call_schedules",
    "maintenance": "maintenance",
    "inhibition": "inhibitions",
}
"""Where what is of a kind stands."""
TAG: Final = "restore"


def removed(request: HttpRequest, kind: str, key: str, words: str) -> None:
    """Say that something is gone, with a button that puts it back."""
    messages.success(request, words, extra_tags=f"{TAG} {kind} {key}")


@page
@require_POST
def put_back(request: HttpRequest) -> HttpResponse:
    kind, key = request.POST.get("kind", ""), request.POST.get("key", "").replace("\0", "")[:300]
    if kind not in RESTORABLE:
        raise Http404("nothing of that kind can be put back")
    asking = rights(request)
    if not (asking.staff or (asking.some and RESTORABLE[kind].acting_for(context_of(request)).by_team)):
        raise PermissionDenied("What was removed is put back by those who may configure it.")
    try:
        messages.success(request, f"{restore(kind, key, context_of(request))} is back as it was.")
    except NotRestored as error:
        text = str(error)
        messages.error(request, f"{text[:1].upper()}{text[1:]}.")
    except WrongExpectedVersion:
        messages.error(request, "Someone else changed it at the same time; look again.")
    return HttpResponseRedirect(reverse(PAGES[kind]))
