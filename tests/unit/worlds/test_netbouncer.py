from __future__ import annotations

from functools import cache

import pytest

from tests.worlds import Fault, World
from tests.worlds.netbouncer import CASES, MOST_FAINT
from tests.worlds.netbouncer import make as fresh

HEALTHY = [case for case in CASES if "healthy" in case or case in ("blocked", "drain", "leafspine_bursts")]


SPREAD = ["links", "noisy", "missing", "prober_named", "several", "half", "unequal", "leafspine", "pairs"]

make = cache(fresh)


def rows_with_losses(world: World, fault: Fault) -> tuple[float, float]:
    """The share of rows with losses through the component in the time of the fault, and on paths without any fault."""
    faulty = {one.component for one in world.faults}
    many, with_loss = [0, 0], [0, 0]
    start, end = fault.start.timestamp() * 1e9, fault.end.timestamp() * 1e9
    for row in world.rows["probe"]:
        passed = {row["src"], *row["hops"]}
        through = fault.component in passed
        if start <= row["time"] < end if through else not passed & faulty:
            many[through] += 1
            with_loss[through] += row["lost"] > 0
    return with_loss[True] / many[True], with_loss[False] / max(1, many[False])


@pytest.mark.parametrize("case", SPREAD)
def test_a_world_of_netbouncer_is_read_by_the_wire_format_and_is_the_same_for_the_same_seed(
    case: str,
) -> None:
    first, second = make(1, case), fresh(1, case)

    assert first.rows == second.rows
    assert first.faults == second.faults
    assert first.tables()["probe"].count == len(first.rows["probe"]) > 0
    assert fresh(2, case).rows != first.rows


@pytest.mark.parametrize("case", HEALTHY)
def test_a_world_without_a_broken_component_has_no_faults(case: str) -> None:
    assert not make(1, case).faults


@pytest.mark.parametrize("case", [case for case in CASES if case not in HEALTHY])
def test_more_rows_have_losses_through_a_faulty_component_than_elsewhere(case: str) -> None:
    world = make(1, case)
    assert world.faults
    for fault in world.faults[:4]:
        through, without = rows_with_losses(world, fault)
        assert through > 1.5 * without, fault


def test_a_note_says_how_many_probes_each_fault_lost() -> None:
    world = make(1, "links")

    for fault in world.faults:
        (note,) = [note for note in world.notes if note.startswith(f"{fault.component} ")]
        assert int(note.partition("at least ")[2].partition(" ")[0]) >= MOST_FAINT


def test_filters_drop_everything_on_paths_whose_links_are_clean_elsewhere() -> None:
    rows = make(1, "blocked").rows["probe"]

    stopped = {(row["src"], tuple(row["hops"])) for row in rows if row["lost"] == row["sent"]}
    clean = {hop for row in rows if row["lost"] == 0 for hop in row["hops"]}
    assert len(stopped) == 3
    assert all(set(hops) <= clean for _, hops in stopped)
