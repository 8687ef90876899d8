"""SMS and voice in the wire format of Twilio: texts, TwiML, replies, signatures, reports of delivery. Pure.

Sources: https://www.twilio.com/docs/usage/webhooks/webhooks-security (signature), https://www.twilio.com/docs/voice/twiml
(TwiML), https://www.twilio.com/docs/messaging/api/message-resource and .../voice/api/call-resource (states).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal
from xml.sax.saxutils import escape, quoteattr

from incidents.domain.values import InvalidValueError

Answer = Literal["acknowledge", "hand_over", "snooze"]
ANSWERS: Final[Mapping[str, Answer]] = {"1": "acknowledge", "2": "hand_over", "3": "snooze"}
"""By the key that is pressed, or the digit before a reply code."""
REPEAT: Final = "4"
CODE_LENGTH: Final = 4
TITLE_LIMIT: Final = 100
MOST_TURNS: Final = 5
"""Keys that one call takes before it ends."""

_NUMBER = re.compile(r"\+[1-9]\d{6,14}")
_REPLY = re.compile(rf"\s*([123])\s*-?\s*(\d{{{CODE_LENGTH}}})(?!\d)\s*(.*)", re.DOTALL)


def check_number(text: str) -> str:
    """A phone number in the form of E.164, without spaces and hyphens. Raises InvalidValueError."""
    number = re.sub(r"[\s()./-]", "", text)
    if not _NUMBER.fullmatch(number):
        raise InvalidValueError("address", "must be a phone number with country code, such as +49 30 123456")
    return number


# Messages
# ----------------------------------------------------------------------------------------------------------
def sms_text(subject: str, link: str, code: str) -> str:
    """Two segments of an SMS at the usual length of a link; without a code nothing can be replied."""
    title = subject if len(subject) <= TITLE_LIMIT else f"{subject[: TITLE_LIMIT - 3]}..."
    reply = f"\nReply 1{code} ack, 2{code} hand over, 3{code} snooze 1 h" if code else ""
    return f"{title}\n{link}{reply}"


def spoken_menu(subject: str, action: str) -> str:
    """TwiML that reads the subject and waits for a key, which goes to the address `action`."""
    menu = (
        f"Dossier. {subject}. Press 1 to acknowledge, 2 to hand over to the next person, 3 to snooze for one hour,"
        f" {REPEAT} to repeat."
    )
    collected = (
        f'<Gather input="dtmf" numDigits="1" timeout="10" method="POST" action={quoteattr(action)}>'
        f"<Pause/>{_say(menu)}</Gather>"
    )
    return _response(collected, _say("No key was pressed. Goodbye."))


def spoken(text: str) -> str:
    """TwiML that reads a text and hangs up."""
    return _response(_say(text))


def reply_text(text: str) -> str:
    """TwiML that answers an SMS; empty: with nothing."""
    return _response(f"<Message>{escape(text)}</Message>" if text else "")


def _say(text: str) -> str:
    return f"<Say>{escape(text)}</Say>"


def _response(*verbs: str) -> str:
    return f'<?xml version="1.0" encoding="UTF-8"?><Response>{"".join(verbs)}</Response>'


# Replies
# ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class SmsReply:
    """`14821`, `1 4821 ack` or `2 4821 network fabric is slow`: what to do, the code, and the words after it."""

    answer: Answer
    code: str
    words: str = ""

    @property
    def team(self) -> str:
        return self.words.partition(" ")[0].lower()

    @property
    def reason(self) -> str:
        return self.words.partition(" ")[2].strip()


def read_reply(text: str) -> SmsReply | None:
    """None where it has no code."""
    found = _REPLY.fullmatch(text)
    return None if found is None else SmsReply(ANSWERS[found[1]], found[2], " ".join(found[3].split()))


# Signatures and reports
# ----------------------------------------------------------------------------------------------------------
def signature(token: str, url: str, parameters: Mapping[str, Sequence[str]]) -> str:
    """HMAC-SHA1 over the URL and the sorted parameters of a form, in base64."""
    pairs = (f"{name}{value}" for name in sorted(parameters) for value in sorted(set(parameters[name])))
    digest = hmac.new(token.encode(), f"{url}{''.join(pairs)}".encode(), hashlib.sha1).digest()
    return base64.b64encode(digest).decode()


def is_signed(token: str, url: str, parameters: Mapping[str, Sequence[str]], given: str) -> bool:
    return hmac.compare_digest(signature(token, url, parameters).encode(), given.encode())


@dataclass(frozen=True, slots=True)
class Report:
    delivered: bool
    why: str


_DELIVERED: Final = {"delivered": "delivered", "read": "delivered", "completed": "the call was answered"}
_FAILED: Final = {
    "undelivered": "the carrier did not deliver it",
    "failed": "the provider could not send it",
    "busy": "the line was busy",
    "no-answer": "the call was not answered",
    "canceled": "the call was cancelled",
}


def read_report(parameters: Mapping[str, str]) -> Report | None:
    """Meaning of a status callback; None for one on the way (queued, sent, ringing)."""
    state = parameters.get("MessageStatus") or parameters.get("CallStatus") or ""
    if state in _DELIVERED:
        return Report(True, _DELIVERED[state])
    if state not in _FAILED:
        return None
    code = parameters.get("ErrorCode", "")
    return Report(False, _FAILED[state] + (f" (error {code})" if re.fullmatch(r"\d{1,6}", code) else ""))
