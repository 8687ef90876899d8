"""OTLP over gRPC, real clients to a real server: what is acknowledged is committed, overload is said as they expect."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest
from django.conf import settings
from django.db import OperationalError, connection
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry._logs import SeverityNumber
from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from deploy.observability import health
from deploy.supervisor.programs import programs
from ingest.api import admission, keys, otlp_store
from ingest.api.models import Rejection
from ingest.api.otlp_grpc import OtlpServer
from ingest.integrations.otlp.messages import MOST_BYTES
from ingest.queries import telemetry_receipt
from tests.unit.ingest.integrations.otlp_cases import gauge
from tests.unit.ingest.integrations.test_otlp import spans
from tests.unit.ingest.integrations.test_otlp_logs import logs

pytestmark = pytest.mark.usefixtures("log_database")

METHODS = {
    "metrics": "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
    "traces": "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
    "logs": "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
}


@pytest.fixture
def port(log_database: str) -> Iterator[int]:  # noqa: ARG001
    server = OtlpServer("127.0.0.1", 0)
    server.start()
    yield server.port
    server.stop()


@pytest.fixture
def secret(log_database: str) -> str:  # noqa: ARG001
    return keys.create("collector", ["telemetry", "alerts"])


def count(table: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {table}")
        return int(cursor.fetchone()[0])


def body(request: Any) -> bytes:
    return bytes(request.SerializeToString())


def a_span() -> Any:
    now = time.time_ns()
    return spans({"start_time_unix_nano": now, "end_time_unix_nano": now + 5_000})


def an_error() -> Any:
    request = logs({})
    for record in request.resource_logs[0].scope_logs[0].log_records:
        record.time_unix_nano = time.time_ns()
    return request


def call(
    port: int,
    name: str,
    sent: bytes,
    secret: str | None,
    compression: grpc.Compression = grpc.Compression.NoCompression,
) -> tuple[bytes, dict[str, str]]:
    """The answer and the trailing metadata of a request. Raises grpc.RpcError."""
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        export: Any = channel.unary_unary(METHODS[name])
        metadata = () if secret is None else (("authorization", f"Bearer {secret}"),)
        answer, rpc = export.with_call(sent, metadata=metadata, compression=compression, timeout=30)
        return answer, {key: str(value) for key, value in rpc.trailing_metadata() or ()}


def refused(
    port: int, name: str, sent: bytes, secret: str | None, **more: Any
) -> tuple[grpc.StatusCode, int | None]:
    """The status of a request that is refused, and the seconds of its RetryInfo."""
    with pytest.raises(grpc.RpcError) as failed:
        call(port, name, sent, secret, **more)
    error: Any = failed.value
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            told = Status.FromString(value)
            assert (told.code, told.message) == (error.code().value[0], error.details())
            retry = RetryInfo()
            assert told.details[0].Unpack(retry)
            return error.code(), retry.retry_delay.seconds
    return error.code(), None


def test_exporters_of_the_sdk_are_heard(port: int, secret: str) -> None:
    to: dict[str, Any] = {
        "endpoint": f"http://127.0.0.1:{port}",
        "insecure": True,
        "headers": {"authorization": f"Bearer {secret}"},
    }
    meters = MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter(**to), 10**9)])
    meters.get_meter("shop").create_counter("orders").add(3)
    meters.shutdown()
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(**to)))
    with tracers.get_tracer("shop").start_as_current_span("checkout"):
        pass
    tracers.shutdown()
    loggers = LoggerProvider()
    loggers.add_log_record_processor(SimpleLogRecordProcessor(OTLPLogExporter(**to)))
    loggers.get_logger("shop").emit(severity_number=SeverityNumber.ERROR, body="no space left")
    loggers.shutdown()
    assert (count("telemetry_metric"), count("telemetry_span"), count("alert")) == (1, 1, 1)


def test_the_answer_names_the_receipt_of_what_is_stored(port: int, secret: str) -> None:
    answer, told = call(port, "metrics", body(gauge(time=time.time_ns())), secret)
    assert answer == b""
    receipt = telemetry_receipt(told["dossier-receipt"])
    assert receipt is not None
    assert (receipt.key, receipt.rows) == ("collector", 1)


def test_error_logs_become_alerts(port: int, secret: str) -> None:
    answer, _ = call(port, "logs", body(an_error()), secret)
    assert ExportLogsServiceResponse.FromString(answer).partial_success.rejected_log_records == 0
    assert count("alert") == 1


def test_spans_are_stored_compressed_too(port: int, secret: str) -> None:
    call(port, "traces", body(a_span()), secret, compression=grpc.Compression.Gzip)
    assert count("telemetry_span") == 1


def test_what_is_not_good_is_a_partial_success(port: int, secret: str) -> None:
    request = gauge(time=time.time_ns())
    request.MergeFrom(gauge(time=1))
    answer, _ = call(port, "metrics", body(request), secret)
    told = ExportMetricsServiceResponse.FromString(answer).partial_success
    assert told.rejected_data_points == 1
    assert told.error_message
    assert count("telemetry_metric") == 1


def test_a_repeated_request_is_stored_once(port: int, secret: str) -> None:
    sent = body(gauge(time=time.time_ns()))
    (_, first), (_, again) = call(port, "metrics", sent, secret), call(port, "metrics", sent, secret)
    assert first["dossier-receipt"] == again["dossier-receipt"]
    assert count("telemetry_metric") == 1


@pytest.mark.parametrize(
    ("scopes", "name", "code"),
    [
        ((), "metrics", grpc.StatusCode.UNAUTHENTICATED),
        (("alerts",), "metrics", grpc.StatusCode.PERMISSION_DENIED),
        (("telemetry",), "logs", grpc.StatusCode.PERMISSION_DENIED),
    ],
)
def test_a_key_that_may_not_send_is_refused_before_its_message_is_read(
    port: int, scopes: tuple[str, ...], name: str, code: grpc.StatusCode
) -> None:
    secret = keys.create("narrow", scopes) if scopes else None
    assert refused(port, name, b"\xff no message", secret) == (code, None)
    assert [row.status for row in Rejection.objects.all()] == ([403] if scopes else [])


def test_a_message_that_is_none_is_refused(port: int, secret: str) -> None:
    assert refused(port, "metrics", b"\xff\xff", secret) == (grpc.StatusCode.INVALID_ARGUMENT, None)


@pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip])
def test_a_message_that_is_too_large_is_not_sent_again(
    port: int, secret: str, compression: grpc.Compression
) -> None:
    found = refused(port, "metrics", b"\0" * (MOST_BYTES + 1), secret, compression=compression)
    assert found == (grpc.StatusCode.RESOURCE_EXHAUSTED, None)
    assert len(gzip.compress(b"\0" * (MOST_BYTES + 1))) < 2**16  # what is decompressed counts


def raising(error: Exception) -> Callable[..., Any]:
    def raised(*_: Any) -> Any:
        raise error

    return raised


@pytest.mark.parametrize(
    ("error", "code", "after"),
    [
        (admission.OverloadedError("rate", "too fast", 7), grpc.StatusCode.RESOURCE_EXHAUSTED, 7),
        (admission.OverloadedError("busy", "too many", 5), grpc.StatusCode.UNAVAILABLE, 5),
        (admission.DiskFullError(), grpc.StatusCode.UNAVAILABLE, admission.DISK_FULL),
    ],
)
def test_overload_says_when_to_try_again(
    port: int,
    secret: str,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    code: grpc.StatusCode,
    after: int,
) -> None:
    monkeypatch.setattr(otlp_store, "admitted", raising(error))
    assert refused(port, "metrics", body(gauge(time=time.time_ns())), secret) == (code, after)


def test_a_key_beyond_its_rate_is_put_off(port: int, secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = admission.Intake(0.1, 8)
    monkeypatch.setattr(admission, "intake", lambda: slow)
    call(port, "metrics", body(gauge(time=time.time_ns())), secret)
    code, after = refused(port, "metrics", body(gauge(time=time.time_ns())), secret)
    assert (code, after is not None and after > 0) == (grpc.StatusCode.RESOURCE_EXHAUSTED, True)
    assert count("telemetry_metric") == 1


def test_a_database_that_is_away_is_unavailable(
    port: int, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp_store, "receive", raising(OperationalError("gone")))
    found = refused(port, "metrics", body(gauge(time=time.time_ns())), secret)
    assert found == (grpc.StatusCode.UNAVAILABLE, 5)


def started(log_database: str) -> tuple[subprocess.Popen[str], int]:
    environment = {**os.environ, "DATABASE_URL": log_database, "DJANGO_SETTINGS_MODULE": "deploy.settings"}
    process = subprocess.Popen(
        [sys.executable, "manage.py", "receive_otlp", "--port", "0"],
        env=environment, cwd=settings.BASE_DIR, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    said = process.stdout.readline()
    assert said.startswith("OTLP over gRPC is received on port "), said
    return process, int(said.split()[-1])


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_server_that_ends_loses_nothing_it_acknowledged(
    log_database: str, secret: str, how: signal.Signals
) -> None:
    process, port = started(log_database)
    acknowledged = asked = 0
    try:
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            export: Any = channel.unary_unary(METHODS["metrics"])
            metadata = (("authorization", f"Bearer {secret}"),)
            waiting = []
            for number in range(60):
                sent = body(gauge(time=time.time_ns(), value=float(number)))
                waiting.append(export.future(sent, metadata=metadata, timeout=30))
                asked += 1
                if number == 40:
                    waiting[0].result()
                    process.send_signal(how)
            for one in waiting:
                acknowledged += one.exception() is None
        code = process.wait(60)
    finally:
        process.kill()
        process.communicate()
    assert 1 <= acknowledged <= count("telemetry_metric") <= asked
    assert code == (0 if how == signal.SIGTERM else -signal.SIGKILL)


def test_everything_starts_it_only_where_a_port_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "otlp" not in [program.name for program in programs()]
    monkeypatch.setattr(settings, "OTLP_GRPC_PORT", 4317)
    assert "otlp" in [program.name for program in programs()]
    assert "otlp" in health.NEEDED


def test_a_port_that_is_taken_is_said(port: int) -> None:
    with pytest.raises(OSError, match=str(port)):
        OtlpServer("127.0.0.1", port)
