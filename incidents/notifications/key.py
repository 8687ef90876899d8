"""Whether this process has the key that the installation's secrets are encrypted under.

A node with another key reads no address: it would give up every message that it claims.
"""

from __future__ import annotations

from typing import Final

from incidents.notifications.models import ContactMethod, KeyCheck
from incidents.security import encryption

TEXT: Final = "dossier"
UNREADABLE: Final = (
    "address or secret cannot be decrypted with this DOSSIER_SECRET_KEY; enter it again, or restore the key"
)
ONLY: Final = 1
"""Key of the one row."""


class WrongKeyError(RuntimeError):
    """The message says what is wrong and what to do."""


def check_key() -> None:
    """Raise WrongKeyError where this process cannot read what is encrypted; the first process sets the key."""
    row = KeyCheck.objects.filter(pk=ONLY).first()
    if row is None:
        if not _reads_any():
            raise WrongKeyError(_key_check_text())
        KeyCheck.objects.bulk_create(
            [KeyCheck(pk=ONLY, text=encryption.encrypt(TEXT))], ignore_conflicts=True
        )
        row = KeyCheck.objects.get(pk=ONLY)  # another process' where two set it
    try:
        encryption.decrypt(bytes(row.text))
    except encryption.DecryptionError:
        raise WrongKeyError(_key_check_text()) from None


def is_right() -> bool:
    """Whether the key was set, and this process reads what is encrypted under it; sets nothing."""
    row = KeyCheck.objects.filter(pk=ONLY).first()
    try:
        return row is None or bool(encryption.decrypt(bytes(row.text)))
    except encryption.DecryptionError:
        return False


def reencrypt_secrets() -> None:
    """Make the newest key of this process the installation's. Raises DecryptionError."""
    for row in KeyCheck.objects.select_for_update():
        row.text = encryption.encrypt(encryption.decrypt(bytes(row.text)))
        row.save(update_fields=("text",))


def unreadable() -> list[str]:
    """Contact methods and channels whose address no process with this key reads."""
    rows = ContactMethod.objects.select_related("user").order_by("name")
    return [
        f"{row.name} of {row.user.get_username()}" if row.user else f"channel {row.name}"
        for row in rows
        if isinstance(row.address, encryption.Lost) or isinstance(row.secret, encryption.Lost)
    ]


def _reads_any() -> bool:
    """Whether anything, or nothing, is there to be read: for an installation from before its key was checked."""
    there = ContactMethod.objects.count()
    return not there or len(unreadable()) < there


def _key_check_text() -> str:
    return (
        "this DOSSIER_SECRET_KEY is not the one that the secrets in the database are encrypted under. Give every node"
        " the same one: DOSSIER_SECRET_KEY, or the file secret_key in the DOSSIER_HOME of the first node; after a"
        " change of the key also DOSSIER_SECRET_KEY_FALLBACKS"
    )
