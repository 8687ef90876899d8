"""Two kinds of component that cross: every pair of them shares a path, as compute and storage clusters do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.deepview.observed import Observed, component_sets, kinds_of
from analyzers.builtin.text import so_many
from analyzers.contract import Paths, Window

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_MOST = 40  # rows or columns drawn
_FILLED = 0.5  # share of pairs that must share a path


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """`carried` and `failed` of shape (rows, columns), over the paths that hold both components."""

    row_kind: str
    column_kind: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    carried: Floats
    failed: Floats
    note: str


@dataclass(frozen=True, slots=True, eq=False)
class _Axis:
    """One kind: `member[p]` is which of `names` path p holds, -1 if none or several."""

    kind: str
    names: tuple[str, ...]
    member: Ints
    failing: Ints


def crossing(window: Window, seen: Observed, blamed: tuple[str, ...]) -> Grid | None:
    """The grid of the two kinds that cross best, a blamed component's kind among them if it crosses any."""
    sets = component_sets(window.sums["paths"])
    attempts = np.asarray(window.sums["paths"].values["attempts"], dtype=np.float64)
    axes = _axes(sets, seen)
    kinds = {name.partition("/")[0] for name in blamed}
    best: tuple[tuple[int, float, int], _Axis, _Axis] | None = None
    for i, rows in enumerate(axes):
        for columns in axes[i + 1 :]:
            filled = _filled(rows, columns)
            if filled < _FILLED:
                continue
            fits = len(rows.names) <= _MOST and len(columns.names) <= _MOST
            rank = (len(kinds & {rows.kind, columns.kind}) * 2 + fits, filled, -len(rows.names))
            if best is None or rank > best[0]:
                best = rank, rows, columns
    if best is None:
        return None
    rows, columns = sorted(best[1:], key=lambda axis: (-len(axis.names), axis.kind))
    return _grid(rows, columns, attempts, seen.failures, blamed)


def _axes(sets: Paths, seen: Observed) -> list[_Axis]:
    """The kinds of which nearly every path holds exactly one, and of which there are at least two."""
    kinds, kind_of = kinds_of(sets.names)
    owner = np.repeat(np.arange(len(sets)), np.diff(sets.indptr))
    axes = []
    for number, kind in enumerate(kinds):
        members = np.flatnonzero(kind_of == number)
        if len(members) < 2:
            continue
        local = np.full(len(sets.names), -1, dtype=np.int64)
        local[members] = np.arange(len(members))
        member = _only(owner, local[sets.indices], len(sets))
        if np.mean(member >= 0) < 0.9:
            continue
        failing = _only(seen.row, local[seen.column], seen.rows)
        axes.append(_Axis(kind, tuple(sets.names[j] for j in members.tolist()), member, failing))
    return axes


def _only(owner: Ints, local: Ints, count: int) -> Ints:
    """For each row its one member of a kind, -1 if it has none or several."""
    mine = local >= 0
    held = np.bincount(owner[mine], minlength=count)
    member = np.full(count, -1, dtype=np.int64)
    member[owner[mine]] = local[mine]
    return np.where(held == 1, member, -1)


def _filled(rows: _Axis, columns: _Axis) -> float:
    both = (rows.member >= 0) & (columns.member >= 0)
    pairs = np.unique(rows.member[both] * len(columns.names) + columns.member[both])
    return len(pairs) / (len(rows.names) * len(columns.names))


def _grid(rows: _Axis, columns: _Axis, attempts: Floats, failures: Floats, blamed: tuple[str, ...]) -> Grid:
    shape = len(rows.names), len(columns.names)
    carried, failed = np.zeros(shape), np.zeros(shape)
    both = (rows.member >= 0) & (columns.member >= 0)
    np.add.at(carried, (rows.member[both], columns.member[both]), attempts[both])
    lost = (rows.failing >= 0) & (columns.failing >= 0)
    np.add.at(failed, (rows.failing[lost], columns.failing[lost]), failures[lost])
    kept_rows = _worst(rows.names, failed.sum(axis=1), blamed)
    kept_columns = _worst(columns.names, failed.sum(axis=0), blamed)
    hidden = (len(rows.names) - len(kept_rows)) + (len(columns.names) - len(kept_columns))
    note = f" Not drawn: {so_many(hidden, 'component')} with fewer failures." if hidden else ""
    return Grid(
        rows.kind,
        columns.kind,
        tuple(rows.names[i] for i in kept_rows),
        tuple(columns.names[i] for i in kept_columns),
        carried[np.ix_(kept_rows, kept_columns)],
        failed[np.ix_(kept_rows, kept_columns)],
        note,
    )


def _worst(names: tuple[str, ...], failed: Floats, blamed: tuple[str, ...]) -> list[int]:
    """At most 40 in order of name: the blamed, then those with most failures."""
    order = sorted(range(len(names)), key=lambda i: (names[i] not in blamed, -failed[i], names[i]))
    return sorted(order[:_MOST], key=lambda i: names[i])
