"""Real libraries and Prometheus' remote write, unchanged: the SDKs of OpenTelemetry and CloudEvents."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.db import connection

from incidents import queries
from incidents.follower import follower
from ingest.api import keys
from tests.acceptance.stack import wait_for
from tests.acceptance.web import Web
from tests.following import follow_to_the_end
from tests.senders.daemons import PROMETHEUS, missing
from tests.senders.libraries import (
    export_error,
    export_metrics,
    export_span,
    post_event,
    writing_prometheus,
)


def found(statement: str, *values: str) -> list[tuple[object, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())


NAMED = "FROM telemetry_metric JOIN telemetry_name n ON n.id = telemetry_metric.name WHERE n.name = %s"


@pytest.mark.skipif(bool(missing(PROMETHEUS)), reason=missing(PROMETHEUS))
def test_prometheus_writes_its_samples_here(web: Web, tmp_path: Path) -> None:
    key = keys.create("prometheus", ["telemetry"])
    with writing_prometheus(tmp_path, web.address, key) as own:
        wait_for(lambda: len(found(f"SELECT value {NAMED}", "up")) >= 2, 60, "samples of Prometheus")
    text = (tmp_path / "prometheus.log").read_text()
    assert "non-recoverable" not in text, text
    ((labels,),) = found(
        "SELECT DISTINCT l.name FROM telemetry_metric m JOIN telemetry_name n ON n.id = m.name"
        " JOIN telemetry_name l ON l.id = m.labels WHERE n.name = 'up'"
    )
    assert labels == f'{{"instance":"127.0.0.1:{own}","job":"prometheus"}}'


def test_the_opentelemetry_sdk_exports_here(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    key = keys.create("shop", ["telemetry"])
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    export_metrics(web.address, key)
    assert found(f"SELECT value {NAMED}", "orders") == [(3.0,)]
    assert found(f"SELECT value {NAMED}", "latency_sum") == [(12.5,)]

    export_span(web.address, key)
    assert found(
        "SELECT o.name, i.name, error FROM telemetry_span s JOIN telemetry_name o ON o.id = s.operation"
        " JOIN telemetry_name i ON i.id = s.instance"
    ) == [("GET /cart", "cart-1", True)]


def test_errors_in_the_logs_of_an_opentelemetry_sdk_become_one_ticket(web: Web) -> None:
    key = keys.create("shop", ["alerts"])
    for disk in (7, 8):
        export_error(web.address, key, f"no space on disk {disk}")
    assert found("SELECT title, severity, component, repeats FROM alert") == [
        ("cart: no space on disk 7", "error", "service/cart", 1)
    ]
    assert tickets() == [("cart: no space on disk 7", "open")]


def test_events_of_the_cloudevents_sdk_open_a_ticket_and_resolve_it(web: Web) -> None:
    address = f"{web.address}/integrations/cloudevents/{keys.create('shop', ['alerts'])}"
    at = datetime.now(UTC)
    post_event(address, "firing", at)
    assert tickets() == [("No space left on h1-3 “/var”", "open")]
    post_event(address, "resolved", at + timedelta(minutes=5), mode="binary")
    assert tickets() == [("No space left on h1-3 “/var”", "resolved")]


def tickets() -> list[tuple[str, str]]:
    follow_to_the_end(follower())
    return [(view.incident.title, view.incident.state) for view in queries.list_incidents().items]
