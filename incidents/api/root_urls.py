"""Addresses of incidents that senders know, beside /api/v1/."""

from __future__ import annotations

from django.urls import path

from incidents.api import chat, telephony
from incidents.api.alerts import alertmanager, opsgenie

urlpatterns = [
    path("chat/slack/<str:name>", chat.SlackView.as_view(), name="chat-slack"),
    path("chat/mattermost/<str:name>", chat.MattermostView.as_view(), name="chat-mattermost"),
    path("telephony/twilio/sms", telephony.ReplyView.as_view(), name="telephony-reply"),
    path("telephony/twilio/status/<uuid:message>", telephony.StatusView.as_view(), name="telephony-status"),
    path(
        "telephony/twilio/keypress/<uuid:message>/<int:turn>",
        telephony.KeypressView.as_view(),
        name="telephony-keypress",
    ),
    path("api/v2/alerts", alertmanager.alerts, name="alertmanager-alerts"),
    path("api/v2/alerts/groups", alertmanager.groups, name="alertmanager-groups"),
    path("api/v2/status", alertmanager.status, name="alertmanager-status"),
    path("api/v2/receivers", alertmanager.receivers, name="alertmanager-receivers"),
    path("api/v2/silences", alertmanager.silences, name="alertmanager-silences"),
    path("api/v2/silence/<str:id>", alertmanager.silence, name="alertmanager-silence"),
    path("v2/alerts", opsgenie.alerts, name="opsgenie-alerts"),
    path("v2/alerts/count", opsgenie.count, name="opsgenie-count"),
    path("v2/alerts/requests/<str:receipt>", opsgenie.request_status, name="opsgenie-request"),
    path("v2/alerts/<path:identifier>/notes", opsgenie.notes, name="opsgenie-notes"),
    path("v2/alerts/<path:identifier>/close", opsgenie.act, {"action": "close"}, name="opsgenie-close"),
    path(
        "v2/alerts/<path:identifier>/acknowledge",
        opsgenie.act,
        {"action": "acknowledge"},
        name="opsgenie-acknowledge",
    ),
    *(
        path(
            f"v2/alerts/<path:identifier>/{action}",
            opsgenie.change,
            {"action": action},
            name=f"opsgenie-{action}",
        )
        for action in opsgenie.CHANGES
        if not action.startswith("remove_")
    ),
    path("v2/alerts/<str:identifier>", opsgenie.alert, name="opsgenie-alert"),
]
