"""Whatever is done to an incident and in whatever order: it is never left alone without a reason."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from incidents.domain.incident import commands as c
from incidents.domain.incident.escalation import as_json, due, escalation_from, next_step
from incidents.domain.values import CommandRefusedError
from tests.unit.incidents.escalation.cases import Ticket, folded, policy
from tests.unit.incidents.incident.cases import after, finding, opened

TEAMS = ("storage", "network", "hall-2")
ELSEWHERE = after(c.Open("22222222-2222-4222-8222-222222222222", 2, opened().routing, opened().report))

policies = st.none() | st.builds(
    policy,
    steps=st.lists(
        st.fixed_dictionaries(
            {
                "after": st.sampled_from([0, 60, 300]),
                "actions": st.lists(
                    st.sampled_from([{"person": "alice"}, {"person": "bob"}, {"severity": "critical"}]),
                    min_size=1,
                    max_size=3,
                ),
            }
        ),
        min_size=1,
        max_size=3,
    ).map(lambda steps: [*steps, {"actions": [{"person": "charlie"}]}]),
    repeats=st.integers(0, 2),
    repeat_after=st.sampled_from([60, 600]),
    acknowledgement_timeout=st.none() | st.sampled_from([60, 1800]),
    restart_when_worse=st.booleans(),
)
COMMANDS = st.sampled_from(
    [
        c.Acknowledge(),
        c.Unacknowledge(),
        c.Assign("bob"),
        c.Accept(),
        c.Bounce("not ours"),
        c.Undo(),
        c.Comment("looking"),
        c.SetSeverity("critical"),
        c.SetSeverity("info"),
        c.RaiseSeverity("critical", "worse"),
        c.JoinFinding(finding()),
        c.Resolve("none"),
        c.Reopen(),
        c.MergeInto(ELSEWHERE),
        c.Split(ELSEWHERE, ()),
        c.Snooze(None),
        *(c.HandOver(team, "theirs") for team in TEAMS),
    ]
)


class AnyOrder(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.ticket = Ticket()

    @initialize(found=st.lists(policies, min_size=3, max_size=3))
    def open(self, found: list[Any]) -> None:
        self.ticket.policies = {team: one for team, one in zip(TEAMS, found, strict=True) if one}
        self.ticket.do(opened())

    @rule(command=COMMANDS, actor=st.sampled_from(["user:alice", "key:ci", "system:incidents"]))
    def somebody_does_something(self, command: c.Command, actor: str) -> None:
        with contextlib.suppress(CommandRefusedError):
            self.ticket.do(command, actor)

    @rule(minutes=st.integers(1, 200))
    def it_is_snoozed(self, minutes: int) -> None:
        self.somebody_does_something(c.Snooze(self.ticket.now + timedelta(minutes=minutes)), "user:alice")

    @rule(seconds=st.sampled_from([0, 1, 60, 300, 1800, 86_400]))
    def time_passes_without_a_sweep(self, seconds: int) -> None:
        self.ticket.now += timedelta(seconds=seconds)

    @rule(times=st.integers(1, 3))
    def the_sweep_runs(self, times: int) -> None:
        for _ in range(times):
            self.ticket.sweep()
            assert due(self.ticket.climbs, self.ticket.now) is None

    @rule(away=st.sets(st.sampled_from(["alice", "bob", "charlie"])))
    def people_come_and_go(self, away: set[str]) -> None:
        self.ticket.away = away

    @precondition(lambda self: next_step(self.ticket.climbs) is not None)
    @rule()
    def somebody_wants_the_next_step_now(self) -> None:
        one = self.ticket.climbs
        self.somebody_does_something(c.TakeStep(one, self.ticket.reached(one), "now"), "user:alice")

    @rule()
    def a_stale_claim_is_carried_out(self) -> None:
        one = self.ticket.climbs
        if next_step(one) is not None and due(one, self.ticket.now) is None:
            before = len(self.ticket.events)
            self.somebody_does_something(c.TakeStep(one, self.ticket.reached(one)), "system:escalation")
            assert len(self.ticket.events) == before

    @invariant()
    def a_ticket_that_waits_has_a_time_or_a_reason(self) -> None:
        state, one = self.ticket.state, self.ticket.escalation
        if state is None or one is None or state.state != "open":
            return
        if one.phase in ("starting", "climbing"):
            assert one.due_at is not None
        else:
            assert one.phase in ("exhausted", "uncalled")
            last = next(
                e for e in reversed(self.ticket.events) if e.type.endswith((one.phase, "escalation_skipped"))
            )
            assert last.body["why"] == one.why != ""

    @invariant()
    def an_acknowledged_ticket_is_watched_where_its_policy_says_so(self) -> None:
        state, one = self.ticket.state, self.ticket.escalation
        if state is None or one is None or state.state != "acknowledged":
            return
        assert one.phase == "acknowledged"
        watched = one.policy is not None and one.policy.acknowledgement_timeout is not None
        assert (one.due_at is not None) == (watched or not one.settled)

    @invariant()
    def what_rests_calls_nobody(self) -> None:
        state, one = self.ticket.state, self.ticket.escalation
        if state is not None and one is not None and state.state in ("snoozed", "resolved"):
            assert (one.phase, one.due_at) == ("paused", None)

    @invariant()
    def a_rebuild_gives_the_same(self) -> None:
        one = self.ticket.escalation
        if one is not None:
            assert folded(self.ticket.events) == one == escalation_from(as_json(one))

    def teardown(self) -> None:
        """Left alone, an incident that is open is climbed to the end of its policy."""
        if self.ticket.escalation is None:
            return
        self.ticket.policies = {team: policy(acknowledgement_timeout=None) for team in self.ticket.policies}
        for _ in range(30):
            self.ticket.later(86_400)
        assert self.ticket.state is not None
        if self.ticket.state.state == "open":
            assert self.ticket.climbs.phase in ("exhausted", "uncalled")


AnyOrder.TestCase.settings = settings(stateful_step_count=40)
TestAnyOrder = AnyOrder.TestCase
