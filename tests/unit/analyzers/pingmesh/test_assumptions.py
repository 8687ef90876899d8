"""Assumptions of Pingmesh, and faults that only rows of a whole window, or all blocks of a pattern together, show."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from analyzers.builtin.pingmesh import ANALYZER
from analyzers.builtin.pingmesh.observed import measures
from analyzers.builtin.pingmesh.patterns import Pooled, pooled
from analyzers.contract import Window
from analyzers.runner import judge
from tests.worlds import Row, World
from tests.worlds.pingmesh import make

pytestmark = pytest.mark.simulated

SEEDS = {"tor_down": 5, "podset_down": 3}
"""Of the first twelve, those with the fewest servers."""


@lru_cache
def small(case: str) -> World:
    """A small world of a case, cut to its first faulty window and those before."""
    world = make(SEEDS[case], case)
    end = (world.judged_from + 3 * world.every).timestamp() * 1e9
    return with_rows(world, [row for row in world.rows["probe"] if row["time"] < end])


def last(world: World) -> Window:
    *_, window = world.windows(ANALYZER)
    return window


def named(verdict: dict[str, Any]) -> list[str]:
    return [one["component"] for one in verdict["suspects"]]


def unmet(verdict: dict[str, Any]) -> set[str]:
    return {one["name"] for one in verdict["assumptions"] if not one["holds"]}


def with_rows(world: World, rows: Sequence[Row]) -> World:
    return World(
        world.case, world.seed, {**world.rows, "probe": rows}, world.every, world.judged_from, world.faults
    )


@pytest.mark.parametrize("case", ["tor_down", "podset_down"])
def test_what_is_silent_is_down_where_each_pair_has_one_row_a_window(case: str) -> None:
    world = small(case)
    verdict = judge(ANALYZER, last(world), {})
    assert named(verdict) == [world.faults[0].component]
    assert unmet(verdict) == set()


def test_most_agents_silent_lowers_what_is_stated() -> None:
    world = small("tor_down")
    hosts = sorted({row["src"] for row in world.rows["probe"]})
    gone = set(hosts[::3])
    verdict = judge(
        ANALYZER, last(with_rows(world, [row for row in world.rows["probe"] if row["src"] not in gone])), {}
    )
    (suspect,) = verdict["suspects"]
    assert (suspect["component"], unmet(verdict)) == (world.faults[0].component, {"sampling"})
    assert suspect["score"] < judge(ANALYZER, last(world), {})["suspects"][0]["score"]


def test_a_storm_everywhere_is_noise_that_was_not_assumed() -> None:
    world = small("tor_down")
    slow = [
        {**row, "rtt_us": [rtt + 8_000 * (i % 10 == 0) for i, rtt in enumerate(row["rtt_us"])]}
        for row in world.rows["probe"]
    ]
    verdict = judge(ANALYZER, last(with_rows(world, slow)), {})
    assert "noise" in unmet(verdict)
    (noise,) = (one for one in verdict["assumptions"] if one["name"] == "noise")
    assert "answered late" in noise["detail"]


def test_without_topology_the_verdict_says_that_places_are_not_known() -> None:
    world = small("tor_down")
    bare = World(world.case, 0, {"probe": world.rows["probe"]}, world.every, world.judged_from, world.faults)
    verdict = judge(ANALYZER, last(bare), {})
    assert "topology" in unmet(verdict)


def together(bad: Sequence[tuple[int, int]], level: float = 0.01) -> Pooled | None:
    """The pattern of five podsets of three pods, with packets dropped between those podsets, too few for one block."""
    podset = np.repeat(np.arange(5), 3)
    tries = np.full((15, 15), 60.0)
    hits = np.zeros((15, 15))
    rng = np.random.default_rng(3)
    for a, b in bad:
        inside = np.ix_(podset == a, podset == b)
        hits[inside] = rng.binomial(60, level, (3, 3))
    return pooled(podset, tries, (hits, np.zeros((15, 15))), measures(1e-3), 2e-5)


def test_faint_drops_of_the_spine_are_seen_in_all_blocks_together() -> None:
    found = together([(a, b) for a in range(5) for b in range(5) if a != b])
    assert found is not None
    assert found.pattern.name == "spine"


def test_faint_drops_of_a_podset_are_seen_in_its_blocks_together() -> None:
    cross = [(a, b) for a in range(5) for b in range(5) if 2 in (a, b)]
    found = together(cross, 0.02)
    assert found is not None
    assert (found.pattern.name, found.pattern.members) == ("podset_failure", (2,))


@pytest.mark.parametrize(("case", "seed"), [("tor_drops", 61001), ("podset_drops", 61004)])
def test_a_few_dozen_drops_of_a_small_rack_or_podset_name_it(case: str, seed: int) -> None:
    """So few that hardly a server and a peer have several, and that none is left where the worst are taken off; in the
    podset a hundred probes between its two racks, which may well lose nothing."""
    world = make(seed, case)
    window = last(world)
    (fault,) = world.faults_between(window.start, window.end)
    assert named(judge(ANALYZER, window)) == [fault.component]


@pytest.mark.parametrize(
    "bad", [[], [(1, 1)], [(0, 1), (1, 0)], [(a, b) for a in range(5) for b in range(5)]]
)
def test_what_is_no_pattern_blames_nobody_together(bad: list[tuple[int, int]]) -> None:
    assert together(bad, 0.03) is None
