"""The doors as those who configure senders see them: what to paste, what an answer means, how alerts end.

One entry a page of `/docs/doors/…`; the page of integrations shows the same configuration with a new key in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from ingest.doors.mappings import READY

KEY = "KEY"
_HTTPS, _HOST = "https://dossier.example.com", "dossier.example.com"


@dataclass(frozen=True, slots=True)
class Sender:
    """A door and one kind of sender. `views` are the names of the addresses that it describes."""

    slug: str
    title: str
    scope: str
    views: tuple[str, ...]
    door: str
    """As a key's `doors` name it; empty where keys are bound to kinds of telemetry instead."""
    says: str
    configuration: tuple[tuple[str, str], ...]
    """Where to paste it, and what; with _HTTPS for the address and KEY for the key."""
    success: str
    limits: str
    overload: str
    life: str
    """How repeats are told from new alerts, and how an alert ends; what a repeated request does."""
    mapping: Mapping[str, object] | None = None

    def configured(self, address: str, key: str = KEY) -> list[tuple[str, str]]:
        """The configuration with the address of this Dossier and a key."""
        parts = urlsplit(address)

        def filled(text: str) -> str:
            text = text.replace(_HTTPS, address).replace(_HOST, parts.netloc)
            text = text.replace("scheme: https", f"scheme: {parts.scheme}")
            return re.sub(rf"\b{KEY}\b", key, text)

        return [(where, filled(text)) for where, text in self.configuration]


_COMMITTED = (
    "Every alert of the request is committed to disk. The answer's `Dossier-Receipt` names its receipt."
)
_BODY = (
    "1 MiB a body, also after decompression (gzip, zstd); `ALERT_MAX_BODY` changes that. Larger ones get 413."
)
_AGAIN = "503 with `Retry-After: 5`; nothing was stored."
_TICKET = (
    "Of the same key from the same integration there is one alert, however often it is sent; repeats are counted on "
    "the ticket. A ticket is resolved when all its alerts are over."
)


def _ready(name: str, note: str) -> Sender:
    ready = READY[name]
    return Sender(
        name,
        ready.title,
        "alerts",
        ("generic-webhook",),
        "generic",
        f"Through the generic door, with the mapping `{name}` that comes with Dossier: make the key with it.",
        ready.configuration,
        f"200 with `accepted` and `receipt`. {_COMMITTED} Messages that the mapping leaves out are counted in neither.",
        _BODY,
        _AGAIN,
        f"{note} {_TICKET}",
        ready.mapping,
    )


