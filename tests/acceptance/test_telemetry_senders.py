"""Real senders of telemetry, unchanged: Prometheus' remote write and the exporters of the OpenTelemetry SDK."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection

from ingest.api import keys
from tests.acceptance.stack import free_port, wait_for
from tests.acceptance.web import Web

PROMETHEUS = shutil.which("prometheus")


@pytest.fixture
def web(log_database: str, broker: str) -> Iterator[Web]:
    del broker
    with tempfile.TemporaryDirectory() as directory:
        web = Web(log_database, Path(directory) / "web.log")
        web.start()
        yield web
        web.kill()


def found(statement: str, *values: str) -> list[tuple[object, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())


NAMED = "FROM telemetry_metric JOIN telemetry_name n ON n.id = telemetry_metric.name WHERE n.name = %s"

CONFIGURATION = """
global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: prometheus
    static_configs: [{{targets: ['127.0.0.1:{own}']}}]
remote_write:
  - url: {address}/api/v1/write
    authorization: {{credentials: {key}}}
    queue_config: {{batch_send_deadline: 1s}}
"""


@pytest.mark.skipif(PROMETHEUS is None, reason="prometheus is not installed (deploy/install-senders.sh)")
def test_prometheus_writes_its_samples_here(web: Web, tmp_path: Path) -> None:
    assert PROMETHEUS is not None
    own, key = free_port(), keys.create("prometheus", ["telemetry"])
    (tmp_path / "prometheus.yml").write_text(CONFIGURATION.format(own=own, address=web.address, key=key))
    command = [PROMETHEUS, f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/tsdb"]
    with (tmp_path / "said").open("wb") as said:
        process = subprocess.Popen(
            [*command, f"--web.listen-address=127.0.0.1:{own}"], stdout=said, stderr=said
        )
        try:
            wait_for(lambda: len(found(f"SELECT value {NAMED}", "up")) >= 3, 60, "samples of Prometheus")
        finally:
            process.terminate()
            process.wait(20)
    text = (tmp_path / "said").read_text()
    assert "non-recoverable" not in text, text
    ((labels,),) = found(
        "SELECT DISTINCT l.name FROM telemetry_metric m JOIN telemetry_name n ON n.id = m.name"
        " JOIN telemetry_name l ON l.id = m.labels WHERE n.name = 'up'"
    )
    assert labels == f'{{"instance":"127.0.0.1:{own}","job":"prometheus"}}'


def test_the_opentelemetry_sdk_exports_here(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.trace import StatusCode

    key = keys.create("shop", ["telemetry", "alerts"])
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", web.address)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"authorization=Bearer%20{key}")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    resource = Resource.create({"service.name": "cart", "service.instance.id": "cart-1"})

    meters = MeterProvider(
        resource=resource, metric_readers=[PeriodicExportingMetricReader(OTLPMetricExporter())]
    )
    meters.get_meter("shop").create_counter("orders").add(3, {"paid": True})
    meters.get_meter("shop").create_histogram("latency").record(12.5)
    meters.shutdown()
    assert found(f"SELECT value {NAMED}", "orders") == [(3.0,)]
    assert found(f"SELECT value {NAMED}", "latency_sum") == [(12.5,)]

    tracers = TracerProvider(resource=resource)
    tracers.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
    with tracers.get_tracer("shop").start_as_current_span("GET /cart") as span:
        span.set_status(StatusCode.ERROR)
    tracers.shutdown()
    assert found(
        "SELECT o.name, i.name, error FROM telemetry_span s JOIN telemetry_name o ON o.id = s.operation"
        " JOIN telemetry_name i ON i.id = s.instance"
    ) == [("GET /cart", "cart-1", True)]


def test_an_error_in_the_logs_of_an_opentelemetry_sdk_becomes_an_alert(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    from opentelemetry._logs import SeverityNumber
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
    from opentelemetry.sdk.resources import Resource

    key = keys.create("shop", ["alerts"])
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", web.address)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"authorization=Bearer%20{key}")
    loggers = LoggerProvider(resource=Resource.create({"service.name": "cart"}))
    loggers.add_log_record_processor(SimpleLogRecordProcessor(OTLPLogExporter()))
    for disk in (7, 8):
        loggers.get_logger("shop.db").emit(
            severity_number=SeverityNumber.ERROR, body=f"no space on disk {disk}"
        )
    loggers.shutdown()
    assert found("SELECT title, severity, component, repeats FROM alert") == [
        ("cart: no space on disk 7", "error", "service/cart", 1)
    ]
