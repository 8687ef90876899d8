from __future__ import annotations

from collections import defaultdict
from datetime import timedelta

import numpy as np
import pytest

from tests.unit.worlds.cases import assert_readable, swept
from tests.worlds import Fault, Row, World
from tests.worlds.c4d import CASES, EPOCH, HANGS, PLANS, START, make

HEALTHY = [case for case, plan in PLANS.items() if not plan.faults]
FAULTY = [case for case in CASES if case not in HEALTHY]


def test_the_same_seed_gives_the_same_rows() -> None:
    first = make(5, "late_ring")

    assert first == make(5, "late_ring")
    assert first.rows != make(6, "late_ring").rows


@pytest.mark.parametrize("case", swept(CASES, "healthy_pair", "late_ring"))
def test_the_rows_of_a_case_pass_the_wire_format(case: str) -> None:
    assert_readable(make(2, case))


@pytest.mark.parametrize("case", swept(HEALTHY, "healthy_pair"))
def test_no_fault_is_active_in_the_judged_windows_of_a_healthy_case(case: str) -> None:
    world = make(1, case)

    assert all(fault.end <= world.judged_from for fault in world.faults)


@pytest.mark.parametrize("case", swept([one for one in FAULTY if PLANS[one].faults[0] in HANGS], "crashed"))
def test_the_culprit_of_a_hang_is_absent_or_its_transfers_are_open(case: str) -> None:
    world = make(1, case)
    fault = next(one for one in world.faults if one.kind in HANGS and one.end > world.judged_from)
    rows = [row for row in within(world, fault) if row["state"] == "started"]
    assert rows
    culprit = int(fault.component.rpartition("/")[2].partition("~")[0])
    if fault.kind in ("never_launched", "crashed"):
        assert culprit not in {row["rank"] for row in rows}
    elif fault.kind == "mismatch":
        odd = {row["rank"] for row in rows if row["op"] == "broadcast"}
        assert odd == {culprit}
    else:
        assert {row["src"] for row in rows if "src" in row and row["op"] != "recv"} == {culprit}


@pytest.mark.parametrize(
    "case", swept([one for one in FAULTY if one.startswith(("late", "al"))], "late_ring")
)
def test_a_late_rank_waits_least_in_its_communicator(case: str) -> None:
    world = make(1, case)
    for fault in world.faults:
        if fault.kind != "late":
            continue
        rows = [row for row in within(world, fault) if row["state"] == "completed" and "src" not in row]
        culprit = int(fault.component.partition("/")[2])
        mine = {row["communicator"] for row in rows if row["rank"] == culprit}
        nearest = min(mine, key=lambda name: ("ep", "tp", "dp", "pp", "wo").index(name[:2]))
        waits: dict[int, list[float]] = defaultdict(list)
        for row in rows:
            if row["communicator"] == nearest:
                waits[row["rank"]].append(row["end_ns"] - row["start_ns"])
        assert min(waits, key=lambda rank: float(np.mean(waits[rank]))) == culprit


@pytest.mark.parametrize("case", swept([one for one in FAULTY if "slow" in one], "slow_one_ring"))
def test_transfers_that_a_fault_slows_take_longer_than_others(case: str) -> None:
    world = make(1, case)
    for fault in world.faults:
        if not fault.kind.startswith("slow"):
            continue
        hit: list[float] = []
        rest: list[float] = []
        for row in within(world, fault):
            if row["state"] == "completed" and "src" in row:
                took = (row["end_ns"] - row["start_ns"]) / row["bytes"]
                (hit if passes(fault, row) else rest).append(took)
        assert np.median(hit) > 1.25 * np.median(rest), fault


def passes(fault: Fault, row: Row) -> bool:
    kind, _, name = fault.component.partition("/")
    pair = (str(row["src"]), str(row["dst"]))
    return {
        "channel": pair == tuple(name.split("~")),
        "rank_tx": pair[0] == name,
        "rank_rx": pair[1] == name,
        "rank": name in pair,
    }[kind]


def within(world: World, fault: Fault) -> list[Row]:
    """Rows of the time of a fault but its first 20 s."""
    first = EPOCH + (fault.start + timedelta(seconds=20) - START).total_seconds()
    last = EPOCH + (fault.end - START).total_seconds()
    return [row for row in world.rows["collective"] if first * 1e9 <= row["time"] < last * 1e9]
