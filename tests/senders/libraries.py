"""Libraries that programs send with: the SDKs of CloudEvents and OpenTelemetry, and Prometheus' remote write."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from cloudevents.core.bindings import http
from cloudevents.core.v1.event import CloudEvent
from opentelemetry._logs import SeverityNumber
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace import StatusCode

from tests.senders.daemons import PROMETHEUS, answers, free_port, running

CART = {"service.name": "cart", "service.instance.id": "cart-1"}


def post_event(
    address: str, status: str, at: datetime, mode: Literal["structured", "binary"] = "structured"
) -> bytes:
    """One event about a full disk, written by the SDK of CloudEvents; the answer to it."""
    attributes: dict[str, Any] = {
        "id": f"{mode}-{status}",
        "source": "/shop",
        "type": "com.example.disk.full",
        "specversion": "1.0",
        "time": at,
        "subject": "disk/h1-3",
        "severity": "error",
        "datacontenttype": "application/json",
    }
    write = http.to_structured_event if mode == "structured" else http.to_binary_event
    message = write(CloudEvent(attributes, {"message": "No space left on h1-3 “/var”", "status": status}))
    request = urllib.request.Request(address, message.body, message.headers)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return bytes(answer.read())


def export_metrics(address: str, key: str, resource: dict[str, Any] = CART) -> None:
    """A counter at 3 and a histogram with one point, by OTLP/HTTP."""
    exporter = OTLPMetricExporter(f"{address}/v1/metrics", headers=_with(key))
    reader = PeriodicExportingMetricReader(exporter)
    meters = MeterProvider(resource=Resource.create(resource), metric_readers=[reader])
    meters.get_meter("shop").create_counter("orders").add(3, {"paid": True})
    meters.get_meter("shop").create_histogram("latency").record(12.5)
    meters.shutdown()


def export_span(address: str, key: str, resource: dict[str, Any] = CART) -> None:
    """A span that failed."""
    tracers = TracerProvider(resource=Resource.create(resource))
    tracers.add_span_processor(
        SimpleSpanProcessor(OTLPSpanExporter(f"{address}/v1/traces", headers=_with(key)))
    )
    with tracers.get_tracer("shop").start_as_current_span("GET /cart") as span:
        span.set_status(StatusCode.ERROR)
    tracers.shutdown()


def export_error(address: str, key: str, text: str, resource: dict[str, Any] = CART) -> None:
    """A log record at ERROR."""
    loggers = LoggerProvider(resource=Resource.create(resource))
    exporter = OTLPLogExporter(f"{address}/v1/logs", headers=_with(key))
    loggers.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    loggers.get_logger("shop.db").emit(severity_number=SeverityNumber.ERROR, body=text)
    loggers.shutdown()


def _with(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


@contextmanager
def writing_prometheus(directory: Path, address: str, key: str) -> Iterator[int]:
    """A Prometheus that scrapes itself and writes its samples to an address once a second; its port."""
    port = free_port()
    configuration = {
        "global": {"scrape_interval": "1s"},
        "scrape_configs": [
            {"job_name": "prometheus", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
        ],
        "remote_write": [
            {
                "url": f"{address}/api/v1/write",
                "authorization": {"credentials": key},
                "queue_config": {"batch_send_deadline": "1s"},
            }
        ],
    }
    (directory / "prometheus.yml").write_text(json.dumps(configuration))
    command = [
        PROMETHEUS,
        f"--config.file={directory}/prometheus.yml",
        f"--storage.tsdb.path={directory}/tsdb",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    log = directory / "prometheus.log"
    with running(command, log, lambda: answers(f"http://127.0.0.1:{port}/-/ready")):
        yield port
