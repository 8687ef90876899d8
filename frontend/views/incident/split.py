"""Alerts that belong to another matter, taken out of an incident by hand into one of their own."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from frontend.views.incident.incident import Problem, carried, render_incident
from frontend.views.pages import context_of, page
from incidents import commands, queries
from incidents.commands import CommandRefusedError, InvalidValueError
from incidents.domain.permissions import ForbiddenError


@page
@require_POST
def split_off(request: HttpRequest, number: int) -> HttpResponse:
    """The alerts that were chosen open an incident, which is named with a way to take it back."""
    form, here = request.POST, f"{reverse('incident', args=[number])}{carried(request)}"
    chosen = form.getlist("alert")
    try:
        made = commands.split_off(
            queries.get(str(number)).incident.id,
            chosen,
            context_of(request),
            str(form.get("title", "")),
            str(form.get("reason", "")),
        )
    except (CommandRefusedError, InvalidValueError) as error:
        reason = (
            error.reason
            if isinstance(error, CommandRefusedError)
            else f"{error.field.capitalize()}: {error.reason}"
        )
        status = (
            403
            if isinstance(error, ForbiddenError)
            else 409
            if isinstance(error, CommandRefusedError)
            else 400
        )
        typed = {"title": str(form.get("title", "")), "reason": str(form.get("reason", ""))}
        return render_incident(request, number, Problem("split_off", f"{reason}.", typed), status)
    count = f"{len(set(chosen))} alert{'' if len(set(chosen)) == 1 else 's'}"
    messages.success(
        request,
        f"Moved {count} to #{made.incident.number}",
        extra_tags=f"put_back/{made.incident.number}",
    )
    return HttpResponseRedirect(here)
