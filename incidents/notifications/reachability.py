"""People whom no message can reach: no contact method and no mail address, or mail only and no mail server."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.conf import settings

from incidents.encryption import Lost
from incidents.notifications import key
from incidents.notifications.models import CALL, ContactMethod, Notification, NotificationDelivery
from incidents.notifications.recipients import Reachable, people

UNREADABLE = "contact method encrypted under another DOSSIER_SECRET_KEY"
NO_METHOD = "no contact method"
NO_MAIL_SERVER = "mail only, and no mail server is configured (DOSSIER_EMAIL_URL)"


def unreachable(names: Iterable[str]) -> dict[str, str]:
    """By login name, those with an open account whom nothing can reach, and why."""
    known = sorted(people(names).items())
    return {name: why for name, found in known if (why := why_unreachable(found)) is not None}


def why_unreachable(found: Reachable) -> str | None:
    """Why no message reaches a person; None where one may."""
    methods = found.person.methods
    if not methods:
        return NO_METHOD
    readable = [
        method for method in methods if method.source != "method" or is_readable(found.rows[method.name])
    ]
    if not readable:
        return UNREADABLE
    mail_alone = all(method.kind == "email" for method in readable)
    return NO_MAIL_SERVER if mail_alone and not settings.EMAIL_IS_SET_UP else None


def is_readable(row: ContactMethod) -> bool:
    """Whether address and secret can be decrypted under the present key."""
    return not (isinstance(row.address, Lost) or isinstance(row.secret, Lost))


def failed_calls(incident: str, upto: datetime | None = None) -> tuple[dict[str, str], bool]:
    """By person or address, why calls of an incident failed; and whether any other call reached somebody.

    A person who was reached later is left out; one whose address cannot be decrypted, for whom it is still tried, is
    among them. `upto`: as of that moment.
    """
    rows = Notification.objects.filter(incident=incident, about=CALL, state="done")
    if upto is not None:
        rows = rows.filter(ended_at__lte=upto)
    failed: dict[str, str] = {}
    reached = False
    for row in rows.order_by("ended_at"):
        name = row.person or row.address_ref
        if row.outcome == "sent":
            reached = True
            failed.pop(name, None)
        elif row.outcome == "given_up":
            # An address may hold a secret; only the name of a channel is shown.
            failed["a webhook" if "://" in name else name] = row.ended_why
    if upto is None:
        failed |= _waiting_for_a_key(incident)
    return failed, reached


def _waiting_for_a_key(incident: str) -> dict[str, str]:
    """By person or channel, calls that nothing was sent for yet because an address cannot be decrypted."""
    steps = NotificationDelivery.objects.filter(
        notification__incident=incident, notification__about=CALL, state="waiting", why=key.UNREADABLE
    ).select_related("notification")
    sent = NotificationDelivery.objects.filter(notification__incident=incident, state="sent")
    reached = set(sent.values_list("notification", flat=True))
    return {
        one.notification.person or one.label: f"{one.label}: {one.why}; retried every minute"
        for one in steps
        if one.notification_id not in reached
    }
