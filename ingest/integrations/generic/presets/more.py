"""Uptime checkers, status pages and others that send webhooks of their own form, as `vendors`."""

from __future__ import annotations

from ingest.integrations.generic.presets.index import ADDRESS, Preset


def _url(where: str) -> tuple[tuple[str, str], ...]:
    return ((where, f"{ADDRESS}\n"),)


# https://www.pingdom.com/resources/webhooks/
PINGDOM = Preset(
    "pingdom",
    "Pingdom",
    {
        "title": {"from": ["{check_name} is {current_state}", "$.check_name"]},
        "key": "check {check_id}",
        "status": {"from": "$.current_state", "words": {"FAILING": "firing", "SUCCESS": "resolved"}},
        "severity": {
            "from": "$.importance_level",
            "words": {"HIGH": "critical", "LOW": "warning"},
            "default": "error",
        },
        "description": {"from": ["$.long_description", "$.description"], "default": ""},
        "starts_at": {"from": "$.state_changed_timestamp", "default": ""},
        "labels": {"check": "$.check_name", "type": "$.check_type", "hostname": "$.check_params.hostname"},
        "links": [{"href": "$.check_params.full_url", "text": "The monitored address"}],
    },
    _url("Integrations: a webhook"),
    (("$.check_id", "$.current_state"),),
)

# https://uptimerobot.com/integrations/web-hooks-integration/
UPTIME_ROBOT = Preset(
    "uptimerobot",
    "UptimeRobot",
    {
        "title": {"from": ["{monitorFriendlyName}: {alertDetails}", "$.monitorFriendlyName", "$.monitorURL"]},
        "key": {"from": ["monitor {monitorID}", "$.monitorURL"]},
        "status": {
            "from": "$.alertType",
            "words": {"1": "firing", "2": "resolved", "3": "firing", "4": "firing"},
        },
        "severity": {
            "from": "$.alertType",
            "words": {"1": "critical", "2": "info", "3": "warning", "4": "warning"},
        },
        "description": {"from": "$.alertDetails", "default": ""},
        "labels": {"monitor": "$.monitorFriendlyName"},
        "links": [{"href": "$.monitorURL", "text": "The monitored address"}],
    },
    _url("Alert contacts: a webhook, sent as JSON"),
    (("$.monitorID", "$.alertType"),),
)

# https://support.atlassian.com/statuspage/docs/enable-webhook-notifications/
STATUSPAGE = Preset(
    "statuspage",
    "Statuspage",
    {
        "title": "$.incident.name",
        "key": {"from": ["$.incident.id", "$.incident.shortlink"]},
        "status": {
            "from": "$.incident.status",
            "words": {
                "investigating": "firing",
                "identified": "firing",
                "monitoring": "firing",
                "resolved": "resolved",
                "postmortem": "resolved",
                "scheduled": "ignored: planned maintenance",
                "in_progress": "ignored: planned maintenance",
                "verifying": "ignored: planned maintenance",
                "completed": "ignored: planned maintenance",
            },
        },
        "severity": {
            "from": "$.incident.impact",
            "words": {"critical": "critical", "major": "error", "minor": "warning", "none": "info"},
            "default": "warning",
        },
        "description": {"from": "$.incident.incident_updates[0].body", "default": ""},
        "starts_at": {"from": "$.incident.created_at", "default": ""},
        "labels": {"page": "$.page.id", "status": "$.incident.status"},
        "links": [{"href": "$.incident.shortlink", "text": "Status page"}],
    },
    _url("Subscribe to updates: a webhook"),
    (("$.page.id", "$.incident.status"),),
)

