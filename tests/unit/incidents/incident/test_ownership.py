"""Hand-overs, their answers, and how long each team and person had the incident."""

from __future__ import annotations

from datetime import timedelta

import pytest

from incidents.domain.incident import commands as c
from incidents.domain.incident.decide import CommandRefusedError
from incidents.domain.incident.state import Incident
from incidents.domain.values import InvalidValueError
from tests.unit.incidents.incident.cases import NOON, after, opened, types

TO_NETWORK = c.HandOver("network", "the ToR drops packets")


def minutes(count: int) -> timedelta:
    return timedelta(minutes=count)


def handed(*before: c.Command) -> Incident:
    return after(opened(), *before, TO_NETWORK)


def test_a_hand_over_waits_for_an_answer_to_the_team_that_sent_it() -> None:
    assert handed().handed_from == "storage"


def test_accepting_ends_the_wait_and_says_who() -> None:
    incident = after(c.Accept(), state=handed(), actor="user:bob")
    assert (incident.handed_from, incident.accepted_by, incident.state) == (None, "bob", "open")


def test_what_nobody_handed_over_cannot_be_accepted() -> None:
    with pytest.raises(CommandRefusedError, match="#1 has no pending hand-over"):
        types(after(opened()), c.Accept())


@pytest.mark.parametrize("command", [c.Accept(), c.Bounce("not ours"), c.Undo()])
def test_what_was_accepted_is_accepted_once_and_not_bounced(command: c.Command) -> None:
    with pytest.raises(CommandRefusedError, match="alice accepted #1 for network at 2026-11-21T12:00:00Z"):
        types(after(c.Accept(), state=handed()), command)


def test_a_bounce_goes_back_to_the_team_and_the_owner_that_sent_it() -> None:
    incident = after(c.Bounce("no port of ours drops"), state=handed(c.Assign("bob")))
    assert (incident.team, incident.owner, incident.state) == ("storage", "bob", "open")


def test_a_bounce_is_counted_as_a_hop_and_as_a_bounce() -> None:
    incident = after(c.Bounce("not ours"), state=handed())
    assert (incident.hops, incident.rejections) == (2, 1)


def test_what_came_back_does_not_bounce_again() -> None:
    with pytest.raises(CommandRefusedError, match="has no pending hand-over"):
        types(after(c.Bounce("not ours"), state=handed()), c.Bounce("nor ours"))


def test_what_somebody_acknowledged_may_still_bounce() -> None:
    assert types(after(c.Acknowledge(), state=handed()), c.Bounce("not ours")) == [
        "incident.reassignment_rejected"
    ]


def test_a_bounce_needs_a_reason() -> None:
    with pytest.raises(InvalidValueError, match="reason"):
        c.Bounce(" ")


def test_a_hand_over_that_nobody_answered_is_undone_as_if_it_had_not_been() -> None:
    before = after(opened(), c.Acknowledge())
    undone = after(TO_NETWORK, c.Undo(), state=before)
    assert (undone.team, undone.owner, undone.state, undone.hops, undone.acknowledged_by) == (
        "storage",
        "alice",
        "acknowledged",
        0,
        "alice",
    )


def test_a_hand_over_on_which_somebody_is_already_is_not_undone() -> None:
    with pytest.raises(CommandRefusedError, match="bob of network is already working on #1"):
        types(after(c.Assign("bob"), state=handed()), c.Undo())


def test_a_ticket_passed_on_bounces_to_the_last_sender() -> None:
    incident = after(c.HandOver("compute", "the host"), c.Bounce("not ours"), state=handed())
    assert incident.team == "network"


def test_a_hand_over_to_the_team_that_has_it_says_since_when() -> None:
    with pytest.raises(CommandRefusedError, match="already with network, since 2026-11-21T12:00:00Z"):
        types(handed(), TO_NETWORK)


def test_the_times_of_the_teams_add_up_to_the_time_it_was_open() -> None:
    incident = after(opened())
    incident = after(TO_NETWORK, state=incident, now=NOON + minutes(10))
    incident = after(c.Bounce("not ours"), state=incident, now=NOON + minutes(15))
    incident = after(c.Resolve("none"), state=incident, now=NOON + minutes(45))
    assert incident.team_seconds == {"storage": 2400.0, "network": 300.0}


def test_the_time_of_an_owner_counts_while_it_is_theirs() -> None:
    incident = after(opened(), c.Assign("bob"))
    incident = after(c.Assign("charlie"), state=incident, now=NOON + minutes(3))
    incident = after(TO_NETWORK, state=incident, now=NOON + minutes(10))
    incident = after(c.Resolve("none"), state=incident, now=NOON + minutes(20))
    assert incident.owner_seconds == {"bob": 180.0, "charlie": 420.0}


def test_a_resolved_ticket_is_with_nobody_until_it_is_reopened() -> None:
    incident = after(opened())
    incident = after(c.Resolve("none"), state=incident, now=NOON + minutes(1))
    incident = after(c.Reopen(), state=incident, now=NOON + minutes(61))
    incident = after(c.Resolve("none"), state=incident, now=NOON + minutes(63))
    assert incident.team_seconds == {"storage": 180.0}


def test_the_time_to_the_right_team_ends_when_it_came_to_stay() -> None:
    incident = after(opened())
    incident = after(TO_NETWORK, state=incident, now=NOON + minutes(10))
    incident = after(c.Bounce("not ours"), state=incident, now=NOON + minutes(15))
    incident = after(c.Resolve("none"), state=incident, now=NOON + minutes(45))
    assert incident.seconds_to_team == 900.0


def test_an_open_ticket_has_not_found_its_team_yet() -> None:
    assert handed().seconds_to_team is None


def test_an_undone_hand_over_does_not_lengthen_the_way_to_the_right_team() -> None:
    incident = after(TO_NETWORK, state=after(opened()), now=NOON + minutes(10))
    incident = after(c.Undo(), state=incident, now=NOON + minutes(11))
    assert after(c.Resolve("none"), state=incident, now=NOON + minutes(20)).seconds_to_team == 0.0


def test_a_past_event_takes_no_time_back() -> None:
    incident = after(TO_NETWORK, state=after(opened()), now=NOON + minutes(10))
    earlier = after(c.Assign("bob"), state=incident, now=NOON + minutes(5))
    assert earlier.counted_at == NOON + minutes(10)
