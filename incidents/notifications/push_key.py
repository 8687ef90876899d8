"""The key pair that signs web push messages: made once for an installation, the private half encrypted at rest.

Browsers subscribe for the public half, so another pair would end every subscription.
"""

from __future__ import annotations

from typing import Final

from incidents.notifications.models import PushKey
from incidents.security.push_encryption import new_key, public_key

ONLY: Final = 1
"""Key of the one row."""


def push_private_key() -> str:
    """A `Lost` where this process cannot decrypt it."""
    return _row().private


def push_public_key() -> str:
    """Key that browsers subscribe with (`applicationServerKey`), base64url."""
    return _row().public


def _row() -> PushKey:
    row = PushKey.objects.filter(pk=ONLY).first()
    if row is None:
        private = new_key()
        made = PushKey(pk=ONLY, private=private, public=public_key(private))
        PushKey.objects.bulk_create([made], ignore_conflicts=True)
        row = PushKey.objects.get(pk=ONLY)  # another process' where two made one
    return row
