"""Addresses of ingest under /api/v1/."""

from __future__ import annotations

from django.urls import path

# `schema` tells the generator of the OpenAPI document about integration keys; only who serves pages loads it.
from ingest.api import integrations, remote_write, telemetry, uploads
from ingest.api.openapi import schema  # noqa: F401

urlpatterns = [
    path("telemetry", telemetry.kinds, name="telemetry-kinds"),
    path("telemetry/<str:kind>", telemetry.telemetry, name="telemetry"),
    path("telemetry/<str:kind>/<str:format_>", uploads.upload, name="telemetry-upload"),
    path("integrations", integrations.IntegrationsView.as_view(), name="api-integrations"),
    path("integrations/<str:name>", integrations.IntegrationView.as_view(), name="api-integration"),
    path("integrations/<str:name>/rotate", integrations.RotateView.as_view(), name="api-integration-rotate"),
    path(
        "integrations/<str:name>/preview", integrations.PreviewView.as_view(), name="api-integration-preview"
    ),
    path("write", remote_write.write, name="remote-write"),
]
