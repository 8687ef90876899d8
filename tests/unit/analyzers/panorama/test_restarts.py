"""A process that is gone for the time of a restart, and one that serves badly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from analyzers.builtin.panorama.episodes import Stop, stop_of
from analyzers.builtin.panorama.observed import observe
from tests.unit.analyzers.panorama.cases import Report, calls, mesh, named, spoilt, verdict, window

GONE = "proc/p0"


def stopped(since: int, until: int, reports: list[Report] | None = None) -> list[Report]:
    """Nobody reaches the process from one second to another, and it reports nothing."""
    failing = spoilt(reports or mesh(), since=since, until=until, subject=GONE)
    return [one for one in failing if one[0] != GONE or not since <= one[4] < until]


def cleared(found: dict[str, Any]) -> list[Any]:
    return [
        row for one in found["evidence"] if one["title"] == "Looked into and cleared" for row in one["rows"]
    ]


@pytest.mark.parametrize("since", [15, 16, 17])
def test_a_process_that_has_just_gone_may_be_restarting(since: int) -> None:
    found = verdict(stopped(since, 20))
    assert (found["status"], found["measures"]["restarts"]) == ("quiet", 1)


@pytest.mark.parametrize("seconds", [3, 4, 5, 6])
def test_a_process_that_was_gone_and_is_back_was_restarted(seconds: int) -> None:
    assert verdict(stopped(8, 8 + seconds))["status"] == "quiet"


def test_a_process_that_is_gone_for_longer_than_a_restart_is_named() -> None:
    assert named(verdict(stopped(10, 40, mesh(40)), 40)) == [GONE]


def test_a_restart_of_ten_seconds_is_cleared_and_blames_nobody() -> None:
    found = verdict(stopped(20, 30, mesh(60)), 60)
    assert (found["status"], found["suspects"]) == ("quiet", [])
    assert cleared(found)[0][-1] == "gone altogether for 10 s, there again: as in a restart"


def test_a_process_that_reports_on_while_it_restarts_is_cleared_when_it_is_back() -> None:
    assert verdict(spoilt(mesh(60), since=20, until=30, subject=GONE), 60)["status"] == "quiet"


def test_a_process_that_has_been_gone_for_ten_seconds_leaves_it_open() -> None:
    found = verdict(stopped(30, 40, mesh(40)), 40)
    assert found["status"] == "inconclusive"
    assert found["reason"].startswith(
        "proc/p0 has been gone for 10 s: a restart, which may take 20 s, or a failure."
    )


def test_how_long_a_restart_takes_is_a_parameter() -> None:
    assert named(verdict(stopped(15, 20), restart_seconds=4)) == [GONE]
    assert named(verdict(stopped(10, 20), restart_seconds=12)) == []


def test_a_process_that_fails_for_all_callers_and_still_reports_is_not_taken_for_restarting() -> None:
    assert named(verdict(spoilt(mesh(), since=16, subject=GONE))) == [GONE]


def test_a_process_that_is_gone_for_some_contexts_alone_is_not_taken_for_restarting() -> None:
    some = spoilt(mesh(), since=16, subject=GONE, context="write")
    silent = [one for one in some if one[0] != GONE or one[4] < 16]
    assert named(verdict(silent)) == [GONE]


def test_a_process_that_stops_again_and_again_is_named() -> None:
    twice = stopped(15, 20, stopped(5, 9))
    assert named(verdict(twice)) == [GONE]


def test_a_process_that_serves_badly_after_its_restart_is_named() -> None:
    after = spoilt(stopped(6, 10), since=11, subject=GONE, context="write", share=0.5)
    assert named(verdict(after)) == [GONE]


def test_why_a_restart_is_cleared_is_told() -> None:
    (row,) = cleared(verdict(stopped(8, 12)))
    assert row[-1] == "gone altogether for 4 s, there again: as in a restart"


def test_seconds_in_which_nobody_calls_do_not_end_a_stop() -> None:
    rare = [*calls(["proc/a"], "proc/b", "write", range(0, 20, 2), range(8, 16), each=2)]
    seen = observe(window(rare))
    assert stop_of(seen, np.zeros(seen.cells, dtype=bool), 1) == Stop(8, 14, still=False)
