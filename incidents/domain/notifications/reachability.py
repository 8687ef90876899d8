"""Whether any message can reach a person: which of their contact methods work, and what to do where none does. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

RECENT_DELIVERIES: Final = 3
"""Deliveries that are looked at: a method whose latest ones, or as many as there were, all failed does not work."""

NO_METHOD: Final = "no contact method"
ALL_UNREADABLE: Final = "contact method encrypted under another DOSSIER_SECRET_KEY"


@dataclass(frozen=True, slots=True)
class MethodStatus:
    """State of one way to reach somebody."""

    name: str
    readable: bool = True
    """Whether its address can be decrypted."""
    verified: bool = True
    """A test or a notification was delivered, or nothing verifies this kind (the address of the account)."""
    missing: str = ""
    """Parts that this installation lacks to send anything of this kind."""
    failed: str = ""
    """The answer to the latest delivery, where the recent ones all failed."""


@dataclass(frozen=True, slots=True)
class Unreachable:
    """Reason why nothing can reach a person (no sentence), and the remedy (an imperative). The text of both also names
    the page of the console where the remedy is carried out."""

    reason: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.reason}: {self.remedy} under Settings, Notifications"


def why_unreachable(methods: Sequence[MethodStatus]) -> Unreachable | None:
    """None where one of the methods works."""
    if not methods:
        return Unreachable(NO_METHOD, "add a phone number, e-mail address or chat, or enable push")
    problems = [one for method in methods if (one := _problem(method)) is not None]
    if len(problems) < len(methods):
        return None
    reasons = dict.fromkeys(one.reason for one in problems)
    remedies = dict.fromkeys(one.remedy for one in problems)
    return Unreachable("; ".join(reasons), "; or ".join(remedies))


def _problem(method: MethodStatus) -> Unreachable | None:
    """The first thing that stands in the way of this method."""
    if not method.readable:
        return Unreachable(ALL_UNREADABLE, "restore the key, or enter the address again")
    if method.missing:
        return Unreachable(method.missing, "configure it, or add another contact method")
    if method.failed:
        return Unreachable(
            f"the last deliveries to {method.name} failed ({method.failed})",
            "correct it and send a test",
        )
    if not method.verified:
        return Unreachable(f"{method.name} has never been tested", "send a test")
    return None
