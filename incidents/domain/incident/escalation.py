"""What an escalation does when its time has come, and when somebody asks for it. Pure.

Whoever carries it out looks up what is needed outside (the policy in force, who is on call) and gives it to the
command; nothing is decided for an escalation that is not due, so that one claimed twice acts once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from incidents.domain.escalation.policy import Action, Policy, Step, spoken
from incidents.domain.incident.escalation_engine import Escalation, following
from incidents.domain.incident.finding_placement import is_worse
from incidents.domain.incident.refusals import Bodies, raise_severity, refuse_resolved
from incidents.domain.incident.state import Incident
from incidents.domain.incident.suppression_override import override
from incidents.domain.time import optional_rfc3339, rfc3339
from incidents.domain.values import LINKS_LIMIT, SEVERITIES

Due = Literal["policy", "step", "exhausted", "forgotten"]
"""What an escalation waits for: that its policy is looked up, that a step is taken, that its end or the silence on an
acknowledged incident is recorded.
"""

BRIDGE_TEXT: Final = "Join the call"


@dataclass(frozen=True, slots=True)
class ReachedTarget:
    """Whom an action reaches: people, or why nobody. Actions that call no person have neither."""

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
    asked: bool = False
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
    if command.asked and state.state == "snoozed":
        events.append(("incident.unsnoozed", {"why": "escalated by hand", "undone": False}))
    if command.asked and state.state == "acknowledged":
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
    told = list(
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
        "channels": told,
        "unreachable": [{"target": str(r.action), "why": r.problem} for r in reached if r.problem],
        "due_at": optional_rfc3339(one.due_at),
        "next_at": rfc3339(_next_at(one, one.policy, bool(called or told), now)),
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
    """What a step changes about the incident itself."""
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
    """Where it stands, without whom the next step will reach."""
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
