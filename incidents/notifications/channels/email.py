"""Messages as mail, through the server of DOSSIER_EMAIL_URL."""

from __future__ import annotations

import smtplib
from email.errors import MessageError

from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.core.mail.backends.base import BaseEmailBackend
from django.core.mail.message import BadHeaderError

from incidents.domain.notifications import responses
from incidents.domain.notifications.responses import Reply
from incidents.notifications.queue import Outgoing
from ingest.integrations.mail import OWN_HEADER


def send_mail(outgoing: Outgoing) -> Reply:
    if not settings.EMAIL_IS_SET_UP:
        return responses.refused("no mail server configured (DOSSIER_EMAIL_URL)")
    try:
        with get_connection() as connection:
            _message(outgoing, connection).send()
    except smtplib.SMTPRecipientsRefused as error:
        code, text = next(iter(error.recipients.values()), (550, b"no recipient"))
        return responses.smtp(code, _text(text))
    except smtplib.SMTPResponseException as error:
        return responses.smtp(error.smtp_code, _text(error.smtp_error))
    except smtplib.SMTPNotSupportedError as error:
        return responses.refused(f"the mail server failed: {error}")
    except (OSError, smtplib.SMTPException) as error:
        return responses.no_answer(f"no response from the mail server: {error or type(error).__name__}")
    except (BadHeaderError, MessageError, ValueError) as error:
        return responses.refused(f"the e-mail cannot be built: {error}")
    return responses.smtp(250, "")


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
            OWN_HEADER: settings.PUBLIC_URL,  # our own door of mail refuses it: no circles
        },
        connection=connection,
    )


def _text(told: bytes | str) -> str:
    return told.decode(errors="replace") if isinstance(told, bytes) else told
