"""Queues of mails: each row is taken up under a lease, sent, tried again after a pause, or refused for good."""

from __future__ import annotations

import smtplib
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final, TypeVar

from django.conf import settings

from incidents.worker.models import QueuedMail
from ingest.commands import lease

PAUSES: Final = (1, 5, 15, 60, 240)
"""Minutes until the next attempt; the last pause is repeated."""
M = TypeVar("M", bound=QueuedMail)


class MailRefusedError(Exception):
    """Another attempt is of no use; the message says why."""


def send_due(
    model: type[M], send: Callable[[M], None], give_up_at: Callable[[M], datetime], now: datetime, most: int
) -> tuple[int, int]:
    """Mails tried and sent, of at most so many that are due. Without a mail server everything waits.

    `send` raises MailRefusedError, or what `smtplib` and the building of a mail raise.
    """
    if not settings.EMAIL_IS_SET_UP:
        return 0, 0
    due = model._default_manager.filter(state__in=("queued", "running"), next_at__lte=now)
    tried = sent = 0
    for key in list(due.order_by("next_at", "pk").values_list("pk", flat=True)[:most]):
        row = lease.take_up(model, key, now)
        if row is not None:
            tried += 1
            sent += _attempt(row, send, give_up_at, now)
            lease.let_go(row)
    return tried, sent


def _attempt(row: M, send: Callable[[M], None], give_up_at: Callable[[M], datetime], now: datetime) -> bool:
    try:
        send(row)
    except (OSError, smtplib.SMTPException, ValueError, MailRefusedError) as error:
        ended: dict[str, object] = {"state": "queued", "next_at": now + _pause(row.attempts)}
        if is_final(error) or now > give_up_at(row):
            ended = {"state": "refused"}
        lease.write(row, **ended, lease_until=None, error=str(error)[:500])
        return False
    return lease.write(row, state="sent", sent_at=now, lease_until=None, error="")


def _pause(attempts: int) -> timedelta:
    return timedelta(minutes=PAUSES[min(attempts, len(PAUSES)) - 1])


def is_final(error: Exception) -> bool:
    """Whether the server answered 5xx (RFC 5321, 4.2.1), or the mail cannot be built."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return all(500 <= code < 600 for code, _ in error.recipients.values())
    if isinstance(error, smtplib.SMTPResponseException):
        return 500 <= error.smtp_code < 600
    return isinstance(error, ValueError | MailRefusedError)
