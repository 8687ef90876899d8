"""Whatever the schedule: shifts divide the time, agree with the obvious way, and with calendars' own recurrences."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import icalendar
import recurring_ical_events
from hypothesis import given
from hypothesis import strategies as st

from incidents.domain.oncall.rotations import Rotation, Schedule, gaps, next_handover, person_on_call, shifts
from tests.unit.incidents.oncall.cases import YEAR, ZONE, obvious, schedules

Case = tuple[Schedule, datetime, datetime]


@given(schedules())
def test_shifts_and_gaps_divide_the_time(case: Case) -> None:
    schedule, start, end = case
    taken = [(one.start, one.end) for one in shifts(schedule, start, end)]
    spans = sorted([*taken, *gaps(schedule, start, end)])
    assert spans[0][0] == start
    assert spans[-1][1] == end
    assert all(one[1] == after[0] and one[0] < one[1] for one, after in pairwise(spans))


@given(schedules(), st.data())
def test_shifts_say_what_the_obvious_way_says(case: Case, data: st.DataObject) -> None:
    schedule, start, end = case
    found = shifts(schedule, start, end)
    edges = [start, *(edge for one in found for edge in (one.start, one.end, one.end - timedelta(minutes=1)))]
    at = data.draw(st.sampled_from([edge for edge in edges if start <= edge < end]))
    assert [one.person for one in found if one.start <= at < one.end] == [
        person for person in [obvious(schedule, at)] if person
    ]


@given(schedules())
def test_who_agrees_with_shifts(case: Case) -> None:
    schedule, start, end = case
    for one in shifts(schedule, start, end):
        assert (
            person_on_call(schedule, one.start)
            == person_on_call(schedule, one.end - timedelta(seconds=1))
            == one.person
        )


@given(schedules())
def test_a_part_of_the_shifts_is_the_shifts_of_a_part(case: Case) -> None:
    schedule, start, end = case
    middle = start + (end - start) / 2
    parts = [*shifts(schedule, start, middle), *shifts(schedule, middle, end)]
    whole = shifts(schedule, start, end)
    assert sum((one.end - one.start for one in parts), timedelta()) == sum(
        (one.end - one.start for one in whole), timedelta()
    )
    assert {one.person for one in parts} == {one.person for one in whole}


@given(schedules())
def test_the_last_override_of_somebody_who_is_there_is_kept(case: Case) -> None:
    schedule, start, end = case
    last = next((one for one in reversed(schedule.overrides) if one.person not in schedule.gone), None)
    if last is not None and max(start, last.start) < min(end, last.end):
        assert person_on_call(schedule, max(start, last.start)) == last.person


@given(schedules())
def test_the_next_hand_over_is_the_first_change(case: Case) -> None:
    schedule, start, _ = case
    found = next_handover(schedule, start)
    if found is not None:
        before: set[str | None] = {one.person for one in shifts(schedule, start, found.at)} or {None}
        assert before == {person_on_call(schedule, start)}
        assert person_on_call(schedule, found.at) == found.person
        assert found.person not in before


@given(YEAR, ZONE, st.integers(0, 370 * 96), st.sampled_from(["DAILY", "WEEKLY"]), st.integers(1, 5))
def test_turns_begin_when_a_calendar_says_so(
    year: int, zone: ZoneInfo, quarter: int, freq: str, interval: int
) -> None:
    first = datetime(year, 1, 1) + timedelta(minutes=15 * quarter)  # noqa: DTZ001 on the wall
    turn = {"DAILY": timedelta(days=1), "WEEKLY": timedelta(weeks=1)}[freq] * interval
    window = (datetime(year - 1, 12, 1, tzinfo=UTC), datetime(year + 1, 12, 31, tzinfo=UTC))
    rotation = Rotation("calendar", ("alice", "bob"), first, zone, turn)
    numbers = [number for _, _, number in rotation.turns(window)]
    assert _calendar(first, zone, freq, interval, *window) == {
        rotation.begins(n) for n in range(numbers[0], numbers[-1] + 1) if rotation.begins(n) < window[1]
    }


def _calendar(
    first: datetime, zone: ZoneInfo, freq: str, interval: int, start: datetime, end: datetime
) -> set[datetime]:
    """Times at which an event of a calendar with this rule begins."""
    event = icalendar.Event()
    event.add("uid", "turn")
    event.add("dtstart", first.replace(tzinfo=zone))
    event.add("duration", timedelta(minutes=1))
    event.add("rrule", {"freq": freq, "interval": interval})
    calendar = icalendar.Calendar()
    calendar.add_component(event)
    found = recurring_ical_events.of(calendar).between(start, end)
    return {one["DTSTART"].dt.astimezone(UTC) for one in found}
