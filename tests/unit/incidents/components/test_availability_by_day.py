from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from incidents.domain.components.availability import merged, up_between, up_by_part

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def test_overlapping_outages_count_once() -> None:
    spans = [(NOON, NOON + 2 * HOUR), (NOON + HOUR, NOON + 3 * HOUR)]
    assert up_between(spans, NOON, NOON + 4 * HOUR) == pytest.approx(0.25)


def test_outages_are_cut_to_what_is_asked_about() -> None:
    assert merged([(NOON - HOUR, NOON + HOUR)], NOON, NOON + 4 * HOUR) == [(NOON, NOON + HOUR)]


def test_a_time_without_length_lost_nothing() -> None:
    assert up_between([(NOON, NOON + HOUR)], NOON, NOON) == 1.0


def test_each_part_has_its_own_availability_and_the_last_may_be_short() -> None:
    parts = up_by_part([(NOON, NOON + HOUR)], NOON, NOON + 2.5 * HOUR, HOUR)
    assert [one.up for one in parts] == [0.0, 1.0, 1.0]
    assert parts[-1].end - parts[-1].start == HOUR / 2
