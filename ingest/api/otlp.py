"""POST /v1/metrics, /v1/traces and /v1/logs: OTLP/HTTP 1.x. Thin: answers are in the form of the request."""

from __future__ import annotations

from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from ingest.api.admission import OverloadedError, decompress, read_body
from ingest.api.keys import authenticate
from ingest.api.otlp_store import Done, OtlpRefusedError, Request, admitting, largest, take
from ingest.api.problem_details import down
from ingest.db import database
from ingest.integrations.otlp.messages import JSON, PROTOBUF, SIGNALS, Signal, answer, status
from ingest.telemetry.errors import BodyTooLargeError, InvalidBodyError

RETRY_AFTER = "5"
ENCODINGS = ("", "identity", "gzip", "x-gzip", "zstd")


@csrf_exempt
def metrics(request: HttpRequest) -> HttpResponse:
    """Data points, as rows of the kind `metric`."""
    return _answered(request, SIGNALS["metrics"])


@csrf_exempt
def traces(request: HttpRequest) -> HttpResponse:
    """Spans, as rows of the kind `span`."""
    return _answered(request, SIGNALS["traces"])


@csrf_exempt
def logs(request: HttpRequest) -> HttpResponse:
    """Log records: those of severity ERROR and above as alerts, all of them counted as rows of the kind `log_count`."""
    return _answered(request, SIGNALS["logs"])


def _answered(request: HttpRequest, signal: Signal) -> HttpResponse:
    media_type = (request.content_type or "").lower()
    form = media_type if media_type in (PROTOBUF, JSON) else PROTOBUF
    try:
        database.skip_health_check()
        done = _taken(request, signal, media_type)
    except OtlpRefusedError as refused:
        return _status(refused.code, str(refused), form)
    except OverloadedError as error:
        response = _status(error.status, f"{error}.", form)
        response["Retry-After"] = str(error.retry_after)
        return response
    except BodyTooLargeError as error:
        return _status(413, f"Nothing was stored: {error}.", form)
    except InvalidBodyError as error:
        return _status(400, f"Nothing was stored: {error}.", form)
    except (OperationalError, InterfaceError) as error:
        return _status(503, down(error), form)
    response = HttpResponse(answer(signal, form, done.rejected, done.message), content_type=form)
    if done.receipt:
        response["Dossier-Receipt"] = done.receipt
    return response


def _status(code: int, message: str, form: str) -> HttpResponse:
    response = HttpResponse(status(code, message, form), content_type=form, status=code)
    if code in (429, 503):
        response["Retry-After"] = RETRY_AFTER
    if code == 401:
        response["WWW-Authenticate"] = 'Bearer realm="dossier"'
    if code == 405:
        response["Allow"] = "POST"
    return response


def _taken(request: HttpRequest, signal: Signal, media_type: str) -> Done:
    if request.method != "POST":
        raise OtlpRefusedError(405, "Only POST here.")
    with admitting(authenticate(request.headers.get("Authorization")), signal) as key:
        encoding = request.headers.get("Content-Encoding", "").strip().lower()
        if media_type not in (PROTOBUF, JSON) or encoding not in ENCODINGS:
            raise OtlpRefusedError(415, f"Send {PROTOBUF} or {JSON}; Content-Encoding may be gzip or zstd.")
        sent = read_body(request, settings.TELEMETRY_MAX_BODY)
        body = decompress(sent, encoding, largest())
        return take(Request(signal, body, media_type, getattr(request, "trace", None)), key)
