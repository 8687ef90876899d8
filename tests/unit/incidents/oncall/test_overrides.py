"""Overrides and swaps: what may be taken over, and what may be taken back."""

from __future__ import annotations

from datetime import timedelta

import pytest

from incidents.domain.oncall.overrides import Stretch, check_reversible, ended, swapped, times_of
from incidents.domain.oncall.rotations import Override, Schedule, shifts
from incidents.domain.values import CommandRefusedError, InvalidValueError
from tests.unit.incidents.oncall.cases import DAY, at, weekly

NOW = at("2026-03-02T12:00")
TWO = Schedule((weekly("alice", "bob", turn=DAY),))
ALICES = Stretch("alice", at("2026-03-04T09:00"), at("2026-03-05T09:00"))
BOBS = Stretch("bob", at("2026-03-05T09:00"), at("2026-03-06T09:00"))


def test_an_override_never_begins_before_now() -> None:
    assert times_of(NOW - DAY, NOW + DAY, NOW) == (NOW, NOW + DAY)


@pytest.mark.parametrize(
    ("start", "end", "field"),
    [
        (None, NOW, "ends_at"),
        (NOW + DAY, NOW + DAY, "ends_at"),
        (None, NOW + 91 * DAY, "ends_at"),
        (NOW + 401 * DAY, NOW + 402 * DAY, "starts_at"),
    ],
    ids=["over", "empty", "too long", "too far away"],
)
def test_times_that_make_no_sense_are_refused(start: object, end: object, field: str) -> None:
    with pytest.raises(InvalidValueError) as refused:
        times_of(start, end, NOW)  # type: ignore[arg-type]
    assert refused.value.field == field


def test_a_swap_puts_each_where_the_other_was() -> None:
    overrides = swapped(TWO, ALICES, BOBS, NOW)
    after = shifts(Schedule(TWO.layers, overrides), at("2026-03-04T09:00"), at("2026-03-06T09:00"))
    assert [one.person for one in after] == ["bob", "alice"]


def test_nobody_works_more_or_less_by_a_swap_of_shifts_of_one_length() -> None:
    after = shifts(Schedule(TWO.layers, swapped(TWO, ALICES, BOBS, NOW)), NOW, NOW + 14 * DAY)
    before = shifts(TWO, NOW, NOW + 14 * DAY)
    assert [_hours(found, "alice") for found in (before, after)] == [_hours(before, "alice")] * 2


def _hours(found: object, person: str) -> timedelta:
    return sum((one.end - one.start for one in found if one.person == person), timedelta())  # type: ignore[attr-defined]


def test_a_shift_that_has_begun_is_swapped_from_now_on() -> None:
    begun = Stretch("alice", at("2026-03-02T09:00"), at("2026-03-03T09:00"))
    assert swapped(TWO, begun, BOBS, NOW)[0].start == NOW


@pytest.mark.parametrize(
    ("first", "field"),
    [
        (Stretch("bob", ALICES.start, ALICES.end), "second.person"),
        (Stretch("charlie", ALICES.start, ALICES.end), "first.person"),
        (Stretch("alice", ALICES.start, ALICES.end + DAY), "first.person"),
    ],
    ids=["oneself", "not on call", "not for all of it"],
)
def test_one_gives_away_only_what_one_has(first: Stretch, field: str) -> None:
    with pytest.raises(InvalidValueError) as refused:
        swapped(TWO, first, BOBS, NOW)
    assert refused.value.field == field


def test_a_stretch_with_a_gap_is_not_swapped() -> None:
    gappy = Schedule(
        (weekly("alice", "bob", turn=DAY, holidays="exclude"),), holidays=((BOBS.end - DAY / 2, BOBS.end),)
    )
    with pytest.raises(InvalidValueError, match="part of it is not covered"):
        swapped(gappy, ALICES, BOBS, NOW)


def test_an_override_that_has_begun_ends_now_and_one_that_has_not_leaves_nothing() -> None:
    assert ended((NOW - DAY, NOW + DAY), NOW) == NOW
    assert ended((NOW, NOW + DAY), NOW) is None


def test_an_override_that_is_over_cannot_be_ended() -> None:
    with pytest.raises(CommandRefusedError):
        ended((NOW - DAY, NOW), NOW)


def test_a_swap_is_taken_back_before_any_of_it_has_begun() -> None:
    check_reversible([(NOW + DAY, NOW + 2 * DAY)], NOW)
    with pytest.raises(CommandRefusedError):
        check_reversible([(NOW + DAY, NOW + 2 * DAY), (NOW, NOW + DAY)], NOW)


def test_an_override_is_stronger_than_ones_own_absence() -> None:
    away = {"alice": ((NOW, NOW + DAY),)}
    taken = Schedule(TWO.layers, (Override("alice", NOW, NOW + DAY),), away=away)
    assert {one.person for one in shifts(taken, NOW, NOW + DAY)} == {"alice"}
