"""Messages of OTLP/HTTP: bodies in protobuf or JSON to messages, and answers in the form of the request. Pure.

OpenTelemetry Protocol specification 1.x, "OTLP/HTTP" (https://opentelemetry.io/docs/specs/otlp/#otlphttp). Its JSON is
protobuf's own (lowerCamelCase, 64-bit integers as texts or numbers, unknown fields ignored) but for ids, which are
hexadecimal, and enums, which are integers.

The messages are those of `opentelemetry-proto` with one change: attributes of data points stay bytes (on the wire a
message and bytes are the same). A series says the same attributes in every request, so they are read once; parsing
becomes four times as fast.
"""

from __future__ import annotations

import base64
import binascii
import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.metrics.v1 import metrics_pb2
from opentelemetry.proto.resource.v1 import resource_pb2

from ingest.integrations.otlp import json as otlp_json
from ingest.telemetry.errors import InvalidBodyError

PROTOBUF, JSON = "application/x-protobuf", "application/json"
MOST_BYTES = 20 * 2**20
"""Of a body after decompression, as the specification recommends. An empty message takes two bytes on the wire and
dozens in memory, so this is what bounds memory."""

MOST_PARTS = 1_000_000
"""In a request: the smallest point that says something takes twenty bytes."""
MOST_OBJECTS = 200_000
"""In a request in JSON that protobuf's own reader has to read, a few seconds' work."""

SignalName = Literal["metrics", "traces", "logs"]


@dataclass(frozen=True, slots=True)
class Signal:
    """One of OTLP's signals: its messages, and the name of the field that counts what was refused."""

    name: SignalName
    request: type[Message]
    read: type[Message]
    response: type[Message]
    rejected: str


def _lean_metrics() -> type[Message]:
    """ExportMetricsServiceRequest whose data points keep their attributes as bytes."""
    pool = descriptor_pool.DescriptorPool()
    for module in (common_pb2, resource_pb2, metrics_pb2, metrics_service_pb2):
        file = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        if module is metrics_pb2:
            for field in (each for message in file.message_type for each in message.field):
                if field.name == "attributes":
                    field.type = descriptor_pb2.FieldDescriptorProto.TYPE_BYTES
                    field.ClearField("type_name")
        pool.Add(file)
    name = metrics_service_pb2.ExportMetricsServiceRequest.DESCRIPTOR.full_name
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


SIGNALS: dict[SignalName, Signal] = {
    "metrics": Signal(
        "metrics",
        metrics_service_pb2.ExportMetricsServiceRequest,
        _lean_metrics(),
        metrics_service_pb2.ExportMetricsServiceResponse,
        "rejected_data_points",
    ),
    "traces": Signal(
        "traces",
        trace_service_pb2.ExportTraceServiceRequest,
        trace_service_pb2.ExportTraceServiceRequest,
        trace_service_pb2.ExportTraceServiceResponse,
        "rejected_spans",
    ),
    "logs": Signal(
        "logs",
        logs_service_pb2.ExportLogsServiceRequest,
        logs_service_pb2.ExportLogsServiceRequest,
        logs_service_pb2.ExportLogsServiceResponse,
        "rejected_log_records",
    ),
}


# Requests
# ----------------------------------------------------------------------------------------------------------
def read(signal: Signal, body: bytes, media_type: str) -> Any:
    """The request that a body holds. Raises InvalidBodyError."""
    if media_type == JSON:
        objects = body.count(b"{")  # at most so many
        if signal.name == "metrics" and objects <= MOST_PARTS:
            with suppress(ValueError):
                return otlp_json.metrics(body)
        if objects > MOST_OBJECTS:
            raise InvalidBodyError(
                f"the request has more than {MOST_OBJECTS} JSON objects; send less at once, or protobuf"
            )
        body = _from_json(signal, body)
    try:
        return signal.read.FromString(body)
    except DecodeError as error:
        raise InvalidBodyError(f"not a protobuf {signal.request.DESCRIPTOR.name}: {error}") from error


