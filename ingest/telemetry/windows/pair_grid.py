"""A grid of two kinds of component over summed paths: what each pair carried and lost, step by step. Pure numpy."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ingest.telemetry.decode.columns import Sets
from ingest.telemetry.kinds.declare import natural

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


@dataclass(frozen=True, slots=True)
class KindOnPaths:
    """A kind of component on the paths: how many components, and on which share of paths there is one."""

    kind: str
    components: int
    on_paths: float


@dataclass(frozen=True, eq=False)
class Membership:
    """Component sets with what every grid over them asks for, worked out once: they are kept between requests."""

    sets: Sets

    @property
    def names(self) -> tuple[str, ...]:
        return self.sets.names

    @property
    def indices(self) -> NDArray[np.int32]:
        return self.sets.indices

    @cached_property
    def count(self) -> int:
        return len(self.sets.sizes)

    @cached_property
    def owner(self) -> Ints:
        """Beside each member the set that it is of."""
        return np.repeat(np.arange(self.count), self.sets.sizes)

    @cached_property
    def kinds(self) -> list[str]:
        return sorted({name.partition("/")[0] for name in self.names})

    @cached_property
    def kind_of(self) -> Ints:
        """Of each name the place of its kind in `kinds`."""
        number = {kind: place for place, kind in enumerate(self.kinds)}
        return np.array([number[name.partition("/")[0]] for name in self.names], np.int64)

    @cached_property
    def member_kind(self) -> Ints:
        return self.kind_of[self.indices]

    @cached_property
    def seen(self) -> list[KindOnPaths]:
        """The kinds on the paths, the fewest components first."""
        found = []
        for number, kind in enumerate(self.kinds):
            has = np.zeros(self.count, bool)
            has[self.owner[self.member_kind == number]] = True
            found.append(KindOnPaths(kind, int((self.kind_of == number).sum()), float(has.mean())))
        return sorted(found, key=lambda one: (one.components, one.kind))

    @cached_property
    def beneath(self) -> dict[str, list[str]]:
        """By kind those whose components each lie on paths of one of its components alone, and of which there are more;
        the fewest first."""
        return {kind: self._nested(number) for number, kind in enumerate(self.kinds)}

    def of_kind(self, kind: str, chosen: NDArray[np.bool_]) -> tuple[Ints, Ints]:
        """The members of a kind in the chosen sets: the sets, ascending, and beside each its name's number."""
        number = self.kinds.index(kind) if kind in self.kinds else -1
        mine = (self.member_kind == number) & chosen[self.owner]
        return self.owner[mine], self.indices[mine].astype(np.int64)

    def _nested(self, number: int) -> list[str]:
        mine = self.member_kind == number
        held = np.bincount(self.owner[mine], minlength=self.count)
        above = np.full(self.count, -1, np.int64)
        above[self.owner[mine]] = self.indices[mine]
        above[held != 1] = -1
        size = {one.kind: one.components for one in self.seen}
        found = []
        for other, kind in enumerate(self.kinds):
            if size[kind] > size[self.kinds[number]]:
                theirs = self.member_kind == other
                if _nests(self.indices[theirs], above[self.owner[theirs]], len(self.names)):
                    found.append(kind)
        return sorted(found, key=lambda kind: (size[kind], kind))


@dataclass(frozen=True, slots=True, eq=False)
class PathSums:
    """Entry g says that set `carrying[g]` carries `carried[g]` in each step from `first[g]` to `last[g]`; entry f
    that `failed[f]` of set `failing[f]` failed in step `step[f]`. Numbers of sets are places in `sets`.

    What is carried are units placed at a step's start, or attempts within it; what failed are distinct units, or
    attempts. `unplaced` are units that failed in each step without being placed, shape (steps,).
    """

    steps: int
    sets: Membership
    carrying: Ints
    first: Ints
    last: Ints
    carried: Ints
    failing: Ints
    step: Ints
    failed: Ints
    unplaced: Ints


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


def default_axes(seen: Sequence[KindOnPaths]) -> tuple[str, str] | None:
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


def finer(sets: Membership, kind: str, taken: Collection[str] = ()) -> str | None:
    """The next kind down: of those beneath it that with the fewest components. Kinds that are `taken` do not count."""
    return next((one for one in sets.beneath.get(kind, ()) if one not in taken), None)


