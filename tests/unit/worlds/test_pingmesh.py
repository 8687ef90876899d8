from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from tests.unit.worlds.cases import assert_readable, swept
from tests.worlds import Row, World
from tests.worlds.pingmesh import CASES, MOST_FAINT, SPINE, make

HEALTHY = [case for case in CASES if "healthy" in case or case in ("load_peak", "reboots", "drained")]


def hit(row: Row) -> int:
    """Probes of the row that were lost, or took a dropped packet or a delay to come back."""
    return int(row["lost"] + sum(rtt > 6_000 for rtt in row["rtt_us"]))


def touches(row: Row, component: str) -> bool:
    kind, _, name = component.partition("/")
    ends = [row[end].partition("/")[2] for end in ("src", "dst")]
    if component == SPINE:
        return bool(ends[0].partition("-")[0] != ends[1].partition("-")[0])
    return any(f"{end}-".startswith(f"{name}-") for end in ends) and kind in ("host", "tor", "podset")


def share(world: World, component: str, start: datetime, end: datetime, *, within: bool) -> float:
    sent, bad = 0, 0
    for row in world.rows["probe"]:
        inside = start <= datetime.fromtimestamp(row["time"] / 1e9, UTC) < end
        if inside and touches(row, component) == within:
            sent += row["sent"]
            bad += hit(row)
    return bad / max(1, sent)


@pytest.mark.parametrize("case", swept(CASES, "several_agents"))
def test_a_world_of_pingmesh_is_read_by_the_wire_format_and_is_the_same_for_the_same_seed(case: str) -> None:
    first, second = make(3, case), make(3, case)

    assert first.rows == second.rows
    assert first.faults == second.faults
    assert_readable(first)
    assert make(4, case).rows != first.rows


@pytest.mark.parametrize("case", swept(HEALTHY, "reboots"))
def test_a_data_centre_without_a_broken_component_has_no_faults(case: str) -> None:
    assert make(1, case).faults == ()


@pytest.mark.parametrize(
    "case", swept((case for case in CASES if case not in HEALTHY), "several_agents", "podset_slow")
)
def test_faulty_components_lose_drop_or_delay_more_probes_than_others(case: str) -> None:
    world = make(2, case)

    assert world.faults
    for fault in world.faults:
        through = share(world, fault.component, fault.start, fault.end, within=True)
        without = share(world, fault.component, fault.start, fault.end, within=False)
        before = share(world, fault.component, world.judged_from, fault.start, within=True)
        assert through > 1.1 * without or len(world.faults) > 1, fault
        assert through > 1.2 * before, fault
        (note,) = [note for note in world.notes if note.startswith(f"{fault.component} ")]
        assert int(note.partition("at least ")[2].partition(" ")[0]) >= MOST_FAINT


def test_latency_of_normal_times_is_that_of_the_published_data_centres() -> None:
    times = np.array([rtt for row in make(1, "healthy").rows["probe"] for rtt in row["rtt_us"]])

    p50, p99, p999 = np.percentile(times, [50, 99, 99.9])
    assert 200 < p50 < 350
    assert 900 < p99 < 2_500
    assert 5_000 < p999 < 30_000


def test_every_server_has_its_place_unless_the_case_knows_no_topology() -> None:
    rows = make(1, "black_hole").rows
    placed = {row["component"] for row in rows["topology"]}

    assert {row["src"] for row in rows["probe"]} <= placed
    assert "topology" not in make(1, "unplaced").rows
