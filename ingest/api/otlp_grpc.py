"""OTLP over gRPC: the services Export of metrics, traces and logs, as a server of its own beside the web.

Each answer is given when what it acknowledges is committed. Overload is answered as the specification wants it
(https://opentelemetry.io/docs/specs/otlp/#otlpgrpc-throttling): UNAVAILABLE, or RESOURCE_EXHAUSTED for the rate of a
key, with RetryInfo, without which clients do not repeat the latter.

A message is read once its key is known: handlers take the request as a stream of one, which comes when it is asked for.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NoReturn

import grpc
from django.conf import settings
from django.db import InterfaceError, OperationalError, close_old_connections
from google.protobuf.any_pb2 import Any as Packed
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

from ingest.api.admission import OverloadedError
from ingest.api.keys import Key, authenticate
from ingest.api.otlp_store import Done, OtlpRefusedError, Request, admitting, largest, take
from ingest.api.problem_details import down
from ingest.db import database
from ingest.integrations.otlp.messages import PROTOBUF, SIGNALS, Signal, answer
from ingest.telemetry.errors import BodyTooLargeError, InvalidBodyError

RETRY_AFTER: Final = 5
"""Seconds after which to try again where the database is away."""
MOST_STREAMS: Final = 100
"""Requests under way of one connection."""
SHORTEST_PING: Final = 10_000
"""Milliseconds between two keepalive pings of a client; one that pings more often is disconnected."""
ANSWERED_WITHIN: Final = 10.0
"""Seconds that requests under way have when the server stops."""
_SERVICES: Final = {
    "opentelemetry.proto.collector.metrics.v1.MetricsService": SIGNALS["metrics"],
    "opentelemetry.proto.collector.trace.v1.TraceService": SIGNALS["traces"],
    "opentelemetry.proto.collector.logs.v1.LogsService": SIGNALS["logs"],
}
_CODES: Final = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    403: grpc.StatusCode.PERMISSION_DENIED,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    503: grpc.StatusCode.UNAVAILABLE,
}
Context = grpc.ServicerContext
_log = logging.getLogger(__name__)


def credentials() -> grpc.ServerCredentials | None:
    """For TLS, where DOSSIER_OTLP_GRPC_CERTIFICATE names a file; None for none. Raises OSError."""
    if not settings.OTLP_GRPC_CERTIFICATE:
        return None
    certificate = Path(settings.OTLP_GRPC_CERTIFICATE).read_bytes()
    key = Path(settings.OTLP_GRPC_CERTIFICATE_KEY or settings.OTLP_GRPC_CERTIFICATE).read_bytes()
    return grpc.ssl_server_credentials([(key, certificate)])


class OtlpServer:
    """The server. `start` listens, `stop` finishes what is under way."""

    def __init__(
        self, host: str, port: int, tls: grpc.ServerCredentials | None = None, *, shared: bool = False
    ) -> None:
        """Listens at `port`, 0 for one that is free; `port` then says which. Raises OSError where it cannot.

        `shared`: another process of this user that shares the port, too, may have it (SO_REUSEPORT): gRPC takes no
        open socket, so this is how the next version comes up before the one before it ends.
        """
        self._threads = ThreadPoolExecutor(settings.WEB_THREADS, thread_name_prefix="otlp")
        self._server = grpc.server(
            self._threads,
            handlers=[
                grpc.method_handlers_generic_handler(
                    name, {"Export": grpc.stream_unary_rpc_method_handler(_exporting(signal))}
                )
                for name, signal in _SERVICES.items()
            ],
            options=[
                ("grpc.max_receive_message_length", largest()),
                ("grpc.max_concurrent_streams", MOST_STREAMS),
                ("grpc.http2.min_ping_interval_without_data_ms", SHORTEST_PING),
                ("grpc.keepalive_permit_without_calls", 1),
                ("grpc.so_reuseport", int(shared)),
            ],
            compression=grpc.Compression.NoCompression,
        )
        where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            bound = (
                self._server.add_insecure_port(where)
                if tls is None
                else self._server.add_secure_port(where, tls)
            )
        except RuntimeError as error:
            raise OSError(str(error)) from None
        if not bound:
            raise OSError(f"{where} cannot be opened")
        self.port = bound

    def start(self) -> None:
        self._server.start()

    def stop(self) -> None:
        """No new requests; those under way have ANSWERED_WITHIN seconds."""
        self._server.stop(ANSWERED_WITHIN).wait()
        self._threads.shutdown()


def _exporting(signal: Signal) -> Callable[[Iterator[bytes], Context], bytes]:
    def export(sent: Iterator[bytes], context: Context) -> bytes:
        close_old_connections()  # as at the start of a request of HTTP
        database.skip_health_check()
        try:
            done = _taken(signal, sent, context)
        except OtlpRefusedError as refused:
            _abort(context, refused.code, str(refused))
        except OverloadedError as error:
            _abort(context, 429 if error.why == "rate" else 503, f"{error}.", error.retry_after)
        except (BodyTooLargeError, InvalidBodyError) as error:
            _abort(context, 400, f"Nothing was stored: {error}.")
        except (OperationalError, InterfaceError) as error:
            _log.warning("a request of OTLP was put off: %s", error)
            _abort(context, 503, down(error), RETRY_AFTER)
        if done.receipt:
            context.set_trailing_metadata((("dossier-receipt", done.receipt),))
        return answer(signal, PROTOBUF, done.rejected, done.message)

    return export


def _taken(signal: Signal, sent: Iterator[bytes], context: Context) -> Done:
    with admitting(_key_of(context), signal) as key:
        return take(Request(signal, _message(sent, context), PROTOBUF, uuid.uuid4().hex), key)


def _key_of(context: Context) -> Key | None:
    """The key of the metadata `authorization: Bearer KEY`."""
    for name, entry in context.invocation_metadata():
        if name == "authorization":
            return authenticate(entry if isinstance(entry, str) else entry.decode(errors="replace"))
    return None


def _message(sent: Iterator[bytes], context: Context) -> bytes:
    """The one message of a request. Who takes longer than DOSSIER_BODY_TIMEOUT_SECONDS to send it is disconnected."""
    late = threading.Timer(settings.BODY_TIMEOUT_SECONDS, context.cancel)
    late.start()
    try:
        return next(sent)
    except StopIteration:
        raise InvalidBodyError("the request has no message") from None
    finally:
        late.cancel()


def _abort(context: Context, code: int, message: str, retry_after: int | None = None) -> NoReturn:
    """Ends the request with a status; with `retry_after` clients try again after so many seconds. Raises."""
    status = _CODES.get(code, grpc.StatusCode.UNKNOWN)
    if retry_after is not None:
        detail = Packed()
        detail.Pack(RetryInfo(retry_delay=Duration(seconds=retry_after)))
        status_detail = Status(code=status.value[0], message=message, details=[detail])
        context.set_trailing_metadata((("grpc-status-details-bin", status_detail.SerializeToString()),))
    context.abort(status, message)