# https://go2docs.graylog.org/current/interacting_with_your_log_data/notifications.html : there is no recovery.
GRAYLOG = Preset(
    "graylog",
    "Graylog",
    {
        "title": {"from": ["{event_definition_title}: {event.message}", "$.event_definition_title"]},
        "key": {"from": ["{event_definition_id} {event.key}", "$.event_definition_id"]},
        "severity": {
            "from": "$.event.priority",
            "words": {"1": "info", "2": "warning", "3": "error", "4": "critical"},
            "default": "warning",
        },
        "group": "$.event_definition_title",
        "description": {"from": ["$.event.message", "$.event_definition_description"], "default": ""},
        "labels": "$.event.fields",
    },
    _url("Alerts, notifications: HTTP notification"),
    (("$.event_definition_id", "$.event"),),
)

# https://support.atlassian.com/opsgenie/docs/opsgenie-edge-connector-alert-action-data/ (outgoing webhook)
OPSGENIE = Preset(
    "opsgenie",
    "Opsgenie, outgoing webhook",
    {
        "title": "$.alert.message",
        "key": {"from": ["$.alert.alias", "$.alert.alertId"]},
        "status": {
            "from": "$.action",
            "words": {
                "Create": "firing",
                "Acknowledge": "acknowledged",
                "Close": "resolved",
                "Delete": "resolved",
                "*": "ignored: an action that neither opens nor closes the alert",
            },
        },
        "severity": {"from": "$.alert.priority", "default": "warning"},
        "component": {"from": "$.alert.entity", "default": ""},
        "description": {"from": "$.alert.description", "default": ""},
        "labels": {"entity": "$.alert.entity", "source": "$.alert.source", "tags": "$.alert.tags"},
    },
    _url("Integrations: Webhook"),
    (("$.action", "$.alert.alertId"),),
)

# https://docs.opsgenie.com/docs/alert-api#create-alert : what others send to Opsgenie, with another address.
OPSGENIE_ALERT = Preset(
    "opsgenie-alert",
    "Opsgenie, create alert (from what sends to Opsgenie)",
    {
        "title": {"from": ["$.message", "$.alias"]},
        "key": {"from": ["$.alias", "{entity} {message}", "$.message"]},
        "status": {"from": ["$.action", "$.status"], "default": ""},
        "reads_titles": True,
        "severity": {"from": "$.priority", "default": "warning"},
        "component": {"from": ["$.entity", "$.details.component"], "default": ""},
        "description": {"from": ["{description}\n\n{note}", "$.description", "$.note"], "default": ""},
        "labels": {
            "entity": "$.entity",
            "source": "$.source",
            "tags": "$.tags",
            "team": "$.responders[0].name",
            "host": {"from": ["$.details.host", "$.details.hostname", "$.details.instance"]},
            "service": "$.details.service",
            "region": "$.details.region",
        },
    },
    _url("Wherever the address of Opsgenie's Alert API can be changed"),
    (("$.message", "$.alias"), ("$.message", "$.priority", "$.responders")),
)

# https://documentation.wazuh.com/current/user-manual/manager/integration-with-external-apis.html : no recovery.
WAZUH = Preset(
    "wazuh",
    "Wazuh",
    {
        "title": {"from": ["{rule.description} on {agent.name}", "$.rule.description"]},
        "key": {"from": ["{agent.id} {rule.id}", "$.rule.id"]},
        "severity": {
            "from": "$.rule.level",
            "words": {
                **{str(level): "info" for level in range(7)},
                **{str(level): "warning" for level in range(7, 12)},
                **{str(level): "error" for level in range(12, 15)},
                "15": "critical",
                "16": "critical",
            },
        },
        "group": "$.rule.description",
        "component": {"from": "host/{agent.name}", "default": ""},
        "description": {"from": "$.full_log", "default": ""},
        "labels": {
            "agent": "$.agent.name",
            "rule": "$.rule.id",
            "level": "$.rule.level",
            "groups": "$.rule.groups",
        },
    },
    _url("ossec.conf: hook_url of an integration"),
    (("$.rule.id", "$.rule.level", "$.agent.id"),),
)

MORE: tuple[Preset, ...] = (PINGDOM, UPTIME_ROBOT, STATUSPAGE, GRAYLOG, OPSGENIE, OPSGENIE_ALERT, WAZUH)
