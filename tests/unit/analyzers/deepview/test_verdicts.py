"""Verdicts of Deepview: the right component, its figures, and evidence that stands alone."""

from dataclasses import replace
from typing import Any

import pytest

from analyzers import testing
from analyzers.builtin.deepview import ANALYZER
from analyzers.builtin.deepview.binomial import SCORES, probability
from analyzers.builtin.text import count, listed, percent
from analyzers.contract import Window
from analyzers.simulators.deepview import Fault
from analyzers.simulators.tables import sums_of
from tests.unit.analyzers.deepview.cases import fault, grid, struck, verdict_on, window_of

STORAGE = fault("storage_cluster/d1-s1", 0.05)


def deepview_case(seed: int, faulty: bool) -> testing.Case:
    kinds = ["storage_cluster/d2-s2", "compute_cluster/d1-c3", "tor/d2-c1-t2"]
    component = kinds[seed % 3]
    planted = [fault(component, 0.3)] if faulty else []
    return testing.Case(struck(seed, *planted), (component,) if faulty else ())


def components(verdict: dict[str, Any]) -> list[str]:
    return [suspect["component"] for suspect in verdict["suspects"]]


@pytest.fixture(scope="module")
def gray() -> dict[str, Any]:
    return verdict_on(struck(3, STORAGE))


@pytest.mark.simulated
def test_deepview_is_a_good_analyzer() -> None:
    testing.check_analyzer(ANALYZER, deepview_case, seeds=range(3))


@pytest.mark.simulated
@pytest.mark.parametrize(
    "planted",
    [
        fault("tor/d1-c2-t3", 0.9, "stop"),
        fault("compute_cluster/d2-c1", 0.04),
        fault("t2/d2", 0.03),
        fault("t3/region", 0.03),
        fault("storage_cluster/d2-s3", 0.04, "ramp"),
        fault("compute_cluster/d1-c1", 0.04, "flapping"),
    ],
)
def test_each_tier_and_shape_is_named(planted: Fault) -> None:
    assert components(verdict_on(struck(4, planted))) == [planted.component]


@pytest.mark.simulated
def test_two_failures_at_once_are_both_named() -> None:
    both = fault("compute_cluster/d1-c2", 0.3), fault("storage_cluster/d2-s1", 0.05)
    assert set(components(verdict_on(struck(5, *both)))) == {one.component for one in both}


def test_a_tor_worse_than_its_failing_cluster_is_named_too() -> None:
    both = fault("compute_cluster/d1-c2", 0.1), fault("tor/d1-c2-t1", 0.8)
    assert set(components(verdict_on(struck(6, *both)))) == {one.component for one in both}


def test_without_hosts_a_stopped_component_is_still_named() -> None:
    window = struck(7, fault("compute_cluster/d1-c2", 0.6), hosts=False)
    assert components(verdict_on(window)) == ["compute_cluster/d1-c2"]


def test_attempts_over_paths_are_judged_alike() -> None:
    failing = {path: 12 for path in grid() if "compute_cluster/c2" in path}
    history = [window_of(grid(), {}, "path_outcome") for _ in range(3)]
    verdict = verdict_on(window_of(grid(), failing, "path_outcome", history=history))
    assert components(verdict) == ["compute_cluster/c2"]
    assert "attempts failed" in verdict["suspects"][0]["summary"]


def test_the_estimate_holds_the_truth(gray: dict[str, Any]) -> None:
    estimate = gray["suspects"][0]["estimate"]
    assert estimate["low"] < 0.05 < estimate["high"]


def test_a_plain_case_is_sure_and_scored(gray: dict[str, Any]) -> None:
    suspect = gray["suspects"][0]
    assert suspect["sure"]
    assert suspect["score"] > 0.9
    assert suspect["p_value"] < suspect["q_value"] < 1e-6


