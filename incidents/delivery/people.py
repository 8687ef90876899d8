"""People as delivery knows them: their methods and rules out of the tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User

from incidents.delivery.models import ContactMethod, Preferences
from incidents.domain.reaching import ACCOUNT, Method, Person, quiet_from, rules_from


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
        rules=rules_from([rule for rule in wishes.rules if rule["method"] in names], names),
        quiet=quiet_from(wishes.quiet),
        bundle=timedelta(seconds=wishes.bundle_seconds),
    )
    return Reachable(person, rows, user.email)


def preferences(user: User) -> Preferences:
    """Those of the person, or the defaults."""
    return getattr(user, "preferences", None) or Preferences(user=user)


def method_of(row: ContactMethod) -> Method:
    return Method(row.name, row.kind, "method", row.most, timedelta(seconds=row.span))  # type: ignore[arg-type]


def channel(name: str) -> ContactMethod | None:
    """A way to reach a team."""
    return ContactMethod.objects.filter(user__isnull=True, name=name).first()
