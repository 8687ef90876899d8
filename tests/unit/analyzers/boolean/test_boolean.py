"""The Boolean baselines as an analyzer."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from analyzers.builtin.boolean import ANALYZER
from analyzers.builtin.paths import METHODS, TITLE
from analyzers.contract import Sums, Window
from analyzers.runner import judge
from analyzers.simulators.tables import paths_of, sums_of
from analyzers.testing import check_analyzer, crossing_cases

START = datetime(2026, 1, 5, tzinfo=UTC)
Outcomes = Mapping[tuple[str, ...], tuple[int, int]]


def verdict_on(
    outcomes: Outcomes, kind: str = "path_outcome", over_time: Sums | None = None, **params: object
) -> dict[str, Any]:
    keyed = sorted(outcomes)
    keys: dict[str, Any] = {"components" if kind == "path_outcome" else "hops": paths_of(keyed)}
    if kind == "probe":
        keys["layer"] = ("underlay",) * len(keyed)
    values = {
        name: np.array([outcomes[key][i] for key in keyed], dtype=np.int64)
        for i, name in enumerate(("attempts", "failures"))
    }
    sums = {"paths": Sums(keys, values, len(keyed))} | ({"over_time": over_time} if over_time else {})
    window = Window(START, START + timedelta(hours=1), "north", kind, sums)
    return judge(ANALYZER, window, params)


def grid(bad: str, lost: int = 10) -> Outcomes:
    pairs = [(f"left/{i}", f"right/{j}") for i in range(4) for j in range(4)]
    return {pair: (100, lost if bad in pair else 0) for pair in pairs}


def test_the_parameter_offers_every_method() -> None:
    (method,) = (param for param in ANALYZER.params if param.name == "method")
    assert method.choices == METHODS


@pytest.mark.simulated
@pytest.mark.parametrize("method", METHODS)
def test_each_method_is_a_good_analyzer(method: str) -> None:
    check_analyzer(
        ANALYZER, crossing_cases("paths", history=0), {"method": method, "threshold": 0.05}, seeds=range(2)
    )


@pytest.mark.parametrize("kind", ["path_outcome", "probe"])
@pytest.mark.parametrize("method", METHODS)
def test_outcomes_and_probes_name_the_component_behind_the_bad_paths(method: str, kind: str) -> None:
    (suspect,) = verdict_on(grid("left/2"), kind, method=method)["suspects"]
    assert suspect["component"] == "left/2"


def test_it_gives_no_probability_and_is_never_sure() -> None:
    (suspect,) = verdict_on(grid("left/2"))["suspects"]
    assert (suspect["score"], suspect["sure"]) == (None, False)


@pytest.mark.parametrize(("late", "last"), [(1, "01:00"), (20, "59:30")])
def test_what_is_usual_after_a_repair_does_not_make_the_failure_last(late: int, last: str) -> None:
    told = {pair: (1000, lost or 1) for pair, (_, lost) in grid("left/2", 90).items()}
    bad = sorted(pair for pair in told if "left/2" in pair)
    over_time = sums_of([*bad, bad[0]], {"failures": [90] * len(bad) + [late]}, slices=[1] * len(bad) + [118])
    (suspect,) = verdict_on(told, over_time=over_time)["suspects"]
    assert (suspect["component"], suspect["last_failure"]) == ("left/2", f"2026-01-05T00:{last}Z")


def test_the_other_methods_are_heard_in_the_evidence() -> None:
    titles = [one["title"] for one in verdict_on(grid("left/2"))["evidence"]]
    assert titles == ["Blamed", "Looked into and cleared", "Bad paths", TITLE, "Method"]


def test_bad_paths_that_nobody_explains_are_counted() -> None:
    outcomes = {**grid("left/2"), ("left/0", "right/0"): (100, 50)}
    assert verdict_on(outcomes, method="pll")["measures"]["unexplained_bad_paths"] == 1


def test_without_a_good_path_it_does_not_guess() -> None:
    verdict = verdict_on(dict.fromkeys(grid(""), (100, 50)))
    assert verdict["reason"] == "All 16 paths are bad: without a good path no component can be cleared."


def test_a_healthy_window_is_quiet() -> None:
    assert verdict_on(grid("nobody"))["status"] == "quiet"


def test_an_empty_window_is_inconclusive() -> None:
    assert verdict_on({})["status"] == "inconclusive"
