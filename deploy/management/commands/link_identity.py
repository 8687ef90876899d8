"""`manage.py link_identity USER SUBJECT`: let somebody sign in to an account that is there, through the provider."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from deploy.settings import OIDC_PROVIDER
from incidents.people import commands as people


class Command(BaseCommand):
    help = "Link an account to the identity with this subject (`sub`) at the OpenID Connect provider."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user", help="name of the account")
        parser.add_argument("subject", help="claim `sub` of the person at the provider; logged at sign-in")

    @transaction.atomic
    def handle(self, *_: Any, user: str, subject: str, **options: Any) -> None:
        found = User.objects.filter(username=user).first()
        if found is None:
            raise CommandError(f"there is no account {user}")
        linked, made = SocialAccount.objects.get_or_create(
            provider=OIDC_PROVIDER, uid=subject, defaults={"user": found}
        )
        if linked.user_id != found.pk:
            raise CommandError(f"{subject} is {linked.user.get_username()} already")
        if made:
            people.record_own(found, "identity", f"{subject} linked")
        self.stdout.write(f"{user} signs in as {subject}.")
