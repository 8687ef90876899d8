"""Suppressions that are only proposed, over the past."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from incidents.domain.suppression.past import Firing, PastSuppression, Suppressions, proposed
from incidents.domain.suppression.recurrence import Recurrence, Times, earlier
from incidents.domain.suppression.rules import Matcher, Silence, Window

DAY = timedelta(days=1)
START = datetime(2026, 10, 22, tzinfo=UTC)
SATURDAY = datetime(2026, 11, 28, 22, tzinfo=UTC)
AGAIN = Recurrence("FREQ=WEEKLY;BYDAY=SA", "UTC")
WINDOW = Window("1", "work", "", ("host/*",), (), Times(SATURDAY, SATURDAY + timedelta(hours=4)), "hold")
SILENCE = Silence(
    "1", (Matcher("alertname", "DiskSlow"),), SATURDAY, SATURDAY + 30 * DAY, "alice", "too many"
)


def firing(at: datetime, lasts: timedelta | None = None) -> Firing:
    labels = {"alertname": "DiskSlow"}
    return Firing("1", "host/1", labels, labels, at, None if lasts is None else at + lasts)


def free_at(suppressions: Suppressions, one: Firing) -> datetime | None:
    return PastSuppression(proposed(Suppressions(), suppressions, START), [one]).free_at(one)


def test_a_window_that_comes_once_is_taken_in_every_week_of_the_past() -> None:
    held = Suppressions(windows=(WINDOW,))
    for weeks in range(1, 6):
        one = firing(SATURDAY - weeks * 7 * DAY + timedelta(hours=1))
        assert free_at(held, one) == one.start + timedelta(hours=3)
    friday = firing(SATURDAY - DAY)
    assert free_at(held, friday) == friday.start


def test_a_window_that_recurs_has_its_times_before_its_first_one() -> None:
    held = Suppressions(windows=(replace(WINDOW, times=replace(WINDOW.times, recurrence=AGAIN)),))
    one = firing(SATURDAY - 28 * DAY)
    assert free_at(held, one) == one.start + timedelta(hours=4)


def test_a_silence_that_holds_once_holds_all_the_time() -> None:
    assert free_at(Suppressions(silences=(SILENCE,)), firing(START + DAY)) is None


def test_a_silence_that_is_not_new_holds_when_it_did() -> None:
    known = Suppressions(silences=(SILENCE,))
    one, late = firing(START + DAY), firing(SATURDAY + DAY)
    rules = PastSuppression(proposed(known, known, START), [one, late])
    assert (rules.free_at(one), rules.free_at(late)) == (one.start, SILENCE.ends_at)


def test_an_alert_that_ends_while_it_is_suppressed_is_never_free() -> None:
    held = Suppressions(windows=(WINDOW,))
    assert free_at(held, firing(SATURDAY, timedelta(hours=2))) is None


def test_one_suppression_after_the_other_holds_until_the_last() -> None:
    later = replace(
        WINDOW, slug="more", times=Times(SATURDAY + timedelta(hours=3), SATURDAY + timedelta(hours=6))
    )
    assert free_at(Suppressions(windows=(WINDOW, later)), firing(SATURDAY)) == SATURDAY + timedelta(hours=6)


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=DAILY",
        "FREQ=DAILY;INTERVAL=3",
        "FREQ=WEEKLY;BYDAY=MO,TH",
        "FREQ=WEEKLY;INTERVAL=2;BYDAY=SA",
        "FREQ=MONTHLY;BYDAY=1SU",
        "FREQ=MONTHLY;BYMONTHDAY=13",
        "FREQ=YEARLY",
    ],
)
def test_times_begun_earlier_are_the_same_from_their_first_one_on(rule: str) -> None:
    times = Times(SATURDAY, SATURDAY + timedelta(hours=4), Recurrence(rule, "Europe/Berlin"))
    moved = earlier(times, START)
    assert moved.starts_at <= START
    at = SATURDAY - timedelta(minutes=1)
    for _ in range(5):
        one, other = times.after(at), moved.after(at)
        assert one == other
        assert one is not None
        at = one.starts_at


def test_times_that_keep_no_phase_begin_where_they_did() -> None:
    times = Times(SATURDAY, SATURDAY + timedelta(hours=4), Recurrence("FREQ=MONTHLY;INTERVAL=5", "UTC"))
    assert earlier(times, START) == times


def test_a_limit_on_the_number_of_times_does_not_end_them_earlier() -> None:
    times = Times(SATURDAY, SATURDAY + timedelta(hours=4), Recurrence("FREQ=WEEKLY;COUNT=1", "UTC"))
    assert earlier(times, START).at(SATURDAY - 7 * DAY) is not None
