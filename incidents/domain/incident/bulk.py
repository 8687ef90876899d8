"""Bulk actions, and the undo of each action: pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from incidents.domain.incident.state import Incident

VERBS: Final = (
    "acknowledge",
    "assign",
    "hand_over",
    "snooze",
    "silence",
    "set_severity",
    "resolve",
    "escalate",
    "merge",
)
"""Verbs of bulk actions."""
BACK: Final = ("unacknowledge", "assign", "set_severity", "undo", "reopen", "end_silence")
"""And what takes it back."""


@dataclass(frozen=True, slots=True)
class Step:
    """A verb with the fields of its command."""

    verb: str
    fields: Mapping[str, str | None] = field(default_factory=dict)


def way_back(verb: str, before: Incident, made: str | None = None) -> Step | None:
    """Undo of a verb for an incident that stood like `before`; None where there is no undo. `made` is the id of the
    silence that it made."""
    if verb == "silence":
        return Step("end_silence", {"silence": made})
    if verb == "acknowledge":
        return Step("unacknowledge")
    if verb in ("hand_over", "snooze", "merge"):
        return Step("undo", {"what": verb})
    if verb == "resolve":
        return Step("reopen", {"reason": "resolved by mistake"})
    if verb == "assign":
        return Step("assign", {"owner": before.owner})
    if verb == "set_severity":
        return Step("set_severity", {"severity": before.severity})
    if verb == "reopen":
        return Step("resolve", {"cause": before.confirmed_cause, "note": "reopened by mistake"})
    return None
