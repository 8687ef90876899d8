"""Secrets that have to be had again: kept encrypted under the installation's own key.

A signature needs the secret itself and a message its address, so a hash will not do. Encrypted, a dump of the database
alone signs and reaches nothing; who has the machine has both, which nothing here could change.
"""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import structlog
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.db import models

MARK: Final = "sealed:"
log = structlog.get_logger("sealing")


class DecryptionError(ValueError):
    """The secret was encrypted under another DOSSIER_SECRET_KEY."""


def encrypt(secret: str) -> bytes:
    return _box().encrypt(secret.encode())


def decrypt(encrypted: bytes) -> str:
    try:
        return _box().decrypt(encrypted).decode()
    except InvalidToken:
        raise DecryptionError(
            "its secret cannot be decrypted: it was encrypted under another DOSSIER_SECRET_KEY; set"
            " DOSSIER_SECRET_KEY_FALLBACKS or rotate the secret"
        ) from None


def _box() -> MultiFernet:
    return _of_keys((str(settings.SECRET_KEY), *map(str, settings.SECRET_KEY_FALLBACKS)))


@lru_cache(maxsize=4)
def _of_keys(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(_derived(key)) for key in keys])


def _derived(key: str) -> bytes:
    return base64.urlsafe_b64encode(hashlib.sha256(b"webhook secrets\0" + key.encode()).digest())


class Lost(str):
    """Empty: a sealed text that cannot be read under the keys that there are. Saved again it stays what it is, so that
    the right key brings it back."""

    __slots__ = ("encrypted",)
    encrypted: str


def _lost(encrypted: str) -> Lost:
    text = Lost("")
    text.encrypted = encrypted
    return text


if TYPE_CHECKING:
    _Text = models.TextField[str, str]
else:
    _Text = models.TextField


class EncryptedText(_Text):
    """A text that is sealed in the table and open in Python. What stands there in the clear is read as it is: from
    before it was sealed, or from a process without a key that is kept.

    It cannot be searched for: the same text is sealed otherwise each time.
    """

    def get_prep_value(self, value: Any) -> Any:
        if isinstance(value, Lost):
            return value.encrypted
        text = super().get_prep_value(value)
        if not text or not settings.SECRET_KEY_IS_STORED:
            return text  # under a key of this process alone no other process could open it
        return f"{MARK}{encrypt(text).decode()}"

    def from_db_value(self, value: str | None, *_: object) -> str | None:
        if value is None or not value.startswith(MARK):
            return value
        try:
            return decrypt(value.removeprefix(MARK).encode())
        except DecryptionError:
            log.error("a sealed text cannot be read: DOSSIER_SECRET_KEY is another one", field=str(self))
            return _lost(value)

    def get_lookup(self, lookup_name: str) -> Any:
        return super().get_lookup(lookup_name) if lookup_name == "isnull" else None
