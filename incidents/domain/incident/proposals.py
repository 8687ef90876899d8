"""Proposals of an incident: made by keys and people, accepted or declined by a person with the permission. Pure.

Nothing happens until a person accepts. Proposals lapse when the incident is resolved, those of a hand-over also when it
moves to another team.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from incidents.domain.incident.state import Bodies, Fact, Incident, person, refuse_resolved, replace
from incidents.domain.proposals import Action, Proposal, action_text
from incidents.domain.values import CommandRefusedError, InvalidValueError, check_line, check_text

PROPOSED: Final = "incident.action_proposed"
ACCEPTED: Final = "incident.proposal_accepted"
DECLINED: Final = "incident.proposal_declined"
MOST_OPEN: Final = 5
MOST_CITES: Final = 20
MOST_MINUTES: Final = 31 * 24 * 60
LONGEST_REASON: Final = 2_000


# Commands
# ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class ProposeAction:
    """Team and matchers have been looked up by the caller."""

    id: str
    action: Action
    reason: str
    team: str | None = None
    matchers: tuple[Mapping[str, Any], ...] = ()
    minutes: int | None = None
    cites: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", check_text("reason", self.reason, LONGEST_REASON, blank=False))
        if len(self.cites) > MOST_CITES:
            raise InvalidValueError("cites", f"must have at most {MOST_CITES} entries")
        object.__setattr__(self, "cites", tuple(check_line("cites", one) for one in self.cites))
        whole = isinstance(self.minutes, int) and not isinstance(self.minutes, bool)
        if self.action == "silence" and not (whole and 1 <= (self.minutes or 0) <= MOST_MINUTES):
            raise InvalidValueError("minutes", f"must be a whole number from 1 to {MOST_MINUTES}")


@dataclass(frozen=True, slots=True)
class AcceptProposal:
    id: str


@dataclass(frozen=True, slots=True)
class DeclineProposal:
    id: str
    reason: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", check_text("reason", self.reason, LONGEST_REASON))


# Decisions
# ----------------------------------------------------------------------------------------------------------
def propose_action(state: Incident, command: ProposeAction, now: datetime) -> Bodies:
    """The same action that waits already is not proposed again."""
    refuse_resolved(state)
    if command.action == "hand_over" and command.team == state.team:
        raise CommandRefusedError(f"#{state.number} is already with {state.team}")
    body = {
        "proposal": command.id,
        "action": command.action,
        "team": command.team,
        "matchers": [dict(one) for one in command.matchers],
        "minutes": command.minutes,
        "reason": command.reason,
        "cites": list(command.cites),
    }
    one = _proposal(body, "", now)
    if any(one.same_as(waiting) for waiting in state.proposals):
        return []
    if len(state.proposals) >= MOST_OPEN:
        raise CommandRefusedError(
            f"#{state.number} has {MOST_OPEN} open proposals already; accept or decline one first"
        )
    return [(PROPOSED, body)]


def accept_proposal(state: Incident, command: AcceptProposal) -> tuple[Proposal, Bodies]:
    """The proposal and the event that accepts it; what it asks for is the caller's."""
    found = open_proposal(state, command.id)
    return found, [(ACCEPTED, _decided(found))]


def decline_proposal(state: Incident, command: DeclineProposal) -> Bodies:
    return [(DECLINED, {**_decided(open_proposal(state, command.id)), "reason": command.reason})]


def open_proposal(state: Incident, id: str) -> Proposal:
    """Raises CommandRefusedError where it does not wait any more."""
    refuse_resolved(state)
    for one in state.proposals:
        if one.id == id:
            return one
    raise CommandRefusedError(f"#{state.number} has no open proposal {id[:60]}; it was decided or has lapsed")


def _decided(found: Proposal) -> dict[str, Any]:
    return {"proposal": found.id, "action": found.action, "text": found.text, "proposed_by": found.by}


# Folding
# ----------------------------------------------------------------------------------------------------------
def proposed(state: Incident, event: Fact) -> Incident:
    one = _proposal(event.body, event.actor, event.occurred_at)
    return replace(state, proposals=(*state.proposals, one))


def decided(state: Incident, event: Fact) -> Incident:
    left = tuple(one for one in state.proposals if one.id != event.body["proposal"])
    return replace(state, proposals=left)


def lapsed(state: Incident, *, moved_only: bool = False) -> Incident:
    """Without the proposals; with `moved_only` without those of a hand-over."""
    if not state.proposals:
        return state
    left = tuple(one for one in state.proposals if moved_only and one.action != "hand_over")
    return replace(state, proposals=left)


def _proposal(body: Mapping[str, Any], actor: str, at: datetime) -> Proposal:
    return Proposal(
        id=body["proposal"],
        action=body["action"],
        reason=body["reason"],
        by=person(actor),
        at=at,
        team=body["team"],
        matchers=tuple(body["matchers"]),
        minutes=body["minutes"],
        cites=tuple(body["cites"]),
    )


# Sentences
# ----------------------------------------------------------------------------------------------------------
def proposed_sentence(name: str, body: Mapping[str, Any]) -> str:
    text = action_text(body["action"], body["team"], body["matchers"], body["minutes"])
    return f"{name} proposed to {text}: {body['reason']}"


def accepted_sentence(name: str, body: Mapping[str, Any]) -> str:
    return f"{name} accepted the proposal of {body['proposed_by']} to {body['text']}"


def declined_sentence(name: str, body: Mapping[str, Any]) -> str:
    reason = f": {body['reason']}" if body["reason"] else ""
    return f"{name} declined the proposal of {body['proposed_by']} to {body['text']}{reason}"
