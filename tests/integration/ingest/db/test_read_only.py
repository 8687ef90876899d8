"""A database that takes nothing for a while (its disk is full, it is being moved) is to senders as one that is away."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from django.db import connection
from django.test import Client

from ingest.api import keys

pytestmark = pytest.mark.usefixtures("log_database")
ALERT = {"title": "Disk full", "status": "firing"}
EVENT = {
    "event_action": "trigger",
    "payload": {"summary": "Disk full", "source": "h1", "severity": "error"},
}


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("/api/v1/telemetry/unit_failure", [{"unit": "vm/1", "time": datetime.now(UTC).isoformat()}]),
        ("/integrations/generic/{key}", ALERT),
        ("/integrations/heartbeat/{key}", {"name": "backup", "every": "1h"}),
        ("/v2/enqueue", EVENT),
        ("/api/v2/alerts", [{"labels": {"alertname": "DiskFull"}}]),
    ],
)
def test_a_sender_is_told_to_come_again(path: str, sent: object) -> None:
    key = keys.create("sender", ["alerts", "telemetry"])
    if sent is EVENT:
        sent = {**EVENT, "routing_key": key}
    headers = {"Authorization": f"Bearer {key}"}

    def post() -> tuple[int, str]:
        client = Client(raise_request_exception=False)
        answer = client.post(
            path.format(key=key), json.dumps(sent), content_type="application/json", headers=headers
        )
        return answer.status_code, answer.get("Retry-After", "")

    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = on")
    assert post() == (503, "5")
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = off")
    status, _ = post()
    assert status in (200, 202)
