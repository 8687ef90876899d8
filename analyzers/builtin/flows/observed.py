"""One window as the methods see it: what each component carried, and the flows that failed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.paths import Incidence, incidence, mixed, of_layer, summed, texts
from analyzers.contract import Paths, Sums, Window

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Failing:
    """Rows of flows that lost packets; arrays of shape (rows,).

    Entry k says that row `row[k]` passed component `column[k]`. `pair` numbers the two ends of a flow (the path,
    where these are not known): what one pair of hosts loses is one testimony, however often they talked. `at` is
    the slice of the window, `profile` the row's path profile.
    """

    row: Ints
    column: Ints
    sent: Floats
    lost: Floats
    flows: Floats
    hops: Ints
    profile: Ints
    pair: Ints
    at: Ints
    ends: tuple[tuple[str, str], ...]

    @property
    def rows(self) -> int:
        return len(self.sent)

    def per_component(self, weight: Floats, components: int) -> Floats:
        """The sum of a weight per row over the rows that pass each component."""
        return np.bincount(self.column, weight[self.row], minlength=components).astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """A window. `carried[c]` packets were sent over component c; `sent` in all.

    Paths with the same numbers of components of each kind have one profile (`profile[p]`, of `profiles`): packets
    within a rack, within a pod and between pods have different ways to get lost in health. `without_path` counts
    packets lost by rows that name no component, of `sent_without_path`.
    """

    paths: Incidence
    carried: Floats
    profile: Ints
    profiles: int
    failing: Failing
    sent: float
    lost: float
    without_path: float
    sent_without_path: float
    kinds: Ints

    @property
    def components(self) -> int:
        return self.paths.components


def observe(window: Window, layer: str) -> Observed:
    """Read the two tables of `reductions`; of probes only those of the layer."""
    sums, failing = (of_layer(window.sums[name], layer) for name in ("paths", "failing"))
    table, rows = _paths(sums), _paths(failing)
    sent, lost = (np.asarray(sums.values[name], dtype=np.float64) for name in ("sent", "lost"))
    seen = incidence(table, sent, lost)
    marks, row_marks = _profile_marks(table), _profile_marks(rows)
    known, profile = np.unique(marks, return_inverse=True)
    valid = (sent > 0) & (np.diff(table.indptr) > 0)
    return Observed(
        seen,
        seen.per_component(seen.attempts),
        profile.ravel()[valid].astype(np.int64),
        len(known),
        _failing(failing, rows, seen, np.searchsorted(known, row_marks).astype(np.int64)),
        float(seen.attempts.sum()),
        float(seen.failures.sum()),
        float(lost.sum() - seen.failures.sum()),
        float(sent.sum() - seen.attempts.sum()),
        _kinds(seen.names),
    )


def _paths(sums: Sums) -> Paths:
    key = sums.keys["hops"] if "hops" in sums.keys else sums.keys["components"]
    assert isinstance(key, Paths)
    return key


def _profile_marks(paths: Paths) -> NDArray[np.uint64]:
    """A number per path that says how many components of each kind it holds."""
    kinds: dict[str, int] = {}
    for name in paths.names:
        kind = name.partition("/")[0]
        kinds.setdefault(kind, int.from_bytes(kind.encode()[:7], "big") * 31 + len(kind))
    of = mixed(np.array([kinds[name.partition("/")[0]] for name in paths.names], dtype=np.uint64))
    owner = np.repeat(np.arange(len(paths)), np.diff(paths.indptr))
    return summed(owner, of[paths.indices], len(paths))


def _failing(sums: Sums, rows: Paths, seen: Incidence, profile: Ints) -> Failing:
    """The failing rows that name a component, in the numbering of `seen`."""
    lengths = np.diff(rows.indptr)
    valid = lengths > 0
    number = np.cumsum(valid) - 1
    component = seen.number()
    to = np.array([component.get(name, 0) for name in rows.names], dtype=np.int64)
    owner = number[np.repeat(np.arange(len(rows)), lengths)]
    entries = np.unique(owner * max(1, seen.components) + to[rows.indices])
    row, column = np.divmod(entries, max(1, seen.components))
    sent, lost, flows = (
        np.asarray(sums.values[name], dtype=np.float64)[valid] for name in ("sent", "lost", "flows")
    )
    if "src" in sums.keys:
        all_ends = list(zip(texts(sums, "src"), texts(sums, "dst"), strict=True))
        ends = tuple(one for one, wanted in zip(all_ends, valid.tolist(), strict=True) if wanted)
        numbers: dict[tuple[str, str], int] = {}
        pair = np.array([numbers.setdefault(one, len(numbers)) for one in ends], dtype=np.int64)
    else:
        ends = (("", ""),) * len(sent)
        _, pair = np.unique(summed(row, mixed(column), len(sent)), return_inverse=True)
    at = np.asarray(sums.keys["slice"], dtype=np.int64)[valid]
    return Failing(
        row,
        column,
        sent,
        lost,
        flows,
        lengths[valid].astype(np.int64),
        profile[valid],
        pair.ravel(),
        at,
        ends,
    )


def _kinds(names: tuple[str, ...]) -> Ints:
    """A number for the kind of each component; shape (components,)."""
    kinds = sorted({name.partition("/")[0] for name in names})
    number = {kind: i for i, kind in enumerate(kinds)}
    return np.array([number[name.partition("/")[0]] for name in names], dtype=np.int64)
