"""Verdicts against confirmed causes, on axes of minutes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from analyzers.runs.scoring import Cause, Judged, Named, Score, Share, score

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
S7, T1 = "storage_cluster/s7", "tor/t1"


def at(minute: float) -> datetime:
    return NOON + timedelta(minutes=minute)


def window(minute: float, *suspects: str, sure: bool = False, **more: Any) -> Judged:
    """The hour that ends at a minute; a suspect may be a group, `a|b`."""
    named = tuple(Named(tuple(one.split("|")), 0.9, sure) for one in suspects)
    return Judged(**{"region": "r", "start": at(minute - 60), "end": at(minute), "suspects": named, **more})


def cause(component: str | None = S7, since: float = -30, until: float = 30, **more: Any) -> Cause:
    given = {"incident": 1, "names": frozenset({component or S7}), "region": "r", "reported_at": None, **more}
    return Cause(component=component, since=at(since), until=at(until), **given)


def outcomes(found: Score) -> list[str]:
    return [one.outcome for one in found.scored]


BLAMED = [window(0, S7), window(5, S7), window(10, S7)]


def test_a_blame_over_many_windows_is_one_and_right() -> None:
    assert outcomes(score(BLAMED, [cause()])) == ["right"]


def test_a_confirmed_member_of_the_ambiguous_group_is_right() -> None:
    named = [window(0, f"{T1}|{S7}"), window(5, f"{T1}|{S7}")]
    assert outcomes(score(named, [cause()])) == ["right"]


def test_a_group_narrows_as_on_a_ticket() -> None:
    named = [window(0, f"{T1}|{S7}"), window(5, T1)]
    assert outcomes(score(named, [cause()])) == ["unconfirmed"]


def test_a_ticket_resolved_with_another_cause_makes_the_blame_wrong() -> None:
    assert outcomes(score(BLAMED, [cause(T1, names=frozenset({S7}))])) == ["wrong"]


def test_a_ticket_resolved_with_none_makes_the_blame_wrong() -> None:
    assert outcomes(score(BLAMED, [cause(None)])) == ["wrong"]


def test_without_a_resolved_ticket_a_blame_is_unconfirmed() -> None:
    assert outcomes(score(BLAMED, [])) == ["unconfirmed"]


def test_a_cause_of_another_day_confirms_nothing() -> None:
    assert outcomes(score(BLAMED, [cause(since=2000, until=2100)])) == ["unconfirmed"]


def test_a_cause_of_another_region_confirms_nothing() -> None:
    assert outcomes(score(BLAMED, [cause(region="elsewhere")])) == ["unconfirmed"]


def test_one_weak_window_is_passing_and_counts_nowhere() -> None:
    found = score([window(0, S7), window(5), window(10)], [])
    assert (outcomes(found), found.passing) == ([], 1)


def test_one_sure_window_counts() -> None:
    assert outcomes(score([window(0, S7, sure=True), window(5)], [])) == ["unconfirmed"]


def test_windows_with_a_hole_between_them_are_two_blames() -> None:
    named = [window(0, S7), window(5, S7), window(200, S7), window(205, S7)]
    assert len(score(named, []).scored) == 2


def test_the_order_of_windows_does_not_matter() -> None:
    assert score(BLAMED[::-1], [cause()]) == score(BLAMED, [cause()])


def test_two_components_named_together_are_two_blames() -> None:
    assert len(score([window(0, S7, T1), window(5, S7, T1)], []).scored) == 2


def test_the_same_component_in_two_regions_is_two_blames() -> None:
    others = [window(0, S7, region="q"), window(5, S7, region="q")]
    assert len(score([*BLAMED, *others], []).scored) == 2


def test_a_cause_that_the_windows_held_and_nobody_named_is_missed() -> None:
    quiet = [window(m, confirmed=frozenset({S7})) for m in (0, 5)]
    assert [one.incident for one in score(quiet, [cause()]).missed] == [1]


def test_a_cause_that_no_window_held_is_not_missed() -> None:
    assert score([window(0), window(5)], [cause()]).missed == ()


def test_a_cause_named_too_weakly_for_a_ticket_is_not_missed() -> None:
    """It is not found either: a single weak window is neither credit nor blame."""
    found = score([window(0, S7, confirmed=frozenset({S7}))], [cause()])
    assert (found.missed, found.scored) == ((), ())


def test_nothing_at_fault_cannot_be_missed() -> None:
    assert score([window(0)], [cause(None)]).missed == ()


@pytest.mark.parametrize(
    ("reported", "first", "alone", "lead"),
    [(None, True, True, None), (20, True, False, 15), (0, False, False, -5)],
)
def test_who_came_first_and_by_how_much(
    reported: float | None, first: bool, alone: bool, lead: float | None
) -> None:
    known = cause(reported_at=None if reported is None else at(reported))
    (one,) = score(BLAMED, [known]).scored
    expected = None if lead is None else timedelta(minutes=lead)
    assert (one.first, one.alone, one.lead) == (first, alone, expected)


def test_precision_counts_blames_and_recall_counts_tickets() -> None:
    windows = [window(m, S7, T1, confirmed=frozenset({S7, "tor/t9"})) for m in (0, 5)]
    causes = [cause(), cause(None, incident=2, names=frozenset({T1})), cause("tor/t9", incident=3)]
    found = score(windows, causes)
    assert (found.precision, found.recall) == (Share(1, 2), Share(1, 2))


def test_two_blames_of_one_fault_catch_it_once() -> None:
    named = [window(0, S7), window(5, S7), window(200, S7), window(205, S7)]
    assert score(named, [cause(until=300)]).recall == Share(1, 1)


def test_nothing_counted_is_no_share_and_an_interval_of_everything() -> None:
    assert (Share(0, 0).value, Share(0, 0).interval) == (None, (0.0, 1.0))


def test_the_interval_is_wilsons() -> None:
    assert Share(41, 44).interval == pytest.approx((0.8177, 0.9765), abs=1e-4)
