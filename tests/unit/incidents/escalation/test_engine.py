"""Escalation for an incident that nobody answers; what stops that and what starts it again."""

from __future__ import annotations

from datetime import timedelta

import pytest

from incidents.domain.incident import commands as c
from incidents.domain.incident.decide import CommandRefusedError
from incidents.domain.incident.escalation import as_json, escalation_from
from incidents.domain.incident.timeline import sentence
from tests.unit.incidents.escalation.cases import Ticket, folded, opened_ticket, policy
from tests.unit.incidents.incident.cases import NOON

UNTIL = NOON + timedelta(hours=2)
NETWORK = policy(slug="network", name="Network", steps=[{"actions": [{"person": "charlie"}]}])
STOPS = [c.Acknowledge(), c.Resolve("none"), c.Snooze(UNTIL)]


def climbing() -> Ticket:
    """Alice was called at noon."""
    ticket = opened_ticket()
    ticket.policies["network"] = NETWORK
    ticket.sweep()
    return ticket


def test_the_first_step_is_taken_as_soon_as_the_ticket_is_open() -> None:
    ticket = opened_ticket()
    assert ticket.sweep() == ["incident.escalation_started", "incident.escalated"]
    assert ticket.calls() == ["alice"]


def test_the_next_step_is_taken_when_its_time_has_come_and_not_before() -> None:
    ticket = climbing()
    assert [ticket.later(299), ticket.later(1)] == [[], ["incident.escalated"]]
    assert ticket.calls() == ["alice", "bob"]


def test_a_round_that_nobody_answers_is_repeated_after_its_wait() -> None:
    ticket = climbing()
    ticket.later(300)
    assert [ticket.later(599), ticket.later(1)] == [[], ["incident.escalated"]]
    assert (ticket.calls(), ticket.last("escalated").body["round"]) == (["alice", "bob", "alice"], 2)


def test_when_all_were_called_it_is_recorded_that_nobody_answered() -> None:
    ticket = climbing()
    for seconds in (300, 600, 300):
        ticket.later(seconds)
    assert [ticket.later(599), ticket.later(1), ticket.later(86_400)] == [
        [],
        ["incident.escalation_exhausted"],
        [],
    ]
    told = "escalation ended: notified alice, bob; no response within 30 min"
    assert sentence(ticket.last("escalation_exhausted")) == told
    assert (ticket.climbs.phase, ticket.climbs.due_at) == ("exhausted", None)


def test_after_a_pause_of_the_sweep_people_still_have_their_time_to_answer() -> None:
    ticket = climbing()
    assert ticket.later(86_400) == ["incident.escalated"]
    assert ticket.climbs.due_at == ticket.now + timedelta(seconds=600)


def test_a_step_that_reaches_nobody_is_followed_at_once_by_the_next() -> None:
    ticket = opened_ticket()
    ticket.away = {"alice"}
    ticket.sweep()
    assert ticket.calls() == ["bob"]
    said = next(sentence(event) for event in ticket.events if event.type == "incident.escalated")
    assert "could not notify alice: alice is away" in said


def test_a_round_that_reaches_nobody_does_not_spin() -> None:
    ticket = opened_ticket()
    ticket.away = {"alice", "bob"}
    assert ticket.sweep().count("incident.escalated") == 2
    assert ticket.climbs.due_at == NOON + timedelta(seconds=600)


def test_it_is_recorded_why_nobody_is_called_where_there_is_no_policy() -> None:
    ticket = opened_ticket()
    ticket.policies.clear()
    assert (ticket.sweep(), ticket.later(86_400)) == (["incident.escalation_skipped"], [])
    assert (ticket.climbs.phase, ticket.climbs.why) == ("uncalled", "no policy")


@pytest.mark.parametrize("command", STOPS)
def test_nobody_is_called_for_what_was_answered(command: c.Command) -> None:
    ticket = climbing()
    ticket.do(command)
    assert [ticket.later(300), ticket.calls()] == [[], ["alice"]]


