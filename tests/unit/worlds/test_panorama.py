from __future__ import annotations

from collections import Counter

import pytest

from tests.unit.worlds.cases import assert_readable, swept
from tests.worlds import Fault, World
from tests.worlds.panorama import BASE_NS, CASES, PLANS, START, make

FAULTY = [name for name, plan in PLANS.items() if plan.fault and not plan.fault.startswith("observer_")]
SLANDERED = [name for name, plan in PLANS.items() if plan.fault.startswith("observer_")]


@pytest.mark.parametrize("case", swept(CASES, "gray_sparse", "rolling_deploy"))
def test_the_rows_of_a_case_pass_the_wire_format(case: str) -> None:
    world = make(len(case), case)
    assert len(world.rows["observation"]) > 500
    assert_readable(world)


def test_the_same_seed_gives_the_same_rows() -> None:
    first = make(5, "gray_sparse")
    assert first == make(5, "gray_sparse")
    assert first.rows != make(8, "gray_sparse").rows


@pytest.mark.parametrize("case", swept((name for name, plan in PLANS.items() if not plan.fault), "restart"))
def test_what_is_benign_has_no_faults_in_judged_minutes(case: str) -> None:
    world = make(1, case)
    assert [fault for fault in world.faults if fault.end > world.judged_from] == []


@pytest.mark.parametrize("case", swept(FAULTY, "gray_sparse", "flapping"))
@pytest.mark.parametrize("seed", [0, 1])
def test_a_faulty_subject_is_unhealthy_more_often_than_before(case: str, seed: int) -> None:
    world = make(seed, case)
    for fault in judged(world, "subject"):
        bad, before = shares(world, fault, "subject")
        assert bad > before + 0.05


@pytest.mark.parametrize("case", swept(SLANDERED, "overloaded_observer"))
@pytest.mark.parametrize("seed", [0, 1])
def test_a_sick_observer_says_unhealthy_more_often_than_before(case: str, seed: int) -> None:
    world = make(seed, case)
    faults = judged(world, "observer")
    assert faults
    for fault in faults:
        bad, before = shares(world, fault, "observer")
        assert bad > before + 0.15


def judged(world: World, role: str) -> list[Fault]:
    is_observer = role == "observer"
    found = [fault for fault in world.faults if fault.end > world.judged_from]
    return [fault for fault in found if fault.kind.startswith("observer_") == is_observer]


def shares(world: World, fault: Fault, role: str) -> tuple[float, float]:
    """The share of observations that are not healthy during a fault and otherwise; hung calls count where they stay."""
    start, end = ((when - START).total_seconds() for when in (fault.start, fault.end))
    counts: Counter[tuple[bool, bool]] = Counter()
    for row in world.rows["observation"]:
        beats = role == "subject" and row["context"].startswith("heartbeat")
        if row[role] == fault.component and not beats:
            inside = start <= (row["time"] - BASE_NS) / 1e9 < end
            counts[inside, row["status"] != "healthy"] += 1
    bad, before = (
        counts[one, True] / max(1, counts[one, True] + counts[one, False]) for one in (True, False)
    )
    return bad, before
