"""The page behind the link of a message: acknowledge, snooze or hand over without signing in. A service worker, which
accepts JSON, gets one sentence instead."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.cache import patch_cache_control
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from frontend.views.incident.actions import VERBS
from frontend.views.incident.incident import SNOOZES
from incidents import queries
from incidents.commands import CommandRefusedError, InvalidValueError
from incidents.notifications.answer_links import LinkRefusedError, open_link, use
from incidents.notifications.models import Notification
from ingest.queries import Context, StreamVersionError

OFFERED = ("acknowledge", "snooze", "hand_over")
TEMPLATE = "frontend/incident/answer.html"
OVER = {"resolved": "The incident is resolved; no answer is needed."}


@csrf_exempt  # the token in the address is the proof; a request without a session has no cookie either
@require_http_methods(["GET", "HEAD", "POST"])
def answer(request: HttpRequest, token: str) -> HttpResponse:
    """GET shows what can be done and does nothing; POST does it, once."""
    try:
        call = open_link(token, is_answer=request.method == "POST")
        return _answered(request, call) if request.method == "POST" else _page(request, call)
    except LinkRefusedError as refused:
        return _shown(request, {"refused": str(refused)}, refused.status)


def _answered(request: HttpRequest, call: Notification) -> HttpResponse:
    verb = request.POST.get("verb", "")
    if verb not in OFFERED:
        return _page(request, call, "Choose an action.", 400)
    command, done = VERBS[verb]
    form = {name: str(text).replace("\0", "") for name, text in request.POST.items()}
    try:
        with transaction.atomic():
            use(call, verb)
            command(
                str(call.incident),
                form,
                Context(f"user:{call.person}", trace=getattr(request, "trace", None)),
            )
    except StreamVersionError:
        raise LinkRefusedError(410, "This link was already used: each link works once.") from None
    except CommandRefusedError as error:
        return _page(request, call, f"Not done: {error.reason}.", 409)
    except InvalidValueError as error:
        return _page(request, call, f"{error.field.capitalize()} {error.reason}.", 400)
    return _shown(request, {"view": queries.get(str(call.incident)), "done": done, "person": call.person})


def _page(request: HttpRequest, call: Notification, problem: str = "", status: int = 200) -> HttpResponse:
    view = queries.get(str(call.incident))
    closed = f"Merged into #{view.incident.merged_number}." if view.incident.merged_number else ""
    context = {
        "view": view,
        "person": call.person,
        "why": call.why,
        "problem": problem,
        "over": closed or OVER.get(view.incident.state, ""),
        "snoozes": [one for one in SNOOZES if one[0] not in ("time", "change")],
        "teams": [team for team in queries.teams() if team.slug != view.incident.team],
    }
    return _shown(request, context, status)


def _shown(request: HttpRequest, context: dict[str, Any], status: int = 200) -> HttpResponse:
    if "application/json" in request.headers.get("Accept", ""):
        response: HttpResponse = JsonResponse({"text": _sentence(context)}, status=status)
    else:
        response = render(request, TEMPLATE, context, status=status)
    patch_cache_control(response, no_store=True)
    response["Referrer-Policy"] = "no-referrer"  # the address is a key
    response["X-Robots-Tag"] = "noindex"
    return response


def _sentence(context: dict[str, Any]) -> str:
    if "refused" in context:
        return str(context["refused"])
    if "done" in context:
        return f"{context['done']} #{context['view'].incident.number}."
    return str(
        context["problem"] or context["over"] or f"#{context['view'].incident.number} can be answered."
    )
