"""The endpoints of alerts: each answers as its senders expect, and 2xx only for what is committed.

An endpoint is a parser, how it finds the key, and how it says yes and no. Where a body holds good alerts and
bad ones, the good ones are stored; the receipt names the others.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

import msgspec
from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from msgspec import UNSET

from ingest.alerts import heartbeats
from ingest.alerts.deliveries import Delivery, DeliveryReceipt
from ingest.alerts.store import name_parts, receive
from ingest.api.admission import OverloadedError, admitted, decompress, in_turn, read_body
from ingest.api.answers import AcceptedAlerts, AcceptedHeartbeat, LeftOutAlert, RefusedAlert, in_json
from ingest.api.keys import Key, authenticate, find
from ingest.api.problem_details import down, problem
from ingest.api.rejections import note, note_unread
from ingest.db import database
from ingest.integrations import grafana, prometheus, recognition
from ingest.integrations import heartbeat as heartbeats_endpoint
from ingest.integrations.generic import apply
from ingest.integrations.json_body import LARGEST_REQUEST, read_object, scalar
from ingest.integrations.normalized import InvalidPayloadError, Parsed
from ingest.telemetry.errors import BodyTooLargeError, InvalidBodyError

RETRY_AFTER = "5"
ENCODINGS = ("", "identity", "gzip", "x-gzip", "zstd")

Refuse = Callable[[int, str], HttpResponse]


class RequestRefusedError(Exception):
    """The request is refused as a whole: nothing of it was stored."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


REFUSED = (
    RequestRefusedError,
    OverloadedError,
    BodyTooLargeError,
    InvalidBodyError,
    InvalidPayloadError,
    OperationalError,
    InterfaceError,
)
"""Errors that `refused` has an answer for."""


@dataclass(frozen=True, slots=True)
class AlertEndpoint:
    """`parse` gets the body and the key; `refuse` writes an answer with a status that is no 2xx."""

    name: str
    methods: tuple[str, ...]
    parse: Callable[[bytes, Key], Parsed]
    accept: Callable[[DeliveryReceipt, Parsed], HttpResponse]
    refuse: Refuse
    overloaded: int = 503
    keeps_unread: bool = False
    """Whether a payload that gives no alert is stored: its mapping can be written afterwards."""


def serve(endpoint: AlertEndpoint, request: HttpRequest, key_of: Callable[[], Key | None]) -> HttpResponse:
    """Receive one delivery; `key_of` finds its key. `endpoint.refuse` answers whatever is wrong."""
    key = None
    try:
        if request.method not in endpoint.methods:
            raise RequestRefusedError(405, f"Only {' and '.join(endpoint.methods)} here.")
        key = key_of()
        allowed(key, endpoint.name)
        assert key is not None
        with admitted(key.name, endpoint.name):
            body = body_of(request)
            with in_turn(len(body)):  # the objects of a large body take ten times its room
                parsed = endpoint.parse(body, key)
                taken = stored(request, endpoint.name, key, parsed, body, keeps_unread=endpoint.keeps_unread)
        answer = endpoint.accept(taken, parsed)
        answer["Dossier-Receipt"] = taken.receipt
    except REFUSED as error:
        answer = refused(endpoint.refuse, error, endpoint.overloaded)
        if key is not None:
            note(key.name, endpoint.name, answer.status_code, str(error))
        if answer.status_code == 405:
            answer["Allow"] = ", ".join(endpoint.methods)
    return answer


def refused(refuse: Refuse, error: Exception, overloaded: int = 503) -> HttpResponse:
    """The answer for what went wrong."""
    match error:
        case RequestRefusedError():
            answer = refuse(error.status, str(error))
        case OverloadedError():
            answer = refuse(overloaded, f"{error}.")
            answer["Retry-After"] = str(error.retry_after)
        case BodyTooLargeError():
            answer = refuse(413, f"Nothing was stored: {error} (DOSSIER_ALERT_MAX_BODY).")
        case InvalidBodyError() | InvalidPayloadError():
            answer = refuse(400, f"Nothing was stored: {error}.")
        case _:
            answer = refuse(overloaded, down(error))
            answer["Retry-After"] = RETRY_AFTER
    if answer.status_code == 401:
        answer["WWW-Authenticate"] = 'Bearer realm="dossier"'
    return answer


