"""Boolean tomography abstains where good paths are not recorded, and is not quiet about a gray fault."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.benchmarks.worlds import Job, judge_one
from tests.unit.analyzers.boolean.test_boolean import Outcomes, verdict_on

SIZE = 12


def crossing(bad: dict[str, float], noise: float = 0.0, seed: int = 1) -> Outcomes:
    """Paths over one of `SIZE` left and one of `SIZE` right components; a path of `bad` is bad with that share, any
    other with `noise`."""
    rng = np.random.default_rng(seed)
    found: dict[tuple[str, ...], tuple[int, int]] = {}
    for i in range(SIZE):
        for j in range(SIZE):
            path = (f"left/{i:02d}", f"right/{j:02d}")
            share = max([noise, *(bad.get(one, 0.0) for one in path)])
            found[path] = (100, 30 * int(rng.random() < share))
    return found


def unmet(verdict: dict[str, Any]) -> set[str]:
    return {one["name"] for one in verdict["assumptions"] if not one["holds"]}


def test_a_clean_answer_meets_every_assumption() -> None:
    verdict = verdict_on(crossing({"left/03": 1.0}))
    assert [one["component"] for one in verdict["suspects"]] == ["left/03"]
    assert [one["name"] for one in verdict["assumptions"]] == ["noise", "sampling", "topology"]
    assert unmet(verdict) == set()


@pytest.mark.parametrize("method", ["tomo", "score", "coverage", "pll"])
def test_nobody_is_named_where_hardly_a_good_path_is_recorded(method: str) -> None:
    every = crossing({"left/03": 1.0}, noise=0.3)
    failing = {path: told for path, told in every.items() if told[1] or path == ("left/00", "right/00")}
    verdict = verdict_on(failing, method=method)
    assert (verdict["status"], "sampling" in unmet(verdict)) == ("inconclusive", True)
    assert "on a good path, too" in verdict["reason"]


def test_a_component_that_a_few_good_paths_clear_is_told_of() -> None:
    verdict = verdict_on(crossing({"left/03": 0.8}))
    assert verdict["status"] == "inconclusive"
    assert "left/03 is on" in verdict["reason"]
    assert unmet(verdict) == {"topology", "noise"}


@pytest.mark.parametrize("seed", range(3))
def test_bad_paths_that_meet_by_chance_accuse_nobody(seed: int) -> None:
    every = crossing({}, noise=0.15, seed=seed)
    verdict = verdict_on(every, method="coverage")
    assert (verdict["status"], verdict["suspects"]) == ("inconclusive", [])
    assert unmet(verdict) == {"noise"}


@pytest.mark.simulated
def test_a_stopped_link_of_the_second_generator_is_named_beside_noise() -> None:
    judged = judge_one(Job("boolean", "link_noise", 11, "analyzers.builtin.boolean:ANALYZER"))
    assert (judged.faulty.found, judged.faulty.false, judged.faulty.missed) == (3, 0, 0)
