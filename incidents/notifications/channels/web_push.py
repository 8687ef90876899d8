"""Web push: messages to browsers through the push service of each (RFC 8030)."""

from __future__ import annotations

from typing import Final

from incidents.domain.notifications import delivery
from incidents.domain.notifications.delivery import Reply
from incidents.domain.notifications.push import CALL_SECONDS, OVER_SECONDS, push_payload, topic
from incidents.domain.values import InvalidValueError
from incidents.notifications.queue import Outgoing
from incidents.security.outbound import AddressRefusedError, UnreachableError, post
from incidents.security.push_encryption import authorization, check_subscription, encrypt
from ingest.queries import now_utc

TIMEOUT: Final = 10.0
GONE: Final = "the browser's subscription has ended"


def send_push(outgoing: Outgoing) -> Reply:
    """`secret` of the message is the private key of this installation."""
    try:
        found = check_subscription(outgoing.address)
    except InvalidValueError as error:
        return delivery.refused(f"the subscription {error.reason}")
    over = outgoing.message.severity is None and outgoing.message.body["type"] != "test"
    now = now_utc()
    headers = {
        "Content-Type": "application/octet-stream",
        "Content-Encoding": "aes128gcm",
        "TTL": str(OVER_SECONDS if over else CALL_SECONDS),
        "Urgency": "normal" if over else "high",  # only "high" wakes a phone that saves its battery
        "Topic": topic(outgoing.message),
        "Authorization": authorization(found.endpoint, outgoing.secret, now),
    }
    body = encrypt(push_payload(outgoing.message), found.receiver_key, found.auth_secret)
    try:
        answer = post(found.endpoint, body, headers, timeout=TIMEOUT)
    except AddressRefusedError as error:
        return delivery.refused(str(error))
    except UnreachableError as error:
        return delivery.no_answer(str(error))
    if answer.status in (404, 410):
        return Reply("refused", f"response {answer.status}: {GONE}", is_gone=True)
    return delivery.http(answer.status, answer.headers, answer.text, now)
