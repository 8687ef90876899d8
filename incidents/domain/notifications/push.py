"""Web push: subscriptions of browsers and the JSON that a notification carries. Pure.

A subscription comes from the browser's PushManager (W3C Push API): the address of its push service, which is a secret,
and the keys that messages are encrypted for (RFC 8291).
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from incidents.domain.notifications.message import Message
from incidents.domain.values import InvalidValueError

PLAINTEXT_LIMIT: Final = 3_993
"""Bytes: 4,096 (RFC 8030, 7.2) less header (86), delimiter (1) and tag (16) of the encryption."""
TEXT_LIMIT: Final = 600
"""Characters; phones show less."""
LISTED: Final = 5
"""Incidents that a notification of several names."""
CALL_SECONDS: Final = 4 * 3600
"""Time for which a push service keeps a page for a device that is offline."""
OVER_SECONDS: Final = 24 * 3600
"""The same for a message that an incident is over, which replaces the page."""


class SubscriptionKeys(msgspec.Struct, frozen=True):
    p256dh: str
    auth: str


class Subscription(msgspec.Struct, frozen=True):
    endpoint: str
    keys: SubscriptionKeys

    @property
    def receiver_key(self) -> bytes:
        """Public key of the browser, an uncompressed point of P-256."""
        return decoded(self.keys.p256dh)

    @property
    def auth_secret(self) -> bytes:
        return decoded(self.keys.auth)

    def as_text(self) -> str:
        return json.dumps({"endpoint": self.endpoint, "keys": msgspec.to_builtins(self.keys)}, sort_keys=True)


def read_subscription(text: str) -> Subscription:
    """The subscription in JSON as `PushSubscription.toJSON` writes it. Raises InvalidValueError, without its text."""
    wanted = "must be a push subscription of a browser: JSON with endpoint, keys.p256dh and keys.auth"
    try:
        found = msgspec.json.decode(text.encode(), type=Subscription)
        lengths = len(found.receiver_key), len(found.auth_secret)
    except (msgspec.MsgspecError, binascii.Error, ValueError):
        raise InvalidValueError("address", wanted) from None
    if lengths != (65, 16) or found.receiver_key[0] != 4:
        raise InvalidValueError(
            "address", "has keys of the wrong length: p256dh is a point of 65 bytes, auth 16 bytes"
        )
    return found


def decoded(text: str) -> bytes:
    """Base64url without padding (RFC 7515). Raises ValueError."""
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars="-_", validate=True)


def encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def push_payload(message: Message) -> bytes:
    """Payload for the service worker: `title`, `text`, `tag` (a later one of the same incident replaces it), `url`
    of the page and, where one incident can be answered, `answer`: the path of its one-time link. At most
    `PLAINTEXT_LIMIT` bytes."""
    found = message.body["incidents"]
    only = found[0] if message.body["total"] == 1 else None
    shown: dict[str, Any] = {
        "title": message.subject,
        "tag": f"incident-{only['id']}" if only else message.body["id"],
        "url": _path(only["url"]) if only else "/",
    }
    if only and only["answer_url"]:
        shown["answer"] = _path(only["answer_url"])
    text = (_text_of(only) if only else _list_of(found, message))[:TEXT_LIMIT]
    while len(body := _as_json({**shown, "text": text})) > PLAINTEXT_LIMIT:
        text = text[: len(text) * 3 // 4]
    return body


def topic(message: Message) -> str:
    """Name under which a push service replaces what it could not deliver yet (RFC 8030, 5.4): up to 32 characters."""
    found = message.body["incidents"]
    named = found[0]["id"] if message.body["total"] == 1 else message.body["id"]
    return str(named).replace("-", "")


def _as_json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, sort_keys=True).encode()


def _path(url: str) -> str:
    """Without the host: the console may be open under another name than DOSSIER_PUBLIC_URL."""
    return urlsplit(url).path or "/"


def _text_of(one: dict[str, Any]) -> str:
    if one["over"]:
        cause = f"Cause: {one['confirmed_cause']}. " if one["confirmed_cause"] else ""
        return f"Resolved. {cause}Team {one['team']}."
    lines = [one["verdict"] or "", f"Component: {one['component']}" if one["component"] else ""]
    reason = one["reason"]
    return "\n".join([line for line in lines if line] + [f"Team {one['team']}. Reason: {reason}"])


def _list_of(found: list[dict[str, Any]], message: Message) -> str:
    if not found:
        return str(message.body["text"])
    return "\n".join(f"#{one['number']} {one['title']}" for one in found[:LISTED])
