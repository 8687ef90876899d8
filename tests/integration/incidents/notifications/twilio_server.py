"""A local server that speaks Twilio's API as far as Dossier uses it, and signs what it sends as Twilio does."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit
from xml.etree import ElementTree

from django.conf import settings
from django.test import Client, override_settings

from tests.integration.sinks import Got, http_sink

SID = "AC0123456789abcdef0123456789abcdef"
TOKEN = "0a1b2c3d4e5f60718293a4b5c6d7e8f9"
NUMBER = "+4930123456"
ALICE = "+4915112345678"


@dataclass(slots=True)
class TwilioServer:
    """Messages and calls that it accepted; `errors` are the next answers."""

    messages: list[dict[str, str]] = field(default_factory=list)
    calls: list[dict[str, str]] = field(default_factory=list)
    errors: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    sent: int = 0

    def answer(self, got: Got) -> tuple[int, dict[str, str], bytes]:
        basic = base64.b64encode(f"{SID}:{TOKEN}".encode()).decode()
        if got.headers.get("authorization") != f"Basic {basic}":
            return _json(401, {"code": 20003, "message": "Authenticate"})
        found = re.fullmatch(rf"/2010-04-01/Accounts/{SID}/(Messages|Calls)\.json", got.path)
        if found is None:
            return _json(404, {"code": 20404, "message": "The requested resource was not found"})
        form = dict(parse_qsl(got.body.decode()))
        needed = {"To", "From", "Body" if found[1] == "Messages" else "Twiml"}
        if needed - form.keys() or form["From"] != NUMBER:
            return _json(400, {"code": 21603, "message": "A required parameter is missing"})
        if self.errors:
            return _json(*self.errors.pop(0))
        (self.messages if found[1] == "Messages" else self.calls).append(form)
        return _json(201, {"sid": f"SM{len(self.messages) + len(self.calls):032x}"})

    def post(self, url: str, form: dict[str, str], signature: str | None = None) -> Any:
        """A request to Dossier, with the right signature unless another one is given."""
        signed = sign(url, form) if signature is None else signature
        headers = {"X-Twilio-Signature": signed} if signed else {}
        path = url.removeprefix(settings.PUBLIC_URL)
        return Client(enforce_csrf_checks=True).post(
            path, urlencode(form), content_type="application/x-www-form-urlencoded", headers=headers
        )

    def reply(self, text: str, number: str = ALICE, sid: str = "", signature: str | None = None) -> Any:
        self.sent += 1
        form = {"MessageSid": sid or f"SMin{self.sent}", "From": number, "To": NUMBER, "Body": text}
        return self.post(f"{settings.PUBLIC_URL}/telephony/twilio/sms", form, signature)

    def press(self, key: str, twiml: str | None = None) -> Any:
        """The key that ends the menu of the last call, or of the TwiML that was answered."""
        menu = ElementTree.fromstring(twiml or self.calls[-1]["Twiml"]).find("Gather")
        assert menu is not None
        return self.post(menu.attrib["action"], {"CallSid": "CA1", "Digits": key})


def sign(url: str, form: dict[str, str]) -> str:
    """As the provider's documentation describes it, written without looking at Dossier's."""
    text = url
    for name, value in sorted(form.items()):
        text += name + value
    return base64.b64encode(hmac.new(TOKEN.encode(), text.encode(), hashlib.sha1).digest()).decode()


def _json(status: int, body: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
    return status, {"Content-Type": "application/json"}, json.dumps(body).encode()


@contextmanager
def twilio_server() -> Iterator[TwilioServer]:
    server = TwilioServer()
    with http_sink(server.answer) as sink:
        parts = urlsplit(sink.url)
        with override_settings(
            TWILIO_ACCOUNT_SID=SID,
            TWILIO_AUTH_TOKEN=TOKEN,
            TWILIO_FROM_NUMBER=NUMBER,
            TWILIO_API_URL=f"{parts.scheme}://{parts.netloc}",
            TELEPHONY_IS_SET_UP=True,
            OUTBOUND_ALLOWED_NETWORKS=(ip_network("127.0.0.0/8"),),
        ):
            yield server
