"""The usual share of failures: healthy calls that fail, histories with faults, and assumptions that do not hold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from analyzers.builtin.panorama import ANALYZER
from analyzers.contract import Window
from analyzers.runner import judge
from analyzers.simulators.observers import Fault, Shape
from tests.unit.analyzers.panorama.cases import (
    Report,
    end_of,
    mesh,
    named,
    simulated,
    spoilt,
    verdict,
    window,
)

NOISY = Shape(processes=15, degree=(3, 5), contexts=(3, 6), used=(2, 4), rate=(1.0, 12.0), noise=0.05)
SECONDS = 30


def after(history: list[list[Report]], now: list[Report]) -> dict[str, Any]:
    """The verdict on `now` after windows of the same length."""
    past = tuple(window(one, SECONDS) for one in history)
    return judge(ANALYZER, replace(window(now, SECONDS), history=past), {})


def holding(found: dict[str, Any]) -> dict[str, bool]:
    return {one["name"]: one["holds"] for one in found["assumptions"]}


def failing(share: float, since: int = 0, context: str = "write") -> list[Report]:
    return spoilt(mesh(SECONDS), since=since, subject="proc/p0", context=context, share=share)


@pytest.mark.simulated
@pytest.mark.parametrize("seed", range(4))
def test_healthy_components_of_which_five_percent_of_the_calls_fail_are_not_blamed(seed: int) -> None:
    found = judge(ANALYZER, end_of(simulated(seed, [], NOISY, 60.0), 60.0, 60.0), {})
    assert (found["status"], found["suspects"]) == ("quiet", [])


def test_a_fault_above_five_percent_of_usual_failures_is_named() -> None:
    reports = simulated(3, [Fault("crash", 2, 30.0)], NOISY, 60.0)
    assert named(judge(ANALYZER, end_of(reports, 60.0, 60.0), {})) == ["proc/p03"]


def test_a_context_that_always_fails_some_calls_is_not_blamed_once_that_is_known() -> None:
    usual = [spoilt(mesh(SECONDS), since=0, context="write", share=0.15)] * 4
    assert after(usual, usual[0])["status"] == "quiet"


def test_a_total_outage_is_named_though_all_of_the_history_is_one() -> None:
    found = after([failing(1.0)] * 5, failing(1.0))
    assert named(found) == ["proc/p0"]
    assert not holding(found)["history"]
    assert "proc/p0 has failed more in the 5 windows before" in found["assumptions"][0]["detail"]


@pytest.mark.simulated
@pytest.mark.parametrize("faulty", [1, 2, 3])
def test_a_fault_in_most_of_the_history_is_not_learnt(faulty: int) -> None:
    history = [failing(0.3)] * faulty + [mesh(SECONDS)] * (5 - faulty)
    assert named(after(history, failing(0.3))) == ["proc/p0"]


def test_a_component_that_was_out_in_the_history_and_is_well_is_not_named() -> None:
    assert after([failing(1.0)] * 5, mesh(SECONDS))["status"] == "quiet"


def test_without_windows_before_the_verdict_says_so_and_states_less() -> None:
    alone, known = after([], failing(1.0, 10)), after([mesh(SECONDS)] * 3, failing(1.0, 10))
    assert [holding(one)["history"] for one in (alone, known)] == [False, True]
    assert alone["suspects"][0]["score"] < known["suspects"][0]["score"]


def test_where_only_failures_are_reported_nobody_is_named() -> None:
    found = verdict([one for one in spoilt(mesh(SECONDS), since=0) if one[3] == "unhealthy"], SECONDS)
    assert (found["status"], holding(found)["sampling"]) == ("inconclusive", False)


def test_every_verdict_carries_what_was_checked() -> None:
    assert list(holding(verdict(mesh()))) == ["history", "sampling", "noise", "witnesses"]


def test_bursts_that_nobody_explains_are_noise_that_was_not_learnt() -> None:
    reports = mesh(SECONDS, size=8)
    for turn in range(0, SECONDS, 6):
        one, other = f"proc/p{turn % 8}", f"proc/p{(turn + 3) % 8}"
        reports = spoilt(reports, since=turn, until=turn + 4, observer=one, subject=other)
    assert not holding(verdict(reports, SECONDS))["noise"]


def test_windows_before_of_other_components_say_nothing() -> None:
    others = [(f"{o}x", f"{s}x", c, t, n) for o, s, c, t, n in mesh(SECONDS)]
    assert not holding(after([others] * 4, mesh(SECONDS)))["history"]


def test_the_window_is_only_read() -> None:
    now: Window = window(failing(1.0), SECONDS)
    before = dict(now.sums["seen"].values)["times"].copy()
    judge(ANALYZER, replace(now, history=(now, now, now)), {})
    assert (now.sums["seen"].values["times"] == before).all()


def split(reports: list[Report], sides: int = 2, liars_only: bool = False) -> list[Report]:
    """Calls between components of different sides fail from the tenth second on."""
    out = []
    for observer, subject, context, status, second in reports:
        across = int(observer[-1]) % sides != int(subject[-1]) % sides
        blames = not liars_only or int(observer[-1]) % sides == 0
        failed = across and blames and second >= 10
        out.append((observer, subject, context, "unhealthy" if failed else status, second))
    return out


def test_a_network_that_is_cut_in_two_blames_no_component() -> None:
    found = verdict(split(mesh(SECONDS, size=8)), SECONDS)
    assert (found["status"], found["suspects"]) == ("inconclusive", [])
    assert found["reason"].startswith("The observers fall into sides of 4 and 4 components")


def test_observers_that_complain_about_one_side_are_no_cut() -> None:
    found = verdict(split(mesh(SECONDS, size=9), sides=3, liars_only=True), SECONDS)
    assert set(named(found)) == {"proc/p0", "proc/p3", "proc/p6"}


def test_a_crash_is_no_cut() -> None:
    assert named(verdict(spoilt(mesh(SECONDS, size=8), since=5, subject="proc/p0"), SECONDS)) == ["proc/p0"]


def test_a_component_that_fails_again_and_again_for_a_short_while_is_named() -> None:
    reports = mesh(60)
    for since in (5, 20, 35, 50):
        reports = spoilt(reports, since=since, until=since + 7, subject="proc/p0", context="write")
    assert named(verdict(reports, 60)) == ["proc/p0"]


def test_calls_that_hang_in_half_of_the_pairs_that_wait_are_no_usual_loss() -> None:
    asked = [(o, s, "slow", "pending", n) for o, s, c, _, n in mesh(SECONDS, size=4) if c == "read"]
    answers = [
        (o, s, "slow", "healthy", n) for o, s, _, _, n in asked if n < 10 or s not in ("proc/p0", "proc/p1")
    ]
    assert {"proc/p0", "proc/p1"} == set(named(verdict([*mesh(SECONDS, size=6), *asked, *answers], SECONDS)))