@pytest.mark.parametrize(
    ("before", "again"),
    [
        ([c.Acknowledge()], c.Unacknowledge()),
        ([c.Resolve("none")], c.Reopen()),
        ([c.Snooze(UNTIL)], c.Undo("snooze")),
        ([c.Snooze(None)], c.RaiseSeverity("critical", "Disk 8 is gone")),
        ([], c.HandOver("storage-2", "theirs")),
    ],
)
def test_it_begins_anew_when_somebody_has_to_answer_again(before: list[c.Command], again: c.Command) -> None:
    ticket = climbing()
    ticket.policies["storage-2"] = policy()
    for command in (*before, again):
        ticket.do(command)
    assert ticket.sweep() == ["incident.escalation_started", "incident.escalated"]
    assert (ticket.calls(), ticket.climbs.run) == (["alice", "alice"], 2)


def test_a_ticket_that_was_handed_over_calls_the_people_of_its_new_team() -> None:
    ticket = climbing()
    ticket.do(c.HandOver("network", "the ToR drops packets"))
    ticket.sweep()
    assert ticket.calls() == ["alice", "charlie"]
    assert ticket.last("escalation_started").body["why"] == "handed over to network"


def test_a_ticket_that_bounces_calls_the_people_of_the_team_that_sent_it() -> None:
    ticket = climbing()
    ticket.do(c.HandOver("network", "the ToR drops packets"))
    ticket.do(c.Bounce("the ToR is fine"))
    ticket.sweep()
    assert ticket.calls() == ["alice", "alice"]


def test_a_policy_that_is_changed_meanwhile_holds_for_the_next_ticket_only() -> None:
    ticket = climbing()
    ticket.policies["storage"] = NETWORK
    ticket.later(300)
    assert ticket.calls() == ["alice", "bob"]


def test_a_ticket_that_was_acknowledged_and_forgotten_escalates_again() -> None:
    ticket = climbing()
    ticket.do(c.Acknowledge())
    assert ticket.later(1799) == []
    assert ticket.later(1)[0] == "incident.unacknowledged"
    assert ticket.calls() == ["alice", "alice"]
    why = "acknowledged by alice, no progress for 30 min"
    assert ticket.last("escalation_started").body["why"] == why


@pytest.mark.parametrize("work", [c.Comment("on it"), c.Assign("bob"), c.SetSeverity("info")])
def test_whoever_works_on_a_ticket_has_not_forgotten_it(work: c.Command) -> None:
    ticket = climbing()
    ticket.do(c.Acknowledge())
    ticket.later(1000)
    ticket.do(work)
    assert [ticket.later(1799), ticket.later(1)[:1]] == [[], ["incident.unacknowledged"]]


def test_what_machines_add_does_not_count_as_work() -> None:
    ticket = climbing()
    ticket.do(c.Acknowledge())
    ticket.later(1000)
    ticket.do(c.Comment("a note of a machine"), actor="system:incidents")
    assert ticket.later(800)[0] == "incident.unacknowledged"


def test_a_ticket_that_is_acknowledged_before_anybody_is_called_is_watched_all_the_same() -> None:
    ticket = opened_ticket(c.Acknowledge())
    assert ticket.sweep() == ["incident.escalation_started"]
    assert (ticket.calls(), ticket.climbs.due_at) == ([], NOON + timedelta(seconds=1800))


def test_an_acknowledged_ticket_is_left_alone_without_a_timeout() -> None:
    ticket = opened_ticket(found=policy(acknowledgement_timeout=None))
    ticket.sweep()
    ticket.do(c.Acknowledge())
    assert (ticket.climbs.due_at, ticket.later(10**6)) == (None, [])


@pytest.mark.parametrize(("restarts", "calls"), [(True, 2), (False, 1)])
def test_a_severity_that_rises_begins_anew_only_where_the_policy_says_so(restarts: bool, calls: int) -> None:
    ticket = opened_ticket(found=policy(restart_when_worse=restarts))
    ticket.sweep()
    ticket.do(c.SetSeverity("critical"))
    ticket.sweep()
    assert ticket.calls() == ["alice"] * calls


