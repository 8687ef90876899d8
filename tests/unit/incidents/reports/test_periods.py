"""Days, weeks and months of reports, in any time zone."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incidents.reports.periods import (
    CADENCES,
    MOST_MADE_UP,
    Cadence,
    Period,
    is_zone,
    named,
    over,
    period_at,
    period_of,
)

ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Pacific/Apia", "America/Sao_Paulo"]
cadences = st.sampled_from(CADENCES)
zones = st.sampled_from(ZONES)
moments = st.integers(978_307_200, 4_102_444_800).map(lambda at: datetime.fromtimestamp(at, UTC))
days = st.dates(date(2001, 1, 1), date(2100, 1, 1))


@given(cadences, zones, days)
def test_periods_follow_each_other_without_gap_or_overlap(cadence: Cadence, zone: str, day: date) -> None:
    period = period_of(cadence, day, zone)
    assert period.end == period.next().start
    assert period.next().previous() == period
    assert period.first <= day <= period.last


@given(cadences, zones, days)
def test_a_period_is_found_by_its_name(cadence: Cadence, zone: str, day: date) -> None:
    period = period_of(cadence, day, zone)
    assert named(cadence, period.name, zone) == period


@given(cadences, zones, moments)
def test_a_moment_lies_in_its_period(cadence: Cadence, zone: str, moment: datetime) -> None:
    period = period_at(cadence, moment, zone)
    assert period.start <= moment < period.end


def test_a_day_on_which_clocks_change_is_shorter_or_longer() -> None:
    spring, autumn = (
        Period("daily", date(2026, month, day), "Europe/Berlin") for month, day in ((3, 29), (10, 25))
    )
    assert (spring.end - spring.start, autumn.end - autumn.start) == (
        timedelta(hours=23),
        timedelta(hours=25),
    )


def test_weeks_are_those_of_iso_8601() -> None:
    assert period_of("weekly", date(2027, 1, 3), "UTC").name == "2026-W53"
    assert named("weekly", "2026-W53", "UTC").first == date(2026, 12, 28)


@pytest.mark.parametrize(
    ("cadence", "name"),
    [
        ("daily", "2026-02-30"),
        ("daily", "2026-W01"),
        ("weekly", "2026-W54"),
        ("monthly", "2026-13"),
        ("daily", "9999-12-31"),
    ],
)
def test_a_name_that_no_period_has_is_refused(cadence: Cadence, name: str) -> None:
    with pytest.raises(ValueError):
        named(cadence, name, "UTC")


NOON = datetime(2026, 5, 13, 12, tzinfo=UTC)


def names(cadence: Cadence, since: datetime, now: datetime = NOON, hour: int = 0) -> list[str]:
    return [period.name for period in over(cadence, "UTC", hour, since, now)]


def test_a_report_is_due_a_quarter_of_an_hour_after_the_end_or_at_its_hour() -> None:
    midnight = datetime(2026, 5, 13, tzinfo=UTC)
    since = midnight - timedelta(hours=30)  # on the 11th
    assert names("daily", since, midnight + timedelta(minutes=14)) == ["2026-05-11"]
    assert names("daily", since, midnight + timedelta(minutes=15)) == ["2026-05-11", "2026-05-12"]
    assert names("daily", since, midnight + timedelta(hours=6), hour=7) == ["2026-05-11"]


@pytest.mark.parametrize("cadence", CADENCES)
def test_missed_reports_are_made_up_but_not_for_ever(cadence: Cadence) -> None:
    assert len(names(cadence, datetime(2020, 1, 1, tzinfo=UTC))) == MOST_MADE_UP[cadence]


def test_the_period_in_which_everything_began_is_reported_too() -> None:
    assert names("daily", NOON - timedelta(days=1)) == ["2026-05-12"]


def test_a_zone_that_is_none_is_known_as_such() -> None:
    assert is_zone("Europe/Berlin")
    assert not is_zone("Europe/Atlantis")
    assert not is_zone("../etc/passwd")
