"""Ways to reach people and teams, kept: checked, changed, tried. Each change is recorded, without the address.

All raise `InvalidValueError` (which field and why), or `CommandRefusedError` where it does not fit what there is.
"""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.core.validators import validate_email, validate_slug
from django.db import IntegrityError, transaction

from incidents.domain.notifications.delivery import (
    ACCOUNT,
    DEFAULT_BUNDLE,
    KINDS,
    LONGEST_BUNDLE,
    Kind,
    Reply,
    quiet_as_json,
    quiet_from,
    refused,
    rules_as_json,
    rules_from,
)
from incidents.domain.notifications.message import test_message
from incidents.domain.notifications.push import read_subscription
from incidents.domain.telephony import check_number
from incidents.domain.values import CommandRefusedError, InvalidValueError, check_line, check_whole
from incidents.notifications.channels.apprise import check_service
from incidents.notifications.channels.send import send
from incidents.notifications.models import ContactMethod, NotificationDelivery, Preferences
from incidents.notifications.push_key import push_private_key
from incidents.notifications.queue import Outgoing, wake_for
from incidents.notifications.recipients import preferences, reachable
from incidents.notifications.results import ACTOR, masked
from incidents.security import outbound
from incidents.security.push_encryption import check_subscription
from incidents.teams.references import hold_names, named_by
from ingest.commands import record_configuration, retrying
from ingest.queries import Context, now_utc

METHODS_LIMIT: Final = 20
ADDRESS_LIMIT: Final = 2_000
MOST: Final = 1_000
MOST_TESTS: Final = 30
"""Test messages within an hour by the clock, of one person, and of all channels together."""
LONGEST_SPAN: Final = 24 * 3600
FIELDS: Final = frozenset({"name", "kind", "address", "secret", "most", "span"})


@dataclass(frozen=True, slots=True)
class Tried:
    """Result of a test message."""

    taken: bool
    why: str


def method_as_json(row: ContactMethod) -> dict[str, Any]:
    """Fields that may be shown: the address masked, of the secret only whether there is one."""
    return {
        "name": row.name,
        "kind": row.kind,
        "address": masked(row),
        "secret": "set" if row.secret else None,
        "most": row.most,
        "span": row.span,
    }


def add_method(user: User | None, given: Mapping[str, Any], context: Context) -> ContactMethod:
    """A new way to reach a person, or without one a channel of a team."""
    row = ContactMethod(user=user)
    _fill(row, {"kind": None, "name": None, "address": None, **given})
    try:
        return retrying(lambda: _saved(row, None, context, ()))
    except IntegrityError:
        raise InvalidValueError("name", "is already taken") from None


def change_method(row: ContactMethod, given: Mapping[str, Any], context: Context) -> ContactMethod:
    """Only what is given changes. Its name is what rules and policies know it by, and stays."""
    if given.get("name", row.name) != row.name:
        raise InvalidValueError("name", "cannot be changed because rules refer to it; add another method")
    before, hidden_before = method_as_json(row), hidden(row)
    _fill(row, {"address": row.address, **given})
    if row.address != hidden_before["address"]:
        row.verified_at, row.address_since = None, now_utc()
    return retrying(lambda: _saved(row, before, context, replaced(row, hidden_before)))


def hidden(row: ContactMethod) -> dict[str, str]:
    """Fields that are stored and never shown."""
    return {"address": row.address, "secret": row.secret}


def replaced(row: ContactMethod, before: Mapping[str, str]) -> list[str]:
    """Of what is never told, what is another one than before."""
    return [name for name, value in hidden(row).items() if value and before[name] not in (value, "")]


def remove_method(row: ContactMethod, context: Context) -> None:
    def remove() -> None:
        with transaction.atomic():
            hold_names()
            if row.user is not None:
                _refuse_in_rules(row)
            elif named := named_by("channel", row.name):
                raise CommandRefusedError(f"{row.name} is used by {named}; change that first")
            record_configuration(_kind(row), _key(row), method_as_json(row), None, context)
            ContactMethod.objects.filter(pk=row.pk).delete()

    retrying(remove)


def add_device(user: User, name: str, subscription: str, context: Context) -> ContactMethod:
    """Have this browser receive pages; one that is known, by the address of its push service, is not added again."""
    endpoint = check_subscription(subscription).endpoint
    for row in ContactMethod.objects.filter(user=user, kind="push").select_related("user"):
        if row.address and check_subscription(row.address).endpoint == endpoint:
            return change_method(row, {"address": subscription}, context)
    return add_method(user, {"name": name, "kind": "push", "address": subscription}, context)


