"""POST /v1/metrics, /v1/traces and /v1/logs: OTLP/HTTP 1.x. Thin: the doors read, the commands store.

Answers are in the form of the request. What of a request is good is stored, all of it at once; what is not is counted
in `partialSuccess`, which no sender repeats. Points and spans that were stored before (the same key, the same bytes)
are not stored again, so that a sender whose answer got lost may repeat them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from ingest.alerts import receiving as alerts
from ingest.api.keys import Key, authenticate
from ingest.api.limits import Overloaded, admitted, in_turn
from ingest.api.reading import read_body
from ingest.api.refusals import note
from ingest.doors import otlp, otlp_logs
from ingest.doors.bodies import decompress
from ingest.doors.log_templates import Templates
from ingest.doors.otlp_messages import JSON, MOST_BYTES, PROTOBUF, SIGNALS, Signal, answer, read, status
from ingest.telemetry import liveness
from ingest.telemetry.check import Bounds
from ingest.telemetry.columns import Rows
from ingest.telemetry.faults import BadBody, TooLarge
from ingest.telemetry.receiving import Delivery, find_repeated, receive

RETRY_AFTER = "5"
KEPT_WHOLE = 2**20
"""Bytes of a request of logs that is kept as it came; of a larger one the records that are shown."""
ENCODINGS = ("", "identity", "gzip", "x-gzip", "zstd")


@dataclass(frozen=True, slots=True)
class _Done:
    """What is said of a request: the receipt of what was stored (empty for nothing), and what was not."""

    receipt: str = ""
    rejected: int = 0
    message: str = ""


class _Refused(Exception):
    """The request is refused as a whole."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@csrf_exempt
def metrics(request: HttpRequest) -> HttpResponse:
    """Data points, as rows of the kind `metric`."""
    return _answered(request, SIGNALS["metrics"], _take_rows(otlp.metrics))


@csrf_exempt
def traces(request: HttpRequest) -> HttpResponse:
    """Spans, as rows of the kind `span`."""
    return _answered(request, SIGNALS["traces"], _take_rows(otlp.traces))


@csrf_exempt
def logs(request: HttpRequest) -> HttpResponse:
    """Log records: those of severity ERROR and above as alerts, all of them counted as rows of the kind `log_count`."""
    return _answered(request, SIGNALS["logs"], _take_logs)


_KINDS = {"metrics": "metric", "traces": "span", "logs": "log_count"}
_TEMPLATES = Templates()
"""Of this process. Threads that add to it at once exceed its bound by a few."""
Take = Callable[[HttpRequest, Signal, Key, bytes, str], _Done]


def _answered(request: HttpRequest, signal: Signal, take: Take) -> HttpResponse:
    media_type = (request.content_type or "").lower()
    form = media_type if media_type in (PROTOBUF, JSON) else PROTOBUF
    try:
        liveness.spare_the_question()
        done = _taken(request, signal, media_type, take)
    except _Refused as refused:
        return _status(refused.code, str(refused), form)
    except Overloaded as error:
        told = _status(error.status, f"{error}.", form)
        told["Retry-After"] = str(error.retry_after)
        return told
    except TooLarge as error:
        return _status(413, f"Nothing was stored: {error}.", form)
    except BadBody as error:
        return _status(400, f"Nothing was stored: {error}.", form)
    except (OperationalError, InterfaceError):
        return _status(503, "The database does not answer; nothing was stored.", form)
    told = HttpResponse(answer(signal, form, done.rejected, done.message), content_type=form)
    if done.receipt:
        told["Dossier-Receipt"] = done.receipt
    return told


def _status(code: int, message: str, form: str) -> HttpResponse:
    told = HttpResponse(status(code, message, form), content_type=form, status=code)
    if code in (429, 503):
        told["Retry-After"] = RETRY_AFTER
    if code == 401:
        told["WWW-Authenticate"] = 'Bearer realm="dossier"'
    if code == 405:
        told["Allow"] = "POST"
    return told


