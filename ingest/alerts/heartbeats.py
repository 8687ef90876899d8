"""Expected heartbeats: received, missed, received again.

A missed one is an alert like any other; its return resolves it. What is kept here is only when the next one is due.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from django.db import connection, transaction

from ingest.alerts.deliveries import Delivery, DeliveryReceipt
from ingest.alerts.store import receive
from ingest.integrations.heartbeat import Heartbeat
from ingest.integrations.normalized import Parsed
from ingest.log.append import retrying

ENDPOINT = "heartbeat"
_COLUMNS = "integration, name, every, grace, severity, component, received_at"
_OVERDUE = "NOT missed AND received_at + every + grace < %s"


def receive_heartbeat(heartbeat: Heartbeat, delivery: Delivery, now: datetime) -> DeliveryReceipt:
    """Keep that a heartbeat came, and when the next one is due; ends its alert if it had been missed."""
    values: list[Any] = [delivery.integration, heartbeat.name, heartbeat.every, heartbeat.grace]
    values += [heartbeat.severity, heartbeat.component, now]
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO alert_heartbeat ({_COLUMNS}, missed) VALUES (%s, %s, %s, %s, %s, %s, %s, false)"
            " ON CONFLICT (integration, name) DO UPDATE SET every = EXCLUDED.every, grace = EXCLUDED.grace,"
            " severity = EXCLUDED.severity, component = EXCLUDED.component, received_at = EXCLUDED.received_at,"
            " missed = false",
            values,
        )
    return receive(Parsed((heartbeat.alert(missed_since=None),)), delivery)


def check(now: datetime) -> int:
    """Fire the alerts of heartbeats that are overdue; how many."""
    fired = 0
    while retrying(partial(_fire_next, now)):
        fired += 1
    return fired


@transaction.atomic
def _fire_next(now: datetime) -> bool:
    """Fires the alert of one that is overdue, and notes it as missed: both or neither, whoever is killed when."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE alert_heartbeat SET missed = true WHERE (integration, name) = (SELECT integration, name"
            f" FROM alert_heartbeat WHERE {_OVERDUE} ORDER BY received_at LIMIT 1 FOR UPDATE SKIP LOCKED)"
            f" AND {_OVERDUE} RETURNING {_COLUMNS}",
            (now, now),
        )
        row = cursor.fetchone()
    if row is None:
        return False
    integration, received_at = row[0], row[6]
    alert = Heartbeat(*row[1:6]).alert(missed_since=received_at)
    receive(Parsed((alert,)), Delivery(integration, ENDPOINT, "", b""))
    return True


@dataclass(frozen=True, slots=True)
class Waited:
    """A heartbeat that is waited for."""

    integration: str
    heartbeat: Heartbeat
    received_at: datetime
    missed: bool


def waited() -> list[Waited]:
    """All of them, by integration and name."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {_COLUMNS}, missed FROM alert_heartbeat ORDER BY integration, name")
        return [Waited(row[0], Heartbeat(*row[1:6]), row[6], row[7]) for row in cursor.fetchall()]


def forget(integration: str, name: str) -> bool:
    """Wait for it no longer; whether there was one."""
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM alert_heartbeat WHERE integration = %s AND name = %s", (integration, name)
        )
        return bool(cursor.rowcount)
