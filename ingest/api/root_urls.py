"""Addresses of ingest that senders know, beside /api/v1/."""

from __future__ import annotations

from django.urls import path

from ingest.api import alerts, cloudevents, otlp, pagerduty

urlpatterns = [
    path("integrations/alertmanager", alerts.alertmanager, name="alertmanager-webhook"),
    path("integrations/alertmanager/<str:key>", alerts.alertmanager, name="alertmanager-webhook"),
    path("integrations/grafana", alerts.grafana_webhook, name="grafana-webhook"),
    path("integrations/grafana/<str:key>", alerts.grafana_webhook, name="grafana-webhook"),
    path("integrations/generic", alerts.generic_webhook, name="generic-webhook"),
    path("integrations/generic/<str:key>", alerts.generic_webhook, name="generic-webhook"),
    path("integrations/cloudevents", cloudevents.cloudevents, name="cloudevents"),
    path("integrations/cloudevents/<str:key>", cloudevents.cloudevents, name="cloudevents"),
    path("integrations/heartbeat", alerts.heartbeat, name="heartbeat"),
    path("integrations/heartbeat/<str:key>", alerts.heartbeat, name="heartbeat"),
    path("v2/enqueue", pagerduty.enqueue, name="pagerduty-enqueue"),
    path("v2/change/enqueue", pagerduty.enqueue_change, name="pagerduty-change"),
    path("v1/metrics", otlp.metrics, name="otlp-metrics"),
    path("v1/traces", otlp.traces, name="otlp-traces"),
    path("v1/logs", otlp.logs, name="otlp-logs"),
]
