from __future__ import annotations

import pytest

from tests.unit.worlds.cases import assert_readable, swept
from tests.worlds.failure_forecast import CASES, PLANS, make


def test_the_same_seed_gives_the_same_rows() -> None:
    first = make(5, "lost")

    assert first == make(5, "lost")
    assert first.rows["node_incident"] != make(6, "lost").rows["node_incident"]


@pytest.mark.parametrize("case", swept(CASES, "lost"))
def test_the_rows_of_a_case_pass_the_wire_format(case: str) -> None:
    assert_readable(make(2, case))


def test_failures_are_as_rare_as_planned() -> None:
    plan, world = PLANS["announced"], make(3, "announced")
    share = len(world.rows["node_incident"]) / (plan.nodes * plan.days)

    assert plan.rate / 2 < share < 2 * plan.rate
