"""What incidents serve at the addresses that senders know, beside /api/v1/."""

from __future__ import annotations

from django.urls import path

from incidents.api.alerts import alertmanager

urlpatterns = [
    path("api/v2/alerts", alertmanager.alerts, name="alertmanager-alerts"),
    path("api/v2/alerts/groups", alertmanager.groups, name="alertmanager-groups"),
    path("api/v2/status", alertmanager.status, name="alertmanager-status"),
    path("api/v2/receivers", alertmanager.receivers, name="alertmanager-receivers"),
    path("api/v2/silences", alertmanager.silences, name="alertmanager-silences"),
    path("api/v2/silence/<str:id>", alertmanager.silence, name="alertmanager-silence"),
]
