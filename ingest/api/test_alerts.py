"""A test alert of an integration: a sample as its sender would write it, read and stored as by the real endpoint.

It is over after five minutes by itself, so that nobody has to tidy up after a test.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from typing import Any, Final
from uuid import uuid4

from msgspec import structs

from ingest.alerts.deliveries import Delivery, DeliveryReceipt
from ingest.alerts.store import receive
from ingest.api.models import IntegrationKey
from ingest.integrations import grafana, mail, opsgenie, pagerduty, prometheus, recognition
from ingest.integrations.cloudevents import alerts as cloudevent_alerts
from ingest.integrations.cloudevents.parse import UnsupportedContentTypeError, events
from ingest.integrations.generic import apply
from ingest.integrations.generic.default import DEFAULT
from ingest.integrations.normalized import InvalidPayloadError, Parsed
from ingest.integrations.otlp import logs as otlp_logs
from ingest.integrations.otlp import messages
from ingest.telemetry.errors import InvalidBodyError

LASTS = timedelta(minutes=5)
TITLE: Final = "Test alert sent from the console"
_LABELS = {"alertname": "DossierTest", "severity": "info", "service": "dossier-test"}
_ANNOTATIONS = {"summary": TITLE, "description": "Nothing is wrong. It is over by itself after five minutes."}


def _alertmanager(now: datetime) -> Any:
    one = {
        "status": "firing",
        "labels": _LABELS,
        "annotations": _ANNOTATIONS,
        "startsAt": now.isoformat(),
        "endsAt": "0001-01-01T00:00:00Z",
        "generatorURL": "http://prometheus:9090/graph",
        "fingerprint": "",
    }
    return {
        "version": "4",
        "groupKey": '{}:{alertname="DossierTest"}',
        "status": "firing",
        "receiver": "dossier",
        "groupLabels": {"alertname": "DossierTest"},
        "commonLabels": _LABELS,
        "commonAnnotations": _ANNOTATIONS,
        "externalURL": "http://alertmanager:9093",
        "truncatedAlerts": 0,
        "alerts": [one],
    }


def _grafana(now: datetime) -> Any:
    webhook = _alertmanager(now)
    return {**webhook, "version": "1", "orgId": 1, "title": TITLE, "state": "alerting", "message": ""}


def _pagerduty(now: datetime) -> Any:
    payload = {"summary": TITLE, "source": "dossier-test", "severity": "info", "timestamp": now.isoformat()}
    return {
        "routing_key": "the key of this integration",
        "event_action": "trigger",
        "dedup_key": "dossier-test",
        "payload": payload,
    }


def _opsgenie(_: datetime) -> Any:
    return {"message": TITLE, "alias": "dossier-test", "priority": "P5", "source": "dossier-test"}


def _generic(_: datetime) -> Any:
    return {"title": TITLE, "key": "dossier-test", "status": "firing", "severity": "info"}


def _prometheus(now: datetime) -> Any:
    return [{"labels": _LABELS, "annotations": _ANNOTATIONS, "startsAt": now.isoformat()}]


def _cloudevent(now: datetime) -> Any:
    return {
        "specversion": "1.0",
        "id": str(uuid4()),
        "source": "/dossier-test",
        "type": "dossier.test",
        "time": now.isoformat(),
        "data": {"title": TITLE, "severity": "info"},
    }


def _mail(now: datetime) -> Any:
    mail_message = EmailMessage()
    mail_message["From"], mail_message["Subject"], mail_message["Date"] = (
        "dossier-test@example.com",
        f"[INFO] {TITLE}",
        now,
    )
    mail_message.set_content(_ANNOTATIONS["description"])
    return mail_message.as_bytes()


def _otlp(now: datetime) -> Any:
    record = {
        "timeUnixNano": str(int(now.timestamp() * 1e9)),
        "severityNumber": otlp_logs.ERROR,
        "severityText": "ERROR",
        "body": {"stringValue": TITLE},
    }
    service = {"key": "service.name", "value": {"stringValue": "dossier-test"}}
    logs = {"resource": {"attributes": [service]}, "scopeLogs": [{"scope": {}, "logRecords": [record]}]}
    return {"resourceLogs": [logs]}


def _read_otlp(body: bytes, now: datetime) -> Parsed:
    try:
        request = messages.read(messages.SIGNALS["logs"], body, messages.JSON)
    except InvalidBodyError as error:
        raise InvalidPayloadError("", str(error)) from None
    return otlp_logs.alerts(request, now).parsed


_CLOUDEVENTS = "application/cloudevents+json"
_BATCH = "application/cloudevents-batch+json"
_MEDIA_TYPES = {"cloudevents": _CLOUDEVENTS, "mail": "message/rfc822"}
_ENDPOINTS: Mapping[str, tuple[Callable[[datetime], Any], Callable[[bytes, datetime], Parsed]]] = {
    "alertmanager-api": (_prometheus, prometheus.alerts),
    "alertmanager": (_alertmanager, lambda body, _: prometheus.webhook(body)),
    "grafana": (_grafana, lambda body, _: grafana.webhook(body)),
    "pagerduty": (_pagerduty, lambda body, _: Parsed((pagerduty.event(body, "dossier-test").alert,))),
    "opsgenie": (_opsgenie, lambda body, _: Parsed((opsgenie.created(body, "dossier-test"),))),
    "generic": (_generic, lambda body, _: apply.receive(DEFAULT, body).parsed),
    "cloudevents": (
        _cloudevent,
        lambda body, _: cloudevent_alerts.alerts(events(body, {"content-type": _CLOUDEVENTS})),
    ),
    "otlp": (_otlp, _read_otlp),
    "mail": (_mail, lambda body, _: mail.alerts(body, mail.DEFAULT)),
}
_READ_AS: Mapping[str, Callable[[bytes, apply.Mapping | None], Parsed]] = {
    "generic": lambda body, how: recognition.apply(how, apply.payload_of(body, "application/json")).parsed,
    "cloudevents": lambda body, how: cloudevent_alerts.alerts(
        events(body, {"content-type": _BATCH if body.lstrip().startswith(b"[") else _CLOUDEVENTS}),
        how or cloudevent_alerts.DEFAULT,
    ),
    "mail": lambda body, how: mail.alerts(body, how or mail.DEFAULT),
}
READ_BY_MAPPINGS = ("generic", "cloudevents", "mail")
"""Endpoints of mappings: with a mapping of the integration's own, their sample would not fit it."""
ENDPOINTS = tuple(_ENDPOINTS)


