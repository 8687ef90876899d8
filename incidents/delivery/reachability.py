"""People whom no message can reach: no contact method and no mail address, or mail only and no mail server."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.conf import settings

from incidents.delivery.models import CALL, Notification
from incidents.delivery.people import people
from incidents.domain.reaching import Person

NO_METHOD = "no contact method"
NO_MAIL_SERVER = "mail only, and no mail server is set up (EMAIL_URL)"


def unreachable(names: Iterable[str]) -> dict[str, str]:
    """By login name, those with an open account whom nothing can reach, and why."""
    known = sorted(people(names).items())
    return {name: why for name, found in known if (why := why_unreachable(found.person)) is not None}


def why_unreachable(person: Person) -> str | None:
    """Why no message reaches a person; None where one may."""
    if not person.methods:
        return NO_METHOD
    mail_alone = all(method.kind == "email" for method in person.methods)
    return NO_MAIL_SERVER if mail_alone and not settings.MAIL_IS_SET_UP else None


def failed_calls(incident: str, upto: datetime | None = None) -> tuple[dict[str, str], bool]:
    """By person or address, why calls of an incident failed; and whether any other call reached somebody.

    A person who was reached later is left out. `upto`: as of that moment.
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
    return failed, reached
