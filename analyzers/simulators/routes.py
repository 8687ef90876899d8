"""Sequences of links that packets take, many at once, and the table of distinct sets that they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.contract import Paths

Ints = NDArray[np.int64]
Indices = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Routes:
    """Sequences of links in compressed sparse row form: route `i` passes, in this order,
    `indices[indptr[i]:indptr[i + 1]]`. `indptr` has shape (routes + 1,).
    """

    indptr: Ints
    indices: Indices

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __getitem__(self, row: int) -> list[int]:
        return [int(link) for link in self.indices[self.indptr[row] : self.indptr[row + 1]]]

    def padded(self) -> Indices:
        """Shape (routes, longest); -1 behind the end of shorter routes."""
        lengths = np.diff(self.indptr)
        table = np.full((len(self), int(lengths.max(initial=0))), -1, dtype=np.int32)
        table[np.arange(table.shape[1]) < lengths[:, None]] = self.indices
        return table

    def crossing(self, links: Sequence[int] | Ints, count: int) -> NDArray[np.bool_]:
        """Whether each route passes any of `links`, of `count` that there are; shape (routes,)."""
        marked = np.zeros(count + 1, dtype=bool)
        marked[links] = True
        return np.asarray(marked[self.padded()].any(axis=1), dtype=np.bool_)

    def taken(self, rows: NDArray[np.bool_] | Ints) -> Routes:
        """The routes that a mask or indices select."""
        return routes_of(self.padded()[rows])


def routes_of(padded: NDArray[np.integer]) -> Routes:
    """Routes from a table of shape (routes, width) with -1 where there is no link."""
    there = padded >= 0
    indptr = np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int64)
    return Routes(indptr, padded[there].astype(np.int32))


def path_table(links: Sequence[str], routes: Routes) -> tuple[Paths, Ints]:
    """The distinct link sets of the routes in the order of `Sums`, and the row of each route among them.

    `links` names the links that the routes number. A column is summed by row with
    `np.bincount(row, column, minlength=len(paths))`.
    """
    used = np.unique(routes.indices)
    by_name = np.array(sorted(used.tolist(), key=lambda link: links[link]), dtype=np.int64)
    rank = np.full(len(links) + 1, -1, dtype=np.int64)
    rank[by_name] = np.arange(len(by_name))
    rows = rank[routes.padded()]
    beyond = len(by_name)
    rows = np.sort(np.where(rows < 0, beyond, rows), axis=1)
    rows[:, 1:][rows[:, 1:] == rows[:, :-1]] = beyond
    rows = np.sort(rows, axis=1)
    rows[rows == beyond] = -1
    distinct, row = _distinct_rows(rows)
    there = distinct >= 0
    indptr = np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int64)
    names = tuple(links[link] for link in by_name.tolist())
    return Paths(names, indptr, distinct[there].astype(np.int32)), row


def _distinct_rows(rows: Ints) -> tuple[Ints, Ints]:
    order = np.lexsort(rows.T[::-1]) if len(rows) else np.empty(0, dtype=np.int64)
    rows = rows[order]
    new = np.ones(len(rows), dtype=bool)
    new[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    number = np.empty(len(rows), dtype=np.int64)
    number[order] = np.cumsum(new) - 1
    return rows[new], number


def gathered(paths: Paths, rows: Ints) -> Paths:
    """The sets at those rows, in that order; rows may repeat."""
    lengths = np.diff(paths.indptr)[rows]
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    at = np.arange(int(indptr[-1])) - np.repeat(indptr[:-1] - paths.indptr[:-1][rows], lengths)
    return Paths(paths.names, indptr, paths.indices[at])
