"""Every address, floor by floor."""

from __future__ import annotations

from importlib.util import find_spec

from django.urls import URLPattern, URLResolver, include, path
from drf_spectacular.views import SpectacularAPIView

urlpatterns: list[URLPattern | URLResolver] = [
    path("api/schema", SpectacularAPIView.as_view(), name="schema"),
    path("accounts/", include("allauth.urls")),
]
for prefix, module in (
    ("api/v1/", "ingest.api.urls"),
    ("", "ingest.api.root_urls"),
    ("", "incidents.api.root_urls"),
    ("api/v1/", "analyzers.api.urls"),
    ("api/v1/", "incidents.api.urls"),
    ("", "deploy.health"),
    ("", "frontend.urls"),
):
    if find_spec(module):
        urlpatterns.append(path(prefix, include(module)))
