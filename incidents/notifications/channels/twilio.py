"""SMS and phone calls by Twilio, or a provider with its API: https://www.twilio.com/docs/messaging/api/message-resource.

The message's id is in the address that the provider reports to, so that nothing has to be stored here.
"""

from __future__ import annotations

import base64
import json
from urllib.parse import quote, urlencode

from django.conf import settings
from django.core.signing import Signer

from incidents.domain import telephony
from incidents.domain.notifications import delivery
from incidents.domain.notifications.delivery import Reply
from incidents.domain.notifications.message import Message
from incidents.notifications.queue import Outgoing
from incidents.security.outbound import AddressRefusedError, UnreachableError, post
from ingest.queries import now_utc

TIMEOUT = 10.0
RING_SECONDS = 30
NOT_SET_UP = "no SMS and voice provider is configured (DOSSIER_TWILIO_ACCOUNT_SID)"


def reply_code(message: str) -> str:
    """The digits that a reply to a message carries; nobody who did not get the message knows them."""
    digest = Signer(salt="incidents.reply_code").signature(message)
    return f"{sum(ord(letter) * 131**place for place, letter in enumerate(digest)) % 10**telephony.CODE_LENGTH:04}"


def keypress_url(message: str, turn: int) -> str:
    return f"{settings.PUBLIC_URL}/telephony/twilio/keypress/{message}/{turn}"


def send_sms(outgoing: Outgoing) -> Reply:
    message = outgoing.message
    code = reply_code(str(outgoing.id)) if _can_answer(message) else ""
    text = telephony.sms_text(message.subject, message.link, code)
    return _sent(outgoing, "Messages", {"Body": text})


def send_voice(outgoing: Outgoing) -> Reply:
    subject = outgoing.message.subject
    if _can_answer(outgoing.message):
        twiml = telephony.spoken_menu(subject, keypress_url(str(outgoing.id), 0))
    else:
        twiml = telephony.spoken(f"Dossier. {subject}.")
    return _sent(outgoing, "Calls", {"Twiml": twiml, "Timeout": str(RING_SECONDS)})


def _can_answer(message: Message) -> bool:
    """Whether a person is called by it, and not a shared channel, for what is not over."""
    return any(one["answer_url"] for one in message.body["incidents"])


def _sent(outgoing: Outgoing, resource: str, fields: dict[str, str]) -> Reply:
    if not settings.TELEPHONY_IS_SET_UP:
        return delivery.refused(NOT_SET_UP)
    account, token = settings.TWILIO_ACCOUNT_SID, settings.TWILIO_AUTH_TOKEN
    form = {"To": outgoing.address, "From": settings.TWILIO_FROM_NUMBER, **fields}
    if outgoing.deliveries:  # a test has no row that a report could be written to
        form["StatusCallback"] = f"{settings.PUBLIC_URL}/telephony/twilio/status/{outgoing.id}"
    headers = {
        "Content-Type": "application/x-www-form-urlencoded",
        "Authorization": f"Basic {base64.b64encode(f'{account}:{token}'.encode()).decode()}",
    }
    url = f"{settings.TWILIO_API_URL}/2010-04-01/Accounts/{quote(account, safe='')}/{resource}.json"
    try:
        answer = post(url, urlencode(form).encode(), headers, timeout=TIMEOUT)
    except AddressRefusedError as error:
        return delivery.refused(str(error))
    except UnreachableError as error:
        return delivery.no_answer(str(error))
    # Its sentence may repeat the number, which the timeline of an incident does not show.
    problem = _problem(answer.text).replace(outgoing.address, f"…{outgoing.address[-4:]}")
    return delivery.http(answer.status, answer.headers, problem, now_utc())


def _problem(text: str) -> str:
    """The provider's sentence about an error; empty where there is none."""
    try:
        found = json.loads(text)
    except ValueError:
        return ""
    return f"{found.get('message', '')} ({found.get('code', 0)})" if isinstance(found, dict) else ""
