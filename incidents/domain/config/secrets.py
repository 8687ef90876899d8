"""Secrets that a file of configuration must not hold: it names variables of the environment instead. Pure.

An address may be as good as a password, so a file has `${CHANNEL_ADDRESS_OPS_ROOM}` where it stands. Whoever applies
the file gives the variable; where it is not given, what is there stays.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Final

_REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]{0,199})\}", re.ASCII)
_PLAIN: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*", re.ASCII)


class MissingVariableError(LookupError):
    """The environment lacks a variable; its name is the argument."""


def reference(prefix: str, *names: str) -> str:
    """Reference in the file to the secret of that name: the same each time, and unique.

    >>> reference("CHANNEL_ADDRESS", "ops-room")
    '${CHANNEL_ADDRESS_OPS_ROOM}'
    """
    letters = "__".join(re.sub(r"[^A-Z0-9]", "_", name.upper()) for name in names)
    # Names that differ only in what a variable cannot tell apart get a mark of their own.
    whole = hashlib.sha256("/".join(names).encode()).hexdigest()[:6].upper()
    mark = "" if all(map(_PLAIN.fullmatch, names)) else f"_{whole}"
    return f"${{{prefix}_{letters}{mark}}}"


def resolved(text: str, environment: Mapping[str, str]) -> str:
    """The text, or what the variable holds that it names. An empty one is none. Raises MissingVariableError."""
    named = _REFERENCE.fullmatch(text)
    if named is None:
        return text
    if not (value := environment.get(named[1])):
        raise MissingVariableError(named[1])
    return value