def renew_device(user: User, before: str, subscription: str, context: Context) -> ContactMethod:
    """Have a device of this person receive pages by a new subscription, where the browser replaced the one `before`.

    The whole earlier subscription proves the device: its secret is known to that browser alone. Raises
    InvalidValueError for what is no subscription, CommandRefusedError where no method of theirs has it.
    """
    known = read_subscription(before)
    for row in ContactMethod.objects.filter(user=user, kind="push").select_related("user"):
        if row.address and read_subscription(row.address) == known:
            return change_method(row, {"address": subscription}, context)
    raise CommandRefusedError("no device of yours has the earlier subscription; enable push again")


def remove_gone(addresses: Mapping[int, str]) -> None:
    """Remove methods whose address has ended for good, and the rules that use them; by delivery, the address that was
    used: one that was changed since stays."""
    found = NotificationDelivery.objects.filter(pk__in=addresses, method__isnull=False).select_related(
        "method__user"
    )
    used = {one.method: addresses[one.pk] for one in found}
    for row, address in used.items():
        if row is not None and row.address == address:
            retrying(partial(_drop, row))


@transaction.atomic
def _drop(row: ContactMethod) -> None:
    context = Context(ACTOR)
    if row.user is not None:
        # People who add or change wait here, as they do for one another.
        user = get_user_model().objects.select_for_update(of=("self",)).get(pk=row.user.pk)
        before = preferences_as_json(user)
        rules = [rule for rule in before["rules"] if rule["method"] != row.name]
        if rules != before["rules"]:
            Preferences.objects.filter(user=user).update(rules=rules)
            after = {**before, "rules": rules}
            record_configuration("notification_rules", user.username, before, after, context)
    if ContactMethod.objects.filter(pk=row.pk).delete()[0]:
        record_configuration(_kind(row), _key(row), method_as_json(row), None, context)


def _refuse_in_rules(row: ContactMethod) -> None:
    rules = Preferences.objects.filter(user=row.user).values_list("rules", flat=True).first() or []
    if any(rule["method"] == row.name for rule in rules):
        raise CommandRefusedError(f"a rule uses {row.name}; change the rule first")


@transaction.atomic
def _saved(
    row: ContactMethod, before: dict[str, Any] | None, context: Context, changed: Sequence[str]
) -> ContactMethod:
    if before is None:
        # Whoever adds two at the same time waits here; a channel has nobody to lock.
        if row.user is not None:
            get_user_model().objects.select_for_update().get(pk=row.user.pk)
        others = ContactMethod.objects.filter(user=row.user)
        if others.filter(name=row.name).exists():
            raise InvalidValueError("name", f"{row.name} already exists")
        if row.user is not None and others.count() >= METHODS_LIMIT:
            raise CommandRefusedError(f"at most {METHODS_LIMIT} contact methods; remove one first")
    row.save()
    after = method_as_json(row)
    for name in changed:  # what it is stays untold, and that it changed must not
        after[name] = f"{after[name]} (changed)"
    record_configuration(_kind(row), _key(row), before, after, context)
    return row


def _kind(row: ContactMethod) -> str:
    return "channel" if row.user is None else "contact_method"


def _key(row: ContactMethod) -> str:
    return row.name if row.user is None else f"{row.user.username}/{row.name}"


def _fill(row: ContactMethod, given: Mapping[str, Any]) -> None:
    if unknown := sorted(set(given) - FIELDS):
        raise InvalidValueError(unknown[0][:100], "is not a known field")
    if "name" in given:
        row.name = _name(given["name"])
    if "kind" in given:
        row.kind = _known_kind(given["kind"])
    if row.kind == "push" and row.user is None:
        raise InvalidValueError("kind", "push belongs to one device of a person, not to a team")
    row.address = check_address(row.kind, given["address"])  # type: ignore[arg-type]
    if "secret" in given:
        row.secret = check_line("secret", given["secret"] or "", 200, blank=True)
    if "most" in given:
        row.most = None if given["most"] is None else check_whole("most", given["most"], MOST, 1)
    if "span" in given:
        row.span = check_whole("span", given["span"], LONGEST_SPAN, 1)


def _name(given: object) -> str:
    name = check_line("name", given, 60)
    try:
        validate_slug(name)
    except ValidationError:
        raise InvalidValueError(
            "name", "must be letters, digits, hyphens and underscores, such as my-phone"
        ) from None
    if name == ACCOUNT:
        raise InvalidValueError("name", f"{ACCOUNT} is reserved for the account's e-mail address")
    return name


def _known_kind(given: object) -> Kind:
    for kind in KINDS:
        if given == kind:
            return kind
    raise InvalidValueError("kind", f"must be one of {', '.join(KINDS)}")


