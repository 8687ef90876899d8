"""Bodies of real libraries (tests/golden/payloads), read by their endpoints: CloudEvents, OTLP and remote write."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ingest.integrations.cloudevents import alerts
from ingest.integrations.cloudevents.parse import events
from ingest.integrations.normalized import Alert
from ingest.integrations.otlp import logs, parse
from ingest.integrations.otlp.messages import PROTOBUF, SIGNALS, read
from ingest.integrations.remote_write import parse as remote_write
from ingest.telemetry.decode.columns import Bounds
from tests.places import PAYLOADS

THEN = datetime(2026, 11, 21, 13, 37, tzinfo=UTC)
BOUNDS = Bounds.around(THEN, timedelta(days=1), timedelta(days=1))


def event(mode: str) -> Alert:
    body = (PAYLOADS / f"cloudevents/{mode}.json").read_bytes()
    headers = json.loads((PAYLOADS / f"cloudevents/{mode}.headers.json").read_text())
    (alert,) = alerts.alerts(events(body, headers)).alerts
    return alert


def request(name: Any) -> Any:
    return read(SIGNALS[name], (PAYLOADS / f"opentelemetry/{name}.pb").read_bytes(), PROTOBUF)


@pytest.mark.parametrize(("mode", "status"), [("structured", "firing"), ("binary", "resolved")])
def test_both_modes_of_the_cloudevents_sdk_are_one_alert(mode: str, status: str) -> None:
    alert = event(mode)
    assert (alert.key, alert.status) == ("/shop#com.example.disk.full#disk/h1-3", status)
    assert (alert.title, alert.severity) == ("No space left on h1-3 “/var”", "error")
    assert (alert.component, alert.group) == ("disk/h1-3", "com.example.disk.full")


def test_metrics_of_the_opentelemetry_sdk_are_rows() -> None:
    taken = parse.metrics(request("metrics"), "default", BOUNDS)
    assert taken.refusals.total == 0
    assert taken.rows.count > 3


def test_spans_of_the_opentelemetry_sdk_are_rows() -> None:
    taken = parse.traces(request("traces"), "default", BOUNDS)
    assert (taken.rows.count, taken.refusals.total) == (1, 0)


def test_an_error_in_logs_of_the_opentelemetry_sdk_is_an_alert() -> None:
    (alert,) = logs.alerts(request("logs"), THEN).parsed.alerts
    assert (alert.title, alert.severity, alert.component) == (
        "cart: no space on disk 7",
        "error",
        "service/cart",
    )


def test_samples_that_prometheus_writes_are_rows() -> None:
    body = remote_write.unpack((PAYLOADS / "prometheus/remote-write.snappy").read_bytes())
    written = remote_write.rows(body, "1.0", "default", BOUNDS)
    assert (written.samples, written.refusals.total) == (written.rows.count, 0)
    assert written.samples > 100
