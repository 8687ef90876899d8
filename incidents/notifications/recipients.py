"""People with their contact methods and notification rules, and why no message can reach one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User

from incidents.domain.notifications.delivery import (
    ACCOUNT,
    Method,
    Person,
    QuietHours,
    Rule,
    quiet_from,
    rules_from,
)
from incidents.domain.values import UNREADABLE
from incidents.notifications import key
from incidents.notifications.models import (
    CALL,
    ContactMethod,
    Notification,
    NotificationDelivery,
    Preferences,
)
from incidents.security.encryption import Lost

# Recipients
# ----------------------------------------------------------------------------------------------------------
log = structlog.get_logger("deliver")


@dataclass(frozen=True, slots=True)
class Reachable:
    """A person and the rows behind their methods, by name; `email` is the address of their account."""

    person: Person
    rows: Mapping[str, ContactMethod] = field(default_factory=dict)
    email: str = ""


def people(names: Iterable[str]) -> dict[str, Reachable]:
    """By login name, those who have an account that is not closed."""
    users = get_user_model().objects.filter(username__in=set(names), is_active=True)
    found = users.select_related("preferences").prefetch_related("contact_methods")
    return {user.username: reachable(user) for user in found}


def reachable(user: User) -> Reachable:
    rows = {row.name: row for row in user.contact_methods.all()}
    methods = [method_of(row) for row in rows.values()]
    if user.email:
        methods.append(Method(ACCOUNT, "email", "account"))
    names = [method.name for method in methods]
    wishes = preferences(user)
    person = Person(
        name=user.username,
        methods=tuple(methods),
        rules=_rules(wishes, names),
        quiet=_quiet(wishes),
        bundle=timedelta(seconds=wishes.bundle_seconds),
    )
    return Reachable(person, rows, user.email)


def _rules(wishes: Preferences, names: Sequence[str]) -> tuple[Rule, ...]:
    """Those for methods that there are; none where they cannot be read, so that every method is tried at once."""
    try:
        return rules_from([rule for rule in wishes.rules if rule["method"] in names], names)
    except UNREADABLE as error:
        log.warning("rules of a person cannot be read", person=wishes.user.username, error=str(error))
        return ()


def _quiet(wishes: Preferences) -> QuietHours | None:
    """None where they cannot be read, as once their time zone is no more: a call too many is better than none."""
    try:
        return quiet_from(wishes.quiet)
    except UNREADABLE as error:
        log.warning("quiet hours cannot be read", person=wishes.user.username, error=str(error))
        return None


def preferences(user: User) -> Preferences:
    """Those of the person, or the defaults."""
    return getattr(user, "preferences", None) or Preferences(user=user)


def method_of(row: ContactMethod) -> Method:
    return Method(row.name, row.kind, "method", row.most, timedelta(seconds=row.span))  # type: ignore[arg-type]


def channel(name: str) -> ContactMethod | None:
    """A way to reach a team."""
    return ContactMethod.objects.filter(user__isnull=True, name=name).first()


# Reachability
# ----------------------------------------------------------------------------------------------------------
ALL_UNREADABLE = "contact method encrypted under another DOSSIER_SECRET_KEY"
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
        return ALL_UNREADABLE
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
