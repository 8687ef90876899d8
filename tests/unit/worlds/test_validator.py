from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from tests.unit.worlds.cases import assert_readable, swept
from tests.worlds import World
from tests.worlds.validator import CASES, DAY, PLANS, START, make

LOWER = ("_time", "_latency", "_lat_us")
GRAY = [name for name, plan in PLANS.items() if plan.gray and not plan.other_sku and not plan.special]
HEALTHY = [name for name in CASES if not PLANS[name].gray and not PLANS[name].special]


@pytest.mark.parametrize("case", swept(CASES, "hot_aisle", "failed_benchmark_3"))
def test_the_rows_of_a_case_pass_the_wire_format(case: str) -> None:
    assert_readable(make(2, case))


def test_the_same_seed_gives_the_same_rows() -> None:
    first = make(5, "gray_10_of_24")
    assert first == make(5, "gray_10_of_24")
    assert first.rows != make(6, "gray_10_of_24").rows


@pytest.mark.parametrize("case", swept(HEALTHY, "healthy_24", "mislabelled"))
def test_a_healthy_fleet_has_no_faults(case: str) -> None:
    assert make(1, case).faults == ()


@pytest.mark.parametrize("case", swept(GRAY, "gray_10_of_16", "gray_10_of_24"))
@pytest.mark.parametrize("seed", [1, 2])
def test_a_planted_defect_is_worse_than_every_healthy_node_in_some_metric(case: str, seed: int) -> None:
    world = make(seed, case)
    planted = {fault.component for fault in world.faults if fault.end > world.judged_from}
    assert planted
    assert beyond_the_healthy(world, planted) == planted


@pytest.mark.parametrize(("case", "depth"), [("hot_aisle", 0.05), ("driver_update", 0.04)])
def test_a_common_cause_shifts_the_mean_of_its_nodes(case: str, depth: float) -> None:
    world = make(3, case)
    (fault,) = world.faults
    reached = {fault.component, *fault.acceptable}
    speed = medians(world)["fp64_flops"]
    hit = np.mean([value for node, value in speed.items() if node in reached])
    rest = np.mean([value for node, value in speed.items() if node not in reached])
    assert hit / rest == pytest.approx(1 - depth, abs=0.01)


def test_a_failing_benchmark_shows_in_its_return_code() -> None:
    world = make(1, "failed_benchmark_3")
    failed = {
        row["node"]
        for row in world.rows["benchmark"]
        if row["metric"] == "return_code" and row["values"] == [1.0]
    }
    assert failed == {fault.component for fault in world.faults}


@pytest.mark.parametrize("case", ["pinned_numa", "intermittent"])
def test_a_faulty_node_has_the_most_slow_runs(case: str) -> None:
    world = make(4, case)
    middle = {name: np.median(list(found.values())) for name, found in medians(world).items()}
    slow: dict[str, int] = defaultdict(int)
    for row in world.rows["benchmark"]:
        low = row["metric"].endswith(LOWER)
        ratio = np.asarray(row["values"]) / middle[row["metric"]]
        slow[row["node"]] += int(((1 / ratio if low else ratio) < 0.92).sum())
    assert set(sorted(slow, key=lambda node: -slow[node])[:2]) == {fault.component for fault in world.faults}


def medians(world: World) -> dict[str, dict[str, float]]:
    """The median of each metric on each node over the last day that it was measured."""
    runs: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    since = max(row["time"][:10] for row in world.rows["benchmark"])
    assert since > (START + DAY).isoformat()[:10]
    for row in world.rows["benchmark"]:
        if row["time"][:10] == since:
            runs[row["metric"]][row["node"]] += row["values"]
    return {name: {node: float(np.median(v)) for node, v in found.items()} for name, found in runs.items()}


def beyond_the_healthy(world: World, suspects: set[str]) -> set[str]:
    """The suspects that are worse in some metric than every other node."""
    found: set[str] = set()
    for name, of_node in medians(world).items():
        speed = {node: 1 / value if name.endswith(LOWER) else value for node, value in of_node.items()}
        bar = min(value for node, value in speed.items() if node not in suspects)
        found |= {node for node in suspects & speed.keys() if speed[node] < bar}
    return found
