"""Commands that were overtaken: what somebody did to the same side of an incident since the asker last saw it.

An incident has sides that are decided apart: who works on it and how it stands, its severity, its title. Only what
changed the side that a command is about makes it stale; a comment, a finding or an alert never does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from incidents.domain.incident import commands as c
from incidents.domain.incident.refusals import at_second
from incidents.domain.values import CommandRefusedError

WORK: Final = frozenset(
    f"incident.{name}"
    for name in (
        "acknowledged",
        "unacknowledged",
        "assigned",
        "reassigned",
        "reassignment_accepted",
        "reassignment_rejected",
        "reassignment_undone",
        "snoozed",
        "merged",
        "unmerged",
        "resolved",
        "reopened",
    )
)
_WORKING: Final = (
    c.Acknowledge,
    c.Unacknowledge,
    c.Assign,
    c.HandOver,
    c.Accept,
    c.Bounce,
    c.Snooze,
    c.Undo,
    c.MergeInto,
    c.Split,
    c.Resolve,
    c.Reopen,
    c.StartEscalation,
    c.TakeStep,
)
_CONTENDS: Mapping[type, frozenset[str]] = {
    **dict.fromkeys(_WORKING, WORK),
    c.SetSeverity: frozenset({"incident.severity_set"}),
    c.SetTitle: frozenset({"incident.title_set"}),
}


@dataclass(frozen=True, slots=True)
class Happened:
    """A line of the timeline that the asker had not seen."""

    type: str
    at: datetime
    actor: str
    text: str
    position: str


class ConcurrentChangeError(CommandRefusedError):
    """Somebody else was first. `meanwhile` says who did what and when; asking again from there may go through."""

    def __init__(self, number: int, meanwhile: tuple[Happened, ...], reason: str = "") -> None:
        last = meanwhile[-1]
        told = f"{last.text} ({at_second(last.at)})"
        super().__init__(f"{reason}; meanwhile: {told}" if reason else f"#{number} has changed: {told}")
        self.meanwhile = meanwhile


def contending(command: c.Command) -> frozenset[str]:
    """The types of events that make `command` stale; none for what adds and changes nothing."""
    return _CONTENDS.get(type(command), frozenset())
