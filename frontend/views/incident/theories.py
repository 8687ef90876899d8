"""Theories of an incident: a form, and what was found of each hop. Fetched beside the page when it is asked for."""

from __future__ import annotations

import re
from itertools import pairwise

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from frontend.views.pages import context_of, page, show, user_name
from incidents import queries
from incidents.commands import CommandRefusedError, InvalidValueError
from incidents.domain.permissions import ForbiddenError
from incidents.domain.theories import hops_from
from incidents.people.permissions import refusals
from incidents.theories.commands import check_theory
from incidents.theories.queries import theories_of

_ARROW = re.compile(r"\s*(?:->|→|\n)\s*")


@page
@require_http_methods(["GET", "HEAD", "POST"])
def theories(request: HttpRequest, number: int) -> HttpResponse:
    """The theories that were checked, newest first, and a form; a POST checks the one that is given."""
    state = queries.get(str(number)).incident
    reason, status = "", 200
    if request.method == "POST":
        try:
            path = [one for one in _ARROW.split(request.POST.get("path", "").strip()) if one]
            if len(path) < 2:
                raise InvalidValueError(
                    "path", "must be two or more components, such as tor/dc1-t12 -> host/h4"
                )
            hops = hops_from([{"cause": a, "effect": b} for a, b in pairwise(path)])
            check_theory(state.id, hops, request.POST.get("note", ""), context_of(request))
            return HttpResponseRedirect(reverse("theories", args=[number]))
        except (CommandRefusedError, InvalidValueError) as error:
            refused = isinstance(error, ForbiddenError)
            reason, status = f"{str(error)[:1].upper()}{str(error)[1:]}.", 403 if refused else 400
    context = {
        "i": state,
        "theories": [one.body | {"by": one.actor, "at": one.at} for one in theories_of(state.id)],
        "typed": request.POST,
        "reason": reason,
        "refused": refusals(user_name(request), {"comment"}, state.id).get("comment", ""),
        "example": f"{state.component or 'switch/leaf1'} -> service/checkout",
    }
    return show(request, "frontend/incident/theories.html", context, section="inbox", status=status)
