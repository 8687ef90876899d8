"""Bob kills the web process while fleets report and alerts come: nothing acknowledged is lost, nothing counts twice."""

import random
import threading
import time
from datetime import UTC, datetime
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection

from deploy.demo.sender import Sender
from ingest.api import keys
from tests.acceptance import test_kill_web_alerts as storms
from tests.acceptance.stack import wait_for
from tests.acceptance.web import Web

SENDERS, BATCHES, ROWS, KILLS = 4, 12, 150, 3


@pytest.fixture
def web_processes() -> int:
    return 2


def send(web: Web, key: str, sender: int, receipts: list[str]) -> None:
    at = datetime.now(UTC).isoformat()
    for batch in range(BATCHES):
        rows = [{"time": at, "unit": f"vm/{sender}-{batch}-{n}", "symptom": "lost"} for n in range(ROWS)]
        receipts.append(
            Sender(web.address, key, threading.Event()).post_rows(
                "unit_failure", rows, f"alice-{sender}-{batch}"
            )
        )


def test_a_killed_web_process_loses_nothing_that_was_acknowledged(web: Web) -> None:
    key = make_key()
    receipts, acknowledged = list[str](), list[str]()
    alarms = keys.create("storm", ["alerts"])
    senders = [threading.Thread(target=send, args=(web, key, n, receipts)) for n in range(SENDERS)]
    for n in range(SENDERS):
        told = (web, alarms, n, BATCHES, acknowledged)
        senders.append(threading.Thread(target=storms.send, args=told))
    at_kills = list[tuple[int, int]]()
    for thread in senders:
        thread.start()
    for kill in range(KILLS):
        wanted = 10 * (kill + 1)
        wait_for(lambda wanted=wanted: min(len(receipts), len(acknowledged)) >= wanted, 120, "receipts")  # type: ignore[misc]
        at_kills.append((len(receipts), len(acknowledged)))
        time.sleep(random.Random(kill).uniform(0, 0.02))
        web.kill()
        web.start()
    for thread in senders:
        thread.join(60)
    assert max(at_kills[0]) < SENDERS * BATCHES, "the first kill was in the middle of both"
    assert len(set(receipts)) == SENDERS * BATCHES
    assert counted("SELECT count(*), count(DISTINCT unit) FROM telemetry_unit_failure") == (
        SENDERS * BATCHES * ROWS,
        SENDERS * BATCHES * ROWS,
    )
    assert counted("SELECT count(*), 0 FROM log_event WHERE type = 'telemetry.received'") == (
        SENDERS * BATCHES,
        0,
    )
    assert len(acknowledged) == SENDERS * BATCHES
    storms.all_are_kept(acknowledged)


def make_key() -> str:
    out = StringIO()
    call_command("create_key", "alice", "--scope", "telemetry", stdout=out)
    return out.getvalue().strip()


def counted(query: str) -> tuple[int, ...]:
    with connection.cursor() as cursor:
        cursor.execute(query)
        row: tuple[int, ...] = cursor.fetchone()
    return row
