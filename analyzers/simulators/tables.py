"""Sums made without telemetry rows: what a reduction would have found, in the order it would have it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.contract import Paths, Sums

Ints = NDArray[np.int64]


def paths_of(sets: Sequence[Sequence[str]]) -> Paths:
    """Component sets, in the order given, in compressed sparse row form."""
    names = tuple(sorted({name for one in sets for name in one}))
    index = {name: i for i, name in enumerate(names)}
    rows = [sorted({index[name] for name in one}) for one in sets]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    flat = [i for row in rows for i in row]
    return Paths(names, indptr, np.array(flat, dtype=np.int32))


def sums_of(
    sets: Sequence[Sequence[str]], values: Mapping[str, Sequence[float] | NDArray[Any]], slices: Any = None
) -> Sums:
    """Sums keyed by component sets (and slices), sorted by their keys as `Sums` promises.

    `values[name]` and `slices` have shape (len(sets),). Sets must be distinct (with their slice).
    """
    keyed = [tuple(sorted(one)) for one in sets]
    at = [0] * len(keyed) if slices is None else [int(i) for i in slices]
    order = sorted(range(len(keyed)), key=lambda row: (keyed[row], at[row]))
    keys: dict[str, Any] = {"components": paths_of([keyed[row] for row in order])}
    if slices is not None:
        keys["slice"] = np.array([at[row] for row in order], dtype=np.int64)
    taken = {name: np.asarray(column)[order] for name, column in values.items()}
    return Sums(keys=keys, values=taken, rows=len(order))


def rows_as_sums(columns: Mapping[str, Sequence[str] | NDArray[Any]], counted: str = "rows") -> Sums:
    """Distinct rows as a reduction that groups by all of `columns` finds them, sorted; `counted` is 1 for each.

    Columns of texts are given as sequences of texts, columns of numbers as arrays, all of one length.
    """
    ranks = []
    for column in columns.values():
        if isinstance(column, np.ndarray):
            ranks.append(column)
        else:
            place = {text: i for i, text in enumerate(sorted(set(column)))}
            ranks.append(np.array([place[text] for text in column], dtype=np.int64))
    order = np.lexsort(ranks[::-1])
    keys: dict[str, Any] = {}
    for name, column in columns.items():
        if isinstance(column, np.ndarray):
            keys[name] = column[order]
        else:
            keys[name] = tuple(column[row] for row in order.tolist())
    return Sums(keys=keys, values={counted: np.ones(len(order), dtype=np.int64)}, rows=len(order))
