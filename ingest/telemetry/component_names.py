"""The form of a component's name, the same in every layer: what an endpoint takes must be nameable on an incident."""

from __future__ import annotations

import re
from typing import Final

COMPONENT: Final = r"[A-Za-z][A-Za-z0-9_.-]{0,62}/[^\s\x00-\x1f\x7f\ud800-\udfff]{1,190}"
"""`kind/name`: a kind of up to 63 letters, digits, `_`, `.` and `-`; a name of up to 190 characters, no white space."""
COMPONENT_FORM: Final = "kind/name without white space, for example storage_cluster/s7"

_COMPONENT = re.compile(COMPONENT)
_DIGITS = re.compile(r"(\d+)")


def is_component(text: str) -> bool:
    return _COMPONENT.fullmatch(text) is not None


def natural(name: str) -> tuple[str | int, ...]:
    """A key that sorts names as people do: c2 before c10."""
    return tuple(int(part) if part.isdecimal() else part for part in _DIGITS.split(name))
