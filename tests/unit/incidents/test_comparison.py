"""Two moments beside each other: which shares differ, and which times make sense."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from incidents.domain.comparison import Share, cell_changes, check_order, deviation, only_in
from incidents.domain.values import InvalidValueError

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def test_a_share_that_rises_clearly_is_a_change_and_one_of_little_evidence_is_none() -> None:
    before = {("a", "x"): Share(1000, 1), ("b", "x"): Share(10, 0), ("c", "x"): Share(1000, 10)}
    after = {("a", "x"): Share(1000, 120), ("b", "x"): Share(10, 1), ("c", "x"): Share(1000, 12)}
    found, count = cell_changes(before, after, 10)
    assert ([(one.row, one.column) for one in found], count) == ([("a", "x")], 1)
    assert found[0].deviation > 0


def test_fewer_failures_are_a_change_too_and_the_clearest_comes_first() -> None:
    before = {("a", ""): Share(1000, 300), ("b", ""): Share(1000, 0)}
    after = {("a", ""): Share(1000, 0), ("b", ""): Share(1000, 60)}
    found, count = cell_changes(before, after, 1)
    assert ([one.row for one in found], count) == (["a"], 2)
    assert found[0].deviation < 0


@pytest.mark.parametrize(("before", "after"), [(Share(0, 0), Share(9, 9)), (Share(9, 9), Share(0, 0))])
def test_a_cell_without_data_at_one_moment_has_not_changed(before: Share, after: Share) -> None:
    assert deviation(before, after) == 0.0


def test_swapping_the_moments_turns_the_sign() -> None:
    one, two = Share(500, 20), Share(800, 90)
    assert deviation(one, two) == pytest.approx(-deviation(two, one))


@pytest.mark.parametrize(
    ("start", "end", "field"),
    [(NOON, NOON, "from"), (NOON, NOON - HOUR, "from"), (NOON, NOON + 2 * HOUR, "to")],
)
def test_times_in_the_wrong_order_or_to_come_are_refused(start: datetime, end: datetime, field: str) -> None:
    with pytest.raises(InvalidValueError) as refused:
        check_order(start, end, NOON + HOUR)
    assert refused.value.field == field


def test_what_only_one_side_has_is_told_apart() -> None:
    assert only_in(["a", "b"], ["b", "c"]) == (["a"], ["c"])
