"""Monitoring systems and what speaks as they do."""

from __future__ import annotations

from frontend.senders.form import AGAIN, BODY, COMMITTED, HOST, HTTPS, INCIDENT, KEY, Sender
from ingest.integrations.generic.presets import HOSTED, READY


def _ready(name: str, note: str) -> Sender:
    ready = READY[name]
    return Sender(
        name,
        ready.title,
        "alerts",
        ("generic-webhook",),
        "generic",
        f"Uses the generic endpoint with the built-in mapping `{name}`: create the key with it.",
        ready.configuration,
        f"200 with `accepted` and `receipt`. {COMMITTED} Messages that the mapping leaves out are counted in neither.",
        BODY,
        AGAIN,
        f"{note} {INCIDENT}",
        ready.mapping,
    )


ALERTING: tuple[Sender, ...] = (
    Sender(
        "prometheus",
        "Prometheus",
        "alerts",
        ("alertmanager-alerts",),
        "alertmanager-api",
        "Prometheus sends to Dossier as to an Alertmanager: `POST /api/v2/alerts`. `amtool`,"
        " Karma and Grafana also read alerts, groups and silences here (scope `incidents:read`;"
        " creating silences requires `incidents:write`).",
        (
            (
                "prometheus.yml",
                f"""alerting:
  alertmanagers:
    - scheme: https
      authorization:
        credentials: {KEY}
      static_configs:
        - targets: ["{HOST}"]
""",
            ),
            ("http.yml for amtool", f"authorization:\n  credentials: {KEY}\n"),
            ("amtool", f"amtool --alertmanager.url={HTTPS} --http.config.file=http.yml alert query\n"),
            (
                "karma.yaml",
                f"""alertmanager:
  servers:
    - name: dossier
      uri: {HTTPS}
      proxy: true
      headers:
        Authorization: Bearer {KEY}
""",
            ),
            (
                "Grafana, a data source (provisioning/datasources/dossier.yaml)",
                f"""apiVersion: 1
datasources:
  - name: Dossier
    type: alertmanager
    access: proxy
    url: {HTTPS}
    jsonData:
      implementation: prometheus
      httpHeaderName1: Authorization
    secureJsonData:
      httpHeaderValue1: Bearer {KEY}
""",
            ),
        ),
        f"200 without a body. {COMMITTED} 400 with a text names invalid alerts; the valid ones are stored.",
        BODY,
        f"{AGAIN} Prometheus sends firing alerts again with its next evaluation.",
        "The key of an alert is the fingerprint of its labels. It ends at its `endsAt`; without one, five minutes "
        f"after it was last sent. {INCIDENT}",
    ),
    Sender(
        "alertmanager",
        "Alertmanager",
        "alerts",
        ("alertmanager-webhook",),
        "alertmanager",
        "The webhook of Alertmanager, version 4, in addition to your other receivers.",
        (
            (
                "alertmanager.yml",
                f"""receivers:
  - name: dossier
    webhook_configs:
      - url: {HTTPS}/integrations/alertmanager/{KEY}
        send_resolved: true
""",
            ),
        ),
        f"200 with `accepted` and `receipt`. {COMMITTED}",
        f"{BODY} If you limit `max_alerts`, the incident shows the number of alerts left out.",
        f"{AGAIN} Alertmanager retries.",
        "The status of each alert decides, not the one of the group. Copies from several Alertmanagers collapse on "
        f"fingerprint and start. {INCIDENT}",
    ),
    Sender(
        "grafana",
        "Grafana",
        "alerts",
        ("grafana-webhook",),
        "grafana",
        "A contact point of the type webhook, without a custom payload. Dashboards, panels and pictures become links.",
        (("Alerting, Contact points, Webhook, URL", f"{HTTPS}/integrations/grafana/{KEY}\n"),),
        f"200 with `accepted` and `receipt`. {COMMITTED}",
        BODY,
        f"{AGAIN} Grafana retries.",
        f"The status of each alert decides; its key is the fingerprint that Grafana sends. {INCIDENT}",
    ),
    Sender(
        "pagerduty",
        "PagerDuty clients",
        "alerts",
        ("pagerduty-enqueue",),
        "pagerduty",
        "Any client of PagerDuty's Events API v2: trigger, acknowledge, resolve. The routing key"
        " is the integration key.",
        (
            ("the client's settings", f"address      {HTTPS}\nrouting key  {KEY}\n"),
            (
                "alertmanager.yml, if you have PagerDuty there",
                f"pagerduty_configs:\n  - routing_key: {KEY}\n    url: {HTTPS}/v2/enqueue\n",
            ),
            (
                "try it",
                f"""curl {HTTPS}/v2/enqueue -H 'Content-Type: application/json' -d '{{
  "routing_key": "{KEY}", "event_action": "trigger", "dedup_key": "srv1/cpu",
  "payload": {{"summary": "CPU is hot", "source": "srv-1", "severity": "critical"}}}}'
""",
            ),
        ),
        f"202 with `dedup_key`, as from PagerDuty. {COMMITTED} 400 has the reasons in `errors`.",
        BODY,
        "429; clients of PagerDuty wait and retry.",
        "`dedup_key` is the key; without one each trigger is an alert of its own, with its key in the answer. "
        f"`resolve` ends it, `acknowledge` acknowledges the incident if it is its only alert. {INCIDENT}",
    ),
    Sender(
        "pagerduty-changes",
        "PagerDuty change events",
        "alerts",
        ("pagerduty-change",),
        "pagerduty",
        "Deployment and configuration tools report changes as to PagerDuty: `POST"
        " /v2/change/enqueue`. A change opens no incident. Incidents about the same component,"
        " host, service or source show the changes of the day before under “Changes shortly"
        " before”; programs read `/api/v1/changes` and `/api/v1/incidents/ID/changes`.",
        (
            ("the client's settings", f"address      {HTTPS}\nrouting key  {KEY}\n"),
            (
                "at the end of a deployment",
                f"""curl {HTTPS}/v2/change/enqueue -H 'Content-Type: application/json' -d '{{
  "routing_key": "{KEY}",
  "payload": {{"summary": "Deployed cart 2.31", "source": "cart", "timestamp": "2026-11-21T10:00:00Z",
              "custom_details": {{"service": "cart", "version": "2.31"}}}},
  "links": [{{"href": "https://builds.example.com/2231", "text": "Build 2231"}}]}}'
""",
            ),
        ),
        "202, as from PagerDuty. The change is committed to disk. 400 has the reasons in `errors`.",
        BODY,
        "429 with `Retry-After`; clients of PagerDuty wait and retry.",
        "Identical requests with a `timestamp` are one change; without one each request is a"
        " change of its own. The component of an incident is compared with `source` and with the"
        " details `service`, `host`, `node`, `component` and the like.",
    ),
    Sender(
        "opsgenie-clients",
        "Opsgenie clients",
        "alerts",
        ("opsgenie-alerts",),
        "opsgenie",
        "Any client of Opsgenie's Alert API: create, close, acknowledge, note, snooze, assign, escalate,"
        " add teams and responders, change, list (`/v2/alerts`). The API key is the integration key;"
        " notes, and changes other than of message and description, require the scope"
        " `incidents:write`, lists `incidents:read`. Not supported (404): custom actions, attachments,"
        " saved searches and logs.",
        (
            ("the client's settings", f"API address  {HTTPS}\nAPI key      {KEY}\n"),
            (
                "alertmanager.yml, if you have Opsgenie there",
                f"opsgenie_configs:\n  - api_key: {KEY}\n    api_url: {HTTPS}/\n    update_alerts: true\n",
            ),
            (
                "try it",
                f"""curl {HTTPS}/v2/alerts -H 'Authorization: GenieKey {KEY}' -H 'Content-Type: application/json' -d '{{
  "message": "CPU is hot", "alias": "srv1/cpu", "entity": "srv-1", "priority": "P1"}}'
curl {HTTPS}/v2/alerts/srv1%2Fcpu/close?identifierType=alias -X POST -H 'Authorization: GenieKey {KEY}'
""",
            ),
        ),
        f"202 with `requestId`, as from Opsgenie. {COMMITTED} `/v2/alerts/requests/ID` and the receipt of that id "
        "have the outcome. 422 has the reason.",
        BODY,
        "429; clients of Opsgenie wait and retry.",
        "`alias` is the key; without one each request is an alert of its own. P1 is critical, P2 an error, P3 (and "
        "none) a warning, P4 and P5 information. `close` and `DELETE` end it, `acknowledge` acknowledges the incident "
        "if it is its only alert; closing what is not open changes nothing and is answered with 202, as there. "
        "`snooze`, `unacknowledge` and `priority` act on the incident if it is its only alert, else 409; `assign` "
        "takes a user name or mail address; `message` sets the title. `teams`, and a responder that is a team, hand "
        "the incident over (409 where it has other alerts); a responder that is a user or a schedule pages that "
        "person or who is on call, beside the escalation; `escalate`, and a responder that is an escalation, page "
        "the next people of the policy that the incident follows (409 for another policy). Names are names or slugs "
        "of Dossier. Tags, details and descriptions that come later "
        "are comments on the incident, each once. The "
        f"first team of `responders` is the label `team`, which routing rules may ask for. {INCIDENT}",
    ),
    Sender(
        "cloudevents",
        "CloudEvents",
        "alerts",
        ("cloudevents",),
        "cloudevents",
        "CloudEvents 1.0 over HTTP: structured, batched and binary, with the webhook handshake"
        " (`OPTIONS`). Health events of NVSentinel become one alert per entity; other events are"
        " read by the mapping of the integration.",
        (
            ("the sender's target", f"{HTTPS}/integrations/cloudevents/{KEY}\n"),
            (
                "try it",
                f"""curl {HTTPS}/integrations/cloudevents/{KEY} -H 'Content-Type: application/cloudevents+json' -d '{{
  "specversion": "1.0", "id": "1", "source": "/rack/12", "type": "com.example.fan.failed",
  "subject": "host/srv-1", "data": {{"message": "Fan 2 stands still", "severity": "error"}}}}'
""",
            ),
        ),
        f"200 with `accepted` and `receipt`. {COMMITTED}",
        f"{BODY} Formats other than JSON get 415.",
        "429 with `Retry-After: 5`; nothing was stored.",
        f"A repeated event (same `source` and `id`) changes nothing. {INCIDENT}",
    ),
    Sender(
        "generic",
        "Any JSON or form",
        "alerts",
        ("generic-webhook",),
        "generic",
        "Any sender of JSON or forms. Common field names (`title`, `status`, `severity`, `key`,"
        " `labels`, …) are recognised; for other fields the integration gets a mapping, which can"
        " be tried on its page before saving. In `words`, `*` is any text that is not listed and"
        " `ignored: reason` leaves a message out; with `reads_titles` a title such as `[OK] Disk`"
        " sets the status if no field does.",
        (
            (
                "try it",
                f"""curl {HTTPS}/integrations/generic/{KEY} -H 'Content-Type: application/json' -d '{{
  "title": "Disk d7 is slow", "key": "d7", "status": "firing", "severity": "warning", "component": "disk/d7"}}'
""",
            ),
            (
                "a mapping",
                """{"items": "$.events", "title": "{check} on {host}", "key": "{host}/{check}",
 "status": {"from": "$.state", "words": {"RED": "firing", "GREEN": "resolved", "GREY": "ignored: no data"}},
 "component": "host/{host}", "group": "$.check", "labels": "$.tags"}
""",
            ),
        ),
        "200 with `accepted`, `receipt`, `refused` for invalid alerts and `left_out` for those "
        "excluded by the mapping (`ignored: reason`). 202 if no mapping reads the payload: it is stored, and "
        f"the page of the integration proposes one. {COMMITTED}",
        f"{BODY} At most 100,000 alerts per body.",
        AGAIN,
        "The mapping defines the key and the words for resolved. Without a resolved message an alert fires "
        f"until a person resolves its incident. {INCIDENT}",
    ),
    _ready("nagios", "A host or service with a problem is one alert; RECOVERY ends it."),
    _ready("icinga", "A host or service with a problem is one alert; Recovery ends it."),
    _ready("zabbix", "A problem is one alert; recovery and updates carry the event id of the problem."),
    _ready(
        "kubernetes",
        "A node condition that is a problem is one alert; the next status of the condition ends it.",
    ),
    *(_ready(one.name, "The mapping defines the key and the words that end an alert.") for one in HOSTED),
)
