"""Grids out of sums by path, against the slow and obvious way."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ingest.telemetry.decode.columns import Sets
from ingest.telemetry.windows.pair_grid import (
    Crossing,
    Membership,
    PathSums,
    cross,
    default_axes,
    finer,
    rates_of,
)

STEPS = 3
Path = frozenset[str]


def sets_of(paths: Sequence[Path]) -> Membership:
    names = sorted({name for path in paths for name in path})
    members = [sorted(names.index(name) for name in path) for path in paths]
    indptr = np.concatenate(([0], np.cumsum([len(one) for one in members]))).astype(np.int64)
    indices = np.array([one for path in members for one in path], np.int32)
    return Membership(Sets(np.arange(len(paths), dtype=np.int32), indptr, indices, tuple(names)))


def sums_of(
    paths: Sequence[Path],
    carried: Sequence[tuple[int, int, int, int]],
    failed: Sequence[tuple[int, int, int]] = (),
) -> PathSums:
    """`carried`: path, first step, last step, how many; `failed`: path, step, how many."""
    of, first, last, n = (np.array(column, np.int64) for column in zip(*carried, strict=True))
    lost = [np.array([row[place] for row in failed], np.int64) for place in range(3)]
    return PathSums(
        STEPS, sets_of(paths), of, first, last, n, lost[0], lost[1], lost[2], np.zeros(STEPS, np.int64)
    )


def cell(grid: Crossing, step: int, row: str, column: str) -> tuple[int, int]:
    at = step, grid.rows.names.index(row), grid.columns.names.index(column)
    return int(grid.carried[at]), int(grid.failed[at])


A, B = frozenset({"cc/1", "tor/1", "sc/1"}), frozenset({"cc/1", "tor/2", "sc/2"})
C = frozenset({"cc/2", "tor/3", "sc/1"})
WORLD = sums_of([A, B, C], [(0, 0, 2, 10), (1, 1, 2, 5), (2, 0, 0, 7)], [(0, 1, 3), (2, 0, 1)])


def test_a_cell_holds_what_its_paths_carried_and_lost() -> None:
    grid = cross(WORLD, "cc", "sc")
    assert (grid.rows.names, grid.columns.names) == (("cc/1", "cc/2"), ("sc/1", "sc/2"))
    assert (cell(grid, 0, "cc/2", "sc/1"), cell(grid, 1, "cc/1", "sc/1")) == ((7, 1), (10, 3))


def test_units_count_in_the_steps_in_which_they_were_there() -> None:
    grid = cross(WORLD, "cc", "sc")
    assert [cell(grid, step, "cc/1", "sc/2")[0] for step in range(STEPS)] == [0, 5, 5]


def test_a_drill_looks_at_the_paths_within() -> None:
    assert cross(WORLD, "tor", "sc", ["cc/1"]).rows.names == ("tor/1", "tor/2")


def test_within_something_unknown_there_is_nothing() -> None:
    assert cross(WORLD, "tor", "sc", ["cc/9"]).rows.names == ()


def test_a_kind_that_nobody_named_has_no_rows() -> None:
    assert cross(WORLD, "rack", "sc").carried.shape == (STEPS, 0, 2)


def test_the_next_kind_down_is_the_one_that_nests() -> None:
    sets = sets_of([A, B, C, frozenset({"cc/1", "tor/1", "sc/2"})])
    assert [finer(sets, kind) for kind in ("cc", "sc", "rack")] == ["tor", None, None]


def test_a_kind_that_crosses_does_not_nest() -> None:
    crossing = sets_of(
        [frozenset({"cc/1", "sc/1"}), frozenset({"cc/2", "sc/1"}), frozenset({"cc/1", "sc/2"})]
    )
    assert finer(crossing, "cc") is None


def test_compute_against_storage_is_what_nobody_has_to_choose() -> None:
    paths = sets_of([frozenset({"compute_cluster/1", "storage_cluster/1", "tor/1"})])
    assert default_axes(paths.seen) == ("compute_cluster", "storage_cluster")


def test_without_two_kinds_there_is_no_grid() -> None:
    assert default_axes(sets_of([frozenset({"tor/1"})]).seen) is None


def test_the_rates_of_one_component_are_those_of_its_paths() -> None:
    carried, failed = rates_of(WORLD, "sc/1")
    assert (carried.tolist(), failed.tolist()) == ([17, 10, 10], [1, 3, 0])


component = st.builds(lambda kind, n: f"{kind}/{n}", st.sampled_from("abc"), st.integers(0, 3))
paths = st.lists(st.frozensets(component, min_size=1, max_size=5), min_size=1, max_size=8, unique=True)


@given(st.data(), paths)
def test_any_grid_is_the_slow_and_obvious_one(data: st.DataObject, drawn: list[Path]) -> None:
    place, step, n = st.integers(0, len(drawn) - 1), st.integers(0, STEPS - 1), st.integers(1, 9)
    spans = st.tuples(place, step, step, n).map(lambda one: (one[0], min(one[1:3]), max(one[1:3]), one[3]))
    carried = data.draw(st.lists(spans, min_size=1, max_size=9))
    failed = data.draw(st.lists(st.tuples(place, step, n), max_size=9))
    within = data.draw(st.lists(component, max_size=1))
    grid = cross(sums_of(drawn, carried, failed), "a", "b", within)
    for row_at, row in enumerate(grid.rows.names):
        for column_at, column in enumerate(grid.columns.names):
            wanted = {row, column, *within}
            held = [wanted <= path for path in drawn]
            for step_at in range(STEPS):
                carries = sum(k for p, first, last, k in carried if held[p] and first <= step_at <= last)
                loses = sum(k for p, at, k in failed if held[p] and at == step_at)
                at = step_at, row_at, column_at
                assert (grid.carried[at], grid.failed[at]) == (carries, loses)
