"""Voting where only failing flows have a path, and where flow sizes have heavy tails (Pareto, 10 to 200,000)."""

from collections.abc import Sequence

import pytest

from analyzers.builtin.voting import ANALYZER
from analyzers.runner import judge
from tests.benchmarks.worlds import is_right
from tests.worlds.voting import make


@pytest.mark.parametrize(
    "cases", [("bad1_failing", "bad8_failing", "bad14_failing"), ("heavy_all", "heavy_failing")]
)
@pytest.mark.simulated
def test_nearly_all_bad_links_are_named_and_hardly_any_other(cases: Sequence[str]) -> None:
    found, named, wrong, faulty = 0, 0, 0, 0
    for world in (make(111, case) for case in cases):
        for window in world.windows(ANALYZER):
            faults = world.faults_between(window.start, window.end)
            suspects = judge(ANALYZER, window, {})["suspects"]
            groups = [{one["component"], *one["ambiguous_with"]} for one in suspects]
            faulty += len(faults)
            found += sum(any(is_right(group, [fault]) for group in groups) for fault in faults)
            named += len(groups)
            wrong += sum(not is_right(group, faults) for group in groups)
    assert faulty > 20
    assert found >= 0.95 * faulty
    assert wrong <= 0.05 * named