def read_pasted(endpoint: str, integration: str | None, payload: Any) -> Parsed:
    """Result of an endpoint (one of ENDPOINTS) for a payload as its sender sends it; stores nothing.

    `payload` is JSON, or a text: a mail, or JSON as text. With an `integration` it is read by the mapping of that name.
    Raises InvalidPayloadError, and LookupError where there is no such integration.
    """
    body = payload.encode(errors="replace") if isinstance(payload, str) else json.dumps(payload).encode()
    if (read := _READ_AS.get(endpoint)) is None:
        return _ENDPOINTS[endpoint][1](body, datetime.now(UTC))
    try:
        return read(body, None if integration is None else _mapping_of(integration))
    except UnsupportedContentTypeError as error:
        raise InvalidPayloadError("", str(error)) from None


def _mapping_of(integration: str) -> apply.Mapping | None:
    row = IntegrationKey.objects.filter(name=integration).first()
    if row is None:
        raise LookupError(f"there is no integration {integration[:100]}")
    return None if row.mapping is None else apply.mapping(row.mapping)


def sample(endpoint: str, now: datetime) -> Any:
    """Sample of an endpoint's sender (one of ENDPOINTS): JSON, or the bytes of a mail."""
    return _ENDPOINTS[endpoint][0](now)


def send_sample(integration: str, endpoint: str, actor: str) -> DeliveryReceipt:
    """Deliver the sample of an endpoint (one of ENDPOINTS) for an integration. `actor` asked for it.

    It is information, whatever its sender would take it for: a test calls nobody.
    """
    now = datetime.now(UTC)
    payload_sample, read = sample(endpoint, now), _ENDPOINTS[endpoint][1]
    payload = payload_sample if isinstance(payload_sample, bytes) else json.dumps(payload_sample).encode()
    alerts = tuple(
        structs.replace(
            alert, severity="info", expires_at=now + LASTS, notes=(*alert.notes, f"a test, sent by {actor}")
        )
        for alert in read(payload, now).alerts
    )
    media_type = _MEDIA_TYPES.get(endpoint, "application/json")
    return receive(Parsed(alerts), Delivery(integration, endpoint, media_type, payload))
