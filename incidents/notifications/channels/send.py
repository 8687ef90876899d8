"""Send one message by the channel of its contact method: e-mail (the server of DOSSIER_EMAIL_URL), webhook (JSON
by HTTP to allowed addresses, `incidents.security.outbound`), Apprise, web push, or SMS and voice by a provider. Runs
in a thread of its queue and touches no database.
"""

from __future__ import annotations

import json
import smtplib
from collections.abc import Callable, Mapping
from email.errors import MessageError
from functools import partial
from typing import Any

import structlog
from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.core.mail.backends.base import BaseEmailBackend
from django.core.mail.message import BadHeaderError

from incidents.domain.notifications import delivery
from incidents.domain.notifications.delivery import Reply, no_answer, refused, unreadable
from incidents.domain.notifications.teams_card import teams_message
from incidents.domain.webhooks import sign
from incidents.notifications.channels.apprise import send_service
from incidents.notifications.channels.twilio import send_sms, send_voice
from incidents.notifications.channels.web_push import send_push
from incidents.notifications.key import UNREADABLE
from incidents.notifications.queue import Outgoing
from incidents.security.encryption import Lost
from incidents.security.outbound import AddressRefusedError, UnreachableError, post
from incidents.worker.parts import Failure, attempt
from ingest.integrations.mail import OWN_HEADER
from ingest.queries import now_utc

# Webhook
# ----------------------------------------------------------------------------------------------------------
TIMEOUT = 10.0


def send_hook(outgoing: Outgoing) -> Reply:
    return _posted(outgoing, outgoing.message.body)


def send_teams(outgoing: Outgoing) -> Reply:
    return _posted(outgoing, teams_message(outgoing.message))


def _posted(outgoing: Outgoing, content: Mapping[str, Any]) -> Reply:
    body = json.dumps(content, ensure_ascii=False, sort_keys=True).encode()
    headers = {
        "Content-Type": "application/json",
        # The same when it is sent again, so that the receiver can drop the second.
        "Idempotency-Key": str(outgoing.id),
    }
    now = now_utc()
    if outgoing.secret:
        headers["Dossier-Signature"] = sign([outgoing.secret], int(now.timestamp()), body)
    try:
        answer = post(outgoing.address, body, headers, timeout=TIMEOUT)
    except AddressRefusedError as error:
        return delivery.refused(str(error))
    except UnreachableError as error:
        return delivery.no_answer(str(error))
    return delivery.http(answer.status, answer.headers, answer.text, now)


# Email
# ----------------------------------------------------------------------------------------------------------
def send_mail(outgoing: Outgoing) -> Reply:
    if not settings.EMAIL_IS_SET_UP:
        return delivery.refused("no mail server configured (DOSSIER_EMAIL_URL)")
    try:
        with get_connection() as connection:
            _message(outgoing, connection).send()
    except smtplib.SMTPRecipientsRefused as error:
        code, text = next(iter(error.recipients.values()), (550, b"no recipient"))
        return delivery.smtp(code, _text(text))
    except smtplib.SMTPResponseException as error:
        return delivery.smtp(error.smtp_code, _text(error.smtp_error))
    except smtplib.SMTPNotSupportedError as error:
        return delivery.refused(f"the mail server failed: {error}")
    except (OSError, smtplib.SMTPException) as error:
        return delivery.no_answer(f"no response from the mail server: {error or type(error).__name__}")
    except (BadHeaderError, MessageError, ValueError) as error:
        return delivery.refused(f"the e-mail cannot be built: {error}")
    return delivery.smtp(250, "")


def _message(outgoing: Outgoing, connection: BaseEmailBackend) -> EmailMessage:
    domain = settings.DEFAULT_FROM_EMAIL.rpartition("@")[2].strip("> ") or "dossier"
    return EmailMessage(
        subject=outgoing.message.subject,
        body=outgoing.message.text,
        to=[outgoing.address],
        headers={
            # The same when it is sent again, so that a mail server or a reader can drop the second.
            "Message-ID": f"<{outgoing.id}@{domain}>",
            "Auto-Submitted": "auto-generated",
            OWN_HEADER: settings.PUBLIC_URL,  # our own endpoint of mail refuses it: no circles
        },
        connection=connection,
    )


def _text(raw: bytes | str) -> str:
    return raw.decode(errors="replace") if isinstance(raw, bytes) else raw


# Send
# ----------------------------------------------------------------------------------------------------------
log = structlog.get_logger("deliver")
_SENDERS: Mapping[str, Callable[[Outgoing], Reply]] = {
    "email": send_mail,
    "webhook": send_hook,
    "teams": send_teams,
    "apprise": send_service,
    "push": send_push,
    "sms": send_sms,
    "voice": send_voice,
}


def send(outgoing: Outgoing) -> Reply:
    if isinstance(outgoing.address, Lost) or isinstance(outgoing.secret, Lost):
        # Another process, or this one after it was given the right key, takes it up again.
        return unreadable(UNREADABLE)
    if not outgoing.address:
        return refused("the method or its address was removed")
    reply = attempt(partial(_SENDERS[outgoing.kind], outgoing))
    if not isinstance(reply, Failure):
        return reply
    # Without its text, which may hold the address: plugins of Apprise are third-party code.
    kind = type(reply.error).__name__
    log.error("sender failed", queue=outgoing.queue, error=kind)
    return no_answer(f"it could not be sent ({kind})")
