"""Mails to the owners of review actions on the day on which these are due, each once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.mail import EmailMessage, get_connection
from django.urls import reverse

from incidents.domain.review import Action
from incidents.notifications.recipients import is_readable
from incidents.reviews.commands import actions_of
from incidents.reviews.models import ActionReminder, Review
from incidents.worker.mail_queue import MailRefusedError, send_due
from ingest.integrations.mail import OWN_HEADER

MADE_UP: Final = timedelta(days=2)
"""A due day that passed while nothing ran, or an action that is recorded late, is made up within it."""
GIVEN_UP: Final = timedelta(days=7)
AT_ONCE: Final = 50


def remind(now: datetime) -> int:
    """Queue a mail for each action that is due since at most MADE_UP, send what waits; how many mails went out.

    Without a mail server none is queued: set up months later, it would send what is long over.
    """
    if not settings.EMAIL_IS_SET_UP:
        return 0
    today = now.astimezone(UTC).date()
    days = {(today - timedelta(days=back)).isoformat() for back in range(MADE_UP.days + 1)}
    open_ones = [
        ActionReminder(review_id=row.number, action=one.id, due=one.due, next_at=now)
        for row in Review.objects.only("number", "actions").iterator()
        for one in actions_of(row)
        if one.owner and one.due in days and not one.done_at
    ]
    ActionReminder.objects.bulk_create(open_ones, ignore_conflicts=True)
    return send_due(ActionReminder, _send, lambda row: _midnight(row) + GIVEN_UP, now, AT_ONCE)[1]


def _midnight(row: ActionReminder) -> datetime:
    return datetime(row.due.year, row.due.month, row.due.day, tzinfo=UTC)


def _send(row: ActionReminder) -> None:
    found = next((one for one in actions_of(row.review) if one.id == row.action), None)
    if found is None or found.done_at or found.due != row.due.isoformat():
        raise MailRefusedError("done, removed or moved to another day before it was sent")
    addresses = _addresses(found.owner)
    if not addresses:
        raise MailRefusedError("the owner has no e-mail address")
    with get_connection() as connection:
        message = _message(row, found, addresses)
        message.connection = connection
        message.send()


def _addresses(owner: str) -> list[str]:
    """Contact methods of the owner by mail, else the address of the account."""
    user = get_user_model().objects.filter(username=owner, is_active=True).first()
    if user is None:
        return []
    methods = user.contact_methods.filter(kind="email").order_by("name")
    return [row.address for row in methods if is_readable(row)] or [one for one in [user.email] if one]


def _message(row: ActionReminder, action: Action, addresses: list[str]) -> EmailMessage:
    number = row.review_id
    text = (
        f"{action.text}\n\nDue {action.due}, from the review of incident {number}:\n"
        f"{settings.PUBLIC_URL}{reverse('review', args=[number])}\n"
    )
    return EmailMessage(
        subject=f"Due {action.due}: {action.text[:200]}",
        body=text,
        to=addresses,
        headers={"Auto-Submitted": "auto-generated", OWN_HEADER: settings.PUBLIC_URL},
    )
