from __future__ import annotations

from collections import Counter
from datetime import timedelta

import numpy as np
import pytest

from tests.unit.worlds.cases import assert_readable, swept
from tests.worlds import World
from tests.worlds.selector import CASES, HISTORY, JUDGED, PLANS, START, WEEK, make, risk

NOT_INCIDENTS = ("observed", "retired", "drained")


@pytest.mark.parametrize("case", swept(CASES, "small_fleet"))
def test_the_rows_of_a_case_pass_the_wire_format(case: str) -> None:
    assert_readable(make(2, case))


def test_the_same_seed_gives_the_same_rows_and_risks() -> None:
    first = make(5, "small_fleet")
    assert first == make(5, "small_fleet")
    assert risk(5, "small_fleet") == risk(5, "small_fleet")
    assert first.rows != make(6, "small_fleet").rows


@pytest.mark.parametrize("case", swept(CASES, "small_fleet"))
def test_risks_add_up_to_the_incidents_that_followed(case: str) -> None:
    expected, followed, spread = 0.0, 0, 0.0
    for seed in range(2):
        world = make(seed, case)
        for end, of_node in risk(seed, case).items():
            expected += sum(of_node.values())
            spread += sum(one * (1 - one) for one in of_node.values())
            met = world.faults_between(end, end + timedelta(hours=24))
            followed += len({fault.component for fault in met if fault.start >= end})
    assert abs(followed - expected) < 4 * spread**0.5


def test_risks_are_stated_at_the_ends_of_the_judged_windows() -> None:
    assert list(risk(1, "small_fleet")) == [START + (HISTORY + 1 + i) * WEEK for i in range(JUDGED)]


def test_lemons_have_most_of_the_incidents() -> None:
    counts = incidents(make(1, "lemons"))
    few = round(PLANS["lemons"].lemons * PLANS["lemons"].nodes)
    assert sum(count for _, count in counts.most_common(few)) > 0.25 * counts.total()


@pytest.mark.soak
def test_a_covariate_that_matters_is_higher_at_incidents() -> None:
    world = make(1, "covariates")
    heat: dict[bool, list[float]] = {True: [], False: []}
    for row in world.rows["node_incident"]:
        heat[row["kind"] == "observed"].append(row["covariates"]["temperature_c"])
    assert np.mean(heat[False]) > np.mean(heat[True]) + 3


@pytest.mark.soak
def test_nodes_that_measure_less_fail_more_often() -> None:
    world = make(1, "gray_benchmarks")
    first: dict[tuple[str, str], float] = {}
    low = set()
    for row in world.rows["benchmark"]:
        usual = first.setdefault((row["node"], row["metric"]), float(np.median(row["values"])))
        if np.median(row["values"]) < 0.965 * usual:
            low.add(row["node"])
    counts = incidents(world)
    healthy = [counts[one] for one in {row["node"] for row in world.rows["benchmark"]} - low]
    assert 10 <= len(low) <= 25
    assert np.mean([counts[one] for one in low]) > 2 * np.mean(healthy)


@pytest.mark.soak
def test_silent_nodes_have_no_rows_but_incidents() -> None:
    assert {row["kind"] for row in make(1, "silent_nodes").rows["node_incident"]}.isdisjoint(NOT_INCIDENTS)


def incidents(world: World) -> Counter[str]:
    rows = world.rows["node_incident"]
    return Counter(row["node"] for row in rows if row["kind"] not in NOT_INCIDENTS)
