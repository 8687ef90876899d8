from __future__ import annotations

import pytest

from tests.unit.worlds.cases import assert_readable, swept
from tests.worlds.metric_blame import CASES, PLANS, make


@pytest.mark.parametrize("case", swept(CASES, "cpu_minute"))
def test_the_rows_of_a_case_pass_the_wire_format(case: str) -> None:
    assert_readable(make(2, case))


def test_the_same_seed_gives_the_same_rows() -> None:
    assert make(5, "calm_minute") == make(5, "calm_minute")


@pytest.mark.parametrize("case", swept([case for case in CASES if not PLANS[case].fault], "calm_minute"))
def test_no_fault_is_active_in_the_judged_windows_of_a_calm_case(case: str) -> None:
    world = make(1, case)
    assert all(fault.end <= world.judged_from for fault in world.faults)
