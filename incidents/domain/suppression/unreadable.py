"""What could not be read and therefore held no alert back, in words for the incidents that it concerns. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

LONGEST: Final = 200
"""Characters of a reason: it may quote what somebody wrote."""


def passed_over(unreadable: Sequence[tuple[str, str]]) -> str:
    """Of (what it is called, why it cannot be read); empty where all can be.

    >>> passed_over([("the silence `disks`", "matchers: must be a list")])
    'the silence `disks` held nothing back, because it cannot be read: matchers: must be a list'
    """
    if not unreadable:
        return ""
    what, why = unreadable[0]
    others = len(unreadable) - 1
    more = f" (and {others} other{'' if others == 1 else 's'})" if others else ""
    cut = why if len(why) <= LONGEST else f"{why[: LONGEST - 1]}…"
    return f"{what}{more} had no effect because of an error: {cut}"


def because(why: str, unreadable: str) -> str:
    """A reason, with what was passed over for it."""
    return f"{why}; {unreadable}" if unreadable else why
