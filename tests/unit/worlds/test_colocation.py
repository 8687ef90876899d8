from __future__ import annotations

from datetime import datetime

import pytest

from tests.unit.worlds.cases import assert_readable, swept
from tests.worlds import World
from tests.worlds.colocation import CASES, make, ratio


@pytest.mark.parametrize("case", swept(CASES, "few", "few_none"))
def test_the_rows_of_a_case_pass_the_wire_format_and_blame_nobody(case: str) -> None:
    world = make(2, case)
    assert_readable(world)
    assert world.faults == ()


def test_the_same_seed_gives_the_same_rows() -> None:
    assert make(5, "few") == make(5, "few")
    assert make(5, "few").rows != make(6, "few").rows


@pytest.mark.parametrize("case", swept(("none", "published", "twice", "churn", "unclassed"), "twice"))
def test_the_ratio_of_rates_is_that_which_was_planted(case: str) -> None:
    assert 1 + excess(make(1, case)) == pytest.approx(1 + ratio(case), rel=0.1)


@pytest.mark.soak
def test_clusters_make_far_machines_look_worse_where_they_are_confounded() -> None:
    assert excess(make(1, "confounded")) > ratio("confounded") + 0.3


def excess(world: World) -> float:
    """Failures an hour up of far machines over those of near ones, less one."""
    fails, hours = {"near": 0, "far": 0}, {"near": 0.0, "far": 0.0}
    for row in world.rows["uptime"]:
        placed = row.get("hops_class")
        if placed and row["state"] == "down":
            fails[placed] += 1
        elif placed:
            start, end = (datetime.fromisoformat(row[one]) for one in ("start", "end"))
            hours[placed] += (end - start).total_seconds() / 3_600
    return fails["far"] / hours["far"] / (fails["near"] / hours["near"]) - 1
