"""One window as the likelihood needs it: a sum per component, and the rows that failed.

A path without a failure adds only `-n * eta` to the log-likelihood, which is linear in the unknowns: all
healthy paths together are the one number per component in `carried`. So the solver sees `carried` and the
failing rows, and its cost grows with what failed, not with the fleet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.deepview.analyzer import WITNESS_KIND
from analyzers.contract import Paths, Sums

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """Failures against exposure.

    `carried[j]` is how many units depend on component j, of `total` units, and `paths_on[j]` how many paths
    hold it. Failing row r is one path that lost `failures[r]` units; entry k says that row
    `row[k]` holds component `column[k]`. `unknown` counts failures on components that no path of the window has;
    they are left out. `paths` are all paths, healthy ones too, with `tried` units each.
    """

    names: tuple[str, ...]
    carried: Floats
    total: float
    paths_on: Ints
    row: Ints
    column: Ints
    failures: Floats
    testimony: Testimony | None
    unknown: int
    paths: Paths
    tried: Floats

    @property
    def rows(self) -> int:
        return len(self.failures)

    @property
    def witness(self) -> Floats:
        """Weight of each row when every host counts once in all; without hosts the failures themselves."""
        return self.failures if self.testimony is None else self.testimony.weight(self.rows)

    def per_component(self, weight: Floats) -> Floats:
        """The sum of a weight per failing row over the rows of each component; shape (components,)."""
        summed = np.bincount(self.column, weight[self.row], minlength=len(self.names))
        return summed.astype(np.float64)

    def clear_of(self, components: Iterable[int]) -> Floats:
        """1 for failing rows that hold none of the components, else 0; shape (rows,)."""
        clear = np.ones(self.rows)
        clear[self.row[np.isin(self.column, list(components))]] = 0.0
        return clear


@dataclass(frozen=True, slots=True, eq=False)
class Testimony:
    """Witnesses of the failures: host `host[t]` lost `failures[t]` units on failing row `row[t]`.

    Units on one host die together, so a host counts 1 in all, however many units on however many paths it
    lost.
    """

    row: Ints
    host: Ints
    failures: Floats
    hosts: int

    def weight(self, rows: int) -> Floats:
        """Weight of each failing row when every host counts once; shape (rows,)."""
        return self.capped(rows, self.host, np.ones(self.hosts))

    def capped(self, rows: int, group: Ints, most: Floats) -> Floats:
        """Weight of each failing row when what belongs to group g counts at most `most[g]`; shape (rows,)."""
        lost = np.bincount(group, self.failures, minlength=len(most))
        share = np.minimum(1.0, most / np.maximum(lost, 1e-12))
        return np.bincount(self.row, self.failures * share[group], minlength=rows).astype(np.float64)

    def typical(self, beneath: NDArray[np.bool_]) -> float:
        """The median of what hosts lost on the given failing rows, over hosts that lost anything there."""
        here = beneath[self.row]
        lost = np.bincount(self.host[here], self.failures[here])
        return float(np.median(lost[lost > 0])) if np.any(lost > 0) else 0.0


def observe(sums: Mapping[str, Sums]) -> Observed:
    """The window's sums (`paths` and `failing` of `reductions`) as the likelihood needs them."""
    placed, failing = sums["paths"], sums["failing"]
    paths = component_sets(placed)
    attempts = np.asarray(placed.values["attempts"], dtype=np.float64)
    weight = np.repeat(attempts, np.diff(paths.indptr))
    carried = np.bincount(paths.indices, weight, minlength=len(paths.names)).astype(np.float64)
    paths_on = np.bincount(paths.indices, minlength=len(paths.names))
    reported = _failure_rows(failing, {name: i for i, name in enumerate(paths.names)})
    lost = np.bincount(reported.path, reported.failures, minlength=reported.paths).astype(np.float64)
    return Observed(
        paths.names,
        carried,
        float(attempts.sum()),
        paths_on,
        reported.row,
        reported.column,
        lost,
        _testimony(reported),
        reported.unknown,
        paths,
        attempts,
    )


def path_of_rows(seen: Observed) -> Ints:
    """The path of each failing row among all paths, -1 where there is none; shape (rows,)."""
    return locate(seen.paths, seen.row, seen.column, seen.rows)


def attempts_of(seen: Observed, at: Ints) -> Floats:
    """The attempts of each failing row, at least its failures; shape (rows,). `at` is the path of each row."""
    tried = seen.tried[at] if len(seen.tried) else seen.failures
    return np.maximum(np.where(at >= 0, tried, seen.failures), seen.failures)


def exposure(seen: Observed, keep: NDArray[np.bool_]) -> Floats:
    """Number of units on the paths for which `keep` holds that depend on each component; shape (components,)."""
    return over_paths(seen.paths, seen.tried * keep)


def over_paths(paths: Paths, weight: Floats) -> Floats:
    """The sum of a weight per path over the paths of each component; shape (components,)."""
    entries = np.repeat(weight, np.diff(paths.indptr))
    return np.bincount(paths.indices, entries, minlength=len(paths.names)).astype(np.float64)


def holds_any(paths: Paths, components: Iterable[int]) -> NDArray[np.bool_]:
    """Whether each path holds one of the components; shape (paths,)."""
    wanted = np.zeros(len(paths.names), dtype=bool)
    wanted[list(components)] = True
    count = np.concatenate([[0], np.cumsum(wanted[paths.indices])])
    return np.asarray(count[paths.indptr[1:]] > count[paths.indptr[:-1]])