STAND_INS: Final[Mapping[str, str]] = {
    "email": "unset@example.com",
    "webhook": "https://example.com/unset",
    "teams": "https://example.com/unset",
    "apprise": "json://example.com/unset",
    "sms": "+15005550006",
    "voice": "+15005550006",
    "push": '{"endpoint": "https://example.com/unset", "keys": {"auth": "AAAAAAAAAAAAAAAAAAAAAA", "p256dh":'
    ' "BGsX0fLhLEJH-Lzm5WOkQPJ3A32BLeszoPShOUXYmMKWT-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU"}}',
}
"""Address by kind in the preview of a configuration without the secret; stored nowhere."""


def check_address(kind: Kind, given: object) -> str:
    """Raises InvalidValueError, without the address in it."""
    address = check_line("address", given, ADDRESS_LIMIT)
    if kind == "email":
        try:
            validate_email(address)
        except ValidationError:
            raise InvalidValueError("address", "must be an e-mail address") from None
    elif kind in ("webhook", "teams"):
        try:
            outbound.check_literal(address, settings.OUTBOUND_ALLOWED_NETWORKS)
        except outbound.AddressRefusedError as error:
            raise InvalidValueError("address", str(error)) from None
    elif kind in ("sms", "voice"):
        return check_number(address)
    elif kind == "push":
        found = check_subscription(address)
        try:
            outbound.check_literal(found.endpoint, settings.OUTBOUND_ALLOWED_NETWORKS)
        except outbound.AddressRefusedError as error:
            raise InvalidValueError("address", f"has an endpoint that is refused: {error}") from None
        return found.as_text()
    else:
        check_service(address)
    return address


# Rules
# ----------------------------------------------------------------------------------------------------------
def preferences_as_json(user: User) -> dict[str, Any]:
    known = preferences(user)
    return {"rules": known.rules, "quiet_hours": known.quiet, "bundle_seconds": known.bundle_seconds}


def set_preferences(user: User, given: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """All of it: what is left out is as it is without a row."""
    return retrying(lambda: _set_preferences(user, given, context))


@transaction.atomic
def _set_preferences(user: User, given: Mapping[str, Any], context: Context) -> dict[str, Any]:
    locked = get_user_model().objects.select_for_update(of=("self",)).get(pk=user.pk)
    names = [method.name for method in reachable(locked).person.methods]
    before = preferences_as_json(locked)
    rules = rules_as_json(rules_from(given.get("rules", []), names))
    quiet = quiet_as_json(quiet_from(given.get("quiet_hours")))
    seconds = check_whole("bundle_seconds", given.get("bundle_seconds", DEFAULT_BUNDLE), LONGEST_BUNDLE)
    Preferences.objects.update_or_create(
        user=locked, defaults={"rules": rules, "quiet": quiet, "bundle_seconds": seconds}
    )
    if quiet != before["quiet_hours"]:
        wake_for(locked.username, now_utc())
    after = {"rules": rules, "quiet_hours": quiet, "bundle_seconds": seconds}
    record_configuration("notification_rules", locked.username, before, after, context)
    return after


# Trying
# ----------------------------------------------------------------------------------------------------------
def try_method(row: ContactMethod) -> Tried:
    """Send a test message now and say what was answered; one that is taken verifies the method."""
    owner = "" if row.user is None else row.user.username
    secret = push_private_key() if row.kind == "push" else row.secret
    reply = _try(owner, row.kind, row.address, secret, _key(row))  # type: ignore[arg-type]
    if reply.kind == "taken":
        _verified(row)
    elif reply.is_gone:
        retrying(partial(_drop, row))
    return Tried(reply.kind == "taken", reply.why)


@transaction.atomic
def _verified(row: ContactMethod) -> None:
    """Unless its address was changed while the message was under way."""
    locked = ContactMethod.objects.select_for_update(of=("self",)).filter(pk=row.pk).first()
    if locked is not None and locked.address == row.address:
        ContactMethod.objects.filter(pk=row.pk).update(verified_at=now_utc())


def try_account(user: User) -> Tried:
    reply = _try(user.username, "email", user.email, "", user.username)
    return Tried(reply.kind == "taken", reply.why)


def _try(owner: str, kind: Kind, address: str, secret: str, actor: str) -> Reply:
    if not address:
        return refused("the account has no e-mail address")
    if not _may_try(owner):
        return refused(f"limit of {MOST_TESTS} test messages per hour reached; try again in the next hour")
    id_ = uuid.uuid4()
    message = test_message(str(id_), actor, settings.PUBLIC_URL)
    return send(Outgoing(id_, "test", kind, address, secret, message, ()))


def _may_try(owner: str) -> bool:
    """A test goes to whatever address was typed, so nobody sends it again and again; counted for all processes."""
    named = hashlib.sha256(owner.encode()).hexdigest()
    counted = f"test-messages:{named}:{int(time.time() // 3600)}"
    tried: int = cache.get(counted, 0)
    cache.set(counted, tried + 1, 3600)
    return tried < MOST_TESTS
