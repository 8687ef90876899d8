"""Alerts are not lost for the size of their body, and a refusal of a known sender is an incident."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from incidents import queries
from incidents.follower import follower
from ingest.api import keys, rejections
from tests.following import follow_to_the_end

pytestmark = pytest.mark.usefixtures("log_database")


@pytest.fixture
def key() -> str:
    rejections._noted.clear()
    return keys.create("prometheus", ["alerts"])


def alert(number: int) -> dict[str, Any]:
    return {
        "status": "firing",
        "labels": {"alertname": "NodeDown", "severity": "critical", "instance": f"node-{number}:9100"},
        "annotations": {"summary": f"node-{number} is down", "description": "x" * 300},
        "startsAt": "2026-01-31T12:00:00Z",
        "endsAt": "0001-01-01T00:00:00Z",
        "fingerprint": f"{number:016x}",
    }


def group(size: int) -> bytes:
    message = {"version": "4", "status": "firing", "alerts": [alert(number) for number in range(size)]}
    return json.dumps(message).encode()


def send(key: str, body: bytes) -> Any:
    path = f"/integrations/alertmanager/{key}"
    answer = Client().post(path, body, content_type="application/json")
    follow_to_the_end(follower())
    return answer


def test_a_group_of_3000_alerts_above_a_mebibyte_is_stored_whole(key: str) -> None:
    body = group(3_000)
    assert len(body) > 2**20
    answer = send(key, body)
    assert (answer.status_code, answer.json()["accepted"]) == (200, 3_000)
    (view,) = queries.list_incidents().items
    assert (view.incident.alerts, view.incident.severity) == (3_000, "critical")


def test_a_refusal_of_a_known_sender_is_an_incident(key: str, settings: Any) -> None:
    assert send(key, group(1)).status_code == 200
    settings.ALERT_MAX_BODY = 10_000
    assert send(key, group(100)).status_code == 413
    titles = [view.incident.title for view in queries.list_incidents().items]
    assert any(title.startswith("Alerts from prometheus are rejected (413)") for title in titles), titles


def test_a_refusal_while_a_sender_is_set_up_calls_nobody(key: str) -> None:
    assert send(key, b"{}").status_code == 400
    assert queries.list_incidents().items == []