SENDERS: tuple[Sender, ...] = (
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
        - targets: ["{_HOST}"]
""",
            ),
            ("http.yml for amtool", f"authorization:\n  credentials: {KEY}\n"),
            ("amtool", f"amtool --alertmanager.url={_HTTPS} --http.config.file=http.yml alert query\n"),
        ),
        f"200 without a body. {_COMMITTED} 400 with a text names bad alerts; the good ones are stored.",
        _BODY,
        f"{_AGAIN} Prometheus keeps firing alerts and sends them with its next evaluation.",
        "Its key is the fingerprint of its labels. An alert ends at its `endsAt`; without one, five minutes "
        f"after it was last sent. {_TICKET}",
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
      - url: {_HTTPS}/integrations/alertmanager/{KEY}
        send_resolved: true
""",
            ),
        ),
        f"200 with `accepted` and `receipt`. {_COMMITTED}",
        f"{_BODY} If you limit `max_alerts`, what Alertmanager leaves out is said on the ticket.",
        f"{_AGAIN} Alertmanager tries again.",
        "The status of each alert decides, not the one of the group. Copies from several Alertmanagers collapse on "
        f"fingerprint and start. {_TICKET}",
    ),
    Sender(
        "grafana",
        "Grafana",
        "alerts",
        ("grafana-webhook",),
        "grafana",
        "A contact point of the type webhook, without a custom payload. Dashboards, panels and pictures become links.",
        (("Alerting, Contact points, Webhook, URL", f"{_HTTPS}/integrations/grafana/{KEY}\n"),),
        f"200 with `accepted` and `receipt`. {_COMMITTED}",
        _BODY,
        f"{_AGAIN} Grafana tries again.",
        f"The status of each alert decides; its key is the fingerprint that Grafana sends. {_TICKET}",
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
            ("the client's settings", f"address      {_HTTPS}\nrouting key  {KEY}\n"),
            (
                "alertmanager.yml, if you have PagerDuty there",
                f"pagerduty_configs:\n  - routing_key: {KEY}\n    url: {_HTTPS}/v2/enqueue\n",
            ),
            (
                "try it",
                f"""curl {_HTTPS}/v2/enqueue -H 'Content-Type: application/json' -d '{{
  "routing_key": "{KEY}", "event_action": "trigger", "dedup_key": "srv1/cpu",
  "payload": {{"summary": "CPU is hot", "source": "srv-1", "severity": "critical"}}}}'
""",
            ),
        ),
        f"202 with `dedup_key`, as PagerDuty answers. {_COMMITTED} 400 lists in `errors` what is wrong.",
        _BODY,
        "429, which PagerDuty's clients wait out and try again.",
        "`dedup_key` is the key; without one each trigger is an alert of its own, and the answer names its key. "
        f"`resolve` ends it, `acknowledge` acknowledges the ticket if it is its only alert. {_TICKET}",
    ),
    Sender(
        "pagerduty-changes",
        "PagerDuty change events",
        "alerts",
        ("pagerduty-change",),
        "pagerduty",
        "What deploys and configures tells of each change, as to PagerDuty: `POST /v2/change/enqueue`. A change opens "
        "no ticket. Tickets about the same component, host, service or source show the changes of the day before under "
        "“Changes shortly before”; programs read `/api/v1/changes` and `/api/v1/incidents/ID/changes`.",
        (
            ("the client's settings", f"address      {_HTTPS}\nrouting key  {KEY}\n"),
            (
                "at the end of a deployment",
                f"""curl {_HTTPS}/v2/change/enqueue -H 'Content-Type: application/json' -d '{{
  "routing_key": "{KEY}",
  "payload": {{"summary": "Deployed cart 2.31", "source": "cart", "timestamp": "2026-11-21T10:00:00Z",
              "custom_details": {{"service": "cart", "version": "2.31"}}}},
  "links": [{{"href": "https://builds.example.com/2231", "text": "Build 2231"}}]}}'
""",
            ),
        ),
        "202, as PagerDuty answers. The change is committed to disk. 400 lists in `errors` what is wrong.",
        "512 KiB a body, also after decompression.",
        "429 with `Retry-After`, which PagerDuty's clients wait out and try again.",
        "The same bytes with a `timestamp` are one change, however often they are sent; without one each is another. "
        "What a ticket is about is compared with `source` and with the details that name something: `service`, `host`, "
        "`node`, `component`, ….",
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
            ("the sender's target", f"{_HTTPS}/integrations/cloudevents/{KEY}\n"),
            (
                "try it",
                f"""curl {_HTTPS}/integrations/cloudevents/{KEY} -H 'Content-Type: application/cloudevents+json' -d '{{
  "specversion": "1.0", "id": "1", "source": "/rack/12", "type": "com.example.fan.failed",
  "subject": "host/srv-1", "data": {{"message": "Fan 2 stands still", "severity": "error"}}}}'
""",
            ),
        ),
        f"200 with `accepted` and `receipt`. {_COMMITTED}",
        f"{_BODY} Formats other than JSON get 415.",
        "429 with `Retry-After: 5`; nothing was stored.",
        f"An event with `source` and `id` of one that was taken changes nothing. {_TICKET}",
    ),
    Sender(
        "generic",
        "Any JSON or form",
        "alerts",
        ("generic-webhook",),
        "generic",
        "Whatever can post JSON or a form. Common names of fields (`title`, `status`, `severity`, `key`, `labels`, …) "
        "are understood; for others the integration gets a mapping, which is tried on its page before it is stored.",
        (
            (
                "try it",
                f"""curl {_HTTPS}/integrations/generic/{KEY} -H 'Content-Type: application/json' -d '{{
  "title": "Disk d7 is slow", "key": "d7", "status": "firing", "severity": "warning", "component": "disk/d7"}}'
""",
            ),
            (
                "a mapping",
                """{"items": "$.events", "title": "{check} on {host}", "key": "{host}/{check}",
 "status": {"from": "$.state", "words": {"RED": "firing", "GREEN": "resolved", "GREY": "ignored"}},
 "component": "host/{host}", "group": "$.check", "labels": "$.tags"}
""",
            ),
        ),
        f"200 with `accepted`, `receipt` and, where some alerts of a body are no good, `refused`. {_COMMITTED}",
        f"{_BODY} At most 1,000 alerts a body.",
        _AGAIN,
        "The mapping says what the key is, and which word means resolved. Without a resolved message an alert fires "
        f"until a person resolves its ticket. {_TICKET}",
    ),
    _ready("nagios", "A host or service is one alert while it is not well; RECOVERY ends it."),
    _ready("icinga", "A host or service is one alert while it is not well; Recovery ends it."),
    _ready(
        "zabbix", "A problem is one alert; its recovery and its updates carry the problem's own event id."
    ),
    Sender(
        "heartbeat",
        "Heartbeat",
        "alerts",
        ("heartbeat",),
        "heartbeat",
        "For jobs that must not stay away. Each call says itself when the next is due, so that there is nothing to set "
        "up: `every` (default `5m`), `grace` (how late it may be, default a fifth of `every`, at least a minute), "
        "`severity`, `component`.",
        (
            (
                "crontab",
                "0 3 * * *  /usr/local/bin/backup && curl --silent --fail --max-time 10 --retry 3"
                f" '{_HTTPS}/integrations/heartbeat/{KEY}?name=nightly-backup&every=24h&grace=2h'\n",
            ),
        ),
        "200 with `due`, the time of the next one. The heartbeat is committed to disk.",
        "No body is read.",
        f"{_AGAIN} `curl --retry` tries again.",
        "A missed heartbeat fires an alert, which opens a ticket; the next call ends it.",
    ),
    Sender(
        "otlp",
        "OpenTelemetry (OTLP)",
        "telemetry",
        ("otlp-metrics", "otlp-traces", "otlp-logs"),
        "otlp",
        "OTLP over HTTP, protobuf or JSON. Metrics become rows of `metric`, spans rows of `span`. "
        "Log records of severity ERROR and above become alerts, with the scope `alerts`; Dossier keeps no other logs.",
        (
            (
                "environment of the SDK",
                f"""OTEL_EXPORTER_OTLP_ENDPOINT={_HTTPS}
OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf
OTEL_EXPORTER_OTLP_HEADERS=Authorization=Bearer%20{KEY}
""",
            ),
            (
                "collector",
                f"""exporters:
  otlphttp/dossier:
    endpoint: {_HTTPS}
    headers:
      Authorization: Bearer {KEY}
""",
            ),
        ),
        "200: what is good is committed to disk; what is not is counted in `partialSuccess` with the first reason.",
        "20 MiB a body after decompression.",
        "503 with `Retry-After: 5`, in the form of the request; exporters try again.",
        "The same bytes from the same key are stored once, so an exporter may repeat a request whose answer got lost. "
        "Log records of the same service, logger and text (words with digits in them left out) are one alert, which is "
        "over once it is not repeated for a while.",
    ),
    Sender(
        "remote-write",
        "Prometheus remote write",
        "telemetry",
        ("remote-write",),
        "",
        "Remote write 1.0 and 2.0. Samples become rows of `metric`.",
        (
            (
                "prometheus.yml",
                f"""remote_write:
  - url: {_HTTPS}/api/v1/write
    authorization:
      credentials: {KEY}
""",
            ),
        ),
        "204: every sample that is a number is committed to disk. 400 says what was refused; good samples are stored "
        "all the same, since senders do not repeat after a 400.",
        "20 MiB a body once unpacked, 400,000 series.",
        "503 with `Retry-After: 5`; Prometheus tries again.",
        "The same bytes from the same key are stored once. Markers of stale series are dropped.",
    ),
)
BY_SLUG = {sender.slug: sender for sender in SENDERS}
