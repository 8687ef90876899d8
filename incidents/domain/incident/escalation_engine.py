"""How far an incident's escalation has come. It is folded from the incident's events, beside the incident
(`domain.incident`).

Who is to be called next, and when, follows from the log alone: the event that makes an incident wait for
somebody is what starts the clock, in the transaction that records it. So at every moment an incident that
waits either has a time at which something happens (`due_at`) or says why nothing will (`exhausted`, `uncalled`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from incidents.domain.escalation.policy import Policy, frozen_policy
from incidents.domain.incident.finding_placement import is_worse
from incidents.domain.incident.state import Fact, Incident
from incidents.domain.time import optional_rfc3339, optional_time

Phase = Literal["starting", "climbing", "exhausted", "uncalled", "acknowledged", "resting"]
"""`starting`: the policy is to be looked up. `climbing`: the next step is due at `due_at`. `exhausted`: all were
called and nobody answered. `uncalled`: there is nobody to call. `acknowledged`: somebody is on it, until `due_at` if
the policy has a timeout. `resting`: snoozed, merged or resolved.
"""

ENGINE: Final = "system:escalation"
"""The actor of what escalates by itself."""


@dataclass(frozen=True, slots=True)
class Escalation:
    phase: Phase
    why: str
    """Why it is in this phase."""
    due_at: datetime | None
    """When it goes on; None: not before somebody does something."""
    routed_team: str
    """The team that the incident was opened for, whose route may have named `routed_policy`."""
    routed_policy: str | None
    settled: bool = False
    """Whether it is known which policy holds for the team that has the incident, or that none does."""
    policy: Policy | None = None
    """As it was when the escalation started: changes of the policy concern incidents that come after."""
    run: int = 0
    """How often it was started."""
    round: int = 1
    step: int = 0
    """Of `policy.steps` the one to take next; after the last of the last round their number."""
    started_at: datetime | None = None
    worked_at: datetime | None = None
    """When a person last did something about an acknowledged incident."""
    called: tuple[str, ...] = ()
    """Who was called in this run, each once."""

    @property
    def at_end(self) -> bool:
        return self.policy is not None and self.step >= len(self.policy.steps)


def as_json(escalation: Escalation) -> dict[str, Any]:
    """`escalation_from(as_json(one)) == one`."""
    # `asdict` would take the policy apart first, which costs as much as all the rest.
    plain = {name: getattr(escalation, name) for name in _PLAIN}
    times = {name: optional_rfc3339(getattr(escalation, name)) for name in _TIMES}
    policy = None if escalation.policy is None else escalation.policy.as_json()
    return {**plain, **times, "policy": policy, "called": list(escalation.called)}


def escalation_from(body: Mapping[str, Any]) -> Escalation:
    times = {name: optional_time(body[name]) for name in _TIMES}
    policy = None if body["policy"] is None else frozen_policy(body["policy"])
    return Escalation(**{**body, **times, "policy": policy, "called": tuple(body["called"])})


_TIMES: Final = ("due_at", "started_at", "worked_at")
_PLAIN: Final = tuple(one.name for one in fields(Escalation) if one.name not in ("policy", "called", *_TIMES))


def follow(known: Escalation | None, after: Incident, event: Fact) -> Escalation | None:
    """The escalation after `event`; `after` is the incident after it. None before the incident was opened."""
    if event.type == "incident.opened":
        team, policy = event.body["routing"]["team"], event.body["policy"]
        return Escalation("starting", "opened", event.occurred_at, team, policy)
    if known is None:
        return None
    if event.type in _TURNS:
        return _turned(known, after, event)
    rule = _FOLLOW.get(event.type)
    if rule is not None:
        return rule(known, after, event)
    return _worked(known, event) if event.type in _WORK else known


# What turns an incident to somebody else, or to nobody
# ----------------------------------------------------------------------------------------------------------
_MOVES: Final = frozenset(
    {"incident.reassigned", "incident.reassignment_rejected", "incident.reassignment_undone"}
)
_TURNS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "incident.acknowledged": lambda _: "acknowledged",
    "incident.unacknowledged": lambda body: body["why"] or "acknowledgement removed",
    "incident.reassigned": lambda body: f"handed over to {body['to']}",
    "incident.reassignment_rejected": lambda body: f"hand-over rejected, back with {body['to']}",
    "incident.reassignment_undone": lambda body: f"hand-over undone, back with {body['to']}",
    "incident.snoozed": lambda body: "alerts silenced" if body.get("silence") else "snoozed",
    "incident.unsnoozed": lambda body: (
        body["why"] or "snooze undone" if body["undone"] else f"snooze ended: {body['why']}"
    ),
    "incident.merged": lambda body: f"merged into #{body['into']['number']}",
    "incident.unmerged": lambda body: f"merge into #{body['from']['number']}",
    "incident.resolved": lambda _: "resolved",
    "incident.reopened": lambda _: "reopened",
}


def _turned(known: Escalation, after: Incident, event: Fact) -> Escalation:
    why, at = _TURNS[event.type](event.body), event.occurred_at
    if event.type in _MOVES:
        known = replace(known, settled=False, policy=None)
    if after.state in ("snoozed", "resolved"):
        return replace(known, phase="resting", why=why, due_at=None)
    if after.state == "acknowledged":
        return _answered(replace(known, why=why), at)
    return replace(known, phase="starting", why=why, due_at=at)


def _answered(known: Escalation, at: datetime) -> Escalation:
    """Somebody is on it, and last did something at `at`."""
    due = _forgotten_at(known.policy, at) if known.settled else at
    return replace(known, phase="acknowledged", due_at=due, worked_at=at)


def _forgotten_at(policy: Policy | None, worked_at: datetime) -> datetime | None:
    if policy is None or policy.acknowledgement_timeout is None:
        return None
    return worked_at + timedelta(seconds=policy.acknowledgement_timeout)


# What people do about an incident that they have acknowledged
# ----------------------------------------------------------------------------------------------------------
_WORK: Final = frozenset(
    f"incident.{name}"
    for name in (
        "reassignment_accepted",
        "assigned",
        "merge_received",
        "merge_undone",
        "alerts_moved",
        "commented",
        "evidence_attached",
        "linked",
        "title_set",
    )
)


def _worked(known: Escalation, event: Fact) -> Escalation:
    if known.phase != "acknowledged" or not known.settled or event.actor.startswith("system:"):
        return known
    return _answered(known, event.occurred_at)


def _severity_set(known: Escalation, _: Incident, event: Fact) -> Escalation:
    worse = is_worse(event.body["severity"], event.body["previous"])
    restarts = known.policy is not None and known.policy.restart_when_worse
    # What a step of the escalation itself raises does not send it back to its first step.
    if worse and restarts and known.phase in ("climbing", "exhausted") and event.actor != ENGINE:
        why = f"severity raised: {event.body['severity']}"
        return replace(known, phase="starting", why=why, due_at=event.occurred_at)
    return _worked(known, event)


# What the escalation itself records
# ----------------------------------------------------------------------------------------------------------
def _started(known: Escalation, after: Incident, event: Fact) -> Escalation:
    policy, at = frozen_policy(event.body["policy"]), event.occurred_at
    begun = replace(
        known,
        policy=policy,
        settled=True,
        why=event.body["why"],
        run=known.run + 1,
        round=1,
        step=0,
        started_at=at,
        called=(),
    )
    if after.state == "acknowledged":
        return _answered(begun, known.worked_at or at)
    return replace(begun, phase="climbing", due_at=at + timedelta(seconds=policy.steps[0].after))


def _escalated(known: Escalation, _: Incident, event: Fact) -> Escalation:
    body, policy = event.body, known.policy
    assert policy is not None, "a step is taken of a policy that was started"
    place = following(policy, body["round"], body["step"])
    people = [one["person"] for one in body["called"]]
    return replace(
        known,
        phase="climbing",
        why=body["why"],
        due_at=optional_time(body["next_at"]),
        round=place[0],
        step=place[1],
        called=tuple(dict.fromkeys((*known.called, *people))),
    )


def following(policy: Policy, round_: int, step: int) -> tuple[int, int]:
    """Round and index of the step after step number `step` (the first is 1); after the last there is none to take."""
    if step < len(policy.steps):
        return round_, step
    return (round_ + 1, 0) if round_ < policy.rounds else (round_, len(policy.steps))


def _exhausted(known: Escalation, _: Incident, event: Fact) -> Escalation:
    return replace(known, phase="exhausted", why=event.body["why"], due_at=None)


def _escalation_skipped(known: Escalation, after: Incident, event: Fact) -> Escalation:
    if after.state == "acknowledged":
        return replace(known, settled=True, due_at=None)
    return replace(known, phase="uncalled", settled=True, why=event.body["why"], due_at=None)


_FOLLOW: Mapping[str, Callable[[Escalation, Incident, Fact], Escalation]] = {
    "incident.severity_set": _severity_set,
    "incident.escalation_started": _started,
    "incident.escalated": _escalated,
    "incident.escalation_exhausted": _exhausted,
    "incident.escalation_skipped": _escalation_skipped,
}

CONCERNS: Final = frozenset({"incident.opened", *_TURNS, *_WORK, *_FOLLOW})
"""Types of events that an escalation follows; no other changes it."""
EVENTS: Final = (
    "incident.escalation_started",
    "incident.escalated",
    "incident.escalation_exhausted",
    "incident.escalation_skipped",
)
