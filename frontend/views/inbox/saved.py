"""Views of the inbox that people keep: kept, renamed, changed, removed and brought back."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from frontend.views.inbox.listing import Listing
from frontend.views.incident.actions import safe_next
from frontend.views.pages import context_of, page, user_name
from incidents.commands import CommandRefusedError, InvalidValueError
from incidents.saved_views import commands, queries

TAG = "view"


def shown(request: HttpRequest, listing: Listing) -> dict[str, Any]:
    """Views for the inbox: all of them, the open one, and whether this search is worth saving."""
    name = user_name(request)
    given = {"tab": listing.tab.name, "search": listing.text, "order": listing.order}
    try:
        here = commands.canonical(urlencode(given))
    except InvalidValueError:
        here = "?"  # what no view can be
    rows = queries.views_of(name)
    this = next((row for row in rows if row.query == here), None)
    default = None if this is None else queries.default_of(name)
    return {
        "views": [{"it": row, "here": row is this} for row in rows],
        "this_view": this,
        "this_changes": this is not None and commands.may_change(this, name),
        "this_opens": this is not None and default is not None and this.pk == default.pk,
        "view_query": here,
        "worth_keeping": this is None and not listing.problems and ("search=" in here or "order=" in here),
    }


def opened_with(request: HttpRequest) -> str | None:
    """Address that the bare address of the inbox leads a person to, if they chose one."""
    if request.GET:
        return None
    default = queries.default_of(user_name(request))
    return None if default is None or not default.query else f"?{default.query}"


@page
@require_POST
def keep(request: HttpRequest) -> HttpResponse:
    post = request.POST
    try:
        row = commands.keep(
            post.get("name", ""), post.get("query", ""), post.get("team", ""), context_of(request)
        )
    except (InvalidValueError, CommandRefusedError) as error:
        return _refused(request, error)
    if post.get("default"):
        commands.open_with(row.pk, context_of(request))
    messages.success(request, f"Saved as {row.name}")
    return HttpResponseRedirect(f"{reverse('inbox')}?{row.query}")


@page
@require_POST
def act(request: HttpRequest, id: UUID, verb: str) -> HttpResponse:
    context, here = context_of(request), reverse("inbox")
    try:
        if verb == "rename":
            row = commands.change(id, context, name=request.POST.get("name", ""))
            messages.success(request, f"Renamed to {row.name}")
        elif verb == "remove":
            row = commands.remove(id, context)
            messages.success(request, f"Removed the view {row.name}", extra_tags=f"{TAG} {row.pk}")
            return HttpResponseRedirect(f"{here}?tab=unresolved")
        elif verb == "bring-back":
            row = commands.bring_back(id, context)
            messages.success(request, f"{row.name} restored")
            return HttpResponseRedirect(f"{here}?{row.query}")
        elif verb == "open-with":
            commands.open_with(id if request.POST.get("default") else None, context)
        else:
            raise Http404(verb)
    except commands.SavedViewNotFoundError:
        raise Http404("no such view") from None
    except (InvalidValueError, CommandRefusedError) as error:
        return _refused(request, error)
    return HttpResponseRedirect(safe_next(request, here))


def _refused(request: HttpRequest, error: InvalidValueError | CommandRefusedError) -> HttpResponse:
    reason = error.reason if isinstance(error, CommandRefusedError) else f"{error.field} {error.reason}"
    messages.error(request, f"Not done: {reason}.")
    return HttpResponseRedirect(safe_next(request, reverse("inbox")))
