"""What ingest serves under /api/v1/."""

from __future__ import annotations

from django.urls import path

from ingest.api import remote_write, telemetry

urlpatterns = [
    path("telemetry", telemetry.kinds, name="telemetry-kinds"),
    path("telemetry/<str:kind>", telemetry.telemetry, name="telemetry"),
    path("write", remote_write.write, name="remote-write"),
]
