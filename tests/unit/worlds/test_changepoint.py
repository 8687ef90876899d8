from __future__ import annotations

from collections import defaultdict
from datetime import timedelta

import numpy as np
import pytest

from tests.unit.worlds.cases import assert_readable, swept
from tests.worlds import Fault, World
from tests.worlds.changepoint import CASES, PLANS, REQUESTS, VISIBLE, make

HEALTHY = [case for case, plan in PLANS.items() if not plan.metrics]
FAULTY = [case for case in CASES if case not in HEALTHY]


def test_the_same_seed_gives_the_same_rows() -> None:
    first = make(5, "slow")

    assert first == make(5, "slow")
    assert first.rows != make(6, "slow").rows


@pytest.mark.parametrize("case", swept(CASES, "slow"))
def test_the_rows_of_a_case_pass_the_wire_format(case: str) -> None:
    assert_readable(make(2, case))


@pytest.mark.parametrize("case", swept(HEALTHY, "healthy_slow"))
def test_no_fault_is_active_in_the_judged_windows_of_a_healthy_case(case: str) -> None:
    world = make(1, case)

    assert all(fault.end <= world.judged_from for fault in world.faults)


@pytest.mark.parametrize("case", swept(FAULTY, "latency"))
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.soak)])
def test_each_fault_begins_in_a_judged_window_and_moves_a_metric(case: str, seed: int) -> None:
    world = make(seed, case)
    judged = [fault for fault in world.faults if fault.end > world.judged_from]

    assert len(judged) == len(PLANS[case].metrics)
    for fault in judged:
        assert world.judged_from <= fault.start < world.judged_from + 2 * world.every
        assert most_moved(world, fault, PLANS[case].metrics) > VISIBLE / 2, fault


def test_counters_begin_anew_only_where_services_restart() -> None:
    assert resets(make(1, "healthy_slow")) == 0
    assert resets(make(1, "restarts")) > 0


def most_moved(world: World, fault: Fault, metrics: tuple[tuple[str, ...], ...]) -> float:
    """The largest change of a median over the hour before, in deviations of the two hours before."""
    begin = round(fault.start.timestamp() * 1e9)
    hour = round(timedelta(hours=1).total_seconds() * 1e9)
    moved = [0.0]
    for name in {name for each in metrics for name in each}:
        rows = [row for row in world.rows["metric"] if row["name"] == name and is_of(row, fault)]
        before = np.array([row["value"] for row in rows if begin - 2 * hour <= row["time"] < begin])
        after = np.array([row["value"] for row in rows if row["time"] >= begin])
        if name == REQUESTS:
            before, after = np.diff(before), np.diff(after)
        if len(before) and len(after):
            middle = np.median(before)
            width = 1.4826 * float(np.median(abs(before - middle))) or float(before.std()) or 1e-9
            moved.append(abs(float(np.mean(after[len(after) // 4 :]) - middle)) / width)
    return max(moved)


def is_of(row: object, fault: Fault) -> bool:
    kind, _, name = fault.component.partition("/")
    assert isinstance(row, dict)
    return bool(row["labels"] == {kind: name})


def resets(world: World) -> int:
    rows = [row for row in world.rows["metric"] if row["name"] == REQUESTS]
    counters: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        counters[row["labels"]["service"]].append(row["value"])
    return sum(int((np.diff(values) < 0).sum()) for values in counters.values())
