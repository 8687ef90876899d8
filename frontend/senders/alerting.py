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
        "Prometheus sends here as it does to an Alertmanager: `POST /api/v2/alerts`. `amtool`, Karma and Grafana read "
        "alerts, groups and silences beside it (scope `incidents:read`; silences are made with `incidents:write`).",
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
        f"200 without a body. {COMMITTED} 400 with a text names bad alerts; the good ones are stored.",
        BODY,
        f"{AGAIN} Prometheus keeps firing alerts and sends them with its next evaluation.",
        "Its key is the fingerprint of its labels. An alert ends at its `endsAt`; without one, five minutes "
        f"after it was last sent. {INCIDENT}",
    ),
    Sender(
        "alertmanager",
        "Alertmanager",
        "alerts",
        ("alertmanager-webhook",),
        "alertmanager",
        "Alertmanager's webhook, version 4, beside the receivers that you have.",
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
        f"{BODY} If you limit `max_alerts`, what Alertmanager leaves out is said on the incident.",
        f"{AGAIN} Alertmanager tries again.",
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
        f"{AGAIN} Grafana tries again.",
        f"The status of each alert decides; its key is the fingerprint that Grafana sends. {INCIDENT}",
    ),
    Sender(
        "pagerduty",
        "PagerDuty clients",
        "alerts",
        ("pagerduty-enqueue",),
        "pagerduty",
        "Whatever speaks PagerDuty's Events API v2: trigger, acknowledge, resolve. The routing key is the integration "
        "key.",
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
        f"202 with `dedup_key`, as PagerDuty answers. {COMMITTED} 400 lists in `errors` what is wrong.",
        BODY,
        "429, which PagerDuty's clients wait out and try again.",
        "`dedup_key` is the key; without one each trigger is an alert of its own, and the answer names its key. "
        f"`resolve` ends it, `acknowledge` acknowledges the incident if it is its only alert. {INCIDENT}",
    ),
    Sender(
        "pagerduty-changes",
        "PagerDuty change events",
        "alerts",
        ("pagerduty-change",),
        "pagerduty",
        "What deploys and configures tells of each change, as to PagerDuty: `POST /v2/change/enqueue`. A change opens "
        "no incident. Incidents about the same component, host, service or source show the changes of the day before "
        "under “Changes shortly before”; programs read `/api/v1/changes` and `/api/v1/incidents/ID/changes`.",
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
        "202, as PagerDuty answers. The change is committed to disk. 400 lists in `errors` what is wrong.",
        BODY,
        "429 with `Retry-After`, which PagerDuty's clients wait out and try again.",
        "The same bytes with a `timestamp` are one change, however often they are sent; without one each is another. "
        "An incident's subject is compared with `source` and with the details that name something: `service`, `host`, "
        "`node`, `component`, ….",
    ),
    Sender(
        "opsgenie-clients",
        "Opsgenie clients",
        "alerts",
        ("opsgenie-alerts",),
        "opsgenie",
        "Whatever speaks Opsgenie's Alert API: create, close, acknowledge, note, snooze, assign, change, list "
        "(`/v2/alerts`). The API key is the integration key; changes and notes need the scope `incidents:write`, lists "
        "`incidents:read`. Teams and responders of an open alert, escalations, custom actions and attachments are not "
        "served (404): hand the incident over or escalate it in Dossier.",
        (
            ("the client's settings", f"API address  {HTTPS}\nAPI key      {KEY}\n"),
            (
                "alertmanager.yml, if you have Opsgenie there",
                f"opsgenie_configs:\n  - api_key: {KEY}\n    api_url: {HTTPS}/\n",
            ),
            (
                "try it",
                f"""curl {HTTPS}/v2/alerts -H 'Authorization: GenieKey {KEY}' -H 'Content-Type: application/json' -d '{{
  "message": "CPU is hot", "alias": "srv1/cpu", "entity": "srv-1", "priority": "P1"}}'
curl {HTTPS}/v2/alerts/srv1%2Fcpu/close?identifierType=alias -X POST -H 'Authorization: GenieKey {KEY}'
""",
            ),
        ),
        f"202 with `requestId`, as Opsgenie answers. {COMMITTED} `/v2/alerts/requests/ID` and the receipt of that id "
        "say what became of it. 422 says what is wrong.",
        BODY,
        "429, which Opsgenie's clients wait out and try again.",
        "`alias` is the key; without one each request is an alert of its own. P1 is critical, P2 an error, P3 (and "
        "none) a warning, P4 and P5 information. `close` and `DELETE` end it, `acknowledge` acknowledges the incident "
        "if it is its only alert; closing what is not open changes nothing and is answered with 202, as there. "
        "`snooze`, `unacknowledge` and `priority` act on the incident if it is its only alert, else 409; `assign` "
        "takes a user name or mail address; `message` sets the title. Tags, details and descriptions that come later "
        "are comments on the incident, each once. The "
        f"first team of `responders` is the label `team`, which routing rules may ask for. {INCIDENT}",
    ),
    Sender(
        "cloudevents",
        "CloudEvents",
        "alerts",
        ("cloudevents",),
        "cloudevents",
        "CloudEvents 1.0 over HTTP: structured, batched and binary, with the webhook handshake (`OPTIONS`). Health "
        "events of NVSentinel become one alert for each entity; anything else goes through the key's mapping.",
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
        f"An event with `source` and `id` of one that was taken changes nothing. {INCIDENT}",
    ),
    Sender(
        "generic",
        "Any JSON or form",
        "alerts",
        ("generic-webhook",),
        "generic",
        "Whatever can post JSON or a form. Common names of fields (`title`, `status`, `severity`, `key`, `labels`, …) "
        "are understood; for others the integration gets a mapping, which is tried on its page before it is stored. "
        "In `words`, `*` is any text that is not listed and `ignored: reason` leaves a message out; with "
        "`reads_titles` a title such as `[OK] Disk` says the status where no field does.",
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
        "200 with `accepted`, `receipt`, `refused` for alerts of the body that are no good, and `left_out` for those "
        "that the mapping leaves out (`ignored: reason`). 202 where no mapping reads the payload: it is stored, and "
        f"the page of the integration proposes one. {COMMITTED}",
        f"{BODY} At most 100,000 alerts a body.",
        AGAIN,
        "The mapping says what the key is, and which word means resolved. Without a resolved message an alert fires "
        f"until a person resolves its incident. {INCIDENT}",
    ),
    _ready("nagios", "A host or service is one alert while it is not well; RECOVERY ends it."),
    _ready("icinga", "A host or service is one alert while it is not well; Recovery ends it."),
    _ready(
        "zabbix", "A problem is one alert; its recovery and its updates carry the problem's own event id."
    ),
    _ready(
        "kubernetes",
        "A condition of a node is one alert while it is a problem; the condition's next status ends it.",
    ),
    *(
        _ready(one.name, "The mapping says which field is the key and which words end an alert.")
        for one in HOSTED
    ),
)
