"""Times that come again: by the clock on the wall, also where the clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from time import perf_counter
from zoneinfo import ZoneInfo

import pytest
import recurring_ical_events
from hypothesis import given
from hypothesis import strategies as st
from icalendar import Calendar, Event, vRecur

from incidents.domain.suppression.recurrence import Recurrence, Span, Times, recurrence_from, times_from
from incidents.domain.values import InvalidValueError

BERLIN = ZoneInfo("Europe/Berlin")


def berlin(month: int, day: int, hour: int, minute: int = 0, year: int = 2026) -> datetime:
    return datetime(year, month, day, hour, minute, tzinfo=BERLIN).astimezone(UTC)


def times(rule: str, start: datetime, hours: float = 4, zone: str = "Europe/Berlin") -> Times:
    again = recurrence_from("recurrence", rule, zone)
    return times_from(start, start + timedelta(hours=hours), again)


NIGHTS = times("FREQ=DAILY", berlin(3, 1, 22), 8)


def test_once_is_once() -> None:
    once = Times(berlin(3, 1, 1), berlin(3, 1, 5))
    assert once.at(berlin(3, 1, 4)) == Span(berlin(3, 1, 1), berlin(3, 1, 5))
    assert once.at(berlin(3, 1, 5)) is None
    assert once.over(berlin(3, 1, 5))


def test_a_night_goes_by_the_clock_on_the_wall_when_it_is_an_hour_shorter() -> None:
    assert NIGHTS.at(berlin(3, 29, 5, 59)) == Span(berlin(3, 28, 22), berlin(3, 29, 6))
    assert NIGHTS.at(berlin(3, 29, 6)) is None


def test_a_night_goes_by_the_clock_on_the_wall_when_it_is_an_hour_longer() -> None:
    assert NIGHTS.at(berlin(10, 25, 5, 59)) == Span(berlin(10, 24, 22), berlin(10, 25, 6))


def test_a_start_that_the_clocks_skip_is_taken_as_before_the_change() -> None:
    early = times("FREQ=DAILY", berlin(3, 1, 2, 30), 1)
    assert early.after(berlin(3, 28, 12)) == Span(berlin(3, 29, 3, 30), berlin(3, 29, 4, 30))


def test_a_start_that_comes_twice_is_the_first_of_both() -> None:
    early = times("FREQ=DAILY", berlin(3, 1, 2, 30), 1)
    found = early.after(berlin(10, 24, 12))
    assert found is not None
    assert found.starts_at == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)


def test_the_first_sunday_of_the_month() -> None:
    sundays = times("FREQ=MONTHLY;BYDAY=1SU", berlin(1, 1, 4))
    found = sundays.after(berlin(5, 20, 0))
    assert found is not None
    assert found.starts_at == berlin(6, 7, 4)


def test_a_rule_ends_with_its_count_and_its_until() -> None:
    assert times("FREQ=DAILY;COUNT=2", berlin(3, 1, 1)).over(berlin(3, 2, 5))
    assert not times("FREQ=DAILY;UNTIL=20260303", berlin(3, 1, 1)).over(berlin(3, 3, 0))
    assert times("FREQ=DAILY;UNTIL=20260303", berlin(3, 1, 1)).over(berlin(3, 3, 5))


RULES = st.sampled_from(
    [
        "FREQ=DAILY",
        "FREQ=DAILY;INTERVAL=3",
        "FREQ=WEEKLY;BYDAY=MO,TH",
        "FREQ=WEEKLY;INTERVAL=2;BYDAY=SU",
        "FREQ=MONTHLY;BYMONTHDAY=-1",
        "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
        "FREQ=YEARLY;BYMONTH=3,10;BYDAY=-1SU",
        "FREQ=DAILY;COUNT=200",
    ]
)
ZONES = st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "UTC"])


@given(RULES, ZONES, st.integers(0, 31 * 24 * 4), st.integers(1, 18), st.integers(0, 400))
def test_it_agrees_with_recurring_ical_events(
    rule: str, zone: str, quarter: int, hours: int, day: int
) -> None:
    local = datetime(2026, 1, 1, tzinfo=ZoneInfo(zone)) + timedelta(minutes=15 * quarter)
    event = Event()
    event.add("dtstart", local)
    event.add("dtend", local + timedelta(hours=hours))
    event.add("rrule", vRecur.from_ical(rule))
    calendar = Calendar()
    calendar.add_component(event)
    ours = Times(
        local.astimezone(UTC), (local + timedelta(hours=hours)).astimezone(UTC), Recurrence(rule, zone)
    )
    moment = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=day)
    until = moment + timedelta(days=30)
    # To them the start is one of the times also where the rule does not name it.
    theirs = sorted(
        (one.start.astimezone(UTC), one.end.astimezone(UTC))
        for one in recurring_ical_events.of(calendar).between(moment, until)
        if moment < one.start.astimezone(UTC) < until and one.start != local
    )
    found: list[tuple[datetime, datetime]] = []
    after = moment
    while (span := ours.after(after)) is not None and span.starts_at < until:
        found += [(span.starts_at, span.ends_at)] if span.starts_at != local else []
        after = span.starts_at
    assert found == theirs


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ("", "missing|empty|blank|must"),
        ("daily", "such as"),
        ("FREQ=SECONDLY", "FREQ of"),
        ("FREQ=DAILY;BYHOUR=1", "must not have BYHOUR"),
        ("FREQ=DAILY;INTERVAL=7;BYDAY=MO", "must not have BYDAY"),
        ("FREQ=WEEKLY;BYDAY=1MO", "BYDAY"),
        ("FREQ=DAILY;INTERVAL=0", "INTERVAL"),
        ("FREQ=DAILY;INTERVAL=99999999999", "INTERVAL"),
        ("FREQ=DAILY;COUNT=2;UNTIL=20270101", "both"),
        ("FREQ=DAILY;UNTIL=20261399", "not an RFC 5545 rule"),
        ("FREQ=DAILY;FREQ=DAILY", "such as"),
        ("FREQ=MONTHLY;BYMONTHDAY=32", "BYMONTHDAY"),
    ],
)
def test_what_is_no_rule_is_refused_with_the_reason(rule: str, says: str) -> None:
    with pytest.raises(InvalidValueError, match=says):
        recurrence_from("recurrence", rule, "UTC")


def test_a_zone_that_there_is_not_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="not a time zone"):
        recurrence_from("recurrence", "FREQ=DAILY", "Mars/Olympus")


def test_a_rule_that_never_comes_true_is_refused_and_soon() -> None:
    began = perf_counter()
    with pytest.raises(InvalidValueError, match="never"):
        times("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", berlin(1, 1, 1))
    assert perf_counter() - began < 20


def test_spans_that_run_into_one_another_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="next start"):
        times("FREQ=DAILY", berlin(3, 1, 1), hours=25)
