"""Mail to subscribers of status pages: double opt-in by a signed link, a row for each mail, and its text."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.core import signing
from django.core.exceptions import ValidationError
from django.core.mail import EmailMessage, get_connection
from django.core.validators import validate_email
from django.db import transaction
from django.urls import reverse

from incidents.domain.status_pages import STATES, STATUSES, Notice
from incidents.status_pages.models import StatusEmail, StatusNotice, StatusPage, StatusSubscriber
from incidents.status_pages.projection import notice_of
from incidents.worker.mail_queue import MailRefusedError, send_due
from ingest.commands import record_configuration
from ingest.integrations.mail import OWN_HEADER
from ingest.queries import Context, now_utc

KIND: Final = "status_subscriber"
CONFIRM, LEAVE = "status_pages.confirm", "status_pages.leave"
"""Salts of links."""
CONFIRMED_WITHIN: Final = timedelta(days=7)
"""Validity of a confirmation link, and retention of an address that is not confirmed."""
AGAIN_AFTER: Final = timedelta(hours=1)
"""Between requests of one address, so that nobody fills the mailbox of another person."""
MOST_REQUESTS: Final = 100
"""New addresses of a page within AGAIN_AFTER."""
GIVEN_UP: Final = timedelta(days=1)
"""An update of a failure is of no use a day later."""
RETAINED: Final = timedelta(days=30)
"""Of mails that were sent or refused."""
AT_ONCE: Final = 20
TIDY_EVERY: Final = timedelta(minutes=5)
IDLE: Final = 1.0
"""Seconds between looks when nothing was due."""


class SubscriptionRefusedError(ValueError):
    """No mail was sent; the message says why, and `status` is that of the answer."""

    def __init__(self, reason: str, status: int) -> None:
        super().__init__(reason)
        self.status = status


# Subscriptions
# ----------------------------------------------------------------------------------------------------------
@transaction.atomic
def request(page: str, address: str, now: datetime) -> None:
    """Send the address a link that confirms it; none where it is subscribed, or was asked for within the hour.

    Raises SubscriptionRefusedError. The answer is the same for an address that is subscribed: strangers learn nothing.
    """
    if not settings.EMAIL_IS_SET_UP:
        raise SubscriptionRefusedError("This installation sends no mail.", 404)
    address = address.strip()
    try:
        validate_email(address)
    except ValidationError:
        raise SubscriptionRefusedError(
            f"{address[:80]!r} is not an e-mail address, such as alice@example.com.", 400
        ) from None
    if len(address) > 254:
        raise SubscriptionRefusedError("The e-mail address is longer than 254 characters.", 400)
    recent = StatusSubscriber.objects.filter(page=page, confirmed_at=None, requested_at__gt=now - AGAIN_AFTER)
    if recent.count() >= MOST_REQUESTS:
        raise SubscriptionRefusedError("Too many requests; try again in an hour.", 429)
    row, new = StatusSubscriber.objects.select_for_update().get_or_create(
        page=page, address=address, defaults={"requested_at": now}
    )
    if row.confirmed_at is not None or (not new and row.requested_at > now - AGAIN_AFTER):
        return
    row.requested_at = now
    row.save(update_fields=["requested_at"])
    StatusEmail.objects.create(subscriber=row, made_at=now, next_at=now)


def link(salt: str, row: StatusSubscriber) -> str:
    name = "status_confirm" if salt == CONFIRM else "status_unsubscribe"
    return settings.PUBLIC_URL + reverse(name, args=[signing.dumps([row.page, row.address], salt=salt)])


def read_link(salt: str, token: str) -> tuple[str, str] | None:
    """Page and address that a link was made for; None for one that is forged or expired."""
    try:
        page, address = signing.loads(token, salt=salt, max_age=CONFIRMED_WITHIN if salt == CONFIRM else None)
    except (signing.BadSignature, ValueError):
        return None
    return str(page), str(address)


def confirm(page: str, address: str, now: datetime) -> bool:
    """Whether the address gets mail from now on; not where the request was deleted meanwhile."""
    rows = StatusSubscriber.objects.filter(page=page, address=address)
    rows.filter(confirmed_at=None).update(confirmed_at=now)
    return rows.exists()


def unsubscribe(page: str, address: str) -> None:
    """Delete the address with all that waits for it."""
    StatusSubscriber.objects.filter(page=page, address=address).delete()


@transaction.atomic
def remove(row: StatusSubscriber, context: Context) -> None:
    """Remove a reader, for staff; the address is not in the log."""
    record_configuration(KIND, f"{row.page}/{row.pk}", {"page": row.page}, None, context)
    row.delete()


# Mails
# ----------------------------------------------------------------------------------------------------------
def address_to_subscribers(notice: Notice) -> None:
    """A mail for each confirmed subscriber, in the transaction that publishes the update."""
    now = now_utc()
    readers = StatusSubscriber.objects.filter(page=notice.page, confirmed_at__isnull=False)
    StatusEmail.objects.bulk_create(
        (
            StatusEmail(
                subscriber_id=pk, notice=notice.id, number=notice.last.number, made_at=now, next_at=now
            )
            for pk in readers.values_list("pk", flat=True)
        ),
        batch_size=1_000,
    )


def run(stop: threading.Event) -> None:
    """Send what is due until `stop` is set."""
    tidied: datetime | None = None
    while not stop.is_set():
        now = now_utc()
        if tidied is None or abs(now - tidied) > TIDY_EVERY:
            tidy(now)
            tidied = now
        if not send_waiting(now):
            stop.wait(IDLE)


def tidy(now: datetime) -> None:
    """Delete what is of no use any more: old mails, and addresses that were never confirmed."""
    StatusEmail.objects.filter(made_at__lt=now - RETAINED).delete()
    StatusSubscriber.objects.filter(confirmed_at=None, requested_at__lt=now - CONFIRMED_WITHIN).delete()


def send_waiting(now: datetime) -> int:
    """Send what is due; how many mails were tried."""
    return send_due(StatusEmail, _send, lambda mail: mail.made_at + GIVEN_UP, now, AT_ONCE)[0]


def _send(row: StatusEmail) -> None:
    message = _message(row)
    if message is None:
        raise MailRefusedError("the notice or its page was removed")
    with get_connection() as connection:
        message.connection = connection
        message.send()


def _message(row: StatusEmail) -> EmailMessage | None:
    page = StatusPage.objects.filter(slug=row.subscriber.page).first()
    if page is None:
        return None
    headers = {"Auto-Submitted": "auto-generated", OWN_HEADER: settings.PUBLIC_URL}
    if row.notice is None:
        subject, text = f"Confirm: updates of {page.name}", _confirmation(page, row.subscriber)
    else:
        stored = StatusNotice.objects.filter(pk=row.notice, withdrawn=False).first()
        if stored is None:
            return None
        subject, text = _update(page, notice_of(stored), row.number)
        leave = link(LEAVE, row.subscriber)
        text += f"\n-- \nUnsubscribe: {leave}\n"
        headers |= {
            "List-Unsubscribe": f"<{leave}>",
            "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
        }
    return EmailMessage(subject=subject, body=text, to=[row.subscriber.address], headers=headers)


def _confirmation(page: StatusPage, to: StatusSubscriber) -> str:
    return (
        f"This address was entered for mail about updates of {page.name}:\n{_url(page)}\n\n"
        f"Confirm within {CONFIRMED_WITHIN.days} days: {link(CONFIRM, to)}\n\n"
        f"Without a confirmation no further mail is sent. Delete the request: {link(LEAVE, to)}\n"
    )


def _update(page: StatusPage, notice: Notice, number: int) -> tuple[str, str]:
    """Subject and text."""
    one = notice.updates[number - 1]
    status = STATUSES[notice.kind][one.status]
    names = {entry.key: entry.name for entry in page.entries}
    services = [
        f"{names[key]}: {STATES[state].lower()}" for key, state in one.services.items() if key in names
    ]
    parts = [f"{status}, {one.time_words}", one.text, "\n".join(services), _url(page)]
    return f"[{page.name}] {notice.title}: {status}", "\n\n".join(part for part in parts if part) + "\n"


def _url(page: StatusPage) -> str:
    return settings.PUBLIC_URL + reverse("status_page", args=[page.slug])
