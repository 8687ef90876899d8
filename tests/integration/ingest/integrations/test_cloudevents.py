"""CloudEvents: what is answered and what is stored, in the order in which events happened."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from ingest.api import keys
from tests.unit.ingest.integrations.test_cloudevents import EVENT, health

pytestmark = pytest.mark.usefixtures("log_database")

ONE, BATCH = "application/cloudevents+json", "application/cloudevents-batch+json"
Post = Callable[..., Any]


@pytest.fixture
def address() -> str:
    return f"/integrations/cloudevents/{keys.create('sentinel', ['alerts'])}"


@pytest.fixture
def post(address: str) -> Post:
    def send(told: Any, content_type: str = ONE, **headers: str) -> Any:
        body = told if isinstance(told, bytes) else json.dumps(told).encode()
        return Client(headers=headers).post(address, body, content_type=content_type)

    return send


def alerts() -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT component, status, repeats FROM alert ORDER BY component")
        return list(cursor.fetchall())


def test_events_of_all_modes_are_stored_with_a_receipt(post: Post) -> None:
    binary = {
        "ce-specversion": "1.0",
        "ce-id": "9",
        "ce-source": "/shop",
        "ce-type": "t",
        "ce-subject": "disk/h3-1",
    }
    for answer in (
        post(EVENT),
        post([EVENT | {"id": "8", "subject": "disk/h2-1"}], BATCH),
        post({"message": "No space left"}, "application/json", **binary),
    ):
        assert (answer.status_code, answer.json()["accepted"]) == (200, 1)
        assert answer["Dossier-Receipt"]
    assert [component for component, *_ in alerts()] == ["disk/h1-3", "disk/h2-1", "disk/h3-1"]


def test_health_events_may_come_late_and_again(post: Post) -> None:
    ill, worse = health("2026-03-01T12:00:00Z", "e1"), health("2026-03-01T12:01:00Z", "e2")
    well = health("2026-03-01T12:02:00Z", "e3", isHealthy=True)
    for event in (ill, ill, well, worse, ill, well):
        assert post(event).status_code == 200
    ((component, status, _),) = alerts()
    assert (component, status) == ("gpu/gpu-17-0", "resolved")
    assert post(health("2026-03-01T12:03:00Z", "e4")).status_code == 200
    assert alerts()[0][1] == "firing"


def placed(time: str, *parts: str) -> None:
    """Tells that the slot of GPU 0 of gpu-17 holds these parts from `time` on."""
    secret = keys.create(f"inventory {time}", ["telemetry"])
    row = {"time": time, "unit": "slot/gpu-17:0", "components": list(parts), "active": bool(parts)}
    answer = Client(headers={"Authorization": f"Bearer {secret}"}).post(
        "/api/v1/telemetry/placement", [row], content_type="application/json"
    )
    assert answer.status_code == 202, answer.content


def test_an_alert_follows_the_part_that_was_in_the_slot_at_its_time(post: Post) -> None:
    start = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=6)
    times = [(start + timedelta(hours=hour)).isoformat() for hour in range(6)]
    placed(times[1], "gpu/old", "node/gpu-17")
    placed(times[3], "gpu/new")
    placed(times[4])
    for hour, check in ((0, "a"), (2, "b"), (3, "c"), (5, "d")):
        assert post(health(times[hour], check, checkName=check)).status_code == 200
    assert [component for component, *_ in alerts()] == ["gpu/gpu-17-0", "gpu/gpu-17-0", "gpu/new", "gpu/old"]


def test_an_empty_batch_succeeds(post: Post) -> None:
    assert post([], BATCH).status_code == 200


def test_good_events_beside_bad_ones_are_stored(post: Post) -> None:
    answer = post([EVENT, {"id": "8"}], BATCH)
    assert (answer.status_code, answer.json()["refused"][0]["field"]) == (200, "specversion")
    assert len(alerts()) == 1


@pytest.mark.parametrize(
    ("told", "content_type", "status"),
    [
        (EVENT, "application/cloudevents+avro", 415),
        (EVENT, "application/json", 415),
        (b"{", ONE, 400),
        ({"id": "8"}, ONE, 400),
        (EVENT, BATCH, 400),
        (b" " * (2**26 + 1), ONE, 413),
    ],
)
def test_what_is_no_event_is_refused(post: Post, told: Any, content_type: str, status: int) -> None:
    answer = post(told, content_type)
    assert (answer.status_code, answer["Content-Type"], alerts()) == (status, "application/problem+json", [])


def test_a_wrong_key_is_refused() -> None:
    assert Client().post("/integrations/cloudevents/nobody", "{}", content_type=ONE).status_code == 401


def test_the_handshake_is_answered(address: str) -> None:
    answer = Client(headers={"WebHook-Request-Origin": "example.com"}).options(address)
    assert (answer.status_code, answer["WebHook-Allowed-Origin"]) == (200, "example.com")
