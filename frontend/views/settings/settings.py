"""The page that leads to all that configures Dossier."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from frontend.views.pages import page, show


@page
@require_safe
def settings(request: HttpRequest) -> HttpResponse:
    return show(request, "frontend/settings/settings.html", section="settings")
