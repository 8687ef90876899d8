"""People on call, by rotations, times of the week, absences and overrides."""

from __future__ import annotations

from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest

from incidents.domain.oncall.rotations import (
    Handover,
    Override,
    Schedule,
    Shift,
    StandIn,
    TimesOfWeek,
    Turn,
    gaps,
    next_handover,
    person_on_call,
    shifts,
    stand_in_at,
    turn_at,
)
from incidents.domain.oncall.spans import instant, wall
from tests.unit.incidents.oncall.cases import BERLIN, DAY, at, weekly

TWO = Schedule((weekly("alice", "bob"),))
EVENINGS = TimesOfWeek(frozenset(range(5)), timedelta(hours=18), timedelta(hours=6))


def test_people_take_turns() -> None:
    weeks = ["2026-03-02T09:00", "2026-03-09T08:59", "2026-03-09T09:00", "2026-03-16T09:00"]
    assert [person_on_call(TWO, at(week)) for week in weeks] == ["alice", "alice", "bob", "alice"]


def test_nobody_is_on_call_before_the_first_turn() -> None:
    assert person_on_call(TWO, at("2026-03-02T08:59")) is None


def test_the_hand_over_stays_at_nine_when_summer_comes() -> None:
    handed = [
        wall(one.start, BERLIN).hour for one in shifts(TWO, at("2026-03-09T12:00"), at("2026-04-20T12:00"))
    ]
    assert handed[1:] == [9] * 6


def test_the_week_of_the_change_is_an_hour_shorter() -> None:
    week = shifts(TWO, at("2026-03-23T09:00"), at("2026-03-30T09:00"))
    assert sum((one.end - one.start for one in week), timedelta()) == timedelta(hours=7 * 24 - 1)


def test_turns_of_twelve_hours_keep_their_hours_too() -> None:
    halves = Schedule((weekly("alice", "bob", turn=timedelta(hours=12)),))
    night = shifts(halves, at("2026-10-24T21:00"), at("2026-10-25T21:00"))
    assert [(one.end - one.start) / timedelta(hours=1) for one in night] == [13, 12]


@pytest.mark.parametrize(
    ("local", "offset"),
    [("2026-03-29T02:30", 1), ("2026-10-25T02:30", 2), ("2026-07-01T02:30", 2)],
    ids=["skipped: as before the gap", "twice: the first", "once"],
)
def test_local_times_are_read_as_rfc_5545_has_it(local: str, offset: int) -> None:
    naive = at(local, ZoneInfo("UTC")).replace(tzinfo=None)
    assert instant(naive, BERLIN) == at(local, ZoneInfo("UTC")) - timedelta(hours=offset)


def test_a_turn_of_a_day_that_an_island_skipped_does_not_take_place() -> None:
    apia = ZoneInfo("Pacific/Apia")
    days = weekly("alice", "bob", "charlie", start="2011-12-28T09:00", turn=DAY, zone=apia)
    found = shifts(Schedule((days,)), at("2011-12-28T09:00", apia), at("2012-01-01T09:00", apia))
    assert [one.person for one in found] == ["alice", "bob", "alice"]


def test_times_of_the_week_may_end_on_the_next_day() -> None:
    nights = Schedule((weekly("alice", times=(EVENINGS,)),))
    asked = [
        "2026-03-06T17:59",
        "2026-03-06T18:00",
        "2026-03-07T05:59",
        "2026-03-07T06:00",
        "2026-03-07T20:00",
    ]
    assert [person_on_call(nights, at(one)) for one in asked] == [None, "alice", "alice", None, None]


def test_the_last_layer_that_has_somebody_counts() -> None:
    both = Schedule((weekly("alice"), weekly("bob", name="nights", times=(EVENINGS,))))
    assert [person_on_call(both, at(one)) for one in ("2026-03-06T12:00", "2026-03-06T22:00")] == [
        "alice",
        "bob",
    ]


def test_an_override_wins_over_every_layer() -> None:
    covered = Schedule(
        TWO.layers, (Override("charlie", at("2026-03-03T10:00"), at("2026-03-03T12:00"), "7"),)
    )
    middle = Shift(at("2026-03-03T10:00"), at("2026-03-03T12:00"), "charlie", override="7")
    assert shifts(covered, at("2026-03-03T00:00"), at("2026-03-04T00:00"))[1] == middle


def test_an_override_tells_whose_place_it_takes_and_until_when() -> None:
    start, end = at("2026-03-03T10:00"), at("2026-03-03T12:00")
    overriding = Schedule(TWO.layers, (Override("charlie", start, end),))
    assert [stand_in_at(overriding, one) for one in (start - DAY, start, end)] == [
        None,
        StandIn(end, "alice"),
        None,
    ]
    own = Schedule(TWO.layers, (Override("alice", start, end),))
    assert stand_in_at(own, start) == StandIn(end, None)
    gone = Schedule(TWO.layers, (Override("charlie", start, end),), gone=frozenset({"charlie"}))
    assert stand_in_at(gone, start) is None


