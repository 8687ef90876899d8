"""Pages that only read: reports, teams, the docs; and the files and tokens that pages need."""

from __future__ import annotations

import gzip
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import reverse
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_safe
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from frontend import documents
from frontend.charts import ChartBundleError, bundle, bundle_name
from frontend.document_parts import parts
from frontend.live import make_token
from frontend.views.pages import page, show, user_name
from ingest.api.authentication import HasScope

MOVED = {
    "components": "start/components",
    "console": "start/console",
    "correlation": "operate/grouping",
    "escalation-policies": "operate/escalation-policies",
    "grid": "start/grid",
    "inbox": "start/inbox",
    "limits": "integrate/limits",
    "notifications": "operate/notifications",
    "on-call": "operate/on-call",
    "routes": "operate/routes",
    "webhooks": "integrate/webhooks",
}
"""Pages of the documentation by the addresses that they had first."""


@page
@require_safe
def docs(request: HttpRequest) -> HttpResponse:
    """The table of contents, or the pages that a search found."""
    query = request.GET.get("q", "").strip()[:200]
    context = {"contents": documents.contents(), "query": query, "hits": documents.search(query)}
    return show(request, "frontend/docs/docs.html", context, section="docs")


@page
@require_safe
def read_document(request: HttpRequest, slug: str) -> HttpResponse:
    """A page of the documentation with the address and the settings of this Dossier in it."""
    if moved := MOVED.get(slug):
        return HttpResponseRedirect(reverse("document", args=[moved]))
    try:
        names = documents.part_names(documents.source(slug))
        found = documents.document(slug, parts(names), settings.PUBLIC_URL)
    except KeyError:
        raise Http404(f"no documentation page {slug}") from None
    contents = documents.contents()
    order = [entry for section in contents for entry in section.entries]
    place = next((place for place, entry in enumerate(order) if entry.slug == slug), None)
    context = {
        "document": found,
        "slug": slug,
        "contents": contents,
        "previous": order[place - 1] if place else None,
        "following": order[place + 1] if place is not None and place + 1 < len(order) else None,
    }
    return show(request, "frontend/docs/document.html", context, section="docs")


@page
@require_safe
def live(request: HttpRequest) -> HttpResponse:
    """Address for this page's live changes, and the token that opens it."""
    return _live(request, user_name(request))


class PlaceShape(serializers.Serializer[Any]):
    url = serializers.URLField(help_text="server-sent events; add `token`, and `after` with a log position")
    token = serializers.CharField(help_text="good for a minute")


class LiveView(APIView):
    def get_permissions(self) -> list[BasePermission]:
        return [HasScope("incidents:read")]

    @extend_schema(operation_id="live", responses={200: PlaceShape})
    def get(self, request: Request) -> HttpResponse:
        """Address and token of the stream of changes: an event for each incident and run that changed, with its log
        position as id. `bye` asks for a new token, `reset` to read again what is shown."""
        name = request.user.get_username()
        return _live(request._request, name if request.auth is None else f"key:{name}")


def _live(request: HttpRequest, name: str) -> HttpResponse:
    host = request.get_host()
    host = host if host.endswith("]") else host.rsplit(":", 1)[0] if ":" in host else host
    url = settings.EVENTS_URL or f"{request.scheme}://{host}:{settings.EVENTS_PORT}/events"
    response = JsonResponse({"url": url, "token": make_token(name)})
    response["Cache-Control"] = "no-store"
    return response


@require_safe
def charts(request: HttpRequest, name: str) -> HttpResponse:
    """The chart library of this version; the name changes with the version, so it may be kept for ever."""
    if name != bundle_name():
        raise Http404(name)
    try:
        packed = bundle().read_bytes()
    except ChartBundleError as error:
        return HttpResponse(str(error), status=503, content_type="text/plain")
    accepts = "gzip" in request.headers.get("Accept-Encoding", "")
    response = HttpResponse(packed if accepts else gzip.decompress(packed), content_type="text/javascript")
    if accepts:
        response["Content-Encoding"] = "gzip"
    patch_vary_headers(response, ["Accept-Encoding"])
    response["Cache-Control"] = "public, max-age=31536000, immutable"
    return response
