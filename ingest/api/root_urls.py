"""What ingest serves at the addresses that senders know, beside /api/v1/."""

from __future__ import annotations

from django.urls import path

from ingest.api import otlp

urlpatterns = [
    path("v1/metrics", otlp.metrics, name="otlp-metrics"),
    path("v1/traces", otlp.traces, name="otlp-traces"),
    path("v1/logs", otlp.logs, name="otlp-logs"),
]
