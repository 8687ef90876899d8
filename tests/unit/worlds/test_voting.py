from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from tests.worlds import World
from tests.worlds.clos import fabric
from tests.worlds.voting import CASES, MOST_FAINT
from tests.worlds.voting import make as fresh

WITH_FAULTS = ["bad1_failing", "bad14_failing", "heavy_failing", "half_failing"]
SPREAD = ["bad8_failing", "switches_failing", "limited_failing", "cut_failing", "healthy_failing"]

make = cache(fresh)


def failing(world: World, component: str) -> Counter[int]:
    """Flows with hops that lost packets on the component, by epoch."""
    start = datetime(2025, 4, 2, 7, tzinfo=UTC).timestamp()
    return Counter(
        int((row["time"] / 1e9 - start) / world.every.total_seconds())
        for row in world.rows["probe"]
        if row["lost"] and component in row.get("hops", [])
    )


@pytest.mark.parametrize("case", SPREAD)
def test_a_world_of_voting_is_read_by_the_wire_format_and_is_the_same_for_the_same_seed(case: str) -> None:
    first, second = make(1, case), fresh(1, case)

    assert first.rows == second.rows
    assert first.faults == second.faults
    assert first.tables()["probe"].count == len(first.rows["probe"]) > 0
    assert make(2, case).rows != first.rows


@pytest.mark.parametrize(
    "case", [case for case in CASES if "healthy" in case or "congestion" in case if case.endswith("_failing")]
)
def test_a_healthy_or_congested_fabric_has_no_faults(case: str) -> None:
    assert make(1, case).faults == ()


@pytest.mark.parametrize("case", WITH_FAULTS)
def test_bad_links_stand_out_of_the_traced_failing_flows(case: str) -> None:
    world = make(1, case)
    epoch = world.every

    assert world.faults
    for fault in world.faults:
        counts = failing(world, fault.component)
        first = round((fault.start - datetime(2025, 4, 2, 7, tzinfo=UTC)) / epoch)
        last = round((fault.end - datetime(2025, 4, 2, 7, tzinfo=UTC)) / epoch)
        others = [counts[one] for one in range(12) if not first <= one < last]
        assert all(counts[one] >= MOST_FAINT for one in range(first, last)), fault
        assert len(others) == 0 or counts[first] > np.median(others)


@pytest.mark.parametrize(("case", "bad"), [("bad1_failing", 1), ("bad6_failing", 6), ("bad14_failing", 14)])
def test_as_many_links_are_bad_as_the_case_says_or_slightly_fewer(case: str, bad: int) -> None:
    assert 0.6 * bad <= len({fault.component for fault in make(1, case).faults}) <= bad


def test_only_failing_flows_and_few_good_ones_have_hops() -> None:
    absent, untraced = make(1, "bad6_failing").rows["probe"], make(1, "single6_untraced").rows["probe"]

    assert all(row.get("hops") or row["lost"] for row in absent)
    good = [row for row in untraced if not row["lost"]]
    assert 0 <= sum("hops" in row for row in good) <= 0.006 * len(good)
    assert len(untraced) > 20 * sum("hops" in row for row in untraced)


def test_every_flow_has_hops_where_all_are_traced() -> None:
    rows = make(1, "single6_all").rows["probe"]

    assert sum("hops" in row for row in rows) > 0.95 * len(rows)
    assert sum(row["lost"] > 0 for row in rows) < 0.2 * len(rows)


def test_routes_of_a_fabric_are_unbroken_from_host_to_host() -> None:
    rng = np.random.default_rng(5)
    net = fabric(rng)
    src, dst = rng.integers(len(net.hosts), size=(2, 500))
    kept = (src != dst) & net.connected(src, dst)

    for source, target, path in zip(src[kept], dst[kept], net.paths(rng, src[kept], dst[kept]), strict=True):
        ends = [net.ends[link] for link in path if link >= 0]
        assert (f"host/{ends[0][0]}", f"host/{ends[-1][1]}") == (net.hosts[source], net.hosts[target])
        assert all(one[1] == after[0] for one, after in pairwise(ends))
