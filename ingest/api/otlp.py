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
from ingest.doors.otlp_messages import JSON, MOST_BYTES, PROTOBUF, SIGNALS, Signal, answer, read, status
from ingest.telemetry import liveness
from ingest.telemetry.check import Bounds
from ingest.telemetry.faults import BadBody, TooLarge
from ingest.telemetry.receiving import Delivery, find_repeated, receive

RETRY_AFTER = "5"
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
    """Log records of severity ERROR and above, as alerts."""
    return _answered(request, SIGNALS["logs"], _take_alerts)


_KINDS = {"metrics": "metric", "traces": "span"}
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
        told = _status(429, f"{error}.", form)
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
        digest = hashlib.sha256(body).digest()
        again = f"otlp {signal.name} {digest.hex()}"
        delivery = Delivery(key.name, digest, len(body), _trace(request), again)
        bounds = Bounds.around(datetime.now(UTC), settings.TELEMETRY_RETENTION, settings.TELEMETRY_FUTURE)
        with in_turn(len(body)):
            taken = made(read(signal, body, media_type), key.region or "default", bounds)
        told = taken.refusals.total, taken.message
        if not taken.rows.count:
            return _Done("", *told)
        receipt = find_repeated(taken.rows.kind, delivery) or receive(taken.rows, delivery)
        return _Done(receipt.id, *told)

    return take


def _take_alerts(request: HttpRequest, signal: Signal, key: Key, body: bytes, media_type: str) -> _Done:
    with in_turn(len(body)):
        found = otlp_logs.alerts(read(signal, body, media_type), datetime.now(UTC))
    told = found.refusals.total, found.refusals.sentence()
    if not found.parsed.alerts:
        return _Done("", *told)
    too_long = len(body) > settings.ALERT_MAX_BODY
    payload, content_type = (found.shown, PROTOBUF) if too_long else (body, media_type)
    delivery = alerts.Delivery(key.name, "otlp", content_type, payload, _trace(request))
    return _Done(alerts.receive(found.parsed, delivery).receipt, *told)


def _trace(request: HttpRequest) -> str | None:
    return getattr(request, "trace", None)
