"""POST /v2/enqueue and /v2/change/enqueue: PagerDuty's Events API; the routing key is an integration key. Thin."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from contextlib import suppress

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from ingest.alerts.changes import ENDPOINT as CHANGES
from ingest.alerts.changes import take_change
from ingest.alerts.deliveries import Delivery, DeliveryReceipt
from ingest.api.admission import OverloadedError, admitted
from ingest.api.alerts import RequestRefusedError, body_of, refused, stored
from ingest.api.answers import AcceptedEvent, EventAnswer, RefusedEvent, in_json
from ingest.api.keys import Key, find
from ingest.api.rejections import note
from ingest.db import database
from ingest.integrations import pagerduty
from ingest.integrations.normalized import InvalidPayloadError, Parsed
from ingest.telemetry.errors import BodyTooLargeError, InvalidBodyError

NAME = "pagerduty"
Answer = tuple[DeliveryReceipt, EventAnswer]


@csrf_exempt
def enqueue(request: HttpRequest) -> HttpResponse:
    """An alert: triggered, acknowledged or resolved."""
    return _answered(request, _event)


@csrf_exempt
def enqueue_change(request: HttpRequest) -> HttpResponse:
    """A change, which is shown beside incidents and opens none."""
    return _answered(request, _change)


def _answered(request: HttpRequest, take: Callable[[HttpRequest, bytes], Answer]) -> HttpResponse:
    body = b""
    try:
        if request.method != "POST":
            raise RequestRefusedError(405, "Only POST here.")
        body = body_of(request, pagerduty.LARGEST)
        taken, answer_body = take(request, body)
    except InvalidPayloadError as error:
        with suppress(
            OperationalError, InterfaceError
        ):  # nobody to tell it to; the event is no good all the same
            if (key := find(_routing_key(body))) is not None:
                note(key.name, NAME, 400, str(error))
        return in_json(RefusedEvent(**pagerduty.refusal(error)), 400)
    except (
        RequestRefusedError,
        OverloadedError,
        BodyTooLargeError,
        InvalidBodyError,
        OperationalError,
        InterfaceError,
    ) as error:
        answer = refused(_error, error, overloaded=429)
        if answer.status_code == 405:
            answer["Allow"] = "POST"
        return answer
    answer = in_json(answer_body, 202)
    answer["Dossier-Receipt"] = taken.receipt
    return answer


def _event(request: HttpRequest, body: bytes) -> Answer:
    event = pagerduty.event(body, str(uuid.uuid4()))
    key = _key(event.routing_key)
    with admitted(key.name, NAME):
        payload = pagerduty.without_key(body, event.routing_key)
        taken = stored(request, NAME, key, Parsed((event.alert,)), payload)
    return taken, AcceptedEvent("success", "Event processed", event.dedup_key)


def _change(request: HttpRequest, body: bytes) -> Answer:
    change = pagerduty.change(body)
    key = _key(change.routing_key)
    trace = getattr(request, "trace", None)
    with admitted(key.name, CHANGES):
        stored = pagerduty.without_key(body, change.routing_key)
        taken = take_change(change, Delivery(key.name, CHANGES, request.content_type or "", stored, trace))
    database.note_use()
    return taken, EventAnswer("success", "Change event processed")


def _key(routing_key: str) -> Key:
    key = find(routing_key)
    if key is None or not key.allows("alerts") or not key.allows_format(NAME):
        raise pagerduty.InvalidEventError(
            ["'routing_key' is invalid (no integration key with the scope alerts)"]
        )
    return key


def _routing_key(body: bytes) -> str:
    """Routing key of a payload that is otherwise invalid, so that the owner of its sender can see the reason."""
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    return str(parsed.get("routing_key", "")) if isinstance(parsed, dict) else ""


def _error(status: int, message: str) -> HttpResponse:
    return in_json(RefusedEvent("error", message, [message]), status)
