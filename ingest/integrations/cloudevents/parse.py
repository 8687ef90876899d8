"""CloudEvents 1.0 over HTTP: structured, batched and binary, and the webhook handshake. Pure.

https://github.com/cloudevents/spec: `bindings/http-protocol-binding.md`, `formats/json-format.md`, `http-webhook.md`.
Only the JSON format is read; for Avro, Protobuf and XML a sender hears UnsupportedContentTypeError.

`source` and `id` tell events apart: of two equal ones in a batch one counts. What comes again later changes nothing,
because alerts know since when they are what they are (see `cloudevent_alerts`).
"""

from __future__ import annotations

import base64
import binascii
import codecs
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.message import Message
from typing import Any
from urllib.parse import unquote

from ingest.integrations.json_body import called, read, scalar
from ingest.integrations.normalized import MOST_ALERTS, InvalidPayloadError, Refused, instant

SPECVERSION = "1.0"
REQUIRED = ("id", "source", "type")
TEXTS = (*REQUIRED, "specversion", "subject", "time", "datacontenttype")
MOST_EVENTS = MOST_ALERTS
"""In one batch."""
_PREFIX = "ce-"


class UnsupportedContentTypeError(ValueError):
    """The body is in no form that this endpoint reads; HTTP calls it 415."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its context attributes as texts, and its data as JSON (a text where it is text, None for neither)."""

    attributes: Mapping[str, str]
    data: Any = None
    place: int = 0

    @property
    def identity(self) -> tuple[str, str]:
        return self.attributes["source"], self.attributes["id"]

    @property
    def plain(self) -> dict[str, Any]:
        """As the structured mode would have it, `data` always readable."""
        return {**self.attributes, "data": self.data}


@dataclass(frozen=True, slots=True)
class Events:
    """The events of a request, each once, and those that are none."""

    events: tuple[Event, ...]
    refused: tuple[Refused, ...] = field(default=())


def events(body: bytes, headers: Mapping[str, str]) -> Events:
    """The events of a request. `headers` may be in any case. Raises InvalidPayloadError,
    UnsupportedContentTypeError."""
    fields = {name.lower(): value for name, value in headers.items()}
    media_type, charset = _content_type(fields.get("content-type", ""))
    if media_type.startswith("application/cloudevents-batch"):
        return _batch(_json(media_type, body, charset, "application/cloudevents-batch+json"))
    if media_type.startswith("application/cloudevents"):
        return Events((_structured(_json(media_type, body, charset, "application/cloudevents+json"), 0),))
    if any(name.startswith(_PREFIX) for name in fields):
        return Events((_binary(fields, media_type, charset, body),))
    raise UnsupportedContentTypeError(
        "this is no CloudEvent: send application/cloudevents+json, application/cloudevents-batch+json, or headers ce-*"
    )


def handshake(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers that answer an OPTIONS request: who asks may send, and as often as it likes.

    "Abuse protection" of the webhook specification; without a request for it nothing but the methods.
    """
    fields = {name.lower(): value.strip() for name, value in headers.items()}
    answer = {"Allow": "POST, OPTIONS"}
    origin = fields.get("webhook-request-origin", "")
    if origin and origin.isprintable() and origin.isascii():
        answer["WebHook-Allowed-Origin"] = origin
        answer["WebHook-Allowed-Rate"] = "*"
    return answer


# Modes
# ----------------------------------------------------------------------------------------------------------
def _content_type(text: str) -> tuple[str, str]:
    message = Message()
    message["Content-Type"] = text.replace("\r", " ").replace("\n", " ")
    charset = message.get_param("charset", "utf-8")
    media_type = message.get_content_type() if text else ""
    return media_type, (charset if isinstance(charset, str) else charset[2]).lower()


def _json(media_type: str, body: bytes, charset: str, wanted: str) -> Any:
    if media_type != wanted:
        raise UnsupportedContentTypeError(
            f"the event format of {media_type[:80]} is not read here; send {wanted}"
        )
    return read(_in_utf8(body, charset))


def _in_utf8(body: bytes, charset: str) -> bytes:
    try:
        if codecs.lookup(charset).name in ("utf-8", "ascii"):
            return body
        return body.decode(charset).encode()
    except (LookupError, ValueError) as error:
        raise UnsupportedContentTypeError(f"the body cannot be read as {charset[:40]}: {error}") from None


def _batch(value: Any) -> Events:
    if not isinstance(value, list):
        raise InvalidPayloadError("", f"must be an array of events, not {called(value)}")
    if len(value) > MOST_EVENTS:
        raise InvalidPayloadError("", f"must be at most {MOST_EVENTS} events, not {len(value)}")
    found: dict[tuple[str, str], Event] = {}
    refused: list[Refused] = []
    for place, one in enumerate(value):
        try:
            event = _structured(one, place)
            found.setdefault(event.identity, event)
        except InvalidPayloadError as bad:
            refused.append(Refused(place, bad.field, bad.reason))
    return Events(tuple(found.values()), tuple(refused))


def _structured(given: Any, place: int) -> Event:
    if not isinstance(given, dict):
        raise InvalidPayloadError("", f"must be an event, not {called(given)}")
    if "data" in given and "data_base64" in given:
        raise InvalidPayloadError("data_base64", "must not stand beside data")
    attributes = {}
    for name, value in given.items():
        if name in ("data", "data_base64") or value is None:
            continue
        if not isinstance(value, str) and (name in TEXTS or isinstance(value, dict | list)):
            raise InvalidPayloadError(name[:80], f"must be a text, not {called(value)}")
        attributes[name] = scalar(value)
    _check(attributes)
    data = given.get("data")
    if "data_base64" in given:
        data = _decoded(given["data_base64"], attributes.get("datacontenttype"))
    return Event(attributes, data, place)


def _decoded(value: Any, data_type: str | None) -> Any:
    """Binary data as its type says; without a type as JSON, or as the base64 that was sent where it is none."""
    try:
        raw = base64.b64decode(value, validate=True) if isinstance(value, str) else None
    except (binascii.Error, ValueError):
        raw = None
    if raw is None:
        raise InvalidPayloadError("data_base64", "is not base64")
    if data_type is None:
        try:
            return read(raw)
        except InvalidPayloadError:
            return value
    media_type, charset = _content_type(data_type)
    return _data(raw, media_type, charset)


def _binary(headers: Mapping[str, str], media_type: str, charset: str, body: bytes) -> Event:
    attributes = {
        name.removeprefix(_PREFIX): unquote(value, errors="replace")
        for name, value in headers.items()
        if name.startswith(_PREFIX)
    }
    if media_type:
        attributes["datacontenttype"] = headers["content-type"]
    _check(attributes)
    return Event(attributes, _data(body, media_type, charset))


def _data(raw: bytes, media_type: str, charset: str) -> Any:
    """Data as JSON, or as text; None for what is neither."""
    if not raw:
        return None
    if not media_type or media_type == "application/json" or media_type.endswith("+json"):
        return read(_in_utf8(raw, charset))
    if media_type.startswith("text/"):
        return _in_utf8(raw, charset).decode(errors="replace")
    return None


def _check(attributes: Mapping[str, str]) -> None:
    version = attributes.get("specversion", "")
    if version != SPECVERSION:
        raise InvalidPayloadError("specversion", f"must be {SPECVERSION}, not {version[:20]!r}")
    for name in REQUIRED:
        if not attributes.get(name, "").strip():
            raise InvalidPayloadError(name, "is required and must not be empty")
    try:
        instant(attributes.get("time"))
    except ValueError as error:
        raise InvalidPayloadError("time", str(error)) from None
