"""POST /api/v1/write: Prometheus remote write 1.0 and 2.0. Thin: the endpoint reads, the command stores.

204 says that everything is stored that is a number. 400 says what was refused; the good samples of the request are
stored all the same, because senders do not repeat after a 400. A request that was stored before (the same key, the same
bytes) is not stored again: senders must repeat after a 5xx, and may not know that it was stored.
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from email.message import Message

from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from ingest.alerts import store as alerts
from ingest.alerts.deliveries import Delivery as AlertDelivery
from ingest.api.admission import OverloadedError, admitted, in_turn, read_body
from ingest.api.keys import Key, authenticate
from ingest.api.problem_details import down
from ingest.api.rejections import noted
from ingest.db import database
from ingest.integrations.gpu import dcgm_alerts
from ingest.integrations.normalized import Parsed
from ingest.integrations.remote_write.parse import MESSAGES, MOST_BYTES, Version, Written, rows, unpack
from ingest.telemetry.decode.columns import Bounds, Rows
from ingest.telemetry.errors import BodyTooLargeError, InvalidBodyError
from ingest.telemetry.store.write import Delivery, find_repeated, receive

RETRY_AFTER = "5"
WRITTEN = "X-Prometheus-Remote-Write-{}-Written"


@csrf_exempt
def write(request: HttpRequest) -> HttpResponse:
    """Samples, as rows of the kind `metric`."""
    if request.method != "POST":
        return _text_answer(405, "Only POST here.", Allow="POST")
    database.skip_health_check()
    try:
        key = authenticate(request.headers.get("Authorization"))
        if key is None:
            return _text_answer(
                401,
                "This endpoint needs a good integration key: Authorization: Bearer KEY, or Basic with it as password.",
                WWW_Authenticate='Bearer realm="dossier"',
            )
        return noted(_answered(request, key), key.name, "remote write")
    except (OperationalError, InterfaceError) as error:
        return _text_answer(503, down(error), Retry_After=RETRY_AFTER)


def _answered(request: HttpRequest, key: Key) -> HttpResponse:
    """Answer to a sender whose key is good. Raises django.db.Error."""
    try:
        if not key.allows("telemetry"):
            return _text_answer(403, f"The key {key.name} lacks the scope telemetry.")
        if not key.allows_kind("metric"):
            return _text_answer(403, f"The key {key.name} may not send rows of metric.")
        version = _version(request)
        if version is None:
            return _text_answer(
                415, "Send application/x-protobuf of remote write 1.0 or 2.0, as a snappy block."
            )
        with admitted(key.name, "remote-write"):
            return _taken(request, key, version)
    except OverloadedError as error:
        # Not 429: senders must repeat after a 5xx, and only may after a 429.
        return _text_answer(503, f"{error}.", Retry_After=str(error.retry_after))
    except BodyTooLargeError as error:
        return _text_answer(413, f"Nothing was stored: {error}.")
    except InvalidBodyError as error:
        return _text_answer(400, f"Nothing was stored: {error}.")


def _version(request: HttpRequest) -> Version | None:
    """Version of the protocol that the request names; None for one that this endpoint does not read."""
    message = Message()
    message["Content-Type"] = request.headers.get("Content-Type", "")
    encoding = request.headers.get("Content-Encoding", "snappy").strip().lower()
    if message.get_content_type() != "application/x-protobuf" or encoding != "snappy":
        return None
    return MESSAGES.get(str(message.get_param("proto", "")))


def _taken(request: HttpRequest, key: Key, version: Version) -> HttpResponse:
    sent = read_body(request, settings.TELEMETRY_MAX_BODY)
    body = unpack(sent, min(settings.TELEMETRY_MAX_DECODED_BODY, MOST_BYTES))
    bounds = Bounds.around(datetime.now(UTC), settings.TELEMETRY_RETENTION, settings.TELEMETRY_FUTURE)
    with in_turn(len(body)):
        written = rows(body, version, key.region or "default", bounds)
    receipt = ""
    if written.rows.count:
        digest = hashlib.sha256(body).digest()
        again = f"remote write {digest.hex()}"
        delivery = Delivery(key.name, digest, len(sent), getattr(request, "trace", None), again)
        receipt = (find_repeated(written.rows.kind, delivery) or receive(written.rows, delivery)).id
        _report_xids(written.rows, key)
    return _answer(written, receipt)


def _report_xids(rows: Rows, key: Key) -> None:
    """Store Xids of DCGM as alerts too, for a key that may send alerts. Repeats are one alert."""
    now = datetime.now(UTC)
    if not key.allows("alerts") or not (found := dcgm_alerts(rows, now)):
        return
    payload = json.dumps([dict(alert.labels) for alert in found]).encode()
    parsed = alerts.name_parts(Parsed(found), key.region or "default", now)
    alerts.receive(parsed, AlertDelivery(key.name, "remote-write", "application/json", payload))


def _answer(written: Written, receipt: str) -> HttpResponse:
    if written.refusals.total:
        answer = _text_answer(400, f"The other samples were stored. Refused: {written.refusals.sentence()}.")
    else:
        answer = HttpResponse(status=204)
    if receipt:
        answer["Dossier-Receipt"] = receipt
    if written.left_out:
        answer["Dossier-Left-Out"] = ", ".join(f"{count} {what}" for what, count in written.left_out.items())
    counts = {"Samples": written.samples, "Histograms": written.histograms, "Exemplars": 0}
    for what, count in counts.items():
        answer[WRITTEN.format(what)] = str(count)
    return answer


def _text_answer(status: int, text: str, **headers: str) -> HttpResponse:
    """Plain text, which Prometheus writes into its own log."""
    answer = HttpResponse(text + "\n", content_type="text/plain; charset=utf-8", status=status)
    for name, value in headers.items():
        answer[name.replace("_", "-")] = value
    return answer
