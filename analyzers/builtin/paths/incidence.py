"""Which path holds which component, with components that no path separates merged into one.

Several methods start from here: attempts and failures per path, and a sparse table of paths against components.
Nothing in it depends on the order of paths or, but for the order of equals, on names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.contract import Paths

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Marks = NDArray[np.uint64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Incidence:
    """Paths against components, with what was tried and what failed.

    Entry k says that path `row[k]` holds component `column[k]`; entries are ordered by path. `attempts` and
    `failures` have shape (paths,). Component c is called `names[c]`, and `alike[c]` are the other components that
    lie on exactly the same paths. `hops[p]` is how many components path p has, before merging. `mark[c]` is a
    number that depends on the figures of the paths around c and on no name: it orders what is otherwise equal.
    """

    names: tuple[str, ...]
    alike: tuple[tuple[str, ...], ...]
    row: Ints
    column: Ints
    attempts: Floats
    failures: Floats
    hops: Ints
    mark: Marks

    @property
    def paths(self) -> int:
        return len(self.attempts)

    @property
    def components(self) -> int:
        return len(self.names)

    def per_component(self, weight: Floats) -> Floats:
        """The sum of a weight per path over the paths of each component; shape (components,)."""
        summed = np.bincount(self.column, weight[self.row], minlength=self.components)
        return summed.astype(np.float64)

    def containing(self, components: Iterable[int]) -> Mask:
        """Which paths hold any of the components; shape (paths,)."""
        return self.per_path(components) > 0

    def per_path(self, components: Iterable[int]) -> Ints:
        """How many of the components each path holds; shape (paths,)."""
        wanted = np.zeros(self.components, dtype=bool)
        wanted[list(components)] = True
        return np.bincount(self.row[wanted[self.column]], minlength=self.paths).astype(np.int64)

    def number(self) -> dict[str, int]:
        """The component that each name belongs to."""
        found = {name: c for c, name in enumerate(self.names)}
        found.update({name: c for c, others in enumerate(self.alike) for name in others})
        return found


def incidence(paths: Paths, attempts: NDArray[np.generic], failures: NDArray[np.generic]) -> Incidence:
    """The incidence of the paths that were tried and that name a component; the others are left out."""
    lengths = np.diff(paths.indptr)
    kept = (np.asarray(attempts) > 0) & (lengths > 0)
    number = np.cumsum(kept) - 1
    owner = np.repeat(np.arange(len(paths)), lengths)
    inside = kept[owner]
    row, member = number[owner[inside]], paths.indices[inside].astype(np.int64)
    tried = np.asarray(attempts, dtype=np.float64)[kept]
    failed = np.asarray(failures, dtype=np.float64)[kept]
    used, member = np.unique(member, return_inverse=True)
    names = [paths.names[i] for i in used.tolist()]
    group, leaders = _merged(row, member, len(names))
    others: list[list[str]] = [[] for _ in leaders]
    for i, of in enumerate(group.tolist()):
        if leaders[of] != i:
            others[of].append(names[i])
    column = group[member]
    if len(leaders) < len(names):
        row, column = _without_repeats(row, column, len(leaders))
    return Incidence(
        tuple(names[i] for i in leaders.tolist()),
        tuple(tuple(one) for one in others),
        row,
        column,
        tried,
        failed,
        lengths[kept].astype(np.int64),
        _fingerprints(row, column, len(leaders), tried, failed),
    )


def with_sources(paths: Paths, sources: Sequence[str]) -> Paths:
    """The paths, each with where it was probed from as one more component; its names come after all others, so that
    what is on the same paths leads them.
    """
    there = {name: i for i, name in enumerate(paths.names)}
    names = (*paths.names, *sorted(set(sources) - set(there)))
    number = {name: i for i, name in enumerate(names)}
    lengths = np.diff(paths.indptr)
    source = np.array([number[name] for name in sources], dtype=np.int64)
    owner = np.concatenate([np.repeat(np.arange(len(paths)), lengths), np.arange(len(paths))[lengths > 0]])
    entries = np.unique(owner * len(names) + np.concatenate([paths.indices, source[lengths > 0]]))
    row, member = np.divmod(entries, max(1, len(names)))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(paths)))]).astype(np.int64)
    return Paths(names, indptr, member.astype(np.int32))


def mixed(number: NDArray[np.generic]) -> Marks:
    """Well-spread 64-bit numbers (the finaliser of splitmix64; Steele et al., OOPSLA 2014)."""
    z = np.asarray(number).astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)), dtype=np.uint64)


def summed(key: Ints, value: Marks, size: int) -> Marks:
    """The sum of `value` by key, modulo 2^64; shape (size,)."""
    total = np.zeros(size, dtype=np.uint64)
    np.add.at(total, key, value)
    return total


def _merged(row: Ints, member: Ints, count: int) -> tuple[Ints, Ints]:
    """For each component its group, and for each group its first component; groups in the order of these.

    Components on the same paths have the same sum of hashed path numbers; that others have it too by chance has
    odds of count^2 / 2^128 (two sums are compared).
    """
    marks = [summed(member, mixed(mixed(row) + np.uint64(salt)), count) for salt in (0, 1)]
    both = np.stack(marks, axis=1)
    _, first, group = np.unique(both, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return place[group.ravel()], first[order].astype(np.int64)


def _without_repeats(row: Ints, column: Ints, columns: int) -> tuple[Ints, Ints]:
    entries = np.sort(row * columns + column)
    entries = entries[np.diff(entries, prepend=-1) > 0]
    return entries // max(columns, 1), entries % max(columns, 1)


def _fingerprints(row: Ints, column: Ints, columns: int, attempts: Floats, failures: Floats) -> Marks:
    """Hashes of each component's surroundings: its paths' figures, then those of the components beside it
    (two rounds of colour refinement; Weisfeiler and Leman 1968).
    """
    path = mixed(mixed(attempts.view(np.uint64)) + failures.view(np.uint64))
    near = mixed(summed(column, path[row], columns))
    around = mixed(path + summed(row, near[column], len(attempts)))
    return mixed(summed(column, around[row], columns))
