from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import pytest

from tests.unit.worlds.cases import assert_readable, swept
from tests.worlds import Fault, World
from tests.worlds.deepview import CASES, MOST_FAINT, make

PLAIN = [
    "stop_day",
    "stop_day_10min",
    "gray",
    "faint",
    "several",
    "half_faint",
    "heavy_noise",
    "missing_senders",
]


HEALTHY = [case for case in CASES if case.endswith("_healthy") or case == "healthy"]


def rates(world: World, fault: Fault) -> tuple[float, float, int]:
    """Failures per attempt through the faulty component during the fault and outside of every fault of it, and the
    failures during it."""
    others = [one for one in world.faults if one.component == fault.component]
    tried, failed = Counter[bool](), Counter[bool]()
    for row in world.rows["path_outcome"]:
        if fault.component in row["components"]:
            when = datetime.fromtimestamp(row["time"] / 1e9, UTC)
            inside = fault.start <= when < fault.end
            if inside or not any(one.start <= when < one.end for one in others):
                tried[inside] += row["attempts"]
                failed[inside] += row["failures"]
    return failed[True] / tried[True], failed[False] / max(1, tried[False]), failed[True]


@pytest.mark.parametrize("case", swept(CASES, "half_several"))
def test_a_world_of_deepview_is_read_by_the_wire_format_and_is_the_same_for_the_same_seed(case: str) -> None:
    first, second = make(3, case), make(3, case)

    assert first.rows == second.rows
    assert first.faults == second.faults
    assert_readable(first)
    assert make(4, case).rows != first.rows


@pytest.mark.parametrize("case", swept(HEALTHY, "missing_senders_healthy"))
def test_a_healthy_world_of_deepview_has_no_faults(case: str) -> None:
    assert not any(make(seed, case).faults for seed in range(2))


@pytest.mark.parametrize("case", swept(("drain", "load_peak", "growth", "bad_client"), "load_peak"))
def test_a_benign_event_of_deepview_blames_nobody(case: str) -> None:
    assert make(1, case).faults == ()


@pytest.mark.parametrize("case", swept(PLAIN, "faint"))
def test_planted_faults_of_deepview_stand_out_in_the_rows(case: str) -> None:
    world = make(1, case)

    assert world.faults
    for fault in world.faults:
        during, outside, failures = rates(world, fault)
        assert failures >= MOST_FAINT
        assert during > 1.25 * outside, fault


def test_the_stopped_storage_cluster_fails_every_attempt_of_24_hours() -> None:
    world = make(2, "stop_day")

    (fault,) = world.faults
    assert fault.component.startswith("storage_cluster/")
    assert (fault.end - fault.start).total_seconds() == 24 * 3600
    assert rates(world, fault)[0] == 1.0


def test_half_of_the_windows_are_faulty_with_different_components() -> None:
    world = make(1, "half_stop")

    assert 12 <= len(world.faults) <= 28
    assert len({fault.component for fault in world.faults}) >= 0.9 * len(world.faults)
    assert any(fault.end <= world.judged_from for fault in world.faults)


def test_machines_of_a_stopped_storage_cluster_fail_in_the_placed_world() -> None:
    world = make(1, "placed_stop")
    (fault,) = world.faults
    placed = {row["unit"]: row["components"] for row in world.rows["placement"] if row.get("active", True)}

    failed = {
        row["unit"]
        for row in world.rows["unit_failure"]
        if fault.start <= datetime.fromtimestamp(row["time"] / 1e9, UTC) < fault.end
    }
    behind = {unit for unit in failed if fault.component in placed.get(unit, [])}

    assert len(behind) > 0.7 * len(failed)
