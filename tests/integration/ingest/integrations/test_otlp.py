"""OTLP/HTTP: what is answered, in which form, and what is stored."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, connections
from django.test import Client

from ingest.api import keys
from ingest.integrations.otlp.messages import JSON, PROTOBUF, SIGNALS
from ingest.queries import telemetry_receipt
from tests.unit.ingest.integrations.otlp_cases import gauge
from tests.unit.ingest.integrations.test_otlp import spans
from tests.unit.ingest.integrations.test_otlp_logs import logs

pytestmark = pytest.mark.usefixtures("log_database")

Post = Callable[..., Any]


def now() -> int:
    return time.time_ns()


@pytest.fixture
def post() -> Post:
    """Posts a request of a signal with a good key."""
    secret = keys.create("collector", ["telemetry", "alerts"])

    def send(signal: str, body: bytes, content_type: str = PROTOBUF, **headers: str) -> Any:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return Client(headers={"Authorization": f"Bearer {secret}", **names}).post(
            f"/v1/{signal}", body, content_type=content_type
        )

    return send


def count(table: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {table}")
        return int(cursor.fetchone()[0])


def body_of(*requests: Any) -> bytes:
    whole = requests[0]
    for other in requests[1:]:
        whole.MergeFrom(other)
    return bytes(whole.SerializeToString())


def test_metrics_are_stored_with_a_receipt(post: Post) -> None:
    answer = post("metrics", body_of(gauge(time=now()), gauge(time=now() - 10**9)))
    assert (answer.status_code, answer["Content-Type"], answer.content) == (200, PROTOBUF, b"")
    receipt = telemetry_receipt(answer["Dossier-Receipt"])
    assert receipt is not None
    assert (receipt.kind, receipt.rows, count("telemetry_metric")) == ("metric", 2, 2)


def test_a_bad_point_is_counted_and_the_good_ones_are_stored(post: Post) -> None:
    answer = post("metrics", body_of(gauge(time=now()), gauge(float("nan"), time=now())))
    told: Any = SIGNALS["metrics"].response.FromString(answer.content)
    assert (answer.status_code, told.partial_success.rejected_data_points) == (200, 1)
    assert told.partial_success.error_message == "1: value is not a finite number (such as load)"
    assert count("telemetry_metric") == 1


def test_what_was_stored_before_is_not_stored_again(post: Post) -> None:
    body = body_of(gauge(time=now()))
    first, again = post("metrics", body), post("metrics", gzip.compress(body), Content_Encoding="gzip")
    assert first["Dossier-Receipt"] == again["Dossier-Receipt"]
    assert count("telemetry_metric") == 1


def test_json_is_answered_in_json(post: Post) -> None:
    point = {"timeUnixNano": str(now()), "asInt": "7"}
    plain = {
        "resourceMetrics": [
            {"scopeMetrics": [{"metrics": [{"name": "n", "gauge": {"dataPoints": [point]}}]}]}
        ]
    }
    answer = post("metrics", json.dumps(plain).encode(), "application/json; charset=utf-8")
    assert (answer.status_code, answer["Content-Type"], answer.json()) == (200, JSON, {})
    assert count("telemetry_metric") == 1


def test_spans_are_stored(post: Post) -> None:
    at = now()
    answer = post("traces", body_of(spans({"start_time_unix_nano": at, "end_time_unix_nano": at + 5000})))
    assert (answer.status_code, count("telemetry_span")) == (200, 1)


def test_an_error_in_the_logs_becomes_an_alert(post: Post) -> None:
    answer = post("logs", fresh_logs({}, {"severity": 9}))
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer["Dossier-Receipt"]
    with connection.cursor() as cursor:
        cursor.execute("SELECT title, component, severity FROM alert")
        assert cursor.fetchall() == [("cart: no disk space left on 7", "service/cart", "error")]


def counted() -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT component.name, template.name, severity.name, count FROM telemetry_log_count AS counted "
            "JOIN telemetry_name AS component ON component.id = counted.component "
            "JOIN telemetry_name AS template ON template.id = counted.template "
            "JOIN telemetry_name AS severity ON severity.id = counted.severity ORDER BY 1, 2, 3"
        )
        return list(cursor.fetchall())


def fresh_logs(*records: dict[str, Any]) -> bytes:
    request = logs(*records)
    for record in request.resource_logs[0].scope_logs[0].log_records:
        record.time_unix_nano = now()
    return body_of(request)


def test_logs_of_every_severity_are_counted_by_template_once_however_often_they_are_sent(post: Post) -> None:
    body = fresh_logs(
        {"body": "disk 7 full"}, {"severity": 9, "body": "took 3 ms"}, {"severity": 9, "body": "took 4 ms"}
    )
    for _ in range(2):
        answer = post("logs", body)
        assert (answer.status_code, answer.content) == (200, b"")
    assert sum(row[-1] for row in counted()) == 3
    assert {row[:3] for row in counted()} == {
        ("instance/h1", "disk <*> full", "error"), ("instance/h1", "took <*> ms", "info")
    }  # fmt: skip
    assert count("alert") == 1


def test_a_key_for_alerts_alone_has_errors_as_alerts_and_nothing_counted() -> None:
    client = Client(headers={"Authorization": f"Bearer {keys.create('errors only', ['alerts'])}"})
    answer = client.post("/v1/logs", fresh_logs({}, {"severity": 9}), content_type=PROTOBUF)
    told: Any = SIGNALS["logs"].response.FromString(answer.content)
    assert (answer.status_code, told.partial_success.rejected_log_records) == (200, 1)
    assert "the scope telemetry" in told.partial_success.error_message
    assert (count("telemetry_log_count"), count("alert")) == (0, 1)


def test_a_request_in_which_nothing_is_succeeds(post: Post) -> None:
    for signal in SIGNALS:
        answer = post(signal, b"\n\0")
        assert (answer.status_code, answer.content, answer.headers.get("Dossier-Receipt")) == (200, b"", None)


@pytest.mark.parametrize(
    ("body", "content_type", "headers", "status", "code"),
    [
        (b"\xff" * 9, PROTOBUF, {}, 400, 3),
        (b"{", JSON, {}, 400, 3),
        (b"x", PROTOBUF, {"Content_Encoding": "gzip"}, 400, 3),
        (b"", "text/plain", {}, 415, 3),
        (b"\n\0", PROTOBUF, {"Content_Encoding": "br"}, 415, 3),
        (gzip.compress(bytes(30_000_000)), PROTOBUF, {"Content_Encoding": "gzip"}, 413, 8),
        (b"\n\0", PROTOBUF, {"Authorization": "Bearer nobody"}, 401, 16),
    ],
)
def test_what_is_refused_is_refused_as_a_status(
    post: Post, body: bytes, content_type: str, headers: dict[str, str], status: int, code: int
) -> None:
    answer = post("metrics", body, content_type, **headers)
    assert (answer.status_code, count("telemetry_metric")) == (status, 0)
    if content_type == JSON:
        assert answer.json()["code"] == code
    else:
        assert answer.content.startswith(bytes((8, code, 0x12)))


def test_logs_need_the_scope_for_alerts() -> None:
    secret = keys.create("metrics only", ["telemetry"])
    client = Client(headers={"Authorization": f"Bearer {secret}"})
    assert client.post("/v1/logs", b"\n\0", content_type=PROTOBUF).status_code == 403
    assert client.post("/v1/metrics", b"\n\0", content_type=PROTOBUF).status_code == 200


def test_without_its_database_the_endpoint_asks_to_try_again(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    connections.close_all()
    monkeypatch.setitem(connection.settings_dict, "HOST", "/nowhere")
    monkeypatch.setattr(keys, "find", lambda _: keys.Key("collector", frozenset({"telemetry"})))
    answer = post("metrics", body_of(gauge(time=now())))
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
