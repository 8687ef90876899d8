"""`manage.py reencrypt`: seal every secret anew under DOSSIER_SECRET_KEY, after which DOSSIER_SECRET_KEY_FALLBACKS can
go."""

from __future__ import annotations

from typing import Any

from allauth.mfa.models import Authenticator
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from incidents.chat.models import ChatWorkspace
from incidents.data_sources.models import DataSource
from incidents.notifications import key
from incidents.notifications.models import ContactMethod, PushKey
from incidents.security import encryption
from incidents.webhooks.models import Webhook

OF_AUTHENTICATORS = ("secret", "seed")


class Command(BaseCommand):
    help = (
        "Encrypt addresses and secrets again, of webhooks, data sources, push and second factors,"
        " with the current DOSSIER_SECRET_KEY."
    )

    def handle(self, **_: Any) -> None:
        try:
            with transaction.atomic():
                key.reencrypt_secrets()
                count = (
                    _methods()
                    + _push_keys()
                    + _data_sources()
                    + _webhooks()
                    + _workspaces()
                    + _authenticators()
                )
        except encryption.DecryptionError as error:
            raise CommandError(f"{error}. Nothing was changed: set DOSSIER_SECRET_KEY_FALLBACKS.") from None
        self.stdout.write(f"{count} encrypted again.")


def _methods() -> int:
    rows = list(ContactMethod.objects.select_for_update(of=("self",)))
    for row in rows:
        if isinstance(row.address, encryption.Lost) or isinstance(row.secret, encryption.Lost):
            raise encryption.DecryptionError(f"the address of {row.name} is encrypted with another key")
        row.save(update_fields=("address", "secret"))
    return len(rows)


def _push_keys() -> int:
    rows = list(PushKey.objects.select_for_update())
    for row in rows:
        if isinstance(row.private, encryption.Lost):
            raise encryption.DecryptionError("the key of web push is encrypted with another key")
        row.save(update_fields=("private",))
    return len(rows)


def _data_sources() -> int:
    rows = list(DataSource.objects.select_for_update())
    for row in rows:
        if isinstance(row.authorization, encryption.Lost):
            raise encryption.DecryptionError(f"the authorization of {row.name} is encrypted with another key")
        row.save(update_fields=("authorization",))
    return len(rows)


def _webhooks() -> int:
    rows = list(Webhook.objects.select_for_update())
    for row in rows:
        row.secret = _anew(bytes(row.secret))
        row.previous_secret = None if row.previous_secret is None else _anew(bytes(row.previous_secret))
        row.save(update_fields=("secret", "previous_secret"))
    return len(rows)


def _workspaces() -> int:
    rows = list(ChatWorkspace.objects.select_for_update())
    for row in rows:
        if not row.readable:
            raise encryption.DecryptionError(f"the token of {row.name} is encrypted with another key")
        row.save(update_fields=("token", "signing_secret"))
    return len(rows)


def _authenticators() -> int:
    rows = list(Authenticator.objects.select_for_update())
    for row in rows:
        for name in OF_AUTHENTICATORS:
            if name in row.data:
                row.data[name] = _anew(row.data[name].encode()).decode()
        row.save(update_fields=("data",))
    return len(rows)


def _anew(encrypted: bytes) -> bytes:
    return encryption.encrypt(encryption.decrypt(encrypted))
