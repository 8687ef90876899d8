"""POST /api/v1/telemetry/{kind} and what can be asked about kinds. Thin: the endpoint decodes, the command
stores."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from typing import Any

from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from msgspec import UNSET

from ingest.api.admission import ENCODINGS, OverloadedError, admitted, decompress, read_body
from ingest.api.answers import AcceptedRows, KindField, KindOfTelemetry, KindsOfTelemetry, encoded, in_json
from ingest.api.keys import Key, authenticate
from ingest.api.problem_details import down, problem
from ingest.api.rejections import noted
from ingest.db import database
from ingest.telemetry.decode.body import FORMATS, decode
from ingest.telemetry.decode.columns import Rows
from ingest.telemetry.errors import BodyTooLargeError, InvalidBodyError, InvalidRowsError
from ingest.telemetry.kinds import KINDS, Field, Kind
from ingest.telemetry.store import tables
from ingest.telemetry.store.tables import bounds
from ingest.telemetry.store.write import Delivery, IdempotencyConflictError, Receipt, find_repeated, receive

RETRY_AFTER = "5"
View = Callable[..., HttpResponse]


def reporting_outage(view: View) -> View:
    """Without its database an endpoint stores nothing and says so; the sender tries again."""

    @wraps(view)
    def answered(request: HttpRequest, *args: str, **kwargs: str) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except (OperationalError, InterfaceError) as error:
            answer = problem(503, "Service Unavailable", down(error))
            answer["Retry-After"] = RETRY_AFTER
            return answer

    return answered


@csrf_exempt
@reporting_outage
def kinds(request: HttpRequest) -> HttpResponse:
    """GET: every kind with its fields."""
    if request.method != "GET":
        return _not_allowed("GET")
    return in_json(KindsOfTelemetry([_described(kind) for kind in KINDS.values()]))


@csrf_exempt
@reporting_outage
def telemetry(request: HttpRequest, kind: str) -> HttpResponse:
    """POST: rows of one kind, stored all or none. GET: what a row of the kind looks like."""
    if request.method not in ("GET", "POST"):
        return _not_allowed("GET, POST")
    database.skip_health_check()
    declared = KINDS.get(kind)
    if request.method == "POST" and isinstance(key := key_of_sender(request), HttpResponse):
        return key
    if declared is None:
        return problem(404, "Not Found", f"There is no telemetry kind {kind[:80]!r}.", kinds=sorted(KINDS))
    if request.method == "GET":
        return in_json(_described(declared))
    assert isinstance(key, Key)
    if not key.allows_kind(kind):
        return problem(403, "Forbidden", f"The key {key.name} may send {', '.join(sorted(key.kinds))} only.")
    try:
        with admitted(key.name, "telemetry"):
            answer = _post(request, declared, key)
            return (
                answer
                if isinstance(answer, Accepted)
                else noted(answer, key.name, f"telemetry {declared.name}")
            )
    except OverloadedError as error:
        answer = problem(error.status, error.status.phrase, f"{error}.")
        answer["Retry-After"] = str(error.retry_after)
        return answer


def key_of_sender(request: HttpRequest) -> Key | HttpResponse:
    """The key of a request that may send telemetry, else the answer that says what is wrong with it."""
    key = authenticate(request.META.get("HTTP_AUTHORIZATION"))  # request.headers reads every variable
    if key is None:
        answer = problem(
            401, "Unauthorized", "This endpoint needs a good integration key: Authorization: Bearer KEY."
        )
        answer["WWW-Authenticate"] = 'Bearer realm="dossier"'
        return answer
    if not key.allows("telemetry"):
        return problem(403, "Forbidden", f"The key {key.name} lacks the scope telemetry.")
    return key


def _post(request: HttpRequest, kind: Kind, key: Key) -> HttpResponse:
    media_type = (request.content_type or "").lower()
    encoding = request.META.get("HTTP_CONTENT_ENCODING", "identity").strip().lower()
    if media_type not in FORMATS or encoding not in (*ENCODINGS, "x-gzip"):
        detail = f"Send {', '.join(FORMATS)}; Content-Encoding may be {', '.join(ENCODINGS)}."
        return problem(415, "Unsupported Media Type", detail)
    again = request.META.get("HTTP_IDEMPOTENCY_KEY")
    if again is not None and not re.fullmatch(r"[\x20-\x7e]{1,255}", again):
        return problem(400, "Bad Request", "Idempotency-Key is 1 to 255 printable ASCII characters.")
    try:
        sent = read_body(request, settings.TELEMETRY_MAX_BODY)
        body = decompress(sent, encoding, settings.TELEMETRY_MAX_DECODED_BODY)
        delivery = Delivery(key.name, hashlib.sha256(body).digest(), len(sent), _trace(request), again)
        if again is not None and (receipt := find_repeated(kind, delivery)):
            return Accepted(receipt)
        rows = _decoded(kind, media_type, body, key)
        return Accepted(receive(rows, delivery))
    except BodyTooLargeError as error:
        return problem(413, "Content Too Large", f"Nothing was stored: {error}.")
    except InvalidRowsError as error:
        errors = [{"row": bad.row, "field": bad.field or None, "reason": bad.reason} for bad in error.rows]
        return problem(400, "Bad Request", f"Nothing was stored: {error.rows[0]}.", errors=errors)
    except InvalidBodyError as error:
        return problem(400, "Bad Request", f"Nothing was stored: {error}.")
    except IdempotencyConflictError:
        detail = "Nothing was stored: this Idempotency-Key was used for another body."
        return problem(409, "Conflict", detail)


def _decoded(kind: Kind, media_type: str, body: bytes, key: Key) -> Rows:
    within = bounds(kind, datetime.now(UTC))
    return decode(media_type, kind, body, key.region or "default", within, tables.known_texts())


def _trace(request: HttpRequest) -> str | None:
    return getattr(request, "trace", None)


class Accepted(HttpResponse):
    """Answer to a body that is stored; `accepted` is the number of its rows."""

    def __init__(self, receipt: Receipt) -> None:
        body = encoded(AcceptedRows(receipt.accepted, receipt.id))
        super().__init__(body, content_type="application/json", status=202)
        self["Dossier-Receipt"] = receipt.id
        self.accepted = receipt.accepted


def _not_allowed(methods: str) -> HttpResponse:
    answer = problem(405, "Method Not Allowed", f"Only {methods} here.")
    answer["Allow"] = methods
    return answer


def _described(kind: Kind) -> KindOfTelemetry:
    fields = [_field(field) for field in kind.all_fields]
    return KindOfTelemetry(
        kind.name, kind.help, kind.is_state, kind.is_interval, kind.key, list(FORMATS), fields
    )


def _field(field: Field) -> KindField:
    default = _default(field)
    return KindField(
        field.name,
        field.type,
        field.optional,
        field.help,
        field.unit or UNSET,
        list(field.choices) or UNSET,
        field.signed or UNSET,
        UNSET if default is None else default,
    )


def _default(field: Field) -> Any:
    """Default of an optional field, as a sender would write it; None for nothing."""
    if not field.optional or field.type == "time":
        return None
    if field.type in ("labels", "measures"):
        return {}
    return [] if field.type in ("components", "numbers") else field.default