def _from_json(signal: Signal, body: bytes) -> bytes:
    """The same request in protobuf."""
    try:
        plain = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidBodyError(f"not JSON: {error}") from error
    if not isinstance(plain, dict):
        raise InvalidBodyError("the body is not a JSON object")
    _ids_in_base64(plain)
    message = signal.request()
    try:
        json_format.ParseDict(plain, message, ignore_unknown_fields=True)
        return message.SerializeToString()
    except (json_format.ParseError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidBodyError(
            f"not a {signal.request.DESCRIPTOR.name} in JSON: {str(error)[:300]}"
        ) from error


_IDS = ("traceId", "spanId", "parentSpanId")


def _ids_in_base64(plain: Any) -> None:
    """Hexadecimal ids, wherever they are, as protobuf's JSON has bytes."""
    left = [plain]
    while left:
        one = left.pop()
        if isinstance(one, dict):
            for name in _IDS:
                if isinstance(encoded_id := one.get(name), str):
                    try:
                        one[name] = base64.b64encode(bytes.fromhex(encoded_id)).decode()
                    except ValueError:
                        raise InvalidBodyError(f"{name}: {encoded_id[:40]!r} is not hexadecimal") from None
        left += (
            each for each in (one.values() if isinstance(one, dict) else one) if isinstance(each, dict | list)
        )


class Parts:
    """Counts the parts of a request, so that one of empty ones is refused before it costs minutes."""

    def __init__(self) -> None:
        self.left = MOST_PARTS

    def of(self, repeated: Any) -> Any:
        """The same list. Raises InvalidBodyError when all of them together have too many."""
        self.left -= len(repeated)
        if self.left < 0:
            raise InvalidBodyError(
                f"the request has more than {MOST_PARTS} parts (resources, scopes, points, spans, attributes)"
            )
        return repeated


# Answers
# ----------------------------------------------------------------------------------------------------------
def answer(signal: Signal, media_type: str, rejected: int, message: str) -> bytes:
    """Answer to a request that was taken: the refused part, and the reason. Nothing of both: all is well.

    With none rejected and a message it is a warning.
    """
    response: Any = signal.response()
    if rejected or message:
        setattr(response.partial_success, signal.rejected, rejected)
        response.partial_success.error_message = message
    if media_type == JSON:
        plain = json_format.MessageToDict(response)
        return json.dumps(plain, ensure_ascii=False).encode()
    return bytes(response.SerializeToString())


CODES = {400: 3, 401: 16, 403: 7, 405: 12, 413: 8, 415: 3, 429: 8, 503: 14}
"""google.rpc.Code by HTTP status: INVALID_ARGUMENT, UNAUTHENTICATED, PERMISSION_DENIED and so on."""


def status(code: int, message: str, media_type: str) -> bytes:
    """A google.rpc.Status (1: code, 2: message) for an HTTP status."""
    number = CODES.get(code, 2)
    if media_type == JSON:
        return json.dumps({"code": number, "message": message}, ensure_ascii=False).encode()
    text = message.encode(errors="replace")
    return bytes((0x08, number, 0x12)) + _varint(len(text)) + text


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*parts, number))


# Attributes
# ----------------------------------------------------------------------------------------------------------
def attribute(raw: bytes) -> tuple[str, str]:
    """A KeyValue as it came, in protobuf or JSON: its key and its value as text. Raises DecodeError."""
    if raw.startswith(b"{"):  # no tag of a KeyValue
        pair = common_pb2.KeyValue()
        try:
            json_format.Parse(raw, pair, ignore_unknown_fields=True)
        except (json_format.ParseError, ValueError, TypeError, AttributeError, RecursionError) as error:
            raise DecodeError(str(error)) from None
    else:
        pair = common_pb2.KeyValue.FromString(raw)
    return pair.key, text_of(pair.value)


def text_of(value: Any) -> str:
    """An AnyValue as text: numbers and flags as JSON has them, bytes in base64, lists and maps as JSON."""
    which = value.WhichOneof("value")
    if which == "string_value":
        return str(value.string_value)
    plain = plain_of(value)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False, separators=(",", ":"))


def plain_of(value: Any) -> Any:
    """An AnyValue as JSON would have it; nothing at all is an empty text. Protobuf bounds how deep it goes."""
    which = value.WhichOneof("value")
    if which is None:
        return ""
    if which == "array_value":
        return [plain_of(each) for each in value.array_value.values]
    if which == "kvlist_value":
        return {each.key: plain_of(each.value) for each in value.kvlist_value.values}
    if which == "bytes_value":
        return binascii.b2a_base64(value.bytes_value, newline=False).decode()
    return getattr(value, which)
