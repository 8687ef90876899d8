"""Accounts: sign-up, encryption of second factors, sign-in by an identity provider."""

from __future__ import annotations

import getpass
import hashlib
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from ipaddress import ip_address
from typing import Any

import structlog
from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.signals import password_changed
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from allauth.mfa.signals import authenticator_added, authenticator_removed, authenticator_reset
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from django.conf import settings
from django.contrib.auth.models import User
from django.core.cache import cache
from django.dispatch import receiver
from django.http import HttpRequest

from incidents.domain.permissions import ROLES
from incidents.people import commands as people
from incidents.security import encryption
from incidents.teams.models import Membership, Team
from ingest.commands import retrying
from ingest.queries import Context

OIDC = Context("system:oidc")
PROXY = "proxy-not-counted"
"""In the cache while requests come through a proxy that DOSSIER_TRUSTED_PROXY_COUNT does not count."""
REMEMBERED = 24 * 3600
log = structlog.get_logger("accounts")
STAFF = "staff"


def shell_operator() -> Context:
    """Context of commands in a shell: its user has the database, so no role is checked; no account has that name."""
    try:
        return Context(f"shell:{getpass.getuser()}")
    except (KeyError, OSError):  # a container may run as a number that has no name
        return Context(f"shell:{os.getuid()}")


class ClosedSignup(DefaultAccountAdapter):  # type: ignore[misc]
    """Accounts are made by staff (Settings, People; `manage.py createsuperuser`), never by a visitor."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:  # noqa: ARG002  # allauth calls it so
        return False

    def get_client_ip(self, request: HttpRequest) -> str:
        """By what wrong passwords are counted, besides the account.

        Behind a proxy that DOSSIER_TRUSTED_PROXY_COUNT does not count everybody has the proxy's address: what the
        proxy says of the sender is added, so that nobody locks out everybody. Only of a peer in a private network:
        others could send another header each time.
        """
        address: str = super().get_client_ip(request)
        forwarded = request.META.get("HTTP_X_FORWARDED_FOR") or request.META.get("HTTP_FORWARDED")
        if not forwarded or settings.ALLAUTH_TRUSTED_PROXY_COUNT or not _is_private(address):
            return address
        if cache.add(PROXY, True, REMEMBERED):
            log.warning("a proxy is in front and DOSSIER_TRUSTED_PROXY_COUNT is 0", proxy=address)
        return f"{address}-{hashlib.sha256(forwarded.encode()).hexdigest()[:16]}"


class EncryptedFactors(DefaultMFAAdapter):  # type: ignore[misc]
    """Secrets of authenticators are encrypted: a dump of the database makes nobody's codes."""

    def encrypt(self, text: str) -> str:
        return encryption.encrypt(text).decode()

    def decrypt(self, encrypted_text: str) -> str:
        return encryption.decrypt(encrypted_text.encode())


class IdentityProvider(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """Sign-in through the house's own provider (OIDC), which also may say who is in which team."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:  # noqa: ARG002
        return bool(settings.OIDC_SIGNUP)

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:  # noqa: ARG002
        """Take the groups of somebody known; join nobody to an account that is there.

        Of all claims only `sub` names a person for good (OpenID Connect Core 1.0, 5.7): people may choose the others.
        """
        if sociallogin.is_existing:
            take_groups(sociallogin.user, _claims(sociallogin))
        else:
            log.info("an identity has no account yet", subject=sociallogin.account.uid)

    def save_user(self, request: HttpRequest, sociallogin: Any, form: Any = None) -> Any:
        user = super().save_user(request, sociallogin, form)
        people.record_made(user, OIDC)
        take_groups(user, _claims(sociallogin))
        return user


def _is_private(address: str) -> bool:
    try:
        return ip_address(address).is_private
    except ValueError:
        return False


def proxy_is_not_counted() -> bool:
    """Whether somebody signed in, within a day, through a proxy although DOSSIER_TRUSTED_PROXY_COUNT is 0."""
    return not settings.ALLAUTH_TRUSTED_PROXY_COUNT and cache.get(PROXY) is not None


def _claims(sociallogin: Any) -> dict[str, Any]:
    claims = sociallogin.account.extra_data
    return {**(claims.get("id_token") or {}), **(claims.get("userinfo") or {})}


def take_groups(user: User, claims: Mapping[str, Any]) -> None:
    """Make memberships what the provider's groups say, in the teams that DOSSIER_OIDC_GROUP_ROLES names, and in no
    other."""
    groups = claims.get(settings.OIDC_GROUPS_CLAIM)
    if not settings.OIDC_GROUP_ROLES or not isinstance(groups, list):
        return
    staff, roles = wanted(settings.OIDC_GROUP_ROLES, groups)
    if staff is not None and staff != user.is_staff:
        with suppress(people.LastStaffError):  # somebody has to be able to let others in
            user.is_staff = retrying(lambda: people.change_user(user, {"is_staff": staff}, OIDC)).is_staff
    teams = Team.objects.filter(slug__in=roles)
    held = {row.team.slug: row.role for row in Membership.objects.select_related("team").filter(user=user)}
    for team in teams:
        role = roles[team.slug]
        if role is None and team.slug in held:
            retrying(lambda team=team: people.remove_member(team, user, OIDC))  # type: ignore[misc]
        elif role is not None and held.get(team.slug) != role:
            retrying(lambda team=team, role=role: people.set_member(team, user, role, OIDC))  # type: ignore[misc]


def wanted(rules: Iterable[str], groups: Iterable[object]) -> tuple[bool | None, dict[str, str | None]]:
    """Of rules `GROUP=TEAM:ROLE` and `GROUP=staff`: whether somebody in these groups is staff (None where no rule
    says), and their role in each team that a rule names, None for none."""
    mine = {str(group) for group in groups}
    staff: bool | None = None
    roles: dict[str, str | None] = {}
    for rule in rules:
        group, _, means = rule.rpartition("=")
        if means == STAFF:
            staff = bool(staff) or group in mine
            continue
        team, _, role = means.partition(":")
        held = roles.setdefault(team, None)
        if group in mine and (held is None or ROLES.index(role) > ROLES.index(held)):
            roles[team] = role
    return staff, roles


# What people do to their own accounts is in the audit as what staff do to them is.
# ----------------------------------------------------------------------------------------------------------
@receiver(password_changed)
def _password_changed(user: User, **_: object) -> None:
    retrying(lambda: people.record_own(user, "password", "changed"))


@receiver(authenticator_added)
def _factor_added(user: User, authenticator: Authenticator, **_: object) -> None:
    retrying(lambda: people.record_own(user, "second_factor", f"{authenticator.type} added"))


@receiver(authenticator_removed)
def _factor_removed(user: User, authenticator: Authenticator, **_: object) -> None:
    retrying(lambda: people.record_own(user, "second_factor", f"{authenticator.type} removed"))


@receiver(authenticator_reset)
def _factor_reset(user: User, authenticator: Authenticator, **_: object) -> None:
    retrying(lambda: people.record_own(user, "second_factor", f"{authenticator.type} replaced"))
