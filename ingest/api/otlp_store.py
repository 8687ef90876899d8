"""Storage of an OTLP request once its transport is undone: the same for HTTP and gRPC.

What of a request is good is stored, all of it at once; what is not is counted in `partialSuccess`, which no sender
repeats. Points and spans that were stored before (the same key, the same bytes) are not stored again, so that a sender
whose answer got lost may repeat them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from django.conf import settings

from ingest.alerts import store as alerts
from ingest.alerts.deliveries import Delivery as AlertDelivery
from ingest.api.admission import admitted, in_turn
from ingest.api.keys import Key
from ingest.api.rejections import note
from ingest.integrations.logs.templates import Templates
from ingest.integrations.otlp import logs, parse
from ingest.integrations.otlp.messages import MOST_BYTES, PROTOBUF, Signal, read
from ingest.telemetry.decode.columns import Bounds, Rows
from ingest.telemetry.errors import BodyTooLargeError, InvalidBodyError
from ingest.telemetry.store.write import Delivery, find_repeated, receive

MOST_WHOLE = 2**20
"""Bytes of a request of logs that is kept as it came; of a larger one the records that are shown."""
_KINDS = {"metrics": "metric", "traces": "span", "logs": "log_count"}
_TEMPLATES = Templates()
"""Of this process. Threads that add to it at once exceed its bound by a few."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request with its encoding undone. `media_type` is PROTOBUF or JSON."""

    signal: Signal
    body: bytes
    media_type: str = PROTOBUF
    trace: str | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """Result of a request: the receipt of what was stored (empty for nothing), and the rest."""

    receipt: str = ""
    rejected: int = 0
    message: str = ""


class OtlpRefusedError(Exception):
    """The request is refused as a whole; `code` is the status of HTTP."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def largest() -> int:
    """Bytes of the largest request, its encoding undone."""
    return min(settings.TELEMETRY_MAX_DECODED_BODY, MOST_BYTES)


@contextmanager
def admitting(key: Key | None, signal: Signal) -> Iterator[Key]:
    """Around the reading and storing of a request of this key. Raises OtlpRefusedError for one that may not send it,
    and OverloadedError. What is refused as a whole is remembered with the integration."""
    if key is None:
        raise OtlpRefusedError(401, "This endpoint needs a good integration key: Authorization: Bearer KEY.")
    try:
        _check_allowed(key, signal)
        with admitted(key.name, f"otlp-{signal.name}"):
            yield key
    except (OtlpRefusedError, BodyTooLargeError, InvalidBodyError) as error:
        code = (
            error.code
            if isinstance(error, OtlpRefusedError)
            else 413
            if isinstance(error, BodyTooLargeError)
            else 400
        )
        note(key.name, f"otlp {signal.name}", code, str(error))
        raise


def _check_allowed(key: Key, signal: Signal) -> None:
    scope = "alerts" if signal.name == "logs" else "telemetry"
    if not key.allows(scope):
        raise OtlpRefusedError(403, f"The key {key.name} lacks the scope {scope}.")
    may = key.allows_format("otlp") if signal.name == "logs" else key.allows_kind(_KINDS[signal.name])
    if not may:
        raise OtlpRefusedError(403, f"The key {key.name} may not send {signal.name} here.")


def take(request: Request, key: Key) -> Done:
    """Store a request of a key that was admitted. Raises InvalidBodyError, and django.db.Error: then nothing is
    stored."""
    match request.signal.name:
        case "metrics":
            return _take_rows(parse.metrics, request, key)
        case "traces":
            return _take_rows(parse.traces, request, key)
        case "logs":
            return _take_logs(request, key)


def _take_rows(made: Callable[..., parse.ParsedRequest], request: Request, key: Key) -> Done:
    with in_turn(len(request.body)):
        sent = read(request.signal, request.body, request.media_type)
        taken = made(sent, key.region or "default", _bounds())
    return Done(_stored(request, key, taken.rows), taken.refusals.total, taken.message)


def _bounds() -> Bounds:
    return Bounds.around(datetime.now(UTC), settings.TELEMETRY_RETENTION, settings.TELEMETRY_FUTURE)


def _stored(request: Request, key: Key, rows: Rows) -> str:
    """The receipt of the rows, the first one if the same body came before; empty for no rows."""
    if not rows.count:
        return ""
    digest = hashlib.sha256(request.body).digest()
    known_as = f"otlp {request.signal.name} {digest.hex()}"
    delivery = Delivery(key.name, digest, len(request.body), request.trace, known_as)
    return (find_repeated(rows.kind, delivery) or receive(rows, delivery)).id


def _take_logs(request: Request, key: Key) -> Done:
    """Counts first: they are stored once however often a body is sent, and repeated alerts are one.

    A key that may not send telemetry has its errors taken as alerts, and nothing counted.
    """
    counts = key.allows("telemetry") and key.allows_kind(_KINDS[request.signal.name])
    now, taken, body = datetime.now(UTC), None, request.body
    with in_turn(len(body)):
        sent = read(request.signal, body, request.media_type)
        found = logs.alerts(sent, now, counted=counts)
        if counts:
            taken = parse.log_counts(sent, key.region or "default", _bounds(), now, _TEMPLATES)
    rejected = found.refusals.total + (taken.refusals.total if taken else 0)
    message = "; ".join(filter(None, (found.refusals.sentence(), taken.message if taken else "")))
    receipt = _stored(request, key, taken.rows) if taken else ""
    if not found.parsed.alerts:
        return Done(receipt, rejected, message)
    too_long = len(body) > MOST_WHOLE
    payload, content_type = (found.shown, PROTOBUF) if too_long else (body, request.media_type)
    delivery = AlertDelivery(key.name, "otlp", content_type, payload, request.trace)
    named = alerts.name_parts(found.parsed, key.region or "default", now)
    return Done(alerts.receive(named, delivery).receipt, rejected, message)
