"""Ownership of an incident: hand over, accept, reject, and how long each team and person had it.

A hand-over waits for an answer: the receiving team accepts it, rejects it (it returns to the sender), or passes it on.
Time with a team counts from opening to resolution, also while nobody there has looked; so the sum over
teams is how long the incident was open.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from incidents.domain.incident import commands as c
from incidents.domain.incident.state import (
    AWAKE,
    Bodies,
    Fact,
    HandedOver,
    Incident,
    at_second,
    person,
    refuse_resolved,
    replace,
)
from incidents.domain.values import CommandRefusedError


def hand_over(state: Incident, command: c.HandOver) -> Bodies:
    refuse_resolved(state)
    if command.team == state.team:
        since = f", since {at_second(state.team_since)}" if state.hops else ""
        raise CommandRefusedError(f"#{state.number} is already with {state.team}{since}")
    return [("incident.reassigned", {"from": state.team, "to": command.team, "reason": command.reason})]


def accept(state: Incident, _: c.Accept) -> Bodies:
    sent = _unanswered(state, "accept")
    return [("incident.reassignment_accepted", {"from": sent.team, "team": state.team})]


def bounce(state: Incident, command: c.Bounce) -> Bodies:
    sent = _unanswered(state, "reject")
    return [
        ("incident.reassignment_rejected", {"from": state.team, "to": sent.team, "reason": command.reason})
    ]


def undo_hand_over(state: Incident) -> Bodies:
    """Only while nobody of the receiving team has done anything about it: then it is theirs to give back."""
    sent = _unanswered(state, "undo")
    if state.state != "open" or state.owner is not None:
        actor = state.acknowledged_by or state.owner
        raise CommandRefusedError(
            f"{actor} of {state.team} is already working on #{state.number}; ask them to reject the hand-over"
        )
    return [("incident.reassignment_undone", {"from": state.team, "to": sent.team})]


def _unanswered(state: Incident, what: str) -> HandedOver:
    refuse_resolved(state)
    if state.handed_over is not None:
        return state.handed_over
    if state.accepted_by is not None and state.accepted_at is not None:
        when = at_second(state.accepted_at)
        raise CommandRefusedError(
            f"{state.accepted_by} accepted #{state.number} for {state.team} at {when}; hand the incident over instead"
        )
    raise CommandRefusedError(f"#{state.number} has no pending hand-over to {what}")


# Folding
# ----------------------------------------------------------------------------------------------------------
def accounted(before: Incident, at: datetime, /, **changes: Any) -> Incident:
    """The incident with `changes`, and the time up to `at` added to the team and the person that had it before them; a
    resolved one is with nobody."""
    until = max(at, before.counted_at)
    if before.state == "resolved":
        return replace(before, counted_at=until, **changes)
    spent = (until - before.counted_at).total_seconds()
    owners = before.owner_seconds
    if before.owner is not None:
        owners = _plus(owners, before.owner, spent)
    return replace(
        before,
        counted_at=until,
        team_seconds=_plus(before.team_seconds, before.team, spent),
        owner_seconds=owners,
        **changes,
    )


def _plus(times: Mapping[str, float], name: str, seconds: float) -> Mapping[str, float]:
    return {**times, name: round(times.get(name, 0.0) + seconds, 3)}


def moved(state: Incident, team: str, at: datetime, **changed: Any) -> Incident:
    """The incident at another team, where nobody has seen it yet."""
    fresh: dict[str, Any] = {
        "team": team,
        "team_since": at,
        "owner": None,
        "state": "open",
        "acknowledged_at": None,
        "acknowledged_by": None,
        "accepted_at": None,
        "accepted_by": None,
        "handed_over": None,
        **AWAKE,
    }
    return accounted(state, at, **{**fresh, **changed})


def handed_over(state: Incident, event: Fact) -> Incident:
    sent = HandedOver(
        team=state.team,
        by=person(event.actor),
        at=event.occurred_at,
        reason=event.body["reason"],
        state="acknowledged" if state.acknowledged_at is not None else "open",
        owner=state.owner,
        acknowledged_at=state.acknowledged_at,
        acknowledged_by=state.acknowledged_by,
        team_since=state.team_since,
    )
    return moved(state, event.body["to"], event.occurred_at, hops=state.hops + 1, handed_over=sent)


def accepted(state: Incident, event: Fact) -> Incident:
    return replace(state, handed_over=None, accepted_at=event.occurred_at, accepted_by=person(event.actor))


def rejected(state: Incident, event: Fact) -> Incident:
    """Back to whoever had it there: who sends an incident away must not lose sight of it."""
    sent = state.handed_over
    return moved(
        state,
        event.body["to"],
        event.occurred_at,
        hops=state.hops + 1,
        rejections=state.rejections + 1,
        owner=None if sent is None else sent.owner,
    )


def hand_over_undone(state: Incident, event: Fact) -> Incident:
    """As if it had never been handed over, but for the time that passed."""
    sent = state.handed_over
    back = moved(state, event.body["to"], event.occurred_at, hops=max(0, state.hops - 1))
    if sent is None:
        return back
    return replace(
        back,
        team_since=sent.team_since,
        state=sent.state,
        owner=sent.owner,
        acknowledged_at=sent.acknowledged_at,
        acknowledged_by=sent.acknowledged_by,
    )


def seconds_to_team(state: Incident) -> float:
    """From its opening until the incident came to the team that has it, to stay."""
    return round(max(0.0, (state.team_since - state.opened_at).total_seconds()), 3)
