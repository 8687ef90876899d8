"""Simulated regions and scenarios: seeded, consistent, and the same by windows as by rows."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analyzers.builtin.deepview import ANALYZER
from analyzers.contract import Paths
from analyzers.simulators import SCENARIOS
from analyzers.simulators.deepview import (
    CLUMPED,
    EPOCH,
    Background,
    Failures,
    Fault,
    background,
    draw_faults,
    strike,
    window,
)
from analyzers.simulators.fleet import PRESETS, Fleet, M, Preset, S, build, large
from analyzers.simulators.region import World, failure_rows, placement_rows, region_world
from analyzers.simulators.tables import sums_of
from ingest.telemetry.decode.body import decode_ndjson
from ingest.telemetry.decode.columns import Bounds, Rows
from ingest.telemetry.kinds import KINDS
from ingest.telemetry.windows import offline

START = datetime(2026, 1, 5, tzinfo=UTC)


def fleet_of(preset: Preset = S, seed: int = 1) -> Fleet:
    return build(preset, np.random.default_rng(seed))


def decoded(kind: str, rows: list[dict[str, Any]]) -> Rows:
    body = "".join(json.dumps(row) + "\n" for row in rows).encode()
    return decode_ndjson(KINDS[kind], body, "default", Bounds())


def test_preset_m_has_the_components_of_the_reference() -> None:
    fleet = fleet_of(M)
    assert len(fleet.components) == 159
    assert 1_000 < len(fleet.paths) <= 1_536


def test_one_preset_has_288_components() -> None:
    assert len(fleet_of(PRESETS["288"]).components) == 288


def test_a_large_region_has_about_the_components_asked_for() -> None:
    assert len(fleet_of(large(2_000)).components) == pytest.approx(2_000, rel=0.02)


def test_paths_are_sorted_as_sums_promise() -> None:
    paths = fleet_of(M).paths
    sets = [paths[row] for row in range(len(paths))]
    assert sets == sorted(set(sets))
    assert list(paths.names) == sorted(paths.names)


def test_the_same_seed_gives_the_same_region() -> None:
    first, second = fleet_of(), fleet_of()
    assert first.paths.names == second.paths.names
    assert np.array_equal(first.host_of, second.host_of)


def test_hosts_lie_under_the_tor_of_their_path() -> None:
    fleet = fleet_of()
    for unit in range(0, fleet.units, 97):
        tor = next(name for name in fleet.paths[int(fleet.path_of[unit])] if name.startswith("tor/"))
        assert fleet.host_names[int(fleet.host_of[unit])].startswith("host/" + tor.removeprefix("tor/"))


def test_a_fault_strikes_only_what_depends_on_it() -> None:
    fleet = fleet_of()
    lost = strike(fleet, np.random.default_rng(2), Fault("storage_cluster/d1-s1", 0.5, 0, 60))
    carried = fleet.carries("storage_cluster/d1-s1")
    assert carried[lost.unit].all()
    assert len(lost.unit) / carried.sum() == pytest.approx(0.5, abs=0.08)


@pytest.mark.parametrize(
    ("shape", "late"), [("stop", 0.0), ("steady", 0.5), ("ramp", 0.75), ("flapping", 0.5)]
)
def test_shapes_spread_failures_over_the_hour(shape: str, late: float) -> None:
    lost = strike(fleet_of(), np.random.default_rng(3), Fault("t2/d1", 0.9, 0, 60, shape))
    assert np.all((lost.minute >= 0) & (lost.minute <= 60))
    assert np.mean(lost.minute >= 30) == pytest.approx(late, abs=0.06)


@pytest.mark.parametrize("kind", ["stop", "gray", "faint", "multi", "pair", "ramp", "flapping"])
def test_each_kind_of_fault_can_be_drawn(kind: str) -> None:
    faults = draw_faults(fleet_of(M), np.random.default_rng(4), kind, 0, 60)
    assert len({fault.component for fault in faults}) == len(faults) > 0
    assert all(0 < fault.severity <= 1 for fault in faults)


def test_dead_hosts_take_units_of_one_host() -> None:
    fleet = fleet_of()
    quiet = Background(rate=1e-9, hosts=1.0)
    failures = background(fleet, np.random.default_rng(5), quiet, 0, 600)
    hosts = np.unique(fleet.host_of[failures.unit])
    assert 1 <= len(hosts) < len(failures.unit)


def test_customer_errors_stay_in_one_storage_cluster() -> None:
    fleet = fleet_of()
    kind = Background(rate=1e-9, customers=24.0)
    failures = background(fleet, np.random.default_rng(6), kind, 0, 60)
    named = {name for unit in failures.unit for name in fleet.paths[int(fleet.path_of[unit])]}
    assert len(failures.unit) > 0
    assert any(name.startswith("storage_cluster/") for name in named)


def test_windows_agree_with_rows_reduced_by_the_offline_reader() -> None:
    fleet, rng = fleet_of(), np.random.default_rng(7)
    failures = background(fleet, rng, CLUMPED, 0, 120).plus(strike(fleet, rng, Fault("t2/d1", 0.02, 60, 120)))
    kept = Failures(np.floor(failures.minute * 60_000) / 60_000, failures.unit)
    tables = {
        "placement": decoded("placement", placement_rows(fleet, EPOCH)),
        "unit_failure": decoded("unit_failure", failure_rows(fleet, kept, EPOCH)),
    }
    made = window(fleet, kept, 60, 120).sums
    read = offline.reduce(ANALYZER.inputs[0], tables, EPOCH + timedelta(hours=1), EPOCH + timedelta(hours=2))
    for name in made:
        ours, theirs = made[name], read[name]
        assert rows_of(ours) == rows_of(theirs)


def rows_of(sums: Any) -> list[tuple[Any, ...]]:
    columns = [
        [key[row] for row in range(sums.rows)] if isinstance(key, Paths) else list(key)
        for _, key in sorted(sums.keys.items())
    ]
    columns += [value.tolist() for _, value in sorted(sums.values.items())]
    return list(zip(*columns, strict=True))


def test_sums_are_put_into_the_order_of_their_keys() -> None:
    sums = sums_of([("b/1",), ("a/1", "b/1"), ("a/1",)], {"n": [1, 2, 3]})
    sets = sums.keys["components"]
    assert isinstance(sets, Paths)
    assert [sets[row] for row in range(3)] == [("a/1",), ("a/1", "b/1"), ("b/1",)]
    assert sums.values["n"].tolist() == [3, 2, 1]


@pytest.fixture(scope="module")
def world() -> World:
    return region_world(11, START)


@pytest.mark.simulated
def test_the_demo_world_is_as_large_as_told(world: World) -> None:
    tiers = [row["labels"]["tier"] for row in world.topology]
    assert (tiers.count("tor"), tiers.count("compute_cluster"), tiers.count("storage_cluster")) == (
        128,
        16,
        12,
    )
    assert len(world.placement) == pytest.approx(20_000, rel=0.1)


@pytest.mark.simulated
def test_the_demo_world_is_the_same_for_a_seed(world: World) -> None:
    assert region_world(11, START) == world


@pytest.mark.simulated
def test_the_failures_of_the_demo_world_come_in_order(world: World) -> None:
    times = [row["time"] for row in world.failures]
    assert times == sorted(times)


@pytest.mark.simulated
def test_no_unit_of_the_demo_world_fails_before_it_is_placed(world: World) -> None:
    placed = {row["unit"]: row["time"] for row in world.placement}
    assert all(row["time"] >= placed[row["unit"]] for row in world.failures)


def test_every_component_of_the_demo_world_is_in_its_topology(world: World) -> None:
    known = {row["component"] for row in world.topology}
    assert {name for row in world.placement for name in row["components"]} <= known
    assert {parent for row in world.topology for parent in row.get("parents", [])} <= known


@pytest.mark.simulated
def test_a_scenario_writes_files_by_kind_and_its_truth(tmp_path: Path) -> None:
    written = SCENARIOS["deepview_stop"].write(3, tmp_path)
    names = {path.name for path in written}
    assert {"placement.ndjson", "unit_failure.ndjson", "path_outcome.ndjson", "truth.json"} <= names
    truth = json.loads((tmp_path / "truth.json").read_text())
    assert truth["seed"] == 3
    assert [fault["severity"] > 0.5 for fault in truth["faults"]] == [True]


def test_scenarios_are_named_after_themselves() -> None:
    assert all(scenario.name == name and scenario.help for name, scenario in SCENARIOS.items())
