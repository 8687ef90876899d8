"""Bob kills the web process in a storm of alerts: every alert that was acknowledged is in the log exactly once.

`test_kill_web` does it in a small one, beside telemetry.
"""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
import urllib.error
import urllib.request

import pytest
from django.db import connection

from ingest.api import keys
from ingest.log.verify import verify
from tests.acceptance.stack import wait_for
from tests.acceptance.web import Web

SENDERS, BATCH = 4, 64


@pytest.fixture
def web_processes() -> int:
    return 2


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_ten_kills_in_a_storm_of_a_hundred_thousand_alerts_lose_none(web: Web) -> None:
    storm(web, batches=100_000 // SENDERS // BATCH + 1, kills=10)


def storm(web: Web, batches: int, kills: int) -> None:
    key, acknowledged = keys.create("storm", ["alerts"]), list[str]()
    senders = [
        threading.Thread(target=send, args=(web, key, n, batches, acknowledged)) for n in range(SENDERS)
    ]
    for thread in senders:
        thread.start()
    chance = random.Random(batches)
    for kill in range(1, kills + 1):
        wanted = SENDERS * batches * kill // (kills + 1)
        wait_for(lambda wanted=wanted: len(acknowledged) >= wanted, 600, "receipts")  # type: ignore[misc]
        time.sleep(chance.uniform(0, 0.05))
        web.kill()
        web.start()
    for thread in senders:
        thread.join(600)
    assert len(acknowledged) == SENDERS * batches
    all_are_kept(acknowledged)


def all_are_kept(acknowledged: list[str]) -> None:
    """Each batch that has one of these receipts is in the log, every alert of it once."""
    alerts = len(acknowledged) * BATCH
    assert one("SELECT count(*) FROM log_event WHERE type = 'alert.reported'") == alerts
    assert one("SELECT count(DISTINCT stream) FROM log_event WHERE type = 'alert.reported'") == alerts
    kept = "SELECT count(DISTINCT receipt) FROM alert_delivery WHERE receipt = ANY(%s::uuid[])"
    assert one(kept, acknowledged) == len(acknowledged)
    assert verify().events >= alerts


def send(web: Web, key: str, sender: int, batches: int, acknowledged: list[str]) -> None:
    for batch in range(batches):
        labels = ({"alertname": "Down", "instance": f"h{sender}-{batch}-{n}"} for n in range(BATCH))
        body = json.dumps([{"labels": one} for one in labels]).encode()
        acknowledged.append(post_until_taken(web, key, body))


def post_until_taken(web: Web, key: str, body: bytes) -> str:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    while True:
        request = urllib.request.Request(f"{web.address}/api/v2/alerts", body, headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return str(answer.headers["Dossier-Receipt"])
        except (urllib.error.URLError, http.client.HTTPException, OSError):
            time.sleep(0.1)


def one(query: str, values: list[str] | None = None) -> int:
    with connection.cursor() as cursor:
        cursor.execute(query, None if values is None else (values,))
        return int(cursor.fetchone()[0])