def allowed(key: Key | None, endpoint: str) -> None:
    """Raises RequestRefusedError for no good key, or one that may not send alerts."""
    if key is None:
        raise RequestRefusedError(401, "This endpoint needs a good integration key.")
    if not key.allows("alerts"):
        raise RequestRefusedError(403, f"The key {key.name} lacks the scope alerts.")
    if not key.allows_format(endpoint):
        raise RequestRefusedError(403, f"The key {key.name} may not use the endpoint {endpoint}.")


def body_of(request: HttpRequest, largest: int | None = None) -> bytes:
    """The body without its encoding, of at most `largest` bytes; by default DOSSIER_ALERT_MAX_BODY."""
    largest = settings.ALERT_MAX_BODY if largest is None else min(largest, settings.ALERT_MAX_BODY)
    # `request.headers` would read every variable there is.
    encoding = request.META.get("HTTP_CONTENT_ENCODING", "").strip().lower()
    if encoding not in ENCODINGS:
        raise RequestRefusedError(415, "Content-Encoding may be gzip or zstd.")
    database.skip_health_check()
    return decompress(read_body(request, largest), encoding, largest)


def stored(
    request: HttpRequest,
    endpoint: str,
    key: Key,
    parsed: Parsed,
    payload: bytes,
    *,
    keeps_unread: bool = False,
) -> DeliveryReceipt:
    """Commits a delivery. Raises RequestRefusedError when there was something in it and nothing of that was good,
    unless `keeps_unread`: then the payload is stored, and an alert says that it could not be read."""
    unread = bool(parsed.refused and not parsed.alerts)
    if unread and not keeps_unread:
        raise RequestRefusedError(400, f"Nothing was stored: {parsed.refused[0]}.")
    trace = getattr(request, "trace", None)
    parsed = name_parts(parsed, key.region or "default", datetime.now(UTC))
    taken = receive(parsed, Delivery(key.name, endpoint, request.content_type or "", payload, trace))
    database.note_use()
    if unread:
        note_unread(key.name, endpoint, str(parsed.refused[0]))
    return taken


def key_of(request: HttpRequest) -> Key | None:
    """The key of a request whose sender can set a header: a bearer token, or the password of basic auth."""
    return authenticate(request.META.get("HTTP_AUTHORIZATION"))


def key_at(request: HttpRequest, key: str) -> Key | None:
    """The key in the address; where none stands there, the one of the header, so that no log of addresses has it."""
    return find(key) if key else key_of(request)


# Answers
# ----------------------------------------------------------------------------------------------------------
def refused_as_problem(status: int, message: str) -> HttpResponse:
    return problem(status, _TITLES.get(status, "Error"), message)


_TITLES = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    405: "Method Not Allowed",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    429: "Too Many Requests",
    503: "Service Unavailable",
}


def counted(taken: DeliveryReceipt, parsed: Parsed) -> HttpResponse:
    return in_json(_accepted(taken, parsed))


def _accepted(taken: DeliveryReceipt, parsed: Parsed) -> AcceptedAlerts:
    return AcceptedAlerts(
        len(parsed.alerts),
        taken.receipt,
        [RefusedAlert(one.place, one.field, one.reason) for one in parsed.refused] or UNSET,
        [LeftOutAlert(one.place, one.reason) for one in parsed.left_out] or UNSET,
    )


def _as_alertmanager(taken: DeliveryReceipt, parsed: Parsed) -> HttpResponse:  # noqa: ARG001
    """200 with nothing, or 400 with a text that joins the errors, though the good alerts are stored."""
    if not parsed.refused:
        return HttpResponse(status=200, content_type="application/json")
    return _text(400, "; ".join(map(str, parsed.refused)))


def _text(status: int, message: str) -> HttpResponse:
    return HttpResponse(json.dumps(message), status=status, content_type="application/json")


# Endpoints
# ----------------------------------------------------------------------------------------------------------
ALERTMANAGER_API = AlertEndpoint(
    "alertmanager-api",
    ("POST",),
    lambda body, _: prometheus.alerts(body, datetime.now(UTC)),
    _as_alertmanager,
    _text,
)
ALERTMANAGER = AlertEndpoint(
    "alertmanager", ("POST",), lambda body, _: prometheus.webhook(body), counted, refused_as_problem
)
GRAFANA = AlertEndpoint(
    "grafana", ("POST", "PUT"), lambda body, _: grafana.webhook(body), counted, refused_as_problem
)