def test_a_step_makes_the_ticket_worse_and_opens_a_call_and_goes_on() -> None:
    actions = [{"person": "bob"}, {"severity": "critical"}, {"bridge": "https://meet.example/d-{number}"}]
    steps = [{"actions": [{"person": "alice"}]}, {"after": 60, "actions": actions}]
    ticket = opened_ticket(found=policy(steps=steps, restart_when_worse=True))
    ticket.sweep()
    assert ticket.later(60) == ["incident.escalated", "incident.severity_set", "incident.linked"]
    assert ticket.state is not None
    assert (ticket.state.severity, ticket.state.links[0]["href"]) == ("critical", "https://meet.example/d-1")
    assert ticket.climbs.round == 2


def test_a_severity_that_a_person_set_is_not_raised() -> None:
    ticket = opened_ticket(found=policy(steps=[{"actions": [{"person": "bob"}, {"severity": "critical"}]}]))
    ticket.do(c.SetSeverity("info"))
    assert "incident.severity_set" not in ticket.sweep()


def test_a_person_has_the_next_step_taken_at_once() -> None:
    ticket = climbing()
    ticket.do(c.TakeStep(ticket.climbs, ticket.reached(ticket.climbs), "Alice is on a plane"))
    assert (ticket.calls(), ticket.last("escalated").body["why"]) == (["alice", "bob"], "Alice is on a plane")


@pytest.mark.parametrize("before", [c.Acknowledge(), c.Snooze(UNTIL)])
def test_a_ticket_that_a_person_escalates_waits_for_somebody_again(before: c.Command) -> None:
    ticket = climbing()
    ticket.do(before)
    ticket.do(c.StartEscalation(policy(), "I need help", requested=True))
    assert ticket.state is not None
    assert ticket.state.state == "open"
    ticket.sweep()
    assert ticket.calls() == ["alice", "alice"]


def test_what_is_resolved_is_not_escalated() -> None:
    ticket = climbing()
    ticket.do(c.Resolve("none"))
    with pytest.raises(CommandRefusedError, match="resolved"):
        ticket.do(c.StartEscalation(policy(), "I need help", requested=True))


def test_a_step_that_is_claimed_twice_is_taken_once() -> None:
    ticket = climbing()
    ticket.now += timedelta(seconds=300)
    command = c.TakeStep(ticket.climbs, ticket.reached(ticket.climbs))
    ticket.do(command)
    again = c.TakeStep(ticket.climbs, command.reached)
    assert (ticket.do(again), ticket.calls()) == ([], ["alice", "bob"])


def test_somebody_who_is_reached_twice_in_a_step_is_called_once() -> None:
    ticket = opened_ticket(found=policy(steps=[{"actions": [{"person": "alice"}, {"person": "alice"}]}]))
    ticket.sweep()
    assert ticket.calls() == ["alice"]


def test_an_escalation_is_kept_as_it_is() -> None:
    ticket = climbing()
    assert escalation_from(as_json(ticket.climbs)) == ticket.climbs == folded(ticket.events)


@pytest.mark.parametrize("back", [timedelta(minutes=12), timedelta(days=1)])
def test_a_clock_that_is_set_back_leaves_nobody_uncalled_until_it_comes_there_again(back: timedelta) -> None:
    ticket = climbing()
    ticket.now -= back
    assert ticket.sweep() == ["incident.escalated"]


def test_a_ticket_that_was_opened_by_a_clock_that_is_set_back_starts_at_once() -> None:
    ticket = opened_ticket()
    ticket.now -= timedelta(hours=2)
    assert ticket.sweep()[0] == "incident.escalation_started"


def test_clocks_that_differ_a_little_call_nobody_early() -> None:
    ticket = climbing()
    ticket.now -= timedelta(seconds=50)
    assert ticket.sweep() == []
