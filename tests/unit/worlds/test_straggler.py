from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime

import numpy as np
import pytest

from tests.unit.worlds.cases import assert_readable, swept
from tests.worlds import Fault, World
from tests.worlds.straggler import CASES, CLOCK, EVERY, ITERATION, PLANS, SIGNS, SLOWER, make

HEALTHY = [case for case, plan in PLANS.items() if not plan.faults]


def test_the_same_seed_gives_the_same_rows() -> None:
    first = make(5, "small")

    assert first == make(5, "small")
    assert first.rows != make(6, "small").rows


@pytest.mark.parametrize("case", swept(CASES, "healthy_4", "small"))
def test_the_rows_of_a_case_pass_the_wire_format(case: str) -> None:
    assert_readable(make(2, case))


@pytest.mark.parametrize("case", swept(HEALTHY, "healthy_4"))
def test_no_fault_is_active_in_the_judged_windows_of_a_healthy_case(case: str) -> None:
    world = make(1, case)

    assert all(fault.end <= world.judged_from for fault in world.faults)


@pytest.mark.parametrize("case", swept((case for case in CASES if case not in HEALTHY), "small"))
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.soak)])
def test_a_faulty_node_stands_out_and_its_job_is_slower_or_stopped(case: str, seed: int) -> None:
    world = make(seed, case)
    assert any(fault.end > world.judged_from for fault in world.faults)
    for fault in world.faults:
        sign = SIGNS[fault.kind]
        within = means(world, sign or CLOCK, fault)
        node = fault.component.removeprefix("node/")
        if not sign:
            assert node not in within
            continue
        others = np.array([value for name, value in within.items() if name != node])
        width = max(1.4826 * float(np.median(np.abs(others - np.median(others)))), 1e-6)
        struck = 1 if len(world.faults) == 1 else 2
        assert np.sort(np.abs(others - np.median(others)))[-struck] < abs(within[node] - np.median(others)), (
            fault
        )
        assert abs(within[node] - np.median(others)) > 3 * width, fault
        if fault.kind != "hung" and fault.start >= world.judged_from and not PLANS[case].benign:
            steps = means(world, ITERATION, fault)[node]
            before = Fault(fault.component, "", fault.start - EVERY, fault.start)
            assert (
                steps > (1 + (SLOWER - 1) / 2) * means(world, ITERATION, before)[node]
                or len(world.faults) > 1
            )


def means(world: World, name: str, span: Fault) -> dict[str, float]:
    """The mean of a metric by node within the span of a fault, of nodes of its job."""
    jobs = {row["labels"]["node"]: row["labels"].get("job") for row in world.rows["metric"]}
    found: dict[str, list[float]] = defaultdict(list)
    for row in world.rows["metric"]:
        if row["name"] == name and span.start <= datetime.fromtimestamp(row["time"] / 1e9, UTC) < span.end:
            found[row["labels"]["node"]].append(row["value"])
    mine = jobs[span.component.removeprefix("node/")]
    return {node: float(np.mean(values)) for node, values in found.items() if jobs[node] == mine}
