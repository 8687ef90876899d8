"""People as delivery knows them: their methods and rules out of the tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import structlog
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User

from incidents.domain.notifications.rules import (
    ACCOUNT,
    Method,
    Person,
    QuietHours,
    Rule,
    quiet_from,
    rules_from,
)
from incidents.domain.values import UNREADABLE
from incidents.notifications.models import ContactMethod, Preferences

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
