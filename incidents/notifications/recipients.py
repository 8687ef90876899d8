"""People with their contact methods and notification rules, and why no message can reach one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef

from incidents.domain.notifications.delivery import (
    ACCOUNT,
    Kind,
    Method,
    Person,
    QuietHours,
    Rule,
    quiet_from,
    rules_from,
)
from incidents.domain.notifications.reachability import (
    RECENT_DELIVERIES,
    MethodStatus,
    Unreachable,
    why_unreachable,
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
NO_PROVIDER = "no SMS and voice provider is configured (DOSSIER_TWILIO_ACCOUNT_SID)"
NO_MAIL_SERVER = "no mail server is configured (DOSSIER_EMAIL_URL)"


@dataclass(frozen=True, slots=True)
class Latest:
    """The recent deliveries by one method: whether all failed, the last answer, and when that was."""

    failed: bool
    why: str
    at: datetime


def unreachable(names: Iterable[str]) -> dict[str, Unreachable]:
    """By login name, those with an open account whom nothing can reach, and why."""
    known = sorted(people(names).items())
    latest = _latest(found for _, found in known)
    statuses = [
        (name, [_status(one, found, latest) for one in found.person.methods]) for name, found in known
    ]
    return {name: why for name, methods in statuses if (why := why_unreachable(methods)) is not None}


def _status(method: Method, found: Reachable, latest: Mapping[tuple[str, str], Latest]) -> MethodStatus:
    row = found.rows.get(method.name) if method.source == "method" else None
    last = latest.get((found.person.name, method.name))
    if row is None:
        # Addresses of accounts are not verified; one that is wrong shows when a delivery fails.
        return MethodStatus(
            method.name, missing=_missing(method.kind), failed=last.why if last and last.failed else ""
        )
    if last is not None and any(
        at is not None and at > last.at for at in (row.address_since, row.verified_at)
    ):
        last = None  # another address, or a test that was delivered since
    return MethodStatus(
        method.name,
        readable=is_readable(row),
        verified=row.verified_at is not None or (last is not None and not last.failed),
        missing=_missing(method.kind),
        failed=last.why if last is not None and last.failed else "",
    )


def _missing(kind: Kind) -> str:
    if kind == "email" and not settings.EMAIL_IS_SET_UP:
        return NO_MAIL_SERVER
    return NO_PROVIDER if kind in ("sms", "voice") and not settings.TELEPHONY_IS_SET_UP else ""


def _latest(found: Iterable[Reachable]) -> dict[tuple[str, str], Latest]:
    """By person and method, of those to whom something was sent: three queries, however many people."""
    names = [one.person.name for one in found]
    ended = NotificationDelivery.objects.filter(state__in=("sent", "given_up"), notification__about=CALL)
    by_method = ended.filter(method=OuterRef("pk")).order_by("-ended_at")
    by_account = ended.filter(source=ACCOUNT, notification__person=OuterRef("username")).order_by("-ended_at")
    methods = ContactMethod.objects.filter(user__username__in=names)
    users = get_user_model().objects.filter(username__in=names)
    keys = [
        key
        for rows, deliveries in ((methods, by_method), (users, by_account))
        for found_keys in rows.annotate(
            latest=ArraySubquery(deliveries.values("pk")[:RECENT_DELIVERIES])
        ).values_list("latest", flat=True)
        for key in found_keys
    ]
    rows = NotificationDelivery.objects.filter(pk__in=keys).order_by("-ended_at")
    recent: dict[tuple[str, str], list[NotificationDelivery]] = {}
    for one in rows.select_related("notification"):
        recent.setdefault((one.notification.person or "", one.label), []).append(one)
    return {
        key: Latest(all(one.state == "given_up" for one in some), some[0].why, some[0].ended_at)
        for key, some in recent.items()
        if some[0].ended_at is not None
    }


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
