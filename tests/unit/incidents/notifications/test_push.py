"""Web push: what a browser is sent, and the encryption against the example of RFC 8291."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from incidents.domain.notifications.message import MessageLine, compose
from incidents.domain.notifications.push import (
    PLAINTEXT_LIMIT,
    decoded,
    encoded,
    push_payload,
    read_subscription,
    topic,
)
from incidents.domain.values import InvalidValueError
from incidents.security.push_encryption import (
    CURVE,
    authorization,
    check_subscription,
    encrypt,
    new_key,
    public_key,
)

RECEIVER = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
AUTH = "BTBZMqHH6r4Tts7J_aSIgg"
SENDER = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
SALT = "DGv6ra1nlYgDCS1FRnbzlw"
BODY = (
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_"
    "yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
)
"""RFC 8291, section 5."""
ID = "11111111-2222-3333-4444-555555555555"


def line(**changed: Any) -> MessageLine:
    fields: dict[str, Any] = {
        "id": ID,
        "number": 12,
        "title": "Disks are slow",
        "severity": "error",
        "state": "open",
        "team": "storage",
        "component": "disk/7",
        "verdict": "disk/7 is likely at fault",
        "confidence": 0.9,
        "reason": "you are on call",
        "url": "https://dossier.example.com/incidents/12",
        "answer_url": "https://dossier.example.com/answer/abc.def",
    }
    return MessageLine(**{**fields, **changed})


def payload(*lines: MessageLine) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(push_payload(compose("m", lines, "https://dossier.example.com")))
    return found


def test_a_body_is_that_of_the_rfc() -> None:
    own = ec.derive_private_key(int.from_bytes(decoded(SENDER), "big"), CURVE)
    text = b"When I grow up, I want to be a watermelon"
    assert encoded(encrypt(text, decoded(RECEIVER), decoded(AUTH), own, decoded(SALT))) == BODY


def test_the_largest_message_has_the_size_that_every_push_service_takes() -> None:
    assert len(encrypt(b"x" * PLAINTEXT_LIMIT, decoded(RECEIVER), decoded(AUTH))) == 4096


def test_two_messages_of_one_text_differ() -> None:
    assert encrypt(b"x", decoded(RECEIVER), decoded(AUTH)) != encrypt(b"x", decoded(RECEIVER), decoded(AUTH))


def test_a_signature_is_for_the_push_service_and_good_for_half_a_day() -> None:
    private, now = new_key(), datetime.now(UTC)
    header = authorization("https://push.example.com:8443/send/secret", private, now)
    token, key = header.removeprefix("vapid t=").split(", k=")
    assert key == public_key(private)
    point = ec.EllipticCurvePublicKey.from_encoded_point(CURVE, decoded(key))
    claims = jwt.decode(token, point, algorithms=["ES256"], audience="https://push.example.com:8443")
    assert claims["exp"] == int(now.timestamp()) + 12 * 3600
    assert claims["sub"].startswith(("mailto:", "https:"))


def test_a_page_carries_the_path_of_its_link_and_replaces_the_one_before() -> None:
    shown = payload(line())
    assert shown["title"] == "[error] #12 Disks are slow"
    assert (shown["url"], shown["answer"]) == ("/incidents/12", "/answer/abc.def")
    assert shown["tag"] == payload(line(over=True, answer_url=""))["tag"]
    assert "disk/7 is likely at fault" in shown["text"]
    assert "you are on call" in shown["text"]


def test_a_message_that_it_is_over_offers_nothing_to_acknowledge() -> None:
    shown = payload(line(over=True, answer_url="", confirmed_cause="disk/7"))
    assert "answer" not in shown
    assert shown["text"] == "Resolved. Cause: disk/7. Team storage."


def test_several_incidents_are_listed_and_lead_to_the_inbox() -> None:
    shown = payload(line(), line(id=ID.replace("1", "9"), number=13, title="Links flap"))
    assert (shown["url"], "answer" in shown) == ("/", False)
    assert shown["text"] == "#12 Disks are slow\n#13 Links flap"


@pytest.mark.parametrize("letter", ["x", "…", "𝄞", '"', "\t"])
def test_a_payload_fits_whatever_an_incident_is_called(letter: str) -> None:
    long = letter * 2_000
    message = compose("m", [line(title=long, verdict=long, component=long, reason=long)], "https://d.example")
    assert len(push_payload(message)) <= PLAINTEXT_LIMIT


def test_a_topic_has_at_most_32_letters_of_base64url() -> None:
    assert topic(compose("m", [line()], "https://d.example")) == ID.replace("-", "")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("https://push.example.com/1", "must be a push subscription"),
        ("{}", "must be a push subscription"),
        ('{"endpoint": "https://a", "keys": {"p256dh": "é", "auth": "a"}}', "must be a push subscription"),
        ('{"endpoint": "https://a", "keys": {"p256dh": "AAAA", "auth": "AAAA"}}', "wrong length"),
        (json.dumps({"endpoint": "https://a", "keys": {"p256dh": "B" + "A" * 86, "auth": AUTH}}), "no point"),
    ],
)
def test_what_is_no_subscription_is_refused_without_its_text(text: str, reason: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        check_subscription(text)
    assert caught.value.field == "address"
    assert reason in caught.value.reason


def test_a_subscription_is_stored_without_what_nobody_needs() -> None:
    keys = {"p256dh": RECEIVER, "auth": AUTH}
    found = read_subscription(json.dumps({"endpoint": "https://a", "expirationTime": None, "keys": keys}))
    assert json.loads(found.as_text()) == {"endpoint": "https://a", "keys": keys}
