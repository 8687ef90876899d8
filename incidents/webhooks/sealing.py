"""Secrets that have to be had again: kept encrypted under the installation's own key.

A signature needs the secret itself, so a hash will not do. Encrypted, a dump of the database alone signs nothing; who
has the machine has both, which nothing here could change.
"""

from __future__ import annotations

import base64
import hashlib

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings


class Unreadable(ValueError):
    """The secret was encrypted under another DOSSIER_SECRET_KEY."""


def seal(secret: str) -> bytes:
    return _box().encrypt(secret.encode())


def unseal(kept: bytes) -> str:
    try:
        return _box().decrypt(kept).decode()
    except InvalidToken:
        raise Unreadable(
            "its secret cannot be read: DOSSIER_SECRET_KEY is not the one that it was kept under; rotate the secret"
        ) from None


def _box() -> MultiFernet:
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return MultiFernet([Fernet(_derived(str(key))) for key in keys])


def _derived(key: str) -> bytes:
    return base64.urlsafe_b64encode(hashlib.sha256(b"webhook secrets\0" + key.encode()).digest())
