"""The console as an installed app: its manifest, the service worker that shows pushed pages, and the page for a device
that is offline. All without a session: a browser asks for them in the background.
"""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.templatetags.static import static
from django.urls import reverse
from django.views.decorators.http import require_safe

COLOR: Final = "#2c55c4"


@require_safe
def app_manifest(_: HttpRequest) -> HttpResponse:
    """https://www.w3.org/TR/appmanifest/"""
    pictures: list[dict[str, Any]] = [
        {"src": static(f"dossier/icon-{size}.png"), "sizes": f"{size}x{size}", "type": "image/png"}
        for size in (192, 512)
    ]
    maskable = {**pictures[-1], "src": static("dossier/icon-maskable.png"), "purpose": "maskable"}
    found = {
        "id": "/",
        "name": "Dossier",
        "short_name": "Dossier",
        "description": "Incidents, their cause and who is on call",
        "start_url": reverse("inbox"),
        "scope": "/",
        "display": "standalone",
        "theme_color": COLOR,
        "background_color": "#ffffff",
        "icons": [*pictures, maskable],
        "shortcuts": [
            {"name": "On call", "url": reverse("on_call")},
            {"name": "Notifications", "url": reverse("notifications")},
        ],
    }
    response = JsonResponse(found, content_type="application/manifest+json")
    response["Cache-Control"] = "max-age=3600"
    return response


@require_safe
def service_worker(request: HttpRequest) -> HttpResponse:
    """At the root, so that its scope is the whole console; asked for anew each time, so that a new version counts."""
    response = render(request, "frontend/installed/service_worker.js", content_type="text/javascript")
    response["Cache-Control"] = "no-cache"
    return response


@require_safe
def offline(request: HttpRequest) -> HttpResponse:
    """Page that the service worker shows without a network."""
    return render(request, "frontend/installed/offline.html")
