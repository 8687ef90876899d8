"""Hosted monitoring systems and others that send webhooks of their own form: what each documents, as a mapping.

Where a payload comes to an integration without a mapping and has all of a sender's `recognised_by`, it is read by that
sender's mapping. Forms are from the public documentation named beside each, not recorded from the systems themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ingest.integrations.generic.presets.index import ADDRESS, Preset


def _ready(
    name: str, title: str, where: str, recognised_by: tuple[tuple[str, ...], ...], body: Mapping[str, Any]
) -> Preset:
    return Preset(name, title, body, ((where, f"{ADDRESS}\n"),), recognised_by)


# https://docs.datadoghq.com/integrations/webhooks/ : the default payload has no field for the status, only its title.
_AFTER_BRACKET = r"^(?:\[[^\]]*\]\s*)?(.*)$"
DATADOG = _ready(
    "datadog",
    "Datadog",
    "Integrations, Webhooks: URL (the default payload; with alert_id, alert_transition and alert_scope it is exact)",
    (("$.event_type", "$.org", "$.title"), ("$.alert_transition",), ("$.alert_id", "$.title")),
    {
        "title": {"from": ["$.alert_title", "$.title", "$.alert_id"], "find": _AFTER_BRACKET},
        "key": {
            "from": [
                "$.aggreg_key",
                "{alert_id} {alert_scope}",
                "{alert_id} {hostname}",
                "$.alert_id",
                "$.title",
            ],
            # Of a title all but the word: `[Recovered on {host:a}] CPU` is about `[Triggered on {host:a}] CPU`.
            "find": r"^(?:\[(?:Re-)?[A-Za-z ]*?(?: on |\]\s*))?(.*)$",
        },
        "status": {
            "from": ["$.alert_transition", "$.title"],
            "find": r"^\[?(?:Re-)?([A-Za-z ]+?)(?: on .*|\].*)?$",
            "words": {
                "Triggered": "firing",
                "Recovered": "resolved",
                "Warn": "firing",
                "No Data": "firing",
                "Renotify": "firing",
                "Warn Recovered": "resolved",
                "No Data Recovered": "resolved",
            },
            "default": "firing",
        },
        "severity": {
            "from": ["$.alert_priority", "$.priority", "$.alert_type", "$.title"],
            "find": r"^(?:\[(?:Re-)?)?([A-Za-z0-9 ]+?)(?: on .*|\].*)?$",
            "words": {
                "Triggered": "error",
                "Warn": "warning",
                "No Data": "warning",
                "normal": "error",
                "Recovered": "info",
                "success": "info",
            },
            "default": "warning",
        },
        "group": {"from": ["$.alert_id", "$.alert_title"], "default": ""},
        "component": {"from": ["host/{hostname}", "host/{host_name}"], "default": ""},
        "description": {"from": ["$.body", "$.event_msg", "$.text_only_msg"], "default": ""},
        "labels": {
            "hostname": "$.hostname",
            "scope": "$.alert_scope",
            "tags": "$.tags",
            "metric": "$.alert_metric",
            "org": "$.org.name",
        },
        "links": [{"href": "$.link", "text": "Event in Datadog"}],
    },
)

# https://docs.aws.amazon.com/sns/latest/dg/sns-message-and-json-formats.html and
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch-and-eventbridge.html
CLOUDWATCH = _ready(
    "cloudwatch",
    "Amazon CloudWatch (SNS, EventBridge)",
    "Amazon SNS: a subscription of protocol HTTPS; confirm it on the page of this integration",
    (
        ("$.TopicArn", "$.Message"),
        ("$.AlarmName", "$.NewStateValue"),
        ("$.detail.alarmName", "$.detail.state.value"),
    ),
    {
        "inside": "$.Message",
        "title": {
            "from": [
                "$.AlarmName",
                "$.detail.alarmName",
                "$.Subject",
                "$.detail-type",
                "$root.Subject",
                "$.Message",
                "$root.TopicArn",
            ]
        },
        "key": {
            "from": [
                "$.AlarmArn",
                "{AWSAccountId} {Region} {AlarmName}",
                "$.resources[0]",
                "{account} {region} {detail.alarmName}",
                "{$root.TopicArn} {$root.Subject}",
                "$root.MessageId",
                "$.AlarmName",
                "$.detail.alarmName",
            ]
        },
        "status": {
            "from": ["$.NewStateValue", "$.detail.state.value", "$.Type"],
            "words": {
                "ALARM": "firing",
                "OK": "resolved",
                "INSUFFICIENT_DATA": "ignored: the alarm has insufficient data",
                "Notification": "firing",
                "SubscriptionConfirmation": "ignored: a subscription to confirm",
                "UnsubscribeConfirmation": "ignored: the end of a subscription",
            },
            "default": "firing",
        },
        "severity": "error",
        "group": {"from": ["$.AlarmName", "$.detail.alarmName"], "default": ""},
        "description": {
            "from": [
                "{AlarmDescription}\n\n{NewStateReason}",
                "$.NewStateReason",
                "$.detail.state.reason",
                "$.Message",
            ],
            "default": "",
        },
        "labels": {
            "account": "$.AWSAccountId",
            "region": "$.Region",
            "namespace": "$.Trigger.Namespace",
            "metric": "$.Trigger.MetricName",
            "topic": "$root.TopicArn",
            "InstanceId": {"from": "$.Trigger.Dimensions[0].value"},
        },
    },
)

# https://learn.microsoft.com/azure/azure-monitor/alerts/alerts-common-schema
AZURE = _ready(
    "azure",
    "Azure Monitor",
    "Action group: a webhook, with the common alert schema",
    (("$.data.essentials.alertRule", "$.data.essentials.monitorCondition"),),
    {
        "title": "$.data.essentials.alertRule",
        "key": {
            "from": [
                "$.data.essentials.alertId",
                "{data.essentials.originAlertId}",
                "$.data.essentials.alertRule",
            ]
        },
        "status": {
            "from": "$.data.essentials.monitorCondition",
            "words": {"Fired": "firing", "Resolved": "resolved"},
        },
        "severity": {
            "from": "$.data.essentials.severity",
            "words": {"Sev0": "critical", "Sev1": "error", "Sev2": "warning", "Sev3": "info", "Sev4": "info"},
        },
        "group": "$.data.essentials.alertRule",
        "component": {"from": "$.data.essentials.configurationItems[0]", "default": ""},
        "description": {"from": ["$.data.essentials.description"], "default": ""},
        "starts_at": {"from": "$.data.essentials.firedDateTime", "default": ""},
        "labels": {
            "host": "$.data.essentials.configurationItems[0]",
            "signal": "$.data.essentials.signalType",
            "service": "$.data.essentials.monitoringService",
            "target": "$.data.essentials.alertTargetIDs[0]",
        },
        "links": [{"href": "$.data.essentials.investigationLink", "text": "Alert in Azure"}],
    },
)

# https://cloud.google.com/monitoring/support/notification-options#webhooks (schema version 1.2)
GOOGLE = _ready(
    "google",
    "Google Cloud Monitoring",
    "Alerting, notification channels: a webhook",
    (("$.incident.incident_id", "$.incident.state"), ("$.incident.policy_name", "$.incident.state")),
    {
        "title": {
            "from": [
                "{incident.condition_name} on {incident.resource_display_name}",
                "$.incident.condition_name",
                "$.incident.policy_name",
                "$.incident.summary",
            ]
        },
        "key": {"from": ["$.incident.incident_id", "$.incident.policy_name"]},
        "status": {"from": "$.incident.state", "words": {"open": "firing", "closed": "resolved"}},
        "severity": {"from": "$.incident.severity", "default": "error", "words": {"No severity": "error"}},
        "group": {"from": ["$.incident.condition_name", "$.incident.policy_name"], "default": ""},
        "description": {
            "from": ["{incident.summary}\n\n{incident.documentation.content}", "$.incident.summary"],
            "default": "",
        },
        "starts_at": {"from": "$.incident.started_at", "default": ""},
        "labels": {
            "project": "$.incident.scoping_project_id",
            "policy": "$.incident.policy_name",
            "resource": "$.incident.resource_name",
            "resource_type": "$.incident.resource.type",
            "instance_id": "$.incident.resource.labels.instance_id",
            "metric": "$.incident.metric.type",
        },
        "links": [{"href": "$.incident.url", "text": "Incident in Google Cloud"}],
    },
)

# https://docs.newrelic.com/docs/alerts/get-notified/notification-integrations/#webhook
NEW_RELIC = _ready(
    "newrelic",
    "New Relic",
    "Alerts, destinations: a webhook, with the default template of a workflow",
    (("$.issueUrl", "$.state"), ("$.issuePageUrl", "$.state"), ("$.issueId", "$.state")),
    {
        "title": {"from": ["$.title", "$.issueTitle", "$.annotations.title[0]", "$.alertConditionNames"]},
        "key": {"from": ["$.id", "$.issueId", "$.issueUrl"]},
        "status": {
            "from": "$.state",
            "words": {
                "CREATED": "firing",
                "ACTIVATED": "firing",
                "ACKNOWLEDGED": "acknowledged",
                "CLOSED": "resolved",
                "RESOLVED": "resolved",
                "DEACTIVATED": "resolved",
            },
        },
        "severity": {"from": "$.priority", "default": "warning"},
        "group": {"from": ["$.alertConditionNames", "$.alertPolicyNames"], "default": ""},
        "description": {"from": ["$.alertConditionDescriptions", "$.description"], "default": ""},
        "starts_at": {"from": "$.createdAt", "default": ""},
        "labels": {
            "entities": "$.impactedEntities",
            "policy": "$.alertPolicyNames",
            "condition": "$.alertConditionNames",
            "workflow": "$.workflowName",
        },
        "links": [
            {"href": "$.issueUrl", "text": "Issue in New Relic"},
            {"href": "$.issuePageUrl", "text": "Issue in New Relic"},
        ],
    },
)

# https://docs.dynatrace.com/docs/analyze-explore-automate/notifications-and-alerting/problem-notifications/webhook-integration
DYNATRACE = _ready(
    "dynatrace",
    "Dynatrace",
    "Problem notifications: a custom integration with State, ProblemID, ProblemTitle, ProblemSeverity, ImpactedEntity,"
    " ProblemURL, ProblemDetailsText and Tags; call it also if a problem is closed",
    (("$.ProblemID", "$.State"), ("$.ProblemTitle", "$.State"), ("$.PID", "$.State")),
    {
        "title": {"from": ["{ProblemTitle}: {ImpactedEntity}", "$.ProblemTitle", "$.ProblemID"]},
        "key": {"from": ["$.PID", "$.ProblemID", "$.ProblemTitle"]},
        "status": {
            "from": "$.State",
            "words": {"OPEN": "firing", "RESOLVED": "resolved", "MERGED": "ignored: merged"},
        },
        "severity": {
            "from": "$.ProblemSeverity",
            "words": {
                "AVAILABILITY": "critical",
                "ERROR": "error",
                "PERFORMANCE": "warning",
                "RESOURCE_CONTENTION": "warning",
                "CUSTOM_ALERT": "warning",
                "MONITORING_UNAVAILABLE": "error",
            },
            "default": "error",
        },
        "group": {"from": "$.ProblemTitle", "default": ""},
        "description": {"from": ["$.ProblemDetailsText", "$.ProblemDetails"], "default": ""},
        "labels": {
            "problem": "$.ProblemID",
            "impact": "$.ProblemImpact",
            "entity": "$.ImpactedEntity",
            "tags": "$.Tags",
        },
        "links": [{"href": "$.ProblemURL", "text": "Problem in Dynatrace"}],
    },
)

# https://docs.sentry.io/organization/integrations/integration-platform/webhooks/ : issues, issue alerts, metric alerts
SENTRY = _ready(
    "sentry",
    "Sentry",
    "Settings, developer settings: an internal integration with webhook URL, alert rule action and issue webhooks",
    (("$.action", "$.data.issue"), ("$.action", "$.data.event"), ("$.action", "$.data.metric_alert")),
    {
        "title": {
            "from": [
                "$.data.issue.title",
                "$.data.event.title",
                "$.data.metric_alert.title",
                "$.data.metric_alert.alert_rule.name",
                "$.data.description_title",
            ]
        },
        "key": {
            "from": [
                "issue {data.issue.id}",
                "issue {data.event.issue_id}",
                "metric {data.metric_alert.alert_rule.id}",
                "metric {data.metric_alert.id}",
            ]
        },
        "status": {
            "from": "$.action",
            "words": {
                "created": "firing",
                "triggered": "firing",
                "unresolved": "firing",
                "critical": "firing",
                "warning": "firing",
                "resolved": "resolved",
                "assigned": "ignored: an assignment",
                "archived": "ignored: archived in Sentry",
                "ignored": "ignored: archived in Sentry",
            },
        },
        "severity": {
            "from": ["$.data.issue.level", "$.data.event.level", "$.action"],
            "default": "error",
            "words": {"created": "error", "triggered": "error", "unresolved": "error", "resolved": "info"},
        },
        "group": {"from": ["$.data.triggered_rule", "$.data.metric_alert.alert_rule.name"], "default": ""},
        "description": {
            "from": ["$.data.description_text", "$.data.issue.culprit", "$.data.event.culprit"],
            "default": "",
        },
        "labels": {
            "service": {"from": ["$.data.issue.project.slug", "$.data.metric_alert.projects[0]"]},
            "rule": "$.data.triggered_rule",
            "release": "$.data.event.release",
            "environment": "$.data.event.environment",
            "issue": "$.data.issue.shortId",
        },
        "links": [
            {
                "href": {
                    "from": [
                        "$.data.web_url",
                        "$.data.issue.web_url",
                        "$.data.issue.permalink",
                        "$.data.event.web_url",
                    ]
                },
                "text": "Sentry",
            }
        ],
    },
)

# https://github.com/louislam/uptime-kuma/blob/master/server/notification-providers/webhook.js
UPTIME_KUMA = _ready(
    "uptime-kuma",
    "Uptime Kuma",
    "Notifications: Webhook, body application/json",
    (("$.heartbeat.status", "$.monitor.name"),),
    {
        "title": {"from": ["{monitor.name}: {heartbeat.msg}", "$.monitor.name"]},
        "key": {"from": ["monitor {monitor.id}", "$.monitor.name"]},
        "status": {
            "from": "$.heartbeat.status",
            "words": {
                "0": "firing",
                "1": "resolved",
                "2": "ignored: pending check",
                "3": "ignored: maintenance",
            },
        },
        "severity": {
            "from": "$.heartbeat.status",
            "words": {"0": "critical", "1": "info"},
            "default": "critical",
        },
        "component": {"from": "service/{monitor.name}", "default": ""},
        "description": {"from": "$.msg", "default": ""},
        "labels": {"monitor": "$.monitor.name", "type": "$.monitor.type", "hostname": "$.monitor.hostname"},
        "links": [{"href": "$.monitor.url", "text": "The monitored address"}],
    },
)

# https://learn.netdata.cloud/docs/alerting/notifications/centralized-cloud-notifications/webhook
NETDATA = _ready(
    "netdata",
    "Netdata Cloud",
    "Space settings, Alerts & Notifications: Webhook",
    (
        ("$.alert", "$.chart", "$.severity"),
        ("$.alarm", "$.chart", "$.severity"),
        ("$.alert", "$.space", "$.severity"),
        ("$.alarm", "$.chart", "$.status"),
    ),
    {
        "title": {
            "from": [
                "{alert} on {node.hostname}",
                "{alert} of {chart}",
                "{alarm} on {host}",
                "$.alert",
                "$.alarm",
            ]
        },
        "key": {
            "from": [
                "{node.hostname} {chart.id} {alert}",
                "{node.hostname} {chart} {alert}",
                "{host} {chart} {alarm}",
                "{chart.id} {alert}",
                "{chart} {alert}",
                "{chart} {alarm}",
                "$.alert",
                "$.alarm",
            ]
        },
        "status": {
            "from": ["$.severity", "$.status"],
            "words": {
                "clear": "resolved",
                "removed": "resolved",
                "warning": "firing",
                "critical": "firing",
                "undefined": "ignored: no data yet",
                "uninitialized": "ignored: no data yet",
            },
        },
        "severity": {"from": ["$.severity", "$.status"], "words": {"clear": "info", "removed": "info"}},
        "group": {"from": ["$.alert", "$.alarm"], "default": ""},
        "component": {"from": ["host/{node.hostname}", "host/{host}"], "default": ""},
        "description": {"from": ["{message}\n\n{info}", "$.message", "$.info"], "default": ""},
        "labels": {
            "host": {"from": ["$.node.hostname", "$.host"]},
            "chart": {"from": ["$.chart.id", "$.chart"]},
            "context": "$.context",
            "class": "$.class",
            "space": {"from": ["$.space.name", "$.space"]},
        },
        "links": [{"href": {"from": ["$.alert_url", "$.url"]}, "text": "Alert in Netdata"}],
    },
)

# https://help.splunk.com/en/splunk-enterprise/alert-and-respond (webhook alert action): there is no recovery.
SPLUNK = _ready(
    "splunk",
    "Splunk",
    "Alert actions: Webhook",
    (("$.search_name", "$.sid"), ("$.search_name", "$.results_link")),
    {
        "title": {"from": ["{search_name} on {result.host}", "$.search_name"]},
        "key": {"from": ["{app} {search_name} {result.host}", "{app} {search_name}", "$.search_name"]},
        "status": {
            "from": ["$.result.status", "$.search_name"],
            "find": "^(?i:resolved|ok|cleared)$",
            "default": "firing",
        },
        "severity": {"from": ["$.result.severity", "$.result.urgency"], "default": "warning"},
        "group": "$.search_name",
        "description": {"from": ["$.result._raw", "$.result.message"], "default": ""},
        "labels": "$.result",
        "links": [{"href": "$.results_link", "text": "Results in Splunk"}],
    },
)

# https://www.elastic.co/docs/reference/kibana/connectors-kibana/webhook-action-type : the body is yours to write.
KIBANA_BODY = (
    '{"rule": {"id": "{{rule.id}}", "name": "{{rule.name}}", "url": "{{rule.url}}"},\n'
    ' "alert": {"id": "{{alert.id}}", "actionGroup": "{{alert.actionGroup}}"},\n'
    ' "reason": "{{context.reason}}", "date": "{{date}}"}\n'
)
ELASTIC = Preset(
    "elastic",
    "Elastic (Kibana rules)",
    {
        "title": {"from": ["{rule.name}: {alert.id}", "{ruleName}: {alertId}", "$.rule.name", "$.ruleName"]},
        "key": {"from": ["{rule.id} {alert.id}", "{ruleId} {alertId}", "$.rule.id", "$.ruleName"]},
        "status": {
            "from": ["$.alert.actionGroup", "$.alertActionGroup", "$.actionGroup"],
            "words": {
                "recovered": "resolved",
                "default": "firing",
                "query matched": "firing",
                "threshold met": "firing",
                "metrics.threshold.fired": "firing",
                "logs.threshold.fired": "firing",
                "no data": "firing",
            },
            "default": "firing",
        },
        "severity": {"from": ["$.severity", "$.rule.severity"], "default": "error"},
        "group": {"from": ["$.rule.name", "$.ruleName"], "default": ""},
        "description": {"from": ["$.reason", "$.message", "$.context.reason"], "default": ""},
        "labels": {"rule": {"from": ["$.rule.name", "$.ruleName"]}, "host": "$.host"},
        "links": [{"href": {"from": ["$.rule.url", "$.url"]}, "text": "Rule in Kibana"}],
    },
    (("Webhook connector: URL", f"{ADDRESS}\n"), ("Body, also for the action on recovery", KIBANA_BODY)),
    (("$.rule.id", "$.alert.id"), ("$.ruleName", "$.alertId")),
)

# https://grafana.com/docs/grafana/v8.5/alerting/old-alerting/notifications/#webhook : titles begin with the state.
GRAFANA_LEGACY = _ready(
    "grafana-legacy",
    "Grafana, legacy alerting",
    "Notification channels: webhook (before Grafana 9)",
    (("$.ruleName", "$.state"), ("$.ruleId", "$.state")),
    {
        "title": {"from": ["$.ruleName", "$.title"], "find": _AFTER_BRACKET},
        "key": {"from": ["{orgId} rule {ruleId}", "rule {ruleId}", "$.ruleName"]},
        "status": {
            "from": "$.state",
            "words": {
                "alerting": "firing",
                "ok": "resolved",
                "no_data": "firing",
                "pending": "ignored: pending check",
                "paused": "ignored: paused rule",
            },
        },
        "severity": {"from": "$.tags.severity", "default": "warning"},
        "group": "$.ruleName",
        "description": {"from": "$.message", "default": ""},
        "labels": "$.tags",
        "links": [
            {"href": "$.ruleUrl", "text": "Rule in Grafana"},
            {"href": "$.imageUrl", "text": "Picture"},
        ],
    },
)

VENDORS: tuple[Preset, ...] = (
    DATADOG, CLOUDWATCH, AZURE, GOOGLE, NEW_RELIC, DYNATRACE, SENTRY, UPTIME_KUMA, NETDATA, SPLUNK, ELASTIC,
    GRAFANA_LEGACY,
)  # fmt: skip
