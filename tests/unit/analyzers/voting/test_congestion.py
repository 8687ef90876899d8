"""Voting on fabrics in which losses follow the load and nothing is broken."""

import pytest

from analyzers.builtin.voting import ANALYZER
from analyzers.runner import judge
from tests.worlds.voting import make


@pytest.mark.parametrize("seed", [111002, 111005, 111007])
def test_congestion_names_no_link_where_only_failing_flows_have_a_path(seed: int) -> None:
    verdicts = [judge(ANALYZER, window, {}) for window in make(seed, "congestion_failing").windows(ANALYZER)]
    assert not any(verdict["suspects"] for verdict in verdicts)
    doubtful = [verdict for verdict in verdicts if verdict["status"] == "inconclusive"]
    assert doubtful
    assert any(not one["holds"] and one["name"] == "noise" for one in doubtful[0]["assumptions"])
