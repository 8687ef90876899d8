"""Shifts as a calendar of weeks, and layers as fields of a form."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from frontend import rota, schedule_form
from incidents.domain.oncall.rotations import Override, Schedule, gaps, shifts
from incidents.domain.oncall.spans import Span
from tests.unit.incidents.oncall.cases import BERLIN, DAY, at, weekly

FIRST = date(2026, 3, 23)
"""A Monday; on its Sunday clocks go forward in Berlin."""
DAILY = weekly("alice", "bob", start="2026-03-23T09:00", turn=DAY)


def days(
    schedule: Schedule,
    first: date = FIRST,
    zone: ZoneInfo = BERLIN,
    holidays: Sequence[tuple[Span, str]] = (),
) -> list[rota.Day]:
    start, end = rota.edges(first, zone)[0], rota.edges(first + 7 * DAY, zone)[0]
    found = shifts(schedule, start, end), gaps(schedule, start, end)
    [week] = rota.weeks(*found, holidays, zone, first, date(2026, 3, 24), count=1)
    return week


def test_a_day_says_who_is_on_call_until_and_from_when() -> None:
    pieces = days(Schedule((DAILY,)))[1].pieces
    assert [(one.person, one.words) for one in pieces] == [("alice", "until 09:00"), ("bob", "from 09:00")]


def test_a_day_without_anybody_says_so() -> None:
    assert [(one.person, one.words) for one in days(Schedule((DAILY,)))[0].pieces] == [
        (None, "until 09:00"),
        ("alice", "from 09:00"),
    ]


def test_an_override_within_a_day_has_both_its_times() -> None:
    override = Override("charlie", at("2026-03-25T12:00"), at("2026-03-25T14:00"))
    assert ("charlie", "12:00–14:00", True) in [
        (one.person, one.words, one.override) for one in days(Schedule((DAILY,), (override,)))[2].pieces
    ]


def test_the_day_on_which_clocks_change_says_so() -> None:
    assert [one.clock for one in days(Schedule((DAILY,)))] == [""] * 6 + ["clocks go forward 1 h"]


def test_a_day_that_an_island_skipped_is_shown_as_skipped() -> None:
    week = days(Schedule(()), date(2011, 12, 26), ZoneInfo("Pacific/Apia"))
    assert (week[4].clock, week[4].pieces) == ("skipped by the calendar", ())


def test_a_holiday_stands_on_its_day_alone() -> None:
    holiday = (at("2026-03-25T00:00"), at("2026-03-26T00:00"))
    week = days(Schedule((DAILY,)), holidays=[(holiday, "Feast")])
    assert [one.holidays for one in week] == [(), (), ("Feast",), (), (), (), ()]


def test_today_is_marked() -> None:
    assert [one.today for one in days(Schedule((DAILY,)))].index(True) == 1


@pytest.mark.parametrize(
    ("minutes", "words"),
    [(45, "45 min"), (60, "1 h"), (3 * 1440 + 125, "3 d 2 h 5 min"), (0.5, "under a minute")],
)
def test_spans_are_told_in_days_hours_and_minutes(minutes: float, words: str) -> None:
    start = at("2026-03-23T00:00")
    assert rota.lasting((start, start + timedelta(minutes=minutes))) == words


LAYER = {
    "name": "nights",
    "people": ["alice", "bob"],
    "start": "2026-03-23T18:00",
    "turn": "12h",
    "times": [{"days": ["mon", "tue"], "from": "18:00", "to": "09:00"}],
    "end": "2026-06-01T09:00",
    "time_zone": "UTC",
    "holidays": "exclude",
}


def test_what_a_form_shows_of_a_layer_is_read_back() -> None:
    [fields, _] = schedule_form.as_fields([LAYER])
    assert schedule_form.read(fields) == LAYER


def test_an_empty_layer_and_one_that_is_removed_are_left_out() -> None:
    [fields, empty] = schedule_form.as_fields([LAYER])
    form = {f"layer-{n}-{name}": text for n in (0, 1) for name, text in fields.items()}
    form |= {"layer-1-remove": "on"} | {f"layer-2-{name}": text for name, text in empty.items()}
    assert schedule_form.typed(form) == [fields]


@pytest.mark.parametrize("line", ["weekdays 09:00-17:00", "mon", "mon 9", "mon,xyz 09:00-17:00", "\0"])
def test_times_that_make_no_sense_are_refused_with_an_example(line: str) -> None:
    [fields, _] = schedule_form.as_fields([LAYER])
    with pytest.raises(ValueError, match="such as"):
        schedule_form.read({**fields, "times": line})


def test_somebody_who_goes_on_by_another_layer_is_shown_once() -> None:
    begins = "2026-03-25T00:00"
    first = weekly("alice", start="2026-03-16T09:00", end=datetime.fromisoformat(begins))
    week = days(Schedule((first, weekly("alice", name="other", start=begins))))
    assert [len(one.pieces) for one in week] == [1] * 7


# A week by the hour
# ----------------------------------------------------------------------------------------------------------
def week_of_hours(
    schedule: Schedule, now: str = "2026-03-25T10:30", first: date = FIRST
) -> list[list[rota.Hour]]:
    start, end = rota.edges(first, BERLIN)[0], rota.edges(first + 7 * DAY, BERLIN)[0]
    found = shifts(schedule, start, end), gaps(schedule, start, end)
    return rota.hours(*found, BERLIN, first, at(now))


def test_a_week_is_24_hours_of_seven_days_on_the_clock_of_the_zone() -> None:
    rows = week_of_hours(Schedule((DAILY,)))
    assert [len(row) for row in rows] == [7] * 24
    assert (rows[0][0].at, rows[23][6].at) == ("2026-03-23T00:00", "2026-03-29T23:00")
    assert rows[23][6].until == "2026-03-30T00:00"


def test_a_name_stands_where_a_turn_or_a_day_begins_and_nowhere_else() -> None:
    column = [row[1] for row in week_of_hours(Schedule((DAILY,)))]
    assert [(n, one.name) for n, one in enumerate(column) if one.name] == [(0, "alice"), (9, "bob")]


def test_hours_without_anybody_are_told_from_others_in_words() -> None:
    cell = week_of_hours(Schedule((DAILY,)))[3][0]
    assert (cell.person, cell.label) == (None, "Mon 23 Mar 03:00, no one")


def test_a_change_within_an_hour_says_when() -> None:
    override = Override("charlie", at("2026-03-25T12:30"), at("2026-03-25T14:00"))
    cell = week_of_hours(Schedule((DAILY,), (override,)))[12][2]
    assert (cell.person, cell.changes) == ("alice", "12:30 charlie")


def test_an_hour_that_the_clock_skips_is_marked_and_takes_nobody() -> None:
    cell = week_of_hours(Schedule((DAILY,)))[2][6]
    assert (cell.exists, cell.label) == (False, "Sun 29 Mar 02:00, skipped hour (clock change)")


def test_the_hour_of_now_is_marked_once() -> None:
    rows = week_of_hours(Schedule((DAILY,)))
    assert [one.at for row in rows for one in row if one.now] == ["2026-03-25T10:00"]
