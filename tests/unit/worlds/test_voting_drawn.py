from __future__ import annotations

from functools import cache

import pytest

from tests.worlds.voting_drawn import CASES, LEAST
from tests.worlds.voting_drawn import make as fresh

make = cache(fresh)
FAULTY = [case for case in CASES if case.endswith("_failing") and not case.startswith(("healthy", "down"))]


@pytest.mark.parametrize("case", ["bad6_failing", "switches_failing", "healthy_failing"])
def test_a_drawn_world_is_read_by_the_wire_format_and_is_the_same_for_the_same_seed(case: str) -> None:
    first, second = make(1, case), fresh(1, case)

    assert (first.rows, first.faults, first.notes) == (second.rows, second.faults, second.notes)
    assert first.tables()["probe"].count == len(first.rows["probe"]) > 0
    assert make(2, case).notes != first.notes


@pytest.mark.parametrize("case", FAULTY)
def test_a_bad_component_fails_traced_flows_of_several_hosts(case: str) -> None:
    world = make(1, case)

    assert world.faults
    for fault in world.faults:
        start, end = (one.timestamp() * 1e9 for one in (fault.start, fault.end))
        failed = [
            row["src"]
            for row in world.rows["probe"]
            if row["lost"] and start <= row["time"] < end and fault.component in row.get("hops", ())
        ]
        assert len(failed) >= LEAST
        assert len(set(failed)) >= 3


def test_nothing_is_at_fault_in_a_healthy_world_nor_in_the_first_epoch() -> None:
    assert make(1, "healthy_failing").faults == ()
    world = make(1, "bad14_failing")
    assert all(fault.start >= world.judged_from + world.every for fault in world.faults)


def test_few_good_flows_have_hops_unless_all_flows_are_traced() -> None:
    good = [row for row in make(1, "bad1_untraced").rows["probe"] if not row["lost"]]
    assert sum("hops" in row for row in good) <= 0.007 * len(good)
