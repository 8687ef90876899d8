"""People and their places in teams: made, changed, switched off. Every change is recorded; passwords never are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction

from incidents.domain.permissions import CONFIGURE, ROLES, ForbiddenError, Person, may, refusal
from incidents.domain.values import InvalidValueError
from incidents.people.permissions import actor_name, people_allowed, person
from incidents.teams.models import Membership, Team
from ingest.commands import record_configuration
from ingest.queries import Context

USER, MEMBER = "user", "member"


class LastStaffError(ValueError):
    """Somebody has to be able to let others in."""


def person_as_json(user: User) -> dict[str, Any]:
    """A person as the log keeps them."""
    return {
        "username": user.username,
        "email": user.email,
        "first_name": user.first_name,
        "last_name": user.last_name,
        "is_staff": user.is_staff,
        "is_active": user.is_active,
        "password": "set" if user.has_usable_password() else None,
    }


@transaction.atomic
def create_user(fields: Mapping[str, Any], context: Context) -> User:
    """Without a password they sign in through the identity provider, or when somebody sets one. Raises
    InvalidValueError."""
    password = fields.get("password")
    user = _users()(**{name: value for name, value in fields.items() if name != "password"})
    _set_password(user, password)
    user.save()
    record_configuration(USER, user.username, None, person_as_json(user), context)
    return user


def record_made(user: User, context: Context) -> None:
    """Of somebody whom another way than `create_user` has made."""
    record_configuration(USER, user.username, None, person_as_json(user), context)


@transaction.atomic
def record_own(user: User, field: str, what: str) -> None:
    """Record a change of a person to their own account by another way than `change_user`; a password is never in it."""
    before = person_as_json(user)
    record_configuration(
        USER, user.username, before, {**before, field: what}, Context(f"user:{user.username}")
    )


@transaction.atomic
def change_user(user: User, fields: Mapping[str, Any], context: Context) -> User:
    """Switched off, they are signed out at once. Raises InvalidValueError, LastStaffError."""
    # All of staff is locked, so that two who switch each other off do not both succeed.
    staff = list(_users().objects.select_for_update().filter(is_staff=True, is_active=True).order_by("pk"))
    row = _users().objects.select_for_update().get(pk=user.pk)
    before = person_as_json(row)
    for name, value in fields.items():
        if name != "password":
            setattr(row, name, value)
    if [one.pk for one in staff] == [row.pk] and not (row.is_staff and row.is_active):
        raise LastStaffError(
            f"{row.username} is the last staff member; first give staff permissions to another person"
        )
    after = {}
    if "password" in fields:
        _set_password(row, fields["password"])
        after = {"password": "changed" if fields["password"] else None}
    row.save()
    record_configuration(USER, row.username, before, {**person_as_json(row), **after}, context)
    return row


def _set_password(user: User, password: str | None) -> None:
    if password is None:
        user.set_unusable_password()
        return
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise InvalidValueError("password", " ".join(error.messages)) from None
    user.set_password(password)


@transaction.atomic
def set_member(team: Team, user: User, role: str, context: Context) -> Membership:
    """Put somebody into a team, or change what they may do there. Raises InvalidValueError, ForbiddenError."""
    if role not in ROLES:
        raise InvalidValueError("role", f"must be one of {', '.join(ROLES)}")
    row = Membership.objects.select_for_update().filter(team=team, user=user).first()
    _allow(team, {role} if row is None else {role, row.role}, context)
    before = None if row is None else member_as_json(row)
    if row is None:
        row = Membership.objects.create(team=team, user=user, role=role)
    else:
        row.role = role
        row.save(update_fields=["role"])
    record_configuration(MEMBER, f"{team.slug}/{user.username}", before, member_as_json(row), context)
    return row


@transaction.atomic
def remove_member(team: Team, user: User, context: Context) -> None:
    """Take somebody out of a team. Raises InvalidValueError where they are not in it, ForbiddenError."""
    row = Membership.objects.select_for_update().filter(team=team, user=user).first()
    _allow(team, set() if row is None else {row.role}, context)
    if row is None:
        raise InvalidValueError("user", f"is not in {team.slug}")
    record_configuration(MEMBER, f"{team.slug}/{user.username}", member_as_json(row), None, context)
    row.delete()


def dissolve(team: Team, context: Context) -> None:
    """Take everybody out of a team that is removed, in that transaction; who may remove it may do that."""
    for row in team.memberships.select_related("team", "user").select_for_update(of=("self",)):
        record_configuration(MEMBER, f"{team.slug}/{row.user.username}", member_as_json(row), None, context)
        row.delete()


def _allow(team: Team, roles: set[str], context: Context) -> None:
    """Staff, and the team's managers; who is or becomes admin of the team, its admins alone decide."""
    name = actor_name(context)
    if name is None:
        return
    user = _users().objects.filter(username=name, is_active=True).first()
    if user is not None and (user.is_staff or user.is_superuser):
        return
    actor = person(name) or Person(name)
    if not may(actor, CONFIGURE, (team.slug,)):
        raise ForbiddenError(refusal(actor, CONFIGURE, (team.slug,), people_allowed(CONFIGURE, (team.slug,))))
    if "admin" in roles and not actor.has("admin", team.slug):
        raise ForbiddenError(f"only an admin of {team.slug}, or staff, can appoint or remove its admins")


def member_as_json(row: Membership) -> dict[str, Any]:
    return {"team": row.team.slug, "user": row.user.username, "role": row.role}


def _users() -> type[User]:
    model = get_user_model()
    assert issubclass(model, User)
    return model
