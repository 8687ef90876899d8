"""A grid of two kinds of component over summed paths: what each pair carried and lost, step by step. Pure numpy."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from ingest.telemetry.columns import Sets
from ingest.telemetry.component import natural

Ints = NDArray[np.int64]
MOST = 400
"""Rows or columns of a grid; of more those are shown in which most failed."""
PREFERRED = ("compute_cluster", "storage_cluster")


@dataclass(frozen=True, slots=True)
class Steps:
    """`count` consecutive spans of `length` from `start` on."""

    start: datetime
    length: timedelta
    count: int

    @property
    def starts(self) -> list[datetime]:
        return [self.start + n * self.length for n in range(self.count)]

    @property
    def end(self) -> datetime:
        return self.start + self.count * self.length


@dataclass(frozen=True, slots=True, eq=False)
class PathSums:
    """Entry g says that set `carrying[g]` carries `carried[g]` in each step from `first[g]` to `last[g]`; entry f
    that `failed[f]` of set `failing[f]` failed in step `step[f]`. Numbers of sets are places in `sets`.

    What is carried are units placed at a step's start, or attempts within it; what failed are distinct units, or
    attempts. `unplaced` are units that failed in each step without being placed, shape (steps,).
    """

    steps: int
    sets: Sets
    carrying: Ints
    first: Ints
    last: Ints
    carried: Ints
    failing: Ints
    step: Ints
    failed: Ints
    unplaced: Ints


@dataclass(frozen=True, slots=True)
class Seen:
    """A kind of component on the paths: how many components, and on which share of paths there is one."""

    kind: str
    components: int
    on_paths: float


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """The components along one side, in the order of their names; `hidden` more had fewer failures."""

    kind: str
    names: tuple[str, ...]
    hidden: int


@dataclass(frozen=True, slots=True, eq=False)
class Crossing:
    """`carried` and `failed` of shape (steps, rows, columns). A path that holds several components of a kind counts
    in the cell of each."""

    rows: Axis
    columns: Axis
    carried: Ints
    failed: Ints


def kinds_on(sets: Sets) -> list[Seen]:
    """The kinds on the paths, the fewest components first."""
    kinds, kind_of = _kinds(sets.names)
    paths = max(1, len(sets.sizes))
    owner, found = _owners(sets), []
    member_kind = kind_of[sets.indices]
    for number, kind in enumerate(kinds):
        on = len(np.unique(owner[member_kind == number]))
        found.append(Seen(kind, int((kind_of == number).sum()), on / paths))
    return sorted(found, key=lambda one: (one.components, one.kind))


def default_axes(seen: Sequence[Seen]) -> tuple[str, str] | None:
    """The kinds to show where nobody chose: compute against storage clusters, else the two largest kinds of up to MOST
    components that most paths hold. None where there are not two."""
    there = {one.kind for one in seen}
    if there.issuperset(PREFERRED):
        return PREFERRED
    fit = [one for one in seen if one.on_paths >= 0.5] or list(seen)
    ranked = sorted(
        fit, key=lambda one: (one.components < 2, one.components > MOST, -one.components, one.kind)
    )
    return (ranked[0].kind, ranked[1].kind) if len(ranked) > 1 else None


def finer(sets: Sets, kind: str, taken: Collection[str] = ()) -> str | None:
    """The next kind down: of those whose components each lie on paths of one component of `kind` alone, and of which
    there are more, that with the fewest components. Kinds that are `taken` do not count."""
    kinds, kind_of = _kinds(sets.names)
    if kind not in kinds:
        return None
    owner = _owners(sets)
    above = _single(owner, sets.indices, kind_of[sets.indices] == kinds.index(kind), len(sets.sizes))
    best: tuple[int, str] | None = None
    size = int((kind_of == kinds.index(kind)).sum())
    for number, other in enumerate(kinds):
        count = int((kind_of == number).sum())
        if other == kind or other in taken or count <= size:
            continue
        mine = kind_of[sets.indices] == number
        if _nests(sets.indices[mine], above[owner[mine]]) and (best is None or (count, other) < best):
            best = count, other
    return None if best is None else best[1]


def cross(sums: PathSums, rows: str, columns: str, within: Sequence[str] = ()) -> Crossing:
    """The grid of two kinds over the paths that hold all components of `within`."""
    sets = sums.sets
    chosen = holding(sets, within)
    kinds, kind_of = _kinds(sets.names)
    owner = _owners(sets)
    sides = []
    for kind in (rows, columns):
        number = kinds.index(kind) if kind in kinds else -1
        mine = (kind_of[sets.indices] == number) & chosen[owner]
        sides.append((owner[mine], sets.indices[mine].astype(np.int64)))
    lost = np.bincount(sums.failing, sums.failed, len(sets.sizes)).astype(np.float64)
    (row_axis, row_at), (column_axis, column_at) = (
        _axis(sets.names, kind, *side, lost) for kind, side in zip((rows, columns), sides, strict=True)
    )
    paths, cells = _joined(
        (sides[0][0], row_at[sides[0][1]]), (sides[1][0], column_at[sides[1][1]]), len(column_axis.names)
    )
    shape = sums.steps, len(row_axis.names), len(column_axis.names)
    return Crossing(
        row_axis, column_axis, _carried(sums, paths, cells, shape), _failed(sums, paths, cells, shape)
    )


def holding(sets: Sets, within: Sequence[str]) -> NDArray[np.bool_]:
    """Which sets hold all of these components, shape (sets,)."""
    chosen = np.ones(len(sets.sizes), bool)
    number = {name: place for place, name in enumerate(sets.names)}
    for name in within:
        has = np.zeros(len(sets.sizes), bool)
        if name in number:
            has[_owners(sets)[sets.indices == number[name]]] = True
        chosen &= has
    return chosen


def rates_of(sums: PathSums, component: str | None) -> tuple[Ints, Ints]:
    """What the paths of a component carried and lost in each step, both of shape (steps,); None: of all."""
    chosen = holding(sums.sets, () if component is None else (component,))
    paths = np.flatnonzero(chosen)
    cells = np.zeros(len(paths), np.int64)
    shape = sums.steps, 1, 1
    return _carried(sums, paths, cells, shape)[:, 0, 0], _failed(sums, paths, cells, shape)[:, 0, 0]


def _kinds(names: tuple[str, ...]) -> tuple[list[str], Ints]:
    kinds = [name.partition("/")[0] for name in names]
    distinct = sorted(set(kinds))
    number = {kind: place for place, kind in enumerate(distinct)}
    return distinct, np.array([number[kind] for kind in kinds], np.int64)


def _owners(sets: Sets) -> Ints:
    """Beside each member the set that it is of."""
    return np.repeat(np.arange(len(sets.sizes)), sets.sizes)


def _single(owner: Ints, indices: NDArray[np.int32], mine: NDArray[np.bool_], count: int) -> Ints:
    """Of each set its one member that is `mine`, -1 if it has none or several; shape (sets,)."""
    held = np.bincount(owner[mine], minlength=count)
    member = np.full(count, -1, np.int64)
    member[owner[mine]] = indices[mine]
    return np.where(held == 1, member, -1)


def _nests(inner: NDArray[np.int32], outer: Ints) -> bool:
    """Whether each of `inner` always stands beside the same one of `outer`, and never beside none."""
    if len(inner) == 0 or outer.min() < 0:
        return False
    pairs = np.unique(np.stack((inner.astype(np.int64), outer)), axis=1)
    return bool(len(np.unique(pairs[0])) == pairs.shape[1])


def _axis(
    names: tuple[str, ...], kind: str, owner: Ints, member: Ints, lost: NDArray[np.float64]
) -> tuple[Axis, Ints]:
    """The axis, and of each name its place along it, -1 for what is not shown; shape (names,)."""
    there = np.unique(member).tolist()
    failures = np.bincount(member, lost[owner], len(names)) if len(owner) else np.zeros(len(names))
    kept = sorted(there, key=lambda one: (-failures[one], natural(names[one])))[:MOST]
    kept.sort(key=lambda one: natural(names[one]))
    place = np.full(len(names), -1, np.int64)
    place[kept] = np.arange(len(kept))
    return Axis(kind, tuple(names[one] for one in kept), len(there) - len(kept)), place


def _joined(rows: tuple[Ints, Ints], columns: tuple[Ints, Ints], width: int) -> tuple[Ints, Ints]:
    """Every pair of a row and a column that one path holds: the paths, ascending, and the cells."""
    (row_path, row), (column_path, column) = rows, columns
    row_path, row = row_path[row >= 0], row[row >= 0]
    column_path, column = column_path[column >= 0], column[column >= 0]
    first = np.searchsorted(column_path, row_path, "left")
    count = np.searchsorted(column_path, row_path, "right") - first
    at = np.repeat(first, count) + np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    return np.repeat(row_path, count), np.repeat(row, count) * width + column[at]


def _spread(entries: Ints, paths: Ints) -> tuple[Ints, Ints]:
    """Of entries about sets (numbers of sets) those that `paths` (ascending, repeated) hold: their places, and beside
    each its place in `paths`."""
    first = np.searchsorted(paths, entries, "left")
    count = np.searchsorted(paths, entries, "right") - first
    at = np.repeat(first, count) + np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    return np.repeat(np.arange(len(entries)), count), at


def _carried(sums: PathSums, paths: Ints, cells: Ints, shape: tuple[int, int, int]) -> Ints:
    steps, size = shape[0], shape[1] * shape[2]
    entry, at = _spread(sums.carrying, paths)
    change = np.zeros((steps + 1) * size, np.int64)
    np.add.at(change, sums.first[entry] * size + cells[at], sums.carried[entry])
    np.add.at(change, (sums.last[entry] + 1) * size + cells[at], -sums.carried[entry])
    return np.cumsum(change.reshape(steps + 1, size)[:steps], axis=0).reshape(shape)


def _failed(sums: PathSums, paths: Ints, cells: Ints, shape: tuple[int, int, int]) -> Ints:
    entry, at = _spread(sums.failing, paths)
    found = np.zeros(shape[0] * shape[1] * shape[2], np.int64)
    np.add.at(found, sums.step[entry] * shape[1] * shape[2] + cells[at], sums.failed[entry])
    return found.reshape(shape)
