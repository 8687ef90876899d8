import pytest

from tests.benchmarks.scoring import brier_row


def test_a_brier_score_is_compared_with_the_usual_share_only_where_that_can_be_wrong() -> None:
    mixed = brier_row("score", [(0.9, True), (0.9, True), (0.9, True), (0.1, False)])
    assert (mixed["value"], mixed["bar"]) == (pytest.approx(0.01 / 0.1875, abs=1e-4), "< 1")
    for right in (True, False):
        alike = brier_row("score", [(0.9, right)] * 3)
        assert (alike["value"], alike["bar"]) == (pytest.approx(0.01 if right else 0.81), None)
