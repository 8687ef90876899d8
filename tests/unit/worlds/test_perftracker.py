from __future__ import annotations

from datetime import datetime

import numpy as np
import pytest

from tests.unit.worlds.cases import assert_readable, swept
from tests.worlds.perftracker import CASES, FUNCTIONS, HISTORY, PLANS, SIGNS, make

HEALTHY = [case for case, plan in PLANS.items() if not plan.faults]


def test_the_same_seed_gives_the_same_rows() -> None:
    first = make(5, "small")

    assert first == make(5, "small")
    assert first.rows != make(6, "small").rows


@pytest.mark.parametrize("case", swept(CASES, "healthy_small", "missing"))
def test_the_rows_of_a_case_pass_the_wire_format(case: str) -> None:
    assert_readable(make(2, case))


@pytest.mark.parametrize("case", swept(HEALTHY, "healthy_small", "healthy_after_faults"))
def test_no_fault_is_active_in_the_judged_windows_of_a_healthy_case(case: str) -> None:
    world = make(1, case)

    assert all(fault.end <= world.judged_from for fault in world.faults)


@pytest.mark.parametrize("case", swept((case for case in CASES if case not in HEALTHY), "small", "nic_slow"))
@pytest.mark.parametrize("seed", [1, 2])
def test_a_faulty_worker_is_the_extreme_of_its_role(case: str, seed: int) -> None:
    world = make(seed, case)
    assert world.faults
    for fault in world.faults:
        at, value, sign = SIGNS[fault.kind]
        shown: dict[str, list[float]] = {}
        before: list[float] = []
        roles = {row["worker"]: row["role"] for row in world.rows["function_profile"]}
        for row in world.rows["function_profile"]:
            if row["function"] == FUNCTIONS[at].name:
                when = datetime.fromisoformat(row["time"])
                if fault.start <= when < fault.end:
                    shown.setdefault(row["worker"], []).append(sign * row[value])
                elif when < fault.start:
                    before.append(sign * row[value])
        means = {worker: float(np.mean(found)) for worker, found in shown.items()}
        if fault.kind == "hook_slow":
            assert min(means.values()) > max(before)
            continue
        blamed = {fault.component, *fault.acceptable} & set(means)
        peers = [
            mean
            for worker, mean in means.items()
            if worker not in blamed and roles[worker] in {roles[one] for one in blamed}
        ]
        assert min(means[one] for one in blamed) > np.quantile(peers, 0.99), fault


def test_the_shares_of_a_worker_are_at_most_the_whole() -> None:
    world = make(1, "throttled")
    total: dict[tuple[str, str], float] = {}
    for row in world.rows["function_profile"]:
        key = (row["time"], row["worker"])
        total[key] = total.get(key, 0.0) + row["beta"]
    assert max(total.values()) <= 1.0
    assert len(total) == 64 * (HISTORY + 3)