def test_of_two_overrides_the_one_that_was_made_last_counts() -> None:
    long = (at("2026-03-03T00:00"), at("2026-03-04T00:00"))
    assert (
        person_on_call(Schedule(TWO.layers, (Override("bob", *long), Override("charlie", *long))), long[0])
        == "charlie"
    )


def test_who_is_away_is_skipped_and_nobody_elses_turn_moves() -> None:
    three = Schedule(
        (weekly("alice", "bob", "charlie"),),
        away={"bob": ((at("2026-03-10T00:00"), at("2026-03-12T00:00")),)},
    )
    found = shifts(three, at("2026-03-02T09:00"), at("2026-03-23T09:00"))
    assert [one.person for one in found] == ["alice", "bob", "charlie", "bob", "charlie"]


def test_where_a_whole_rotation_is_away_the_layer_below_shows_through() -> None:
    away = ((at("2026-03-02T00:00"), at("2026-03-09T00:00")),)
    both = Schedule((weekly("charlie"), weekly("alice", name="top")), away={"alice": away})
    assert person_on_call(both, at("2026-03-03T00:00")) == "charlie"


def test_somebody_who_is_gone_is_never_on_call() -> None:
    override = Override("alice", at("2026-03-03T00:00"), at("2026-03-04T00:00"))
    assert (
        person_on_call(Schedule(TWO.layers, (override,), gone=frozenset({"alice"})), override.start) == "bob"
    )


def test_a_rotation_for_holidays_takes_over_on_holidays_only() -> None:
    holiday = (at("2026-03-04T00:00"), at("2026-03-05T00:00"))
    festive = weekly("charlie", name="holidays", holidays="only")
    both = Schedule((*TWO.layers, festive), holidays=(holiday,))
    found = [one.person for one in shifts(both, at("2026-03-03T00:00"), at("2026-03-06T00:00"))]
    assert found == ["alice", "charlie", "alice"]


def test_a_gap_is_when_nobody_is_on_call() -> None:
    nights = Schedule((weekly("alice", times=(EVENINGS,)),))
    assert gaps(nights, at("2026-03-05T00:00"), at("2026-03-06T00:00")) == [
        (at("2026-03-05T06:00"), at("2026-03-05T18:00"))
    ]


def test_a_schedule_of_one_has_no_hand_over() -> None:
    assert next_handover(Schedule((weekly("alice"),)), at("2026-03-03T00:00")) is None


@pytest.mark.parametrize(
    ("schedule", "now", "then"),
    [
        (TWO, "2026-03-03T00:00", Handover(at("2026-03-09T09:00"), "bob")),
        (TWO, "2026-02-01T00:00", Handover(at("2026-03-02T09:00"), "alice")),
        (
            Schedule((weekly("alice", times=(EVENINGS,)),)),
            "2026-03-03T20:00",
            Handover(at("2026-03-04T06:00"), None),
        ),
    ],
    ids=["to the next", "from nobody", "to nobody"],
)
def test_the_next_hand_over_says_when_and_to_whom(schedule: Schedule, now: str, then: Handover) -> None:
    assert next_handover(schedule, at(now)) == then


def test_a_rotation_that_ended_has_nobody() -> None:
    ended = weekly("alice", "bob", end=at("2026-03-12T09:00", ZoneInfo("UTC")).replace(tzinfo=None))
    assert shifts(Schedule((ended,)), at("2026-03-02T09:00"), at("2026-04-01T00:00"))[-1].end == at(
        "2026-03-12T09:00"
    )


def test_a_year_of_hourly_turns_covers_what_it_is_for() -> None:
    every = TimesOfWeek(frozenset(range(7)), timedelta(hours=1), timedelta(hours=23))
    hourly = weekly("alice", "bob", turn=timedelta(hours=1), times=(every,))
    found = shifts(Schedule((hourly,)), at("2026-03-02T09:00"), at("2027-03-02T09:00"))
    assert sum((one.end - one.start for one in found), timedelta()) == timedelta(hours=22 * 365)


def test_a_turn_has_the_bounds_of_the_rotation_wherever_it_is_asked() -> None:
    for moment in ("2026-03-09T09:00", "2026-03-12T03:00", "2026-03-16T08:59"):
        assert turn_at(TWO, at(moment)) == Turn("bob", at("2026-03-09T09:00"), at("2026-03-16T09:00"))


def test_a_turn_without_an_end_in_sight_has_none() -> None:
    alone = Schedule((weekly("alice"),))
    assert turn_at(alone, at("2026-03-20T12:00")) == Turn("alice", at("2026-03-02T09:00"), None)
    assert turn_at(alone, at("2028-03-20T12:00")) == Turn("alice", None, None)


def test_a_turn_goes_on_through_an_override_of_the_same_person() -> None:
    own = Override("bob", at("2026-03-16T09:00"), at("2026-03-17T09:00"))
    both = Schedule((weekly("alice", "bob"),), (own,))
    assert turn_at(both, at("2026-03-12T12:00")) == Turn(
        "bob", at("2026-03-09T09:00"), at("2026-03-17T09:00")
    )


def test_in_a_gap_there_is_no_turn() -> None:
    assert turn_at(TWO, at("2026-03-02T08:59")) is None
