from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.unit.worlds.cases import assert_readable, swept
from tests.worlds import Fault, World
from tests.worlds.boolean import CASES, MOST_FAINT, make

HEALTHY = [case for case in CASES if "healthy" in case]


def failures(world: World, fault: Fault, *, during: bool) -> list[tuple[int, int]]:
    """Attempts and failures of the rows that name the component."""
    return [
        (row["attempts"], row["failures"])
        for row in world.rows["path_outcome"]
        if fault.component in row["components"]
        and (fault.start <= datetime.fromtimestamp(row["time"] / 1e9, UTC) < fault.end) == during
    ]


@pytest.mark.parametrize("case", swept(CASES, "wrong"))
def test_a_world_of_boolean_is_read_by_the_wire_format_and_is_the_same_for_the_same_seed(case: str) -> None:
    first, second = make(3, case), make(3, case)

    assert first.rows == second.rows
    assert first.faults == second.faults
    assert_readable(first)
    assert make(4, case).rows != first.rows


@pytest.mark.parametrize("case", swept(HEALTHY, "healthy_bursts"))
def test_a_fabric_without_a_broken_component_has_no_faults(case: str) -> None:
    assert make(1, case).faults == ()


@pytest.mark.parametrize("case", swept((case for case in CASES if case not in HEALTHY), "switch", "partial"))
def test_paths_through_a_stopped_component_fail(case: str) -> None:
    world = make(2, case)

    assert world.faults
    for fault in world.faults:
        broken = failures(world, fault, during=True)
        assert sum(failed for _, failed in broken) >= MOST_FAINT
        if fault.kind == "stop" and case != "wrong":
            assert all(tried == failed for tried, failed in broken)
        before = failures(world, fault, during=False)
        assert not before or sum(failed for _, failed in before) < 0.1 * sum(tried for tried, _ in before)
