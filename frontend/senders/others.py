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
        "For senders that support only e-mail. Dossier listens on `DOSSIER_INBOUND_EMAIL_PORT` (SMTP, with "
        "STARTTLS where "
        "`DOSSIER_INBOUND_EMAIL_CERTIFICATE` is set) and relays nothing. Each integration has an address of its "
        "own, which staff see on "
        "the page of integrations and programs at `/api/v1/integrations`; it is a secret: anyone with the address can "
        "send. Point an MX or a transport of your mail server here, or let the monitoring system send here itself. "
        "`anything+ADDRESS` is the same address.",
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
                "a mapping for what the default does not read",
                """{"title": "$.subject", "key": {"from": "$.subject", "find": "#([0-9]+)"}, "description": "$.text",
 "status": {"from": "$.subject", "find": "(?i)all good|still broken",
            "words": {"all good": "resolved", "still broken": "firing"}, "default": "firing"},
 "component": {"from": "$.text", "find": "(host/[a-z0-9-]+)"}}
""",
            ),
        ),
        "250 with the receipt: the alert is committed to disk. 5xx: refused for good, with the reason (no such "
        "address, too large, an automatic answer, a bounce); the sending server tells its sender.",
        "10 MiB a mail with its attachments (`DOSSIER_INBOUND_EMAIL_MAX_BODY`); of a mail above 1 MiB only its "
        "headers are kept beside "
        "the alert. One integration a mail. 100 connections.",
        "451 or 421: nothing was stored, and the sending server keeps the mail and comes again, commonly for days.",
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
        "For jobs that must not stay away. Each call says itself when the next is due, so that there is nothing to set "
        "up: `every` (default `5m`), `grace` (how late it may be, default a fifth of `every`, at least a minute), "
        "`severity`, `component`.",
        (
            (
                "crontab",
                "0 3 * * *  /usr/local/bin/backup && curl --silent --fail --max-time 10 --retry 3"
                f" '{HTTPS}/integrations/heartbeat/{KEY}?name=nightly-backup&every=24h&grace=2h'\n",
            ),
        ),
        "200 with `due`, the time of the next one. The heartbeat is committed to disk.",
        "A POST may say the same in a form or an object of JSON; beside a query no body is read, so a job may send "
        "what it printed.",
        f"{AGAIN} `curl --retry` tries again.",
        "A missed heartbeat fires an alert, which opens an incident; the next call ends it.",
    ),
    Sender(
        "otlp",
        "OpenTelemetry (OTLP)",
        "telemetry",
        ("otlp-metrics", "otlp-traces", "otlp-logs"),
        "otlp",
        "OTLP over HTTP, protobuf or JSON; and over gRPC where the setting `DOSSIER_OTLP_GRPC_PORT` names a "
        "port. Metrics "
        "become rows of `metric`, spans rows of `span`. Log records of severity ERROR and above become alerts, with "
        "the scope `alerts`; Dossier keeps no other logs.",
        (
            (
                "environment of the SDK",
                f"""OTEL_EXPORTER_OTLP_ENDPOINT={HTTPS}
OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf
OTEL_EXPORTER_OTLP_HEADERS=Authorization=Bearer%20{KEY}
""",
            ),
            (
                "the same over gRPC (`insecure` where neither DOSSIER_OTLP_GRPC_CERTIFICATE nor a proxy does TLS)",
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
        "200: what is good is committed to disk; what is not is counted in `partialSuccess` with the first reason.",
        "20 MiB a body or message after decompression; over gRPC RESOURCE_EXHAUSTED without `RetryInfo` beyond it.",
        "429 or 503 with `Retry-After`, in the form of the request; over gRPC RESOURCE_EXHAUSTED (the rate of the key) "
        "or UNAVAILABLE with `RetryInfo`. Exporters try again.",
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
  - url: {HTTPS}/api/v1/write
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
