"""Permissions of roles: each role has those of the ones before it. Pure.

Roles are of a person in a team; staff may do everything everywhere. As long as an installation has nobody in any team,
everybody who is signed in may work on every incident: roles begin with the first membership.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from incidents.domain.incident.decide import CommandRefusedError

ROLES: Final = ("viewer", "responder", "manager", "admin")
"""From the one that may do least."""

ANYWHERE: Final = frozenset({"open", "accept", "analyze", "comment", "escalate", "record_outcome", "silence"})
"""Permissions of a responder of any team: to report, to comment, to escalate, to start an analyzer, to record the
outcome of a change, to silence alerts that are not another team's. Not to reassign: whoever takes an incident to
their own team may do the rest to it.
"""
AT_ITS_TEAM: Final = frozenset(
    {
        "acknowledge", "answer_question", "answer_remediation", "request_probe", "assign", "attach_evidence", "bounce",
        "hand_over", "hand_to_cluster", "link", "merge", "override", "publish_status", "reopen", "resolve",
        "set_severity", "set_title", "snooze", "split", "split_off", "unacknowledge", "undo",
    }
)  # fmt: skip
"""Permissions of a responder of the team of the incident, the schedule or the status page."""
BY_A_MANAGER: Final = frozenset({"waive_proof"})
"""Permissions of a manager of the team of the incident."""
CONFIGURE: Final = "configure"
"""Changing what belongs to a team: a manager of that team may."""
ADMINISTER: Final = "administer"
"""Changing what belongs to no team: staff alone may."""


class ForbiddenError(CommandRefusedError):
    """The person may not do that. Says what is missing and who could."""


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who is signed in: whether they are staff, and their role in each team that they are in."""

    name: str
    is_staff: bool = False
    roles: Mapping[str, str] = field(default_factory=dict)

    def has(self, role: str, team: str | None = None) -> bool:
        """Whether they have at least this role in the team, or with None in any."""
        held = self.roles.values() if team is None else [self.roles[team]] if team in self.roles else []
        return any(ROLES.index(one) >= ROLES.index(role) for one in held)


def needed(command: str) -> str:
    """The least role that may carry out a command. Raises KeyError for one that is none."""
    if command in ANYWHERE or command in AT_ITS_TEAM:
        return "responder"
    if command in BY_A_MANAGER:
        return "manager"
    return {CONFIGURE: "manager", ADMINISTER: "admin"}[command]


def may(person: Person, command: str, teams: Collection[str]) -> bool:
    """Whether the person may carry out a command on something that belongs to one of these teams."""
    role = needed(command)
    if person.is_staff:
        return True
    if command == ADMINISTER:
        return False
    if command in ANYWHERE:
        return person.has(role)
    return any(person.has(role, team) for team in teams)


def refusal(person: Person, command: str, teams: Collection[str], can: Collection[str]) -> str:
    """Reason of a refusal, with the people who could: at most three names."""
    words = command.replace("_", " ")
    where = f" of {' or '.join(sorted(teams))}" if teams and command not in ANYWHERE else ""
    held = ", ".join(f"{role} of {team}" for team, role in sorted(person.roles.items())) or "in no team"
    if command == ADMINISTER:
        reason = f"requires staff permissions; {person.name} is {held}"
    else:
        reason = (
            f"{words} requires the role {needed(command)}{where or ' of any team'}; {person.name} is {held}"
        )
    names = sorted(can)
    others = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return (
        f"{reason}. {', '.join(names[:3])}{others} can do this" if names else f"{reason}. Staff can do this"
    )
