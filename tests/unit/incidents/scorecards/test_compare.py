"""Comparison of two backtests."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from incidents.scorecards.compare import WindowVerdict, compare, differing, lines


def blame(component: str, start: int = 1, end: int = 3, **fields: Any) -> dict[str, Any]:
    times = {"start": f"2026-11-21T0{start}:00:00Z", "end": f"2026-11-21T0{end}:00:00Z"}
    return {"component": component, "ambiguous_with": [], "region": "east", **times, **fields}


def seen(hour: int, status: str = "quiet", *names: str) -> WindowVerdict:
    return WindowVerdict("east", datetime(2026, 11, 21, hour, tzinfo=UTC), status, frozenset(names))


RESULT: dict[str, Any] = {
    **dict.fromkeys(("found", "right", "wrong", "unconfirmed", "missed", "found_first", "passing"), 2),
    "precision": {"value": 0.5},
    "recall": {"value": None},
    "median_lead_seconds": None,
}


def test_the_same_component_at_the_same_time_is_one_blame() -> None:
    found = compare([blame("tor/a")], [blame("tor/a", 2, 4)])
    assert (len(found.both), found.first_alone, found.second_alone) == (1, (), ())


def test_a_component_in_an_ambiguous_group_is_the_group() -> None:
    assert compare([blame("tor/a")], [blame("tor/b", ambiguous_with=["tor/a"])]).both


def test_what_one_alone_blames_stays_with_it() -> None:
    found = compare([blame("tor/a")], [blame("tor/b")])
    assert [one["component"] for one in (*found.first_alone, *found.second_alone)] == ["tor/a", "tor/b"]


def test_blames_that_do_not_overlap_are_two() -> None:
    assert compare([blame("tor/a", 1, 2)], [blame("tor/a", 2, 3)]).both == ()


def test_blames_of_two_regions_are_two() -> None:
    assert compare([blame("tor/a")], [blame("tor/a", region="west")]).both == ()


def test_each_blame_is_in_one_pair() -> None:
    found = compare([blame("tor/a"), blame("tor/a")], [blame("tor/a")])
    assert (len(found.both), len(found.first_alone)) == (1, 1)


def test_only_windows_that_are_judged_differently_are_listed() -> None:
    first = [seen(1), seen(2, "named", "tor/a"), seen(3, "named", "tor/a")]
    second = [seen(1), seen(2), seen(3, "named", "tor/b")]
    assert [one.end.hour for one, _ in differing(first, second)] == [2, 3]


def test_a_window_that_one_has_not_judged_does_not_differ() -> None:
    assert differing([seen(1, "named", "tor/a"), seen(2, "")], [seen(1, ""), seen(2)]) == []


def test_more_right_is_better_and_more_missed_is_worse() -> None:
    told = {one.name: one.better for one in lines(RESULT, {**RESULT, "right": 3, "missed": 3, "found": 3})}
    assert (told["right"], told["missed"], told["found"]) == (True, False, None)


def test_what_is_unknown_of_one_has_no_change() -> None:
    told = {one.name: one for one in lines(RESULT, {**RESULT, "recall": {"value": 1.0}})}
    assert (told["recall"].change, told["recall"].better) == (None, None)
