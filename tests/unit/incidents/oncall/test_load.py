"""On-call load: hours, nights and weekends by the clock of a person, interruptions, fairness, and what events have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incidents.domain.oncall.load import (
    Acknowledgement,
    Call,
    Changed,
    Duty,
    PersonLoad,
    Recorded,
    calls_of,
    gini,
    interruptions,
    load_of,
    versions,
)
from incidents.domain.oncall.rotations import Override, Schedule, shifts
from tests.unit.incidents.oncall.cases import BERLIN, at, weekly

NEW_YORK = ZoneInfo("America/New_York")
MONDAY, NEXT = at("2026-03-23T00:00"), at("2026-03-30T00:00")
"""Clocks in Berlin go from 02:00 to 03:00 on Sunday, 29 March."""


def duty(person: str, start: str, end: str, zone: ZoneInfo = BERLIN, team: str = "storage") -> Duty:
    return Duty(person, team, at(start, zone), at(end, zone), zone)


def recorded(*duties: Duty, **more: Any) -> Recorded:
    return Recorded(
        **{"duties": duties, "calls": (), "acknowledgements": (), "members": {}, "zones": {}, **more}
    )


def of(person: str, found: Recorded, start: datetime = MONDAY, end: datetime = NEXT) -> PersonLoad:
    return next(one for one in load_of(found, start, end).people if one.person == person)


@pytest.mark.parametrize(
    ("start", "end", "night"),
    [
        ("2026-03-28T22:00", "2026-03-29T07:00", 8),  # spring: an hour less
        ("2026-03-25T22:00", "2026-03-26T07:00", 9),
        ("2026-03-25T12:00", "2026-03-25T23:30", 1.5),
        ("2026-03-25T07:00", "2026-03-25T22:00", 0),
    ],
)
def test_night_hours_are_those_that_passed_on_the_clock_of_the_night(
    start: str, end: str, night: float
) -> None:
    assert of("alice", recorded(duty("alice", start, end))).night_hours == night


def test_the_night_of_autumn_is_an_hour_longer() -> None:
    found = recorded(duty("alice", "2026-10-24T22:00", "2026-10-25T07:00"))
    assert of("alice", found, at("2026-10-19T00:00"), at("2026-10-26T00:00")).night_hours == 10


def test_a_weekend_has_48_hours_and_47_in_spring() -> None:
    whole = recorded(duty("alice", "2026-03-23T00:00", "2026-03-30T00:00"))
    assert (of("alice", whole).hours, of("alice", whole).weekend_hours) == (167, 47)


def test_the_clock_is_that_of_the_person_where_they_have_one() -> None:
    turn = duty("alice", "2026-03-25T08:00", "2026-03-25T11:00")
    assert of("alice", recorded(turn)).night_hours == 0
    there = of("alice", recorded(turn, zones={"alice": NEW_YORK}))  # 03:00 to 06:00
    assert (there.night_hours, there.zone) == (3, "America/New_York")


def test_time_on_two_schedules_of_a_team_counts_once() -> None:
    found = recorded(
        duty("alice", "2026-03-25T08:00", "2026-03-25T12:00"),
        duty("alice", "2026-03-25T10:00", "2026-03-25T14:00"),
    )
    assert of("alice", found).hours == 6


def test_an_override_moves_hours_from_one_to_the_other() -> None:
    rota = Schedule(
        (weekly("alice", "bob", start="2026-03-23T09:00"),),
        (Override("bob", at("2026-03-24T20:00"), at("2026-03-25T08:00")),),
    )
    turns = [Duty(one.person, "storage", one.start, one.end, BERLIN) for one in shifts(rota, MONDAY, NEXT)]
    found = load_of(recorded(*turns), at("2026-03-23T09:00"), at("2026-03-28T09:00"))
    assert [(one.person, one.hours, one.night_hours) for one in found.people] == [
        ("alice", 108, 36),
        ("bob", 12, 9),
    ]
    assert [one.share for one in found.people] == pytest.approx([0.9, 0.1])


def test_a_hand_over_in_the_middle_of_the_night_divides_it() -> None:
    found = recorded(
        duty("alice", "2026-03-24T09:00", "2026-03-25T01:00"),
        duty("bob", "2026-03-25T01:00", "2026-03-25T09:00"),
    )
    assert (of("alice", found).night_hours, of("bob", found).night_hours) == (3, 6)


def test_messages_within_five_minutes_are_one_interruption() -> None:
    start = at("2026-03-25T03:00")
    moments = [start + timedelta(minutes=n) for n in (0, 1, 4, 5, 20)]
    assert interruptions(moments) == [moments[0], moments[3], moments[4]]
    found = of("alice", recorded(calls=[Call("alice", "storage", one) for one in moments]))
    assert (found.calls, found.interruptions, found.night_interruptions) == (5, 3, 3)


@pytest.mark.parametrize(("clock", "night"), [("21:59", 0), ("22:00", 1), ("06:59", 1), ("07:00", 0)])
def test_an_interruption_is_at_night_from_22_to_7(clock: str, night: int) -> None:
    found = recorded(zones={"alice": BERLIN}, calls=[Call("alice", "storage", at(f"2026-03-25T{clock}"))])
    assert of("alice", found).night_interruptions == night


def test_a_team_that_was_not_called_has_hours_and_no_unfairness_of_interruptions() -> None:
    found = load_of(
        recorded(
            duty("alice", "2026-03-23T00:00", "2026-03-24T00:00"),
            duty("bob", "2026-03-24T00:00", "2026-03-25T00:00"),
        ),
        MONDAY,
        NEXT,
    )
    (team,) = found.teams
    assert (team.interruptions, team.gini_interruptions, team.gini_hours) == (0, None, 0)
    assert [one.acknowledge_seconds for one in found.people] == [None, None]


def test_a_member_without_a_turn_counts_as_one_of_those_who_share() -> None:
    turn = duty("alice", "2026-03-23T00:00", "2026-03-24T00:00")
    found = load_of(recorded(turn, members={"storage": {"alice", "bob"}}), MONDAY, NEXT)
    assert [(one.person, one.share, one.ratio) for one in found.people] == [("alice", 1, 2), ("bob", 0, 0)]
    assert found.teams[0].gini_hours == 0.5


def test_a_person_called_outside_of_all_rotations_has_no_share() -> None:
    turn = duty("alice", "2026-03-23T00:00", "2026-03-24T00:00")
    found = recorded(turn, calls=[Call("charlie", "storage", MONDAY)])
    assert (of("charlie", found).share, of("charlie", found).interruptions) == (None, 1)
    assert load_of(found, MONDAY, NEXT).teams[0].people == 1


def test_a_period_shorter_than_the_rotation_is_partial() -> None:
    turn = duty("alice", "2026-03-23T00:00", "2026-03-24T00:00")
    (team,) = load_of(recorded(turn, cycles={"storage": timedelta(weeks=2)}), MONDAY, NEXT).teams
    assert team.is_partial(timedelta(weeks=1))
    assert not team.is_partial(timedelta(weeks=2))


def test_nothing_recorded_is_no_load() -> None:
    found = load_of(recorded(), MONDAY, NEXT)
    assert (found.people, found.teams) == ((), ())


def test_another_team_is_left_out() -> None:
    turns = [
        duty("alice", "2026-03-23T00:00", "2026-03-24T00:00", team=team) for team in ("network", "storage")
    ]
    assert [one.team for one in load_of(recorded(*turns), MONDAY, NEXT, "network").people] == ["network"]


def test_the_trend_has_the_last_weeks_also_before_the_period() -> None:
    turn = duty("alice", "2026-03-10T00:00", "2026-03-11T00:00")
    weeks = of("alice", recorded(turn, members={"storage": {"alice"}})).weeks
    assert [week.hours for week in weeks] == [0, 0, 0, 0, 0, 24, 0, 0]
    assert weeks[-1].end == NEXT


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=20).filter(lambda values: sum(values) > 1))
def test_gini_is_half_the_mean_difference_over_the_mean(values: list[float]) -> None:
    pairs = [abs(one - other) for one in values for other in values]
    mean = sum(values) / len(values)
    assert gini(values) == pytest.approx(sum(pairs) / len(pairs) / 2 / mean, abs=1e-9)


# Events
# ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Event:
    type: str
    body: Mapping[str, Any] = field(default_factory=dict)
    minute: int = 0
    actor: str = "system:delivery"
    stream: str = "incident/1"

    @property
    def occurred_at(self) -> datetime:
        return datetime(2026, 3, 25, 3, self.minute, tzinfo=UTC)


OPENED = Event("incident.opened", {"routing": {"team": "storage"}})


def notified(
    person: str | None = "alice", minute: int = 0, key: str = "escalation/1", outcome: str = "sent"
) -> Event:
    body = {"person": person, "notification": key, "outcome": outcome}
    return Event("incident.notified", body, minute)


def acknowledged(minute: int, actor: str = "user:alice") -> Event:
    return Event("incident.acknowledged", {}, minute, actor)


def test_a_message_by_two_methods_is_one_call() -> None:
    calls, _ = calls_of([OPENED, notified(), notified(minute=1), notified(minute=9, key="escalation/2")], {})
    assert [(one.person, one.team, one.at.minute) for one in calls] == [
        ("alice", "storage", 0),
        ("alice", "storage", 9),
    ]


@pytest.mark.parametrize(
    "event", [notified(outcome="failed"), notified(person=None), notified(key="over:1:2:alice")]
)
def test_what_reached_no_person_or_ended_an_incident_is_no_call(event: Event) -> None:
    assert calls_of([OPENED, event], {}) == ([], [])


def test_the_time_to_acknowledge_runs_from_the_first_message_to_that_person() -> None:
    events = [
        OPENED,
        notified("bob"),
        notified(minute=2, key="2"),
        notified(minute=4, key="3"),
        acknowledged(5),
    ]
    _, (answer,) = calls_of(events, {})
    assert (answer.person, answer.seconds) == ("alice", 180)


def test_a_second_acknowledgement_is_measured_from_the_second_call() -> None:
    events = [OPENED, notified(), acknowledged(1), notified(minute=30, key="2"), acknowledged(34)]
    assert [one.seconds for one in calls_of(events, {})[1]] == [60, 240]


def test_an_acknowledgement_without_a_call_has_no_time_and_one_by_a_key_is_no_persons() -> None:
    _, found = calls_of([OPENED, acknowledged(1), acknowledged(2, "key:ci")], {})
    assert found == [Acknowledgement("alice", "storage", found[0].at, "incident/1", None)]


def test_a_call_counts_for_the_team_that_had_the_incident_then() -> None:
    moved = Event("incident.reassigned", {"from": "storage", "to": "network"}, 3)
    calls, _ = calls_of([notified(), moved, notified(minute=5, key="2")], {"incident/1": "storage"})
    assert [one.team for one in calls] == ["storage", "network"]


def test_each_part_of_a_span_has_what_was_configured_then() -> None:
    middle = MONDAY + timedelta(days=3)
    changes = [
        Changed(MONDAY - timedelta(days=9), None, "first"),
        Changed(middle, "first", "second"),
        Changed(NEXT + timedelta(days=1), "second", None),
    ]
    assert versions(changes, None, (MONDAY, NEXT)) == [
        ((MONDAY, middle), "first"),
        ((middle, NEXT), "second"),
    ]
    assert versions([], "now", (MONDAY, NEXT)) == [((MONDAY, NEXT), "now")]