def test_the_last_failure_is_the_end_of_a_slice_in_the_window() -> None:
    failing = {path: 30 for path in grid() if "storage_cluster/s1" in path}
    suspect = verdict_on(window_of(grid(), failing))["suspects"][0]
    assert suspect["first_failure"] == "2026-01-05T00:15:00Z"
    assert suspect["last_failure"] == "2026-01-05T00:20:00Z"


@pytest.mark.parametrize(("late", "last"), [(1, "00:20"), (6, "00:55")])
def test_what_is_usual_after_a_repair_does_not_make_the_failure_last(late: int, last: str) -> None:
    failing = {path: 30 for path in grid() if "storage_cluster/s1" in path}
    window = window_of(grid(), failing, history=[window_of(grid(), dict.fromkeys(grid(), 1))] * 3)
    path = next(iter(failing))
    after = sums_of(
        [*failing, path], {"failures": [30] * len(failing) + [late]}, slices=[3] * len(failing) + [10]
    )
    suspect = verdict_on(replace(window, sums={**window.sums, "over_time": after}))["suspects"][0]
    assert suspect["component"] == "storage_cluster/s1"
    assert suspect["last_failure"] == f"2026-01-05T{last}:00Z"


def test_evidence_is_a_table_a_course_a_grid_and_an_account(gray: dict[str, Any]) -> None:
    assert [one["title"] for one in gray["evidence"]] == [
        "Blamed",
        "Looked into and cleared",
        "Failures over time",
        "Failures where compute cluster and storage cluster cross",
        "Answers of simpler methods",
        "Method",
    ]


def test_the_cleared_come_with_their_reason(gray: dict[str, Any]) -> None:
    cleared = gray["evidence"][1]
    reasons = [row[cleared["columns"].index("why it is cleared")] for row in cleared["rows"]]
    assert any("failures lie on paths through storage_cluster/d1-s1" in reason for reason in reasons)


def test_the_grid_marks_the_blamed_and_adds_up(gray: dict[str, Any]) -> None:
    cells = gray["evidence"][3]["chart"]["data"]["values"]
    assert sum(cell["failed"] for cell in cells) == gray["measures"]["failed"]
    assert {cell["column"] for cell in cells if cell["blamed"]} == {"storage_cluster/d1-s1"}


def test_the_course_adds_up(gray: dict[str, Any]) -> None:
    values = gray["evidence"][2]["chart"]["data"]["values"]
    assert sum(value["failures"] for value in values) >= gray["measures"]["failed"]
    assert len({value["time"] for value in values}) == 12


def test_the_account_names_baseline_and_method(gray: dict[str, Any]) -> None:
    account = gray["evidence"][-1]["text"]
    assert "from the 12 windows before this one" in account
    assert "maximum likelihood" in account


def test_a_stricter_margin_silences_a_weak_case() -> None:
    window: Window = struck(8, fault("tor/d1-c2-t3", 0.03))
    assert verdict_on(window, margin=50)["status"] == "quiet"


def test_a_rate_below_the_least_is_nobodys_ticket() -> None:
    window = struck(9, fault("t3/region", 0.02))
    assert verdict_on(window, min_rate=0.1)["status"] == "quiet"


def test_scores_rise_with_the_evidence() -> None:
    scores = [probability(surplus) for surplus in range(-5, 40)]
    assert scores == sorted(scores)
    assert 0 < scores[0] <= scores[-1] < 1


def test_the_calibration_is_monotone() -> None:
    assert [p for _, p in SCORES] == sorted(p for _, p in SCORES)
    assert [at for at, _ in SCORES] == sorted({at for at, _ in SCORES})


def test_numbers_are_said_as_people_say_them() -> None:
    assert (percent(0.021), percent(0.5), percent(0.9999)) == ("2.1 %", "50 %", "100 %")
    assert (count(12345), count(0.8234), count(3)) == ("12,345", "0.82", "3")
    assert listed(("a",)) == "a"
    assert listed(("a", "b", "c", "d", "e")) == "a, b, c or 2 others"