def _taken(request: HttpRequest, signal: Signal, media_type: str, take: Take) -> _Done:
    if request.method != "POST":
        raise _Refused(405, "Only POST here.")
    key = authenticate(request.headers.get("Authorization"))
    if key is None:
        raise _Refused(401, "This door needs a good integration key: Authorization: Bearer KEY.")
    try:
        return _taken_of(request, signal, media_type, take, key)
    except (_Refused, TooLarge, BadBody) as error:
        code = error.code if isinstance(error, _Refused) else 413 if isinstance(error, TooLarge) else 400
        note(key.name, f"otlp {signal.name}", code, str(error))
        raise


def _taken_of(request: HttpRequest, signal: Signal, media_type: str, take: Take, key: Key) -> _Done:
    scope = "alerts" if signal.name == "logs" else "telemetry"
    if not key.allows(scope):
        raise _Refused(403, f"The key {key.name} lacks the scope {scope}.")
    may = key.allows_door("otlp") if signal.name == "logs" else key.allows_kind(_KINDS[signal.name])
    if not may:
        raise _Refused(403, f"The key {key.name} may not send {signal.name} here.")
    encoding = request.headers.get("Content-Encoding", "").strip().lower()
    if media_type not in (PROTOBUF, JSON) or encoding not in ENCODINGS:
        raise _Refused(415, f"Send {PROTOBUF} or {JSON}; Content-Encoding may be gzip or zstd.")
    with admitted(key.name, f"otlp-{signal.name}"):
        sent = read_body(request, settings.TELEMETRY_MAX_BODY)
        body = decompress(sent, encoding, min(settings.TELEMETRY_MAX_DECODED, MOST_BYTES))
        return take(request, signal, key, body, media_type)


def _take_rows(made: Callable[..., otlp.Taken]) -> Take:
    def take(request: HttpRequest, signal: Signal, key: Key, body: bytes, media_type: str) -> _Done:
        with in_turn(len(body)):
            taken = made(read(signal, body, media_type), key.region or "default", _bounds())
        told = taken.refusals.total, taken.message
        return _Done(_stored(request, signal, key, body, taken.rows), *told)

    return take


def _bounds() -> Bounds:
    return Bounds.around(datetime.now(UTC), settings.TELEMETRY_RETENTION, settings.TELEMETRY_FUTURE)


def _stored(request: HttpRequest, signal: Signal, key: Key, body: bytes, rows: Rows) -> str:
    """The receipt of the rows, the first one if the same body came before; empty for no rows."""
    if not rows.count:
        return ""
    digest = hashlib.sha256(body).digest()
    delivery = Delivery(key.name, digest, len(body), _trace(request), f"otlp {signal.name} {digest.hex()}")
    return (find_repeated(rows.kind, delivery) or receive(rows, delivery)).id


def _take_logs(request: HttpRequest, signal: Signal, key: Key, body: bytes, media_type: str) -> _Done:
    """Counts first: they are stored once however often a body is sent, and repeated alerts are one.

    A key that may not send telemetry has its errors taken as alerts, and nothing counted.
    """
    counts = key.allows("telemetry") and key.allows_kind(_KINDS[signal.name])
    now, taken = datetime.now(UTC), None
    with in_turn(len(body)):
        sent = read(signal, body, media_type)
        found = otlp_logs.alerts(sent, now, counted=counts)
        if counts:
            taken = otlp.log_counts(sent, key.region or "default", _bounds(), now, _TEMPLATES)
    rejected = found.refusals.total + (taken.refusals.total if taken else 0)
    said = "; ".join(filter(None, (found.refusals.sentence(), taken.message if taken else "")))
    receipt = _stored(request, signal, key, body, taken.rows) if taken else ""
    if not found.parsed.alerts:
        return _Done(receipt, rejected, said)
    too_long = len(body) > KEPT_WHOLE
    payload, content_type = (found.shown, PROTOBUF) if too_long else (body, media_type)
    delivery = alerts.Delivery(key.name, "otlp", content_type, payload, _trace(request))
    return _Done(alerts.receive(found.parsed, delivery).receipt, rejected, said)


def _trace(request: HttpRequest) -> str | None:
    return getattr(request, "trace", None)
