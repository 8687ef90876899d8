"""SMS and voice in the provider's wire format: signatures, replies, TwiML, reports."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from incidents.domain.telephony import (
    Report,
    SmsReply,
    check_number,
    is_signed,
    read_reply,
    read_report,
    reply_text,
    signature,
    sms_text,
    spoken_menu,
)
from incidents.domain.values import InvalidValueError

# The example of the provider's documentation, https://www.twilio.com/docs/usage/security
URL = "https://mycompany.com/myapp.php?foo=1&bar=2"
FORM = {
    "CallSid": ["CA1234567890ABCDE"],
    "Caller": ["+12349013030"],
    "Digits": ["1234"],
    "From": ["+12349013030"],
    "To": ["+18005551212"],
}
SIGNED = "0/KCTR6DLpKmkAf8muzZqo1nDgQ="


def test_a_signature_is_that_of_the_documented_example() -> None:
    assert signature("12345", URL, FORM) == SIGNED
    assert is_signed("12345", URL, FORM, SIGNED)
    assert not is_signed("12346", URL, FORM, SIGNED)
    assert not is_signed("12345", URL, {**FORM, "Digits": ["1235"]}, SIGNED)
    assert not is_signed("12345", f"{URL}&a=1", FORM, SIGNED)
    assert not is_signed("12345", URL, FORM, "é")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("14821", SmsReply("acknowledge", "4821")),
        (" 1 4821 ack\n", SmsReply("acknowledge", "4821", "ack")),
        ("3-4821", SmsReply("snooze", "4821")),
        ("24821 Network it is\nslow", SmsReply("hand_over", "4821", "Network it is slow")),
        ("44821", None),
        ("148211", None),
        ("1482", None),
        ("ack", None),
        ("", None),
    ],
)
def test_a_reply_is_read(text: str, expected: SmsReply | None) -> None:
    assert read_reply(text) == expected


def test_a_hand_over_names_team_and_reason() -> None:
    found = SmsReply("hand_over", "4821", "Network it is slow")
    assert (found.team, found.reason) == ("network", "it is slow")


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ({"MessageStatus": "queued"}, None),
        ({"CallStatus": "ringing"}, None),
        ({}, None),
        ({"MessageStatus": "delivered"}, Report(True, "delivered")),
        ({"CallStatus": "busy"}, Report(False, "the line was busy")),
        (
            {"MessageStatus": "undelivered", "ErrorCode": "30005"},
            Report(False, "the carrier did not deliver it (error 30005)"),
        ),
        ({"MessageStatus": "failed", "ErrorCode": "<b>"}, Report(False, "the provider could not send it")),
    ],
)
def test_a_report_is_read(form: dict[str, str], expected: Report | None) -> None:
    assert read_report(form) == expected


def test_titles_cannot_change_what_is_read_out() -> None:
    title = '</Say><Dial>+4900</Dial> & "quotes"'
    menu = ElementTree.fromstring(spoken_menu(title, "https://a.example/k?x=1&y=2"))
    assert [one.tag for one in menu.iter()] == ["Response", "Gather", "Pause", "Say", "Say"]
    assert title in (menu.findtext("Gather/Say") or "")
    assert ElementTree.fromstring(reply_text(title)).findtext("Message") == title


def test_a_text_message_is_two_segments_at_most() -> None:
    text = sms_text("x" * 150, f"https://dossier.example.com/answer/{'a' * 83}", "4821")
    assert len(text) <= 2 * 153
    assert text.isascii()
    assert "Reply" not in sms_text("title", "https://dossier.example.com", "")


@pytest.mark.parametrize("text", ["0151 1234567", "+49", "+0123456789", "phone", "+491234567890123456"])
def test_a_number_has_a_country_code(text: str) -> None:
    with pytest.raises(InvalidValueError, match="country code"):
        check_number(text)


def test_a_number_is_kept_without_spaces() -> None:
    assert check_number("+49 (30) 123-456") == "+4930123456"
