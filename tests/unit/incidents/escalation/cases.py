"""Incidents that escalate, for tests: Alice is called first, Bob five minutes later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from incidents.domain.escalation.policy import Policy, policy_from
from incidents.domain.incident import commands as c
from incidents.domain.incident.decide import decide
from incidents.domain.incident.escalation import ENGINE, Escalation, ReachedTarget, due, follow, next_step
from incidents.domain.incident.evolve import evolve
from incidents.domain.incident.state import Incident
from tests.unit.incidents.incident.cases import NOON, Recorded, opened

ALICE_THEN_BOB = {
    "slug": "storage",
    "name": "Storage on call",
    "steps": [
        {"after": 0, "actions": [{"person": "alice"}]},
        {"after": 300, "actions": [{"person": "bob"}]},
    ],
    "repeats": 1,
    "repeat_after": 600,
    "acknowledgement_timeout": 1800,
}


def policy(**fields: Any) -> Policy:
    return policy_from({**ALICE_THEN_BOB, **fields})


@dataclass
class Ticket:
    """An incident and its escalation, with a clock; `policies` is what a look-up finds, by team."""

    policies: dict[str, Policy] = field(default_factory=lambda: {"storage": policy()})
    away: set[str] = field(default_factory=set)
    """People who cannot be called."""
    now: datetime = NOON
    state: Incident | None = None
    escalation: Escalation | None = None
    events: list[Recorded] = field(default_factory=list)

    def do(self, command: c.Command, actor: str = "user:alice") -> list[str]:
        """Carries the command out; the types of its events."""
        made = decide(self.state, command, self.now)
        for new in made:
            event = Recorded(new.type, new.body, actor, new.occurred_at)
            self.state = evolve(self.state, event)
            self.escalation = follow(self.escalation, self.state, event)
            self.events.append(event)
        return [new.type for new in made]

    def sweep(self) -> list[str]:
        """Types of the events that are due now, which it makes."""
        types: list[str] = []
        while made := self._once():
            types += made
        return types

    def _once(self) -> list[str]:
        assert self.escalation is not None
        what = due(self.escalation, self.now)
        return [] if what is None else self.do(self._command(what, self.escalation), ENGINE)

    def _command(self, what: str, one: Escalation) -> c.Command:
        if what == "policy":
            assert self.state is not None
            found = self.policies.get(self.state.team)
            return c.StartEscalation(found, one.why) if found else c.SkipEscalation("no policy")
        if what == "step":
            return c.TakeStep(one, self.reached(one))
        return c.Exhaust(one) if what == "exhausted" else c.Forget(one)

    def reached(self, one: Escalation) -> tuple[ReachedTarget, ...]:
        step = next_step(one)
        assert step is not None
        return tuple(
            ReachedTarget(action, (), f"{action.value} is away")
            if action.value in self.away
            else ReachedTarget(action, (action.value,) if action.kind == "person" else ())
            for action in step.actions
        )

    def later(self, seconds: float) -> list[str]:
        self.now += timedelta(seconds=seconds)
        return self.sweep()

    @property
    def climbs(self) -> Escalation:
        assert self.escalation is not None
        return self.escalation

    def calls(self) -> list[str]:
        return [
            one["person"] for e in self.events if e.type == "incident.escalated" for one in e.body["called"]
        ]

    def last(self, type_: str) -> Recorded:
        return [event for event in self.events if event.type == f"incident.{type_}"][-1]


def opened_ticket(*commands: c.Command, found: Policy | None = None, **fields: Any) -> Ticket:
    ticket = Ticket({"storage": found or policy()})
    ticket.do(opened(**fields))
    for command in commands:
        ticket.do(command)
    return ticket


def folded(events: Sequence[Recorded]) -> Escalation | None:
    """From the beginning, as a rebuild does."""
    state: Incident | None = None
    escalation: Escalation | None = None
    for event in events:
        state = evolve(state, event)
        escalation = follow(escalation, state, event)
    return escalation


__all__ = ["ALICE_THEN_BOB", "Ticket", "folded", "opened_ticket", "policy"]
