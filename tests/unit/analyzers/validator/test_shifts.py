"""Parts of a fleet that became worse together are one suspect; two kinds under one label are told, not blamed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from analyzers.builtin.nodes.causes import kinds, shared_by, shifts
from analyzers.builtin.nodes.samples import Sample, Stratum
from analyzers.builtin.validator import ANALYZER
from analyzers.runner import judge
from tests.worlds import Row, World
from tests.worlds.validator import START, make

pytestmark = pytest.mark.simulated

NONE: frozenset[str] = frozenset()
NODES = tuple(f"node/n{i:02d}" for i in range(32))
METRICS = tuple(Stratum("gemm-flops", name, "") for name in ("fp16_flops", "fp64_flops"))


def measured(level: Sequence[float], seed: int, spread: float = 0.003) -> dict[Stratum, Sample]:
    """One round of four runs a node around its level."""
    rng = np.random.default_rng(seed)
    found = {}
    for stratum in METRICS:
        values = np.sort(100 * np.array(level)[:, None] * (1 + spread * rng.standard_normal((len(level), 4))))
        times, starts = np.ones(values.size, dtype=np.int64), np.arange(0, values.size, 4)
        found[stratum] = Sample(NODES[: len(level)], values.ravel(), times, starts)
    return found


def levels(seed: int = 1, spread: float = 0.01) -> list[float]:
    return list(1 + spread * np.random.default_rng(seed).standard_normal(32))


def worse(level: Sequence[float], nodes: range, by: float) -> list[float]:
    return [one * (1 - by) if i in nodes else one for i, one in enumerate(level)]


@pytest.mark.parametrize("count", [4, 8, 16, 22])
def test_a_part_of_the_fleet_that_became_worse_is_found_whole(count: int) -> None:
    usual = levels()
    (found,) = shifts(measured(worse(usual, range(count), 0.04), 2), [measured(usual, 3)], (NONE, NONE))
    assert found.nodes == NODES[:count]
    assert found.by == pytest.approx(0.042, abs=0.006)


@pytest.mark.parametrize(
    ("now", "case"),
    [
        (levels(), "nothing changed"),
        (worse(levels(), range(16), -0.05), "half became better"),
        (worse(levels(), range(32), 0.05), "all became worse"),
        (worse(levels(), range(3), 0.10), "three single nodes"),
        (levels(9), "another fleet"),
    ],
)
def test_what_is_no_part_that_became_worse_is_not_told(now: list[float], case: str) -> None:
    assert shifts(measured(now, 2), [measured(levels(), 3)], (NONE, NONE)) == (), case


def test_without_a_round_from_before_nobody_became_worse() -> None:
    assert shifts(measured(worse(levels(), range(16), 0.05), 2), [], (NONE, NONE)) == ()


def test_two_kinds_of_machine_are_told_by_the_smaller() -> None:
    (found,) = kinds(measured(worse(levels(), range(10), 0.3), 2))
    assert found.nodes == NODES[:10]
    assert kinds(measured(levels(), 2)) == ()
    assert kinds(measured(worse(levels(), range(10), -0.08), 2)) == ()


def test_what_the_nodes_share_is_what_hardly_another_has() -> None:
    groups = {node: ("aisle/a", f"driver/{1 + (i < 10)}") for i, node in enumerate(NODES)}
    assert shared_by(NODES[:10], groups, NODES) == "driver/2"
    assert shared_by(NODES[:3], groups, NODES) is None


def judged(world: World, **more: Sequence[Row]) -> dict[str, Any]:
    """The verdict on the first judged window."""
    told = World(world.case, world.seed, {**world.rows, **more}, world.every, world.judged_from)
    return judge(ANALYZER, next(iter(told.windows(ANALYZER))), {})


def driver_update(told: str) -> tuple[set[str], dict[str, Any]]:
    """The updated nodes of half a fleet, and the verdict where topology tells of the driver as `told`."""
    world = make(21, "driver_update")
    (fault,) = world.faults
    updated = {fault.component, *fault.acceptable}
    rows: list[Row] = []
    for node in sorted({row["node"] for row in world.rows["benchmark"]}):
        driver = "550" if node in updated else "535"
        more = {"labels": {"driver": driver}} if told == "labels" else {"depends_on": [f"driver/{driver}"]}
        rows.append({"time": START.isoformat(), "component": node, **more})
    return updated, judged(world, **({"topology": rows} if told else {}))


@pytest.mark.parametrize("told", ["labels", "depends_on", ""])
def test_a_driver_update_over_half_the_fleet_is_one_suspect(told: str) -> None:
    updated, verdict = driver_update(told)
    (suspect,) = verdict["suspects"]
    assert suspect["component"] == ("driver/550" if told else min(updated))
    assert {suspect["component"], *suspect["ambiguous_with"]} >= updated
    assert "32 nodes that became" in suspect["summary"]


def test_two_kinds_under_one_label_are_an_assumption_that_fails() -> None:
    verdict = judged(make(3, "mixed_skus"))
    assert verdict["suspects"] == []
    (topology,) = (one for one in verdict["assumptions"] if one["name"] == "topology")
    assert (topology["holds"], "two kinds of machine under one label" in topology["detail"]) == (False, True)


def test_a_small_fleet_that_cannot_tell_says_what_would() -> None:
    world = make(30, "gray_10_of_8")
    (fault,) = world.faults
    verdicts = [judge(ANALYZER, window, {}) for window in world.windows(ANALYZER)]
    assert {one["status"] for one in verdicts} <= {"named", "inconclusive"}
    for verdict in verdicts:
        named = [one["component"] for one in verdict["suspects"]]
        assert named == [fault.component] or "a round from before, or a baseline" in verdict["reason"]