UNREAD = (
    "Stored without an alert: the mapping finds none in this payload. The page of this integration proposes one that"
    " does, to be tried and saved there."
)


def _through_mapping(media_type: str, body: bytes, key: Key) -> Parsed:
    how = None if key.mapping is None else apply.mapping(key.mapping)
    return recognition.apply(how, apply.payload_of(body, media_type)).parsed


def _counted_or_unread(taken: DeliveryReceipt, parsed: Parsed) -> HttpResponse:
    if parsed.alerts or not parsed.refused:
        return counted(taken, parsed)
    return in_json(msgspec.structs.replace(_accepted(taken, parsed), detail=UNREAD), 202)


@csrf_exempt
def alertmanager_api(request: HttpRequest) -> HttpResponse:
    """POST /api/v2/alerts: a Prometheus sends here as it does to its Alertmanager."""
    return serve(ALERTMANAGER_API, request, partial(key_of, request))


@csrf_exempt
def alertmanager(request: HttpRequest, key: str = "") -> HttpResponse:
    """POST /integrations/alertmanager, also with /{key}: a webhook of an Alertmanager."""
    return serve(ALERTMANAGER, request, partial(key_at, request, key))


@csrf_exempt
def grafana_webhook(request: HttpRequest, key: str = "") -> HttpResponse:
    """POST or PUT /integrations/grafana, also with /{key}: a contact point of the kind webhook."""
    return serve(GRAFANA, request, partial(key_at, request, key))


@csrf_exempt
def generic_webhook(request: HttpRequest, key: str = "") -> HttpResponse:
    """POST /integrations/generic, also with /{key}: any JSON or form, through the mapping of the integration."""
    parse = partial(_through_mapping, request.content_type or "")
    endpoint = AlertEndpoint(
        "generic", ("POST", "PUT"), parse, _counted_or_unread, refused_as_problem, keeps_unread=True
    )
    return serve(endpoint, request, partial(key_at, request, key))


@csrf_exempt
def heartbeat(request: HttpRequest, key: str = "") -> HttpResponse:
    """GET or POST /integrations/heartbeat?name=…&every=…, also with /{key}: it came; when the next is due, it says."""
    found = None
    try:
        if request.method not in ("GET", "POST"):
            raise RequestRefusedError(405, "Only GET and POST here.")
        found = key_at(request, key)
        allowed(found, heartbeats.ENDPOINT)
        assert found is not None
        with admitted(found.name, heartbeats.ENDPOINT):
            parts, media_type, payload = _request_parts(request)
            result = heartbeats_endpoint.heartbeat(parts)
            trace = getattr(request, "trace", None)
            delivery = Delivery(found.name, heartbeats.ENDPOINT, media_type, payload, trace)
            now = datetime.now(UTC)
            taken = heartbeats.receive_heartbeat(result, delivery, now)
    except REFUSED as error:
        answer = refused(refused_as_problem, error)
        if found is not None:
            note(found.name, heartbeats.ENDPOINT, answer.status_code, str(error))
        return answer
    due = (now + result.every + result.grace).replace(microsecond=0)
    answer = in_json(AcceptedHeartbeat(result.name, due, taken.receipt))
    answer["Dossier-Receipt"] = taken.receipt
    return answer


def _request_parts(request: HttpRequest) -> tuple[dict[str, str], str, bytes]:
    """Fields of a heartbeat and their origin: the query, and where there is none a form or an object of JSON.

    Beside a query no body is read: jobs send what they printed.
    """
    query = request.META.get("QUERY_STRING", "")
    if query or request.method == "GET":
        return request.GET.dict(), apply.FORM, query.encode(errors="replace")
    media_type, body = request.content_type or "", body_of(request, LARGEST_REQUEST)
    if not body.strip():
        return {}, apply.FORM, b""
    if media_type == apply.FORM:
        return apply.read_form(body), media_type, body
    return {name: scalar(value) for name, value in read_object(body).items()}, media_type, body
