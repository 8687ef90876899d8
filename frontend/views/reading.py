"""Pages that only read: reports, teams, the docs; and the files and tokens that pages need."""

from __future__ import annotations

import gzip
import json

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_safe

from analyzers.queries import analyzers
from frontend import documents
from frontend.charts import BundleFailed, bundle, bundle_name
from frontend.examples import WEBHOOK_REQUEST, WEBHOOK_SNIPPET, example
from frontend.live import make_token
from frontend.senders import BY_SLUG, SENDERS
from frontend.views.pages import page, show, user_name
from incidents.domain.delivering import FALL_AFTER, MOST_ATTEMPTS
from incidents.domain.messages import MOST_SHOWN
from incidents.domain.webhooks import LARGEST_BODY
from incidents.webhooks.posting import TIMEOUT
from ingest.queries import TELEMETRY_KINDS

GUIDES = (
    (
        "Begin",
        (
            ("welcome", "Set up step by step", "from nothing to a ticket that calls you"),
            ("docs_console", "The console", "addresses, keys, live updates, roles"),
            ("docs_inbox", "The inbox", "search, views, several tickets, one after the other"),
            ("docs_grid", "The grid", "what fails where, and how to read it"),
            ("docs_components", "Components", "the tree, search, one of them"),
        ),
    ),
    (
        "What comes in",
        (
            ("integrations", "Integrations", "keys, and what to paste"),
            ("docs_correlation", "What belongs together", "grouping, causes, silences, maintenance"),
            ("docs_limits", "Limits", "sizes and rates, door by door"),
        ),
    ),
    (
        "Who gets it",
        (
            ("docs_routes", "Routes", "which ticket goes to which team"),
            ("docs_policies", "Escalation policies", "who is called, and when"),
            ("docs_on_call", "On call", "schedules, overrides, calendars"),
        ),
    ),
    (
        "What goes out",
        (
            ("docs_notifications", "Messages", "how people are told"),
            ("docs_webhooks", "Webhooks", "how programs are told"),
        ),
    ),
)
"""Pages of documentation by what one wants to do: the name of the address, its words, what it is about."""


@page
@require_safe
def docs(request: HttpRequest) -> HttpResponse:
    address = request.build_absolute_uri("/").rstrip("/")
    kinds = [{"kind": kind, "example": example(kind)} for kind in TELEMETRY_KINDS.values()]
    context = {"kinds": kinds, "address": address, "analyzers": analyzers().values(), "senders": SENDERS}
    context["guides"] = GUIDES
    context["analyzer_pages"] = documents.documents("analyzers")
    return show(request, "frontend/docs.html", context, section="docs")


@page
@require_safe
def guide(request: HttpRequest, about: str) -> HttpResponse:
    """A page of documentation that says the same to everybody."""
    return show(request, f"frontend/docs_{about}.html", section="docs")


@page
@require_safe
def read_document(request: HttpRequest, slug: str) -> HttpResponse:
    try:
        found = documents.document(slug)
    except KeyError:
        raise Http404(f"no documentation page {slug}") from None
    return show(request, "frontend/document.html", {"document": found}, section="docs")


@page
@require_safe
def docs_console(request: HttpRequest) -> HttpResponse:
    return show(request, "frontend/docs_console.html", section="docs")


@page
@require_safe
def docs_limits(request: HttpRequest) -> HttpResponse:
    """What is taken at once and in all, door by door, with the settings of this Dossier."""
    told = (
        (
            "Requests of one key",
            "KEY_RATE",
            f"{settings.KEY_RATE:,} a second, {10 * settings.KEY_RATE:,} at once",
        ),
        (
            "Requests under way",
            "WEB_THREADS",
            f"{settings.WEB_THREADS}; refused when half wait above a second",
        ),
        (
            "Reads under way",
            "READS_AT_ONCE",
            f"{settings.READS_AT_ONCE}; others get 503 with `Retry-After: 1`",
        ),
        ("Body of an alert door", "ALERT_MAX_BODY", _size(settings.ALERT_MAX_BODY)),
        ("Body of telemetry, as sent", "TELEMETRY_MAX_BODY", _size(settings.TELEMETRY_MAX_BODY)),
        ("Body of telemetry, unpacked", "TELEMETRY_MAX_DECODED", _size(settings.TELEMETRY_MAX_DECODED)),
        ("A mail", "MAIL_MAX_BODY", _size(settings.MAIL_MAX_BODY)),
    )
    context = {"limits": told, "processes": settings.WEB_WORKERS, "senders": SENDERS}
    return show(request, "frontend/docs_limits.html", context, section="docs")


@page
@require_safe
def docs_webhooks(request: HttpRequest) -> HttpResponse:
    """What receivers of webhooks need to know."""
    context = {
        "request_example": WEBHOOK_REQUEST,
        "snippet": WEBHOOK_SNIPPET,
        "timeout": f"{TIMEOUT:g}",
        "largest": LARGEST_BODY // 1024,
    }
    return show(request, "frontend/docs_webhooks.html", context, section="docs")


@page
@require_safe
def docs_notifications(request: HttpRequest) -> HttpResponse:
    """How people are told of tickets, and what happens when they cannot be."""
    context = {"most": MOST_SHOWN, "attempts": MOST_ATTEMPTS, "fall": FALL_AFTER}
    return show(request, "frontend/docs_notifications.html", context, section="docs")


def _size(count: int) -> str:
    return f"{count / 2**20:g} MiB" if count >= 2**20 else f"{count / 2**10:g} KiB"


@page
@require_safe
def docs_door(request: HttpRequest, slug: str) -> HttpResponse:
    """What one kind of sender needs to know, with the address of this Dossier in it."""
    sender = BY_SLUG.get(slug)
    if sender is None:
        raise Http404(f"there is no page about {slug}")
    made = f" --mapping {slug}" if sender.mapping else ""
    context = {
        "sender": sender,
        "senders": SENDERS,
        "configuration": sender.configured(settings.BASE_URL),
        "mapping": json.dumps(sender.mapping, indent=2),
        "key_words": f"`KEY` is a key of `manage.py create_key NAME --scope {sender.scope}{made}`, shown once.",
    }
    return show(request, "frontend/docs_door.html", context, section="docs")


@page
@require_safe
def live(request: HttpRequest) -> HttpResponse:
    """Where this page may listen for changes, and the token that lets it."""
    host = request.get_host()
    name = host if host.endswith("]") else host.rsplit(":", 1)[0] if ":" in host else host
    url = settings.EVENTS_URL or f"{request.scheme}://{name}:{settings.EVENTS_PORT}/events"
    response = JsonResponse({"url": url, "token": make_token(user_name(request))})
    response["Cache-Control"] = "no-store"
    return response


@require_safe
def charts(request: HttpRequest, name: str) -> HttpResponse:
    """The chart library of this version; the name changes with the version, so it may be kept for ever."""
    if name != bundle_name():
        raise Http404(name)
    try:
        packed = bundle().read_bytes()
    except BundleFailed as error:
        return HttpResponse(str(error), status=503, content_type="text/plain")
    accepts = "gzip" in request.headers.get("Accept-Encoding", "")
    response = HttpResponse(packed if accepts else gzip.decompress(packed), content_type="text/javascript")
    if accepts:
        response["Content-Encoding"] = "gzip"
    patch_vary_headers(response, ["Accept-Encoding"])
    response["Cache-Control"] = "public, max-age=31536000, immutable"
    return response