def locate(sets: Paths, row: Ints, column: Ints, rows: int) -> Ints:
    """For each failing row the path with the same components, -1 where there is none."""
    marks = np.random.default_rng(20180409).random((2, max(len(sets.names), 1)))
    owner = np.repeat(np.arange(len(sets)), np.diff(sets.indptr))
    every = _marked(owner, sets.indices.astype(np.int64), marks, len(sets))
    mine = _marked(row, column, marks, rows)
    order = np.argsort(every, kind="stable")
    at = np.minimum(np.searchsorted(every[order], mine), max(len(every) - 1, 0))
    found = order[at] if len(every) else np.full(rows, -1)
    return np.where(every[found] == mine, found, -1) if len(every) else found


def _marked(owner: Ints, column: Ints, marks: Floats, count: int) -> NDArray[np.complex128]:
    first, second = (np.bincount(owner, mark[column], minlength=count) for mark in marks)
    return np.asarray(first + 1j * second)


def component_sets(sums: Sums) -> Paths:
    """The component sets that the reduction is grouped by. Raises TypeError where there are none."""
    sets = next((key for key in sums.keys.values() if isinstance(key, Paths)), None)
    if sets is None:
        raise TypeError("the reduction is not grouped by components")
    return sets


@dataclass(frozen=True, slots=True, eq=False)
class _FailureRows:
    """Failing rows as sent, one per path and host: `path`, `host` (-1: none) and `failures` of shape (sent,).

    `row` and `column` are the entries of the `paths` distinct paths among them.
    """

    path: Ints
    host: Ints
    failures: Floats
    paths: int
    row: Ints
    column: Ints
    unknown: int


def _failure_rows(failing: Sums, index: Mapping[str, int]) -> _FailureRows:
    """Failing rows in the window's own component numbers, hosts apart, rows of the same path under one
    number.
    """
    sets = component_sets(failing)
    count = np.asarray(failing.values["failures"], dtype=np.float64)
    number = np.array([index.get(name, -1) for name in sets.names], dtype=np.int64)
    is_host = np.array([name.startswith(f"{WITNESS_KIND}/") for name in sets.names], dtype=bool)
    owner = np.repeat(np.arange(len(sets)), np.diff(sets.indptr))
    hosted = is_host[sets.indices]
    host = np.full(len(sets), -1, dtype=np.int64)
    host[owner[hosted]] = sets.indices[hosted]
    owner, column = owner[~hosted], number[sets.indices[~hosted]]
    strange = np.bincount(owner, column < 0, minlength=len(sets)) > 0
    good = ~strange & (count > 0) & (np.bincount(owner, minlength=len(sets)) > 0)
    first, path = _same_sets(owner, column, np.flatnonzero(good), len(sets), len(index))
    mine = np.isin(owner, first)
    position = np.full(len(sets), -1, dtype=np.int64)
    position[first] = np.arange(len(first))
    return _FailureRows(
        path,
        host[good],
        count[good],
        len(first),
        position[owner[mine]],
        column[mine],
        int(count[strange].sum()),
    )


def _same_sets(owner: Ints, column: Ints, rows: Ints, count: int, components: int) -> tuple[Ints, Ints]:
    """For the given rows: the first row of each distinct set of columns, and which of those sets each row
    is.
    """
    marks = np.random.default_rng(20180409).random((2, max(components, 1)))
    sums = [np.bincount(owner, mark[column], minlength=count)[rows] for mark in marks]
    _, first, group = np.unique(sums[0] + 1j * sums[1], return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rows[first[order]], rank[group.reshape(-1)]


def _testimony(reported: _FailureRows) -> Testimony | None:
    """None where no failure names a host; a failure without one among others is its own witness."""
    if not np.any(reported.host >= 0):
        return None
    own = np.where(
        reported.host >= 0, reported.host, reported.host.max(initial=0) + 1 + np.arange(len(reported.host))
    )
    _, host = np.unique(own, return_inverse=True)
    host = host.reshape(-1)
    return Testimony(reported.path, host, reported.failures, int(host.max()) + 1)


def kinds_of(names: tuple[str, ...]) -> tuple[tuple[str, ...], Ints]:
    """The kinds of the components, sorted, and each component's number among them."""
    kind = [name.partition("/")[0] for name in names]
    distinct = tuple(sorted(set(kind)))
    number = {name: i for i, name in enumerate(distinct)}
    return distinct, np.array([number[one] for one in kind], dtype=np.int64)


def alike(sets: Paths) -> Ints:
    """For each component the first one that is on exactly the same paths; shape (components,).

    No data on these paths can tell such components apart. Row sets are compared by two random sums: equal
    sets add the same numbers in the same order and so agree to the last bit; others agree with probability
    2^-100.
    """
    rng = np.random.default_rng(20180409)
    marks = rng.random((2, len(sets)))
    row_of = np.repeat(np.arange(len(sets)), np.diff(sets.indptr))
    sums = [np.bincount(sets.indices, mark[row_of], minlength=len(sets.names)) for mark in marks]
    _, first, group = np.unique(sums[0] + 1j * sums[1], return_index=True, return_inverse=True)
    return np.asarray(first[group.reshape(-1)], dtype=np.int64)