def cross(sums: PathSums, rows: str, columns: str, within: Sequence[str] = ()) -> Crossing:
    """The grid of two kinds over the paths that hold all components of `within`."""
    sets = sums.sets
    chosen = sets_containing(sets, within)
    sides = [sets.of_kind(kind, chosen) for kind in (rows, columns)]
    lost = np.bincount(sums.failing, sums.failed, sets.count).astype(np.float64)
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


def sets_containing(sets: Membership, within: Sequence[str]) -> NDArray[np.bool_]:
    """Sets that hold all of these components, shape (sets,)."""
    chosen = np.ones(sets.count, bool)
    for name in within:
        has = np.zeros(sets.count, bool)
        if name in sets.names:
            has[sets.owner[sets.indices == sets.names.index(name)]] = True
        chosen &= has
    return chosen


def rates_of(sums: PathSums, component: str | None) -> tuple[Ints, Ints]:
    """Attempts and losses of a component's paths in each step, both of shape (steps,); None: of all."""
    chosen = sets_containing(sums.sets, () if component is None else (component,))
    paths = np.flatnonzero(chosen)
    cells = np.zeros(len(paths), np.int64)
    shape = sums.steps, 1, 1
    return _carried(sums, paths, cells, shape)[:, 0, 0], _failed(sums, paths, cells, shape)[:, 0, 0]


def _nests(inner: NDArray[np.int32], outer: Ints, names: int) -> bool:
    """Whether each of `inner` always stands beside the same one of `outer`, and never beside none."""
    if len(inner) == 0 or outer.min() < 0:
        return False
    beside = np.full(names, -1, np.int64)
    beside[inner] = outer
    return bool(np.all(beside[inner] == outer))


def _axis(
    names: tuple[str, ...], kind: str, owner: Ints, member: Ints, lost: NDArray[np.float64]
) -> tuple[Axis, Ints]:
    """The axis, and of each name its place along it, -1 for what is not shown; shape (names,)."""
    there = np.unique(member).tolist()
    failures = np.bincount(member, lost[owner], len(names)) if len(owner) else np.zeros(len(names))
    names_shown = sorted(there, key=lambda one: (-failures[one], natural(names[one])))[:MOST]
    names_shown.sort(key=lambda one: natural(names[one]))
    place = np.full(len(names), -1, np.int64)
    place[names_shown] = np.arange(len(names_shown))
    return Axis(kind, tuple(names[one] for one in names_shown), len(there) - len(names_shown)), place


def _joined(rows: tuple[Ints, Ints], columns: tuple[Ints, Ints], width: int) -> tuple[Ints, Ints]:
    """Every pair of a row and a column that one path holds: the paths, ascending, and the cells."""
    (row_path, row), (column_path, column) = rows, columns
    row_path, row = row_path[row >= 0], row[row >= 0]
    column_path, column = column_path[column >= 0], column[column >= 0]
    entry, at = _spread(row_path, column_path)
    return row_path[entry], row[entry] * width + column[at]


def _spread(entries: Ints, paths: Ints) -> tuple[Ints, Ints]:
    """Of entries about sets (numbers of sets) those that `paths` (ascending, repeated) hold: their places, and beside
    each its place in `paths`."""
    held = np.bincount(paths, minlength=int(entries.max(initial=-1)) + 1)
    count = held[entries]
    first = (np.cumsum(held) - held)[entries]
    at = np.repeat(first, count) + np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    return np.repeat(np.arange(len(entries)), count), at


def _carried(sums: PathSums, paths: Ints, cells: Ints, shape: tuple[int, int, int]) -> Ints:
    steps, size = shape[0], shape[1] * shape[2]
    entry, at = _spread(sums.carrying, paths)
    n, bins = sums.carried[entry], (steps + 1) * size
    change = _summed(sums.first[entry] * size + cells[at], n, bins)
    change -= _summed((sums.last[entry] + 1) * size + cells[at], n, bins)
    return np.cumsum(change.reshape(steps + 1, size)[:steps], axis=0).reshape(shape)


def _failed(sums: PathSums, paths: Ints, cells: Ints, shape: tuple[int, int, int]) -> Ints:
    entry, at = _spread(sums.failing, paths)
    size = shape[1] * shape[2]
    return _summed(sums.step[entry] * size + cells[at], sums.failed[entry], shape[0] * size).reshape(shape)


def _summed(at: Ints, n: Ints, bins: int) -> Ints:
    """Exact: sums of doubles are, up to 2^53."""
    return np.bincount(at, n, bins).astype(np.int64)
