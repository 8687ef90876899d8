"""Mail, heartbeats, and what sends telemetry."""

from __future__ import annotations

from frontend.senders.form import AGAIN, HOST, HTTPS, INCIDENT, KEY, Sender

OTHERS: tuple[Sender, ...] = (
    Sender(
        "mail",
        "E-mail",
        "alerts",
        (),
        "mail",
        "For senders that support only e-mail. Dossier listens on `DOSSIER_INBOUND_EMAIL_PORT`"
        " (SMTP; STARTTLS with `DOSSIER_INBOUND_EMAIL_CERTIFICATE`) and relays nothing. Each"
        " integration has an address, shown to staff on the page of integrations and in"
        " `/api/v1/integrations`. The address is a secret: anyone who knows it can send. Point an"
        " MX record or a transport of your mail server to Dossier, or let the monitoring system"
        " send to it directly. `anything+ADDRESS` is the same address.",
        (
            ("the recipient", "ADDRESS, as on the page of integrations\n"),
            (
                "Postfix, /etc/postfix/transport, for a domain of its own",
                f"dossier-mail.example.com  smtp:[{HOST}]:2525\n",
            ),
            (
                "try it",
                f"""curl smtp://{HOST}:2525 --mail-from me@example.com --mail-rcpt ADDRESS --upload-file - <<'END'
From: me@example.com
Subject: PROBLEM: Disk d7 of db-1 is slow

Writes take 900 ms.
END
""",
            ),
            (
                "a mapping for other formats",
                """{"title": "$.subject", "key": {"from": "$.subject", "find": "#([0-9]+)"}, "description": "$.text",
 "status": {"from": "$.subject", "find": "(?i)all good|still broken",
            "words": {"all good": "resolved", "still broken": "firing"}, "default": "firing"},
 "component": {"from": "$.text", "find": "(host/[a-z0-9-]+)"}}
""",
            ),
        ),
        "250 with the receipt: the alert is committed to disk. 5xx: rejected permanently, with"
        " the reason (unknown address, too large, automatic answer, bounce); the sending server"
        " notifies its sender.",
        "10 MiB per mail with its attachments (`DOSSIER_INBOUND_EMAIL_MAX_BODY`); of a mail above"
        " 1 MiB only the headers are stored with the alert. One integration per mail. 100"
        " connections.",
        "451 or 421: nothing was stored; the sending server keeps the mail and retries, usually for days.",
        "Without a mapping the subject without its words of status is the key, so `PROBLEM: x` and `RECOVERY: x`, "
        "`[FIRING:1] x` and `[RESOLVED] x` are one alert; `OK`, `RECOVERY`, `RESOLVED`, `UP` end it. A mapping reads "
        "`subject`, `from`, `text`, `headers`, `state`, `severity`, `topic`. " + INCIDENT,
    ),
    Sender(
        "heartbeat",
        "Heartbeat",
        "alerts",
        ("heartbeat",),
        "heartbeat",
        "For jobs that run regularly. Each call states the time of the next one, so there is"
        " nothing to set up: `every` (default `5m`), `grace` (tolerated delay, default a fifth of"
        " `every`, at least a minute), `severity`, `component`.",
        (
            (
                "crontab",
                "0 3 * * *  /usr/local/bin/backup && curl --silent --fail --max-time 10 --retry 3"
                f" '{HTTPS}/integrations/heartbeat/{KEY}?name=nightly-backup&every=24h&grace=2h'\n",
            ),
        ),
        "200 with `due`, the time of the next one. The heartbeat is committed to disk.",
        "A POST may have these fields in a form or a JSON object; with a query the body is"
        " ignored, so a job may send its output.",
        f"{AGAIN} `curl --retry` retries.",
        "A missed heartbeat fires an alert, which opens an incident; the next call ends it.",
    ),
    Sender(
        "otlp",
        "OpenTelemetry (OTLP)",
        "telemetry",
        ("otlp-metrics", "otlp-traces", "otlp-logs"),
        "otlp",
        "OTLP over HTTP (protobuf or JSON), and over gRPC with `DOSSIER_OTLP_GRPC_PORT`. Metrics"
        " become rows of `metric`, spans rows of `span`. Log records of severity ERROR and above"
        " become alerts, with the scope `alerts`; Dossier stores no other logs.",
        (
            (
                "environment of the SDK",
                f"""OTEL_EXPORTER_OTLP_ENDPOINT={HTTPS}
OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf
OTEL_EXPORTER_OTLP_HEADERS=Authorization=Bearer%20{KEY}
""",
            ),
            (
                (
                    "the same over gRPC (`insecure` unless DOSSIER_OTLP_GRPC_CERTIFICATE or a proxy provides"
                    " TLS)"
                ),
                f"""OTEL_EXPORTER_OTLP_ENDPOINT=http://{HOST}:4317
OTEL_EXPORTER_OTLP_PROTOCOL=grpc
OTEL_EXPORTER_OTLP_INSECURE=true
OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20{KEY}
""",
            ),
            (
                "collector",
                f"""exporters:
  otlphttp/dossier:
    endpoint: {HTTPS}
    headers:
      Authorization: Bearer {KEY}
""",
            ),
        ),
        "200: valid records are committed to disk; invalid ones are counted in `partialSuccess`"
        " with the first reason.",
        "20 MiB per body or message after decompression; larger gRPC messages get"
        " RESOURCE_EXHAUSTED without `RetryInfo`.",
        "429 or 503 with `Retry-After`, in the format of the request; over gRPC"
        " RESOURCE_EXHAUSTED (rate of the key) or UNAVAILABLE, with `RetryInfo`. Exporters retry.",
        "Identical requests with the same key are stored once, so an exporter may repeat a"
        " request without an answer. Log records of the same service, logger and text (words with"
        " digits left out) are one alert, which ends when it stops repeating.",
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
  - url: {HTTPS}/api/v1/write
    authorization:
      credentials: {KEY}
""",
            ),
        ),
        "204: every numeric sample is committed to disk. 400 has the reason for rejected samples;"
        " the valid ones are stored, since senders do not retry after a 400.",
        "20 MiB per body after decompression, 400,000 series.",
        "503 with `Retry-After: 5`; Prometheus retries.",
        "Identical requests with the same key are stored once. Staleness markers are dropped.",
    ),
)
