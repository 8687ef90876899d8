"""The escalation of an incident: its state, folded from the incident's events, and the decisions of its steps.
Pure.

The event that makes an incident wait for somebody starts the clock, in the transaction that records it. So a
waiting incident always has a time for the next action (`due_at`), or says why nothing follows (`exhausted`,
`uncalled`).

A caller looks up the policy in force and who is on call, and passes them with the command; an escalation that is
not due decides nothing, so one claimed twice acts once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from incidents.domain.escalation.policy import Action, Policy, Step, frozen_policy, spoken
from incidents.domain.incident.state import (
    Bodies,
    Fact,
    Incident,
    make,
    override,
    raise_severity,
    refuse_resolved,
    replace,
)
from incidents.domain.values import (
    LINKS_LIMIT,
    SEVERITIES,
    is_worse,
    optional_rfc3339,
    optional_time,
    rfc3339,
)

# State
# ----------------------------------------------------------------------------------------------------------
Phase = Literal["starting", "climbing", "exhausted", "uncalled", "acknowledged", "paused"]
"""`starting`: the policy is to be looked up. `climbing`: the next step is due at `due_at`. `exhausted`: all were
called and nobody answered. `uncalled`: there is nobody to call. `acknowledged`: somebody is on it, until `due_at` if
the policy has a timeout. `paused`: snoozed, merged or resolved.
"""

ENGINE: Final = "system:escalation"
"""The actor of what escalates by itself."""


@dataclass(frozen=True)
class Escalation:
    phase: Phase
    why: str
    """Reason for this phase."""
    due_at: datetime | None
    """Time of the next step; None: not before somebody does something."""
    routed_team: str
    """The team that the incident was opened for, whose route may have named `routed_policy`."""
    routed_policy: str | None
    settled: bool = False
    """Whether it is known which policy holds for the team that has the incident, or that none does."""
    policy: Policy | None = None
    """As it was when the escalation started: changes of the policy concern incidents that come after."""
    run: int = 0
    """Number of starts."""
    round: int = 1
    step: int = 0
    """Of `policy.steps` the one to take next; after the last of the last round their number."""
    started_at: datetime | None = None
    worked_at: datetime | None = None
    """Time of the last action of a person on an acknowledged incident."""
    called: tuple[str, ...] = ()
    """People called in this run, each once."""

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
        return make(
            Escalation,
            phase="starting",
            why="opened",
            due_at=event.occurred_at,
            routed_team=team,
            routed_policy=policy,
        )
    if known is None:
        return None
    if event.type in _TURNS:
        return _turned(known, after, event)
    rule = _FOLLOW.get(event.type)
    if rule is not None:
        return rule(known, after, event)
    return _worked(known, event) if event.type in _WORK else known


# Changes of the person or team in charge
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
        return replace(known, phase="paused", why=why, due_at=None)
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


# Work on an acknowledged incident
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


# Events of the escalation itself
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


# Decisions
# ----------------------------------------------------------------------------------------------------------
Due = Literal["policy", "step", "exhausted", "forgotten"]
"""Next action of an escalation: its policy is looked up, a step is taken, its end or the silence on an acknowledged
incident is recorded.
"""

BRIDGE_TEXT: Final = "Join the call"


@dataclass(frozen=True, slots=True)
class ReachedTarget:
    """Recipients of an action: people, or the reason why there are none. Actions that call no person have neither."""

    action: Action
    people: tuple[str, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class StartEscalation:
    """From the first step of `policy`; `asked`: by a person, who then wants it answered anew.

    `overriding`: the suppressions in force that this person overrides, as event bodies.
    """

    policy: Policy
    why: str
    requested: bool = False
    overriding: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class SkipEscalation:
    """There is nobody to call, and why."""

    why: str


@dataclass(frozen=True, slots=True)
class TakeStep:
    """The next step; with `reason` a person wants it now."""

    escalation: Escalation
    reached: tuple[ReachedTarget, ...]
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Exhaust:
    """All were called, and had the time to answer."""

    escalation: Escalation


@dataclass(frozen=True, slots=True)
class Forget:
    """It was acknowledged, and nothing was done about it for too long."""

    escalation: Escalation


CLOCKS: Final = timedelta(seconds=60)
"""Clocks of machines differ by less."""


def due(escalation: Escalation, now: datetime) -> Due | None:
    if escalation.due_at is None or (escalation.due_at > now and not _clock_was_set_back(escalation, now)):
        return None
    if escalation.phase == "starting" or not escalation.settled:
        return "policy"
    if escalation.phase == "acknowledged":
        return "forgotten"
    return "exhausted" if escalation.at_end else "step"


def _clock_was_set_back(escalation: Escalation, now: datetime) -> bool:
    """Whether its time is further ahead than it ever waits: nobody stays uncalled for as long as the clock went wrong.

    That an acknowledged incident was forgotten is found later, then: somebody is on it.
    """
    if escalation.due_at is None or escalation.phase not in ("starting", "climbing"):
        return False
    policy = escalation.policy if escalation.phase == "climbing" else None
    waits = [] if policy is None else [policy.repeat_after, *(step.after for step in policy.steps)]
    return escalation.due_at - now > timedelta(seconds=max(waits, default=0)) + CLOCKS


def next_step(escalation: Escalation) -> Step | None:
    """The step that an escalation takes next; None where it takes none."""
    if escalation.phase != "climbing" or escalation.policy is None or escalation.at_end:
        return None
    return escalation.policy.steps[escalation.step]


def start(state: Incident, command: StartEscalation) -> Bodies:
    refuse_resolved(state)
    events = override(command.overriding)
    if command.requested and state.state == "snoozed":
        events.append(("incident.unsnoozed", {"why": "escalated by hand", "undone": False}))
    if command.requested and state.state == "acknowledged":
        events.append(("incident.unacknowledged", {"why": "escalated by hand"}))
    return [
        *events,
        ("incident.escalation_started", {"policy": command.policy.as_json(), "why": command.why}),
    ]


def skip_escalation(state: Incident, command: SkipEscalation) -> Bodies:
    refuse_resolved(state)
    return [("incident.escalation_skipped", {"why": command.why})]


def exhaust(state: Incident, command: Exhaust, now: datetime) -> Bodies:
    refuse_resolved(state)
    one = command.escalation
    if due(one, now) != "exhausted":
        return []
    assert one.policy is not None, "only what was started can be exhausted"
    body = {
        "rounds": one.policy.rounds,
        "called": list(one.called),
        "why": f"{_names_of(one.called)}; no response within {_since(one, now)}",
    }
    return [("incident.escalation_exhausted", body)]


def _names_of(called: Sequence[str]) -> str:
    return f"notified {', '.join(called)}" if called else "no one could be notified"


def _since(escalation: Escalation, now: datetime) -> str:
    started = escalation.started_at
    return spoken(0 if started is None else (now - started).total_seconds())


def forget(state: Incident, command: Forget, now: datetime) -> Bodies:
    refuse_resolved(state)
    one = command.escalation
    if due(one, now) != "forgotten" or one.worked_at is None:
        return []
    silence = spoken((now - one.worked_at).total_seconds())
    why = f"acknowledged by {state.acknowledged_by}, no progress for {silence}"
    return [("incident.unacknowledged", {"why": why})]


def take_step(state: Incident, command: TakeStep, now: datetime) -> Bodies:
    refuse_resolved(state)
    one, reached = command.escalation, command.reached
    if next_step(one) is None or (command.reason is None and due(one, now) != "step"):
        return []
    assert one.policy is not None, "next_step found one"
    called = _called(reached)
    channels = list(
        dict.fromkeys(r.action.value for r in reached if r.action.kind == "channel" and not r.problem)
    )
    body = {
        "run": one.run,
        "round": one.round,
        "rounds": one.policy.rounds,
        "step": one.step + 1,
        "steps": len(one.policy.steps),
        "why": _why(one, command.reason, now),
        "called": called,
        "channels": channels,
        "unreachable": [{"target": str(r.action), "why": r.problem} for r in reached if r.problem],
        "due_at": optional_rfc3339(one.due_at),
        "next_at": rfc3339(_next_at(one, one.policy, bool(called or channels), now)),
    }
    return [("incident.escalated", body), *_made(state, reached)]


def _called(reached: Sequence[ReachedTarget]) -> list[dict[str, str]]:
    """Each person once, for the first reason."""
    people = {person: str(one.action) for one in reversed(reached) for person in reversed(one.people)}
    return [{"person": person, "as": people[person]} for person in dict.fromkeys(_people(reached))]


def _people(reached: Sequence[ReachedTarget]) -> list[str]:
    return [person for one in reached for person in one.people]


def _why(escalation: Escalation, reason: str | None, now: datetime) -> str:
    if reason is not None:
        return reason
    first = escalation.round == 1 and escalation.step == 0
    return escalation.why if first else f"no response for {_since(escalation, now)}"


def _next_at(escalation: Escalation, policy: Policy, somebody: bool, now: datetime) -> datetime:
    """Counted from now, also where this step was late: who is called has their time to answer."""
    round_, step = following(policy, escalation.round, escalation.step + 1)
    if round_ == escalation.round and step < len(policy.steps):
        # Where a step reaches nobody, there is nobody to wait for.
        return now + timedelta(seconds=policy.steps[step].after) if somebody else now
    again = 0 if step >= len(policy.steps) else policy.steps[0].after
    return now + timedelta(seconds=policy.repeat_after + again)


def _made(state: Incident, reached: Sequence[ReachedTarget]) -> Bodies:
    """Changes by a step to the incident itself."""
    events: Bodies = []
    wanted = [s for s in SEVERITIES if any(_does(r, "severity", s) for r in reached)]
    if wanted and is_worse(wanted[0], state.severity) and not state.severity_by_person:
        events.append(raise_severity(wanted[0], state, "the escalation came this far"))
    links = list(state.links)
    for one in reached:
        if one.action.kind != "bridge":
            continue
        link = {"href": one.action.value.replace("{number}", str(state.number)), "text": BRIDGE_TEXT}
        if link not in links and len(links) < LINKS_LIMIT:
            links.append(link)
            events.append(("incident.linked", link))
    return events


def _does(reached: ReachedTarget, kind: str, value: str) -> bool:
    return reached.action.kind == kind and reached.action.value == value


def as_people_read(escalation: Escalation, now: datetime) -> dict[str, Any]:
    """State for readers, without the recipients of the next step."""
    policy, step = escalation.policy, next_step(escalation)
    return {
        "phase": escalation.phase,
        "why": escalation.why,
        "policy": None if policy is None else {"slug": policy.slug, "name": policy.name},
        "round": escalation.round,
        "rounds": 0 if policy is None else policy.rounds,
        "step": None if step is None else escalation.step + 1,
        "steps": 0 if policy is None else len(policy.steps),
        "next_at": optional_rfc3339(escalation.due_at),
        "late_seconds": _late(escalation, now),
        "called": list(escalation.called),
    }


def _late(escalation: Escalation, now: datetime) -> float:
    if escalation.due_at is None:
        return 0.0
    return max(0.0, round((now - escalation.due_at).total_seconds(), 3))
