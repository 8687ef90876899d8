"""A test alert of an integration: a sample as its sender would write it, read and stored as by the real door.

It is over after five minutes by itself, so that nobody has to tidy up after a test.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from ingest.alerts.receiving import Delivery, Taken, receive
from ingest.doors import generic, grafana, pagerduty, prometheus
from ingest.doors.alert import Parsed
from ingest.doors.default_mapping import DEFAULT

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
    told = _alertmanager(now)
    return {**told, "version": "1", "orgId": 1, "title": TITLE, "state": "alerting", "message": ""}


def _pagerduty(now: datetime) -> Any:
    payload = {"summary": TITLE, "source": "dossier-test", "severity": "info", "timestamp": now.isoformat()}
    return {
        "routing_key": "the key of this integration",
        "event_action": "trigger",
        "dedup_key": "dossier-test",
        "payload": payload,
    }


def _generic(_: datetime) -> Any:
    return {"title": TITLE, "key": "dossier-test", "status": "firing", "severity": "info"}


def _prometheus(now: datetime) -> Any:
    return [{"labels": _LABELS, "annotations": _ANNOTATIONS, "startsAt": now.isoformat()}]


_DOORS: Mapping[str, tuple[Callable[[datetime], Any], Callable[[bytes, datetime], Parsed]]] = {
    "alertmanager-api": (_prometheus, prometheus.alerts),
    "alertmanager": (_alertmanager, lambda body, _: prometheus.webhook(body)),
    "grafana": (_grafana, lambda body, _: grafana.webhook(body)),
    "pagerduty": (_pagerduty, lambda body, _: Parsed((pagerduty.event(body, "dossier-test").alert,))),
    "generic": (_generic, lambda body, _: generic.receive(DEFAULT, body).parsed),
}
DOORS = tuple(_DOORS)


def send_sample(integration: str, door: str, who: str) -> Taken:
    """Deliver the sample of a door (one of DOORS) for an integration. `who` asked for it."""
    now = datetime.now(UTC)
    write, read = _DOORS[door]
    payload = json.dumps(write(now)).encode()
    alerts = tuple(
        replace(alert, expires_at=now + LASTS, notes=(*alert.notes, f"a test, sent by {who}"))
        for alert in read(payload, now).alerts
    )
    return receive(Parsed(alerts), Delivery(integration, door, "application/json", payload))
