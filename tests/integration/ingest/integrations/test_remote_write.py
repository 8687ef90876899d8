"""Remote write: what is answered and what is stored."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, connections
from django.test import Client

from ingest.api import keys
from ingest.queries import telemetry_receipt
from tests.unit.ingest.integrations.remote_write_cases import LOAD, STALE_NAN, message, packed, series

pytestmark = pytest.mark.usefixtures("log_database")

PROTOBUF = "application/x-protobuf"
FIRST, SECOND = (
    f"{PROTOBUF};proto=prometheus.WriteRequest",
    f"{PROTOBUF};proto=io.prometheus.write.v2.Request",
)
Post = Callable[..., Any]


def now() -> int:
    return time.time_ns() // 10**6


def count() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM telemetry_metric")
        return int(cursor.fetchone()[0])


def counts(answer: Any) -> list[str]:
    return [
        answer[f"X-Prometheus-Remote-Write-{what}-Written"] for what in ("Samples", "Histograms", "Exemplars")
    ]


@pytest.fixture
def secret() -> str:
    return keys.create("prometheus", ["telemetry"])


@pytest.fixture
def post(secret: str) -> Post:
    def send(body: bytes, content_type: str = PROTOBUF, **headers: str) -> Any:
        told = {"Authorization": f"Bearer {secret}", "Content-Encoding": "snappy"}
        told |= {name.replace("_", "-"): value for name, value in headers.items()}
        return Client(headers=told).post("/api/v1/write", body, content_type=content_type)

    return send


@pytest.mark.parametrize(("version", "content_type"), [("1.0", PROTOBUF), ("1.0", FIRST), ("2.0", SECOND)])
def test_samples_are_stored_with_a_receipt(post: Post, version: Any, content_type: str) -> None:
    histogram = {"count_int": 3, "sum": 6.0, "timestamp": now()}
    body = message(version, series(LOAD, (1.5, now()), (2.5, now())), series(LOAD, histograms=[histogram]))
    answer = post(packed(body), content_type)
    assert (answer.status_code, answer.content, counts(answer)) == (204, b"", ["2", "1", "0"])
    receipt = telemetry_receipt(answer["Dossier-Receipt"])
    assert receipt is not None
    assert (receipt.kind, receipt.rows, count()) == ("metric", 4, 4)


def test_what_was_stored_before_is_not_stored_again(post: Post) -> None:
    body = packed(message("1.0", series(LOAD, (1.5, now()))))
    first, again = post(body), post(body)
    assert (first.status_code, again.status_code, count()) == (204, 204, 1)
    assert first["Dossier-Receipt"] == again["Dossier-Receipt"]


def test_what_is_good_beside_what_is_bad_is_stored(post: Post) -> None:
    answer = post(packed(message("1.0", series(LOAD, (1.5, now()), (2.5, 7)))))
    assert (answer.status_code, count(), counts(answer)) == (400, 1, ["1", "0", "0"])
    assert (
        "The other samples were stored. Refused: 1: time is older than what is kept"
        in answer.content.decode()
    )
    assert answer["Dossier-Receipt"]


def test_the_end_of_a_series_is_left_out_and_said(post: Post) -> None:
    answer = post(packed(message("1.0", series(LOAD, (STALE_NAN, now())))))
    assert (answer.status_code, count(), counts(answer)) == (204, 0, ["0", "0", "0"])
    assert answer["Dossier-Left-Out"] == "1 staleness markers"
    assert "Dossier-Receipt" not in answer


@pytest.mark.parametrize(
    ("body", "content_type", "headers", "status"),
    [
        (b"\xff" * 9, PROTOBUF, {}, 400),
        (packed(b"\xff" * 9), PROTOBUF, {}, 400),
        (packed(message("1.0", series(LOAD, (1.0, 1)))), SECOND, {}, 204),  # no field of 2.0 in it
        (b"\xff\xff\xff\xff\x0f" + bytes(9), PROTOBUF, {}, 413),
        (packed(b""), "text/plain", {}, 415),
        (packed(b""), f"{PROTOBUF};proto=io.prometheus.write.v3.Request", {}, 415),
        (packed(b""), PROTOBUF, {"Content_Encoding": "gzip"}, 415),
        (packed(b""), PROTOBUF, {"Authorization": "Bearer nobody"}, 401),
        (packed(b""), PROTOBUF, {}, 204),
    ],
)
def test_what_is_no_request_is_refused_and_nothing_stored(
    post: Post, body: bytes, content_type: str, headers: dict[str, str], status: int
) -> None:
    answer = post(body, content_type, **headers)
    assert (answer.status_code, count()) == (status, 0)


def test_a_key_may_come_as_the_password_of_basic(post: Post, secret: str) -> None:
    body = packed(message("1.0", series(LOAD, (1.5, now()))))
    for told, status in ((f"dossier:{secret}", 204), ("dossier:wrong", 401), (secret, 401)):
        header = f"Basic {base64.b64encode(told.encode()).decode()}"
        assert post(body, Authorization=header).status_code == status
    assert post(body, Authorization="Basic =!").status_code == 401


def test_without_its_database_the_endpoint_asks_to_try_again(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    connections.close_all()
    monkeypatch.setitem(connection.settings_dict, "HOST", "/nowhere")
    monkeypatch.setattr(keys, "find", lambda _: keys.Key("prometheus", frozenset({"telemetry"})))
    answer = post(packed(message("1.0", series(LOAD, (1.5, now())))))
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")


@pytest.mark.parametrize(
    ("scopes", "components"), [(["telemetry", "alerts"], ["gpu/gpu-17-3"]), (["telemetry"], [])]
)
def test_an_xid_of_dcgm_is_an_alert_for_a_key_that_may_send_alerts(
    scopes: list[str], components: list[str]
) -> None:
    named = {"Hostname": "gpu-17", "UUID": "GPU-1a", "__name__": "DCGM_FI_DEV_XID_ERRORS", "gpu": "3"}
    labels = tuple(named.items())
    told = {"Authorization": f"Bearer {keys.create('dcgm', scopes)}", "Content-Encoding": "snappy"}
    for shift in (0, 1):
        body = packed(message("1.0", series(labels, (79.0, now() + shift))))
        assert Client(headers=told).post("/api/v1/write", body, content_type=PROTOBUF).status_code == 204
    with connection.cursor() as cursor:
        cursor.execute("SELECT component FROM alert")
        assert [component for (component,) in cursor.fetchall()] == components
    assert count() == 2
