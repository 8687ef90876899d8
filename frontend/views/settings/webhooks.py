"""Webhooks: whom Dossier tells of incidents' events, how they do, and what they could not take. For staff."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.contrib import messages
from django.db import IntegrityError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from frontend.time_input import parse_moment, parse_span
from frontend.views.pages import context_of, page, show, staff_only
from frontend.views.paging import listed
from incidents import queries
from incidents.api.incident.views import ConflictError
from incidents.api.webhooks import WebhookSerializer, WebhooksView
from incidents.domain.incident.evolve import EVENT_TYPES
from incidents.domain.status_pages import EVENT_TYPES as STATUS_EVENTS
from incidents.domain.values import SEVERITIES, InvalidValueError, rfc3339
from incidents.security import encryption
from incidents.webhooks import commands
from incidents.webhooks.models import Webhook
from incidents.webhooks.queries import WebhookStatus, is_readable, webhook_statuses
from ingest.queries import StreamVersionError

OVERLAP = "1 d"
SHOWN = 20
"""Deliveries that the page lists, the newest first."""


@page
@require_http_methods(["GET", "HEAD", "POST"])
def webhooks(request: HttpRequest) -> HttpResponse:
    staff_only(request)
    if request.method != "POST":
        return _listed(request)
    given = {
        "name": request.POST.get("name", "").strip(),
        "url": request.POST.get("url", "").strip(),
        **{name: request.POST.getlist(name) for name in ("teams", "severities", "types")},
    }
    serializer = WebhookSerializer(data=given)
    if not serializer.is_valid():
        errors = {name: " ".join(_texts(why)) for name, why in serializer.errors.items()}
        return _listed(request, errors=errors, typed=given)
    try:
        catalog = WebhooksView.acting_for(context_of(request))
        catalog.put(serializer)
    except (IntegrityError, StreamVersionError):
        return _listed(request, errors={"name": "is already taken"}, typed=given)
    except ConflictError as error:
        return _listed(request, errors={"name": str(error.detail)}, typed=given)
    return _listed(request, secret=(str(given["name"]), catalog.secret))


def _texts(why: Any) -> list[str]:
    """The texts of an error, which for lists are by place."""
    if isinstance(why, dict):
        return [text for inner in why.values() for text in _texts(inner)]
    return [str(text) for text in why]


def _listed(
    request: HttpRequest,
    errors: dict[str, str] | None = None,
    typed: dict[str, Any] | None = None,
    secret: tuple[str, str] | None = None,
) -> HttpResponse:
    """A secret that was made is in the answer to this request and nowhere else."""
    found = listed(request, list(Webhook.objects.all()), _words, lambda row: (row.name,), reverse("webhooks"))
    statuses = webhook_statuses(found.rows, SHOWN)
    context = {
        "webhooks": [_shown(row, statuses[row.pk]) for row in found.rows],
        "list": found,
        "secret": secret,
        "errors": errors or {},
        "typed": typed or {},
        "teams": queries.teams(),
        "severities": SEVERITIES,
        "types": sorted({*EVENT_TYPES, *STATUS_EVENTS}),
        "overlap": OVERLAP,
    }
    return show(
        request, "frontend/settings/webhooks.html", context, section="settings", status=400 if errors else 200
    )


def _words(row: Webhook) -> str:
    state = "off" if not row.active else "failing" if row.failing_since else ""
    return " ".join((row.name, urlsplit(row.url).netloc, state, *row.teams, *row.severities, *row.types))


def _shown(row: Webhook, stands: WebhookStatus) -> dict[str, Any]:
    return {
        "it": row,
        "host": urlsplit(row.url).netloc,
        "lag": timedelta(seconds=int(stands.lag)),
        "stands": stands,
        "readable": is_readable(row),
    }


@page
@require_POST
def act(request: HttpRequest, name: str, verb: str) -> HttpResponse:
    staff_only(request)
    row = Webhook.objects.filter(name=name).first()
    if row is None or verb not in _VERBS:
        raise Http404("no such webhook")
    try:
        answer = _VERBS[verb](request, row)
    except StreamVersionError:
        messages.error(request, "Not saved: changed by someone else in the meantime. Reload and try again.")
        answer = None
    return answer or HttpResponseRedirect(f"{reverse('webhooks')}?{urlencode({'show': name})}")


def _test(request: HttpRequest, row: Webhook) -> None:
    try:
        tried = commands.test(row, context_of(request).actor)
    except encryption.DecryptionError as error:
        messages.error(request, f"Not sent: {error}.")
        return
    answer = f"{tried.status or 'no answer'}: {tried.answer}".strip(": ")
    if tried.outcome == "taken":
        messages.success(request, f"{row.name} accepted the test in {tried.milliseconds} ms ({answer}).")
    else:
        messages.error(request, f"{row.name} rejected the test. {answer}")


def _rotate(request: HttpRequest, row: Webhook) -> HttpResponse | None:
    try:
        overlap = parse_span(request.POST.get("overlap", OVERLAP))
    except ValueError as error:
        messages.error(request, f"Not rotated: the overlap {error}.")
        return None
    return _listed(request, secret=(row.name, commands.rotate(row, context_of(request), overlap)))


def _replay(request: HttpRequest, row: Webhook) -> None:
    since = request.POST.get("since", "").strip()
    try:
        commands.replay(row, queries.parse_moment(_with_offset(since)), context_of(request))
    except commands.ReplayAheadError as error:
        messages.error(request, f"Not replayed: {error}.")
    except InvalidValueError as error:
        messages.error(request, f"Not replayed: the time {error.reason}.")
    else:
        messages.success(request, f"{row.name}: replaying events after {since}.")


def _with_offset(text: str) -> str:
    """A browser's time field with the offset of the reader's clock."""
    try:
        return rfc3339(parse_moment(text))
    except (ValueError, OverflowError):
        return text


def _switch(request: HttpRequest, row: Webhook) -> None:
    serializer = WebhookSerializer(row, data={"active": not row.active}, partial=True)
    serializer.is_valid(raise_exception=True)
    WebhooksView.acting_for(context_of(request)).put(serializer)
    active = serializer.instance is not None and serializer.instance.active
    words = "enabled; continues from the last position" if active else "disabled"
    messages.success(request, f"{row.name} {words}.")


def _remove(request: HttpRequest, row: Webhook) -> None:
    WebhooksView.acting_for(context_of(request)).perform_destroy(row)
    messages.success(request, f"{row.name} removed.")


_VERBS = {"test": _test, "rotate": _rotate, "replay": _replay, "switch": _switch, "remove": _remove}
