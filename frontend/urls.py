"""Addresses of the console."""

from __future__ import annotations

from django.urls import path

from frontend.views import (
    actions,
    alerts,
    inbox,
    incident,
    integrations,
    reading,
    reports,
    runs,
    settings,
    silences,
    webhooks,
)

urlpatterns = [
    path("", inbox.inbox, name="inbox"),
    path("incidents/<int:number>", incident.incident, name="incident"),
    path("incidents/<uuid:id>", incident.by_id, name="incident_by_id"),
    path("incidents/acknowledge", actions.acknowledge_several, name="acknowledge_several"),
    path("incidents/<int:number>/<slug:verb>", actions.act, name="act"),
    path("receipts/<str:id>", alerts.receipt, name="receipt"),
    path("silences", silences.silences, name="silences"),
    path("silences/<uuid:id>/end", silences.end_silence, name="end_silence"),
    path("runs", runs.runs, name="runs"),
    path("runs/<uuid:id>", runs.run, name="run"),
    path("runs/<uuid:id>/rerun", runs.rerun, name="rerun"),
    path("analyzers", runs.analyzer_list, name="analyzers"),
    path("schedules", runs.schedules, name="schedules"),
    path("reports", reports.reports, name="reports"),
    path("reports/unsubscribe/<str:token>", reports.unsubscribe, name="report-unsubscribe"),
    path("reports/subscribe/<slug:name>", reports.subscribe, name="report-subscribe"),
    path("reports/<str:id>", reports.report, name="report"),
    path("settings", settings.settings, name="settings"),
    path("settings/webhooks", webhooks.webhooks, name="webhooks"),
    path("settings/webhooks/<slug:name>/<slug:verb>", webhooks.act, name="webhook_act"),
    path("teams", reading.teams, name="teams"),
    path("docs", reading.docs, name="docs"),
    path("docs/webhooks", reading.docs_webhooks, name="docs_webhooks"),
    path("docs/limits", reading.docs_limits, name="docs_limits"),
    path("docs/doors/<slug:slug>", reading.docs_door, name="docs_door"),
    path("integrations", integrations.integrations, name="integrations"),
    # Not below /integrations/: what stands there is for machines, without sessions.
    path("integration/<int:pk>/mapping", integrations.mapping, name="integration_mapping"),
    path("integration/<int:pk>/<slug:verb>", integrations.act, name="integration_act"),
    path("live", reading.live, name="live"),
    path("static-bundle/<str:name>", reading.charts, name="charts"),
]
