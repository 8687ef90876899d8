"""Rows of a kind as columns: numbers as arrays, texts and component sets as codes into the distinct ones, or as the
numbers that the database knows them by.

Every decoder makes this form, and storage and the offline reader take it. Pure: numpy only.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ingest.telemetry.kinds import Kind
from ingest.telemetry.kinds.declare import STILL_GOING

Codes = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Names:
    """A column of texts: row r holds `names[codes[r]]`. `names` are distinct; some may be used by no row."""

    codes: Codes
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Names:
        return Names(self.codes[rows], self.names)

    def used(self) -> Names:
        """The same column without the names that no row holds."""
        used, codes = np.unique(self.codes, return_inverse=True)
        return Names(codes.astype(np.int32), tuple(self.names[code] for code in used.tolist()))

    def __iter__(self) -> Iterator[str]:
        return (self.names[code] for code in self.codes)


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """A column of texts that were met before: row r holds the text whose number in the database is `ids[r]`."""

    ids: Codes

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Known:
        return Known(self.ids[rows])


@dataclass(frozen=True, slots=True, eq=False)
class Sets:
    """A column of component sets: row r holds set `codes[r]`.

    Set s holds `names[indices[indptr[s]:indptr[s + 1]]]`, indices ascending. Sets and names are distinct.
    """

    codes: Codes
    indptr: NDArray[np.int64]
    indices: Codes
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many members each set has, shape (sets,)."""
        return np.diff(self.indptr)

    def members(self, code: int) -> tuple[str, ...]:
        return tuple(self.names[i] for i in self.indices[self.indptr[code] : self.indptr[code + 1]])

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Sets:
        return Sets(self.codes[rows], self.indptr, self.indices, self.names)


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """A column of lists of numbers: row r holds `values[indptr[r]:indptr[r + 1]]`.

    `indptr` has shape (rows + 1,), int64; `values` has shape (numbers,), float64.
    """

    indptr: NDArray[np.int64]
    values: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many numbers each row has, shape (rows,)."""
        return np.diff(self.indptr)

    @property
    def owners(self) -> NDArray[np.intp]:
        """The row of each number, shape (numbers,)."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Numbers:
        chosen = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        sizes = self.sizes[chosen]
        indptr = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
        places = np.arange(indptr[-1]) + np.repeat(self.indptr[:-1][chosen] - indptr[:-1], sizes)
        return Numbers(indptr, self.values[places])

    def __getitem__(self, rows: slice) -> Numbers:
        start, end, _ = rows.indices(len(self))
        bounds = self.indptr[start : max(start, end) + 1]
        return Numbers(bounds - bounds[0], self.values[bounds[0] : bounds[-1]])


def numbers_of(lists: Sequence[Sequence[float]]) -> Numbers:
    """Lists of numbers as a column; negative zeros become zeros."""
    indptr = np.concatenate((np.zeros(1, np.int64), np.cumsum([len(one) for one in lists], dtype=np.int64)))
    flat = itertools.chain.from_iterable(lists)
    return Numbers(indptr, np.fromiter(flat, np.float64, int(indptr[-1])) + 0.0)


def joined_numbers(parts: Sequence[Numbers]) -> Numbers:
    """Columns one after the other."""
    if len(parts) == 1:
        return parts[0]
    sizes = np.concatenate([part.sizes for part in parts])
    indptr = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
    return Numbers(indptr, np.concatenate([part.values for part in parts]))


Column = Names | Known | Sets | Numbers | NDArray[np.int64] | NDArray[np.float64] | NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Checked rows of one kind; `columns` has one of `count` rows for every field, `region` too."""

    kind: Kind
    count: int
    columns: dict[str, Column]

    @property
    def times(self) -> NDArray[np.int64]:
        """Microseconds since 1970, shape (count,)."""
        times = self.columns[self.kind.time]
        assert isinstance(times, np.ndarray)
        return times.view(np.int64)

    @property
    def ends(self) -> NDArray[np.int64]:
        """When the intervals end (`STILL_GOING`: not yet), microseconds since 1970, shape (count,)."""
        assert self.kind.end is not None
        ends = self.columns[self.kind.end]
        assert isinstance(ends, np.ndarray)
        return ends.view(np.int64)

    @property
    def latest(self) -> NDArray[np.int64]:
        """The last moment that each row tells of: its time, or the end of its interval if that is known."""
        if not self.kind.is_interval:
            return self.times
        return np.where(self.ends == STILL_GOING, self.times, self.ends)

    def names(self, field: str) -> Names:
        column = self.columns[field]
        assert isinstance(column, Names)
        return column

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Rows:
        taken = {name: _take(column, rows) for name, column in self.columns.items()}
        return Rows(self.kind, len(taken[self.kind.time]), taken)


def _take(column: Column, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Column:
    return column.take(rows) if isinstance(column, Names | Known | Sets | Numbers) else column[rows]


class Index(dict[str, int]):
    """Gives every new text the next number."""

    def __missing__(self, text: str) -> int:
        self[text] = number = len(self)
        return number

    def codes(self, texts: Sequence[str]) -> Codes:
        new: Collection[str] = dict.fromkeys(texts)
        if self:
            new = [text for text in new if text not in self]
        elif len(new) == len(texts):
            self.update(zip(new, range(len(new)), strict=True))
            return np.arange(len(new), dtype=np.int32)
        self.update(zip(new, itertools.count(len(self))))  # faster than one __missing__ each
        return np.fromiter(map(self.__getitem__, texts), np.int32, len(texts))


class SetIndex(dict[tuple[str, ...], int]):
    """Gives every new set of components the next number; a list in another order or with repetitions is the
    same."""

    def __init__(self) -> None:
        super().__init__()
        self.names = Index()
        self._numbers: dict[tuple[int, ...], int] = {}

    def __missing__(self, listed: tuple[str, ...]) -> int:
        self[listed] = number = self.number(self.names[name] for name in listed)
        return number

    def number(self, members: Iterable[int]) -> int:
        """The number of the set of those members (numbers of `names`)."""
        return self._numbers.setdefault(tuple(sorted(set(members))), len(self._numbers))

    def codes(self, lists: Sequence[Sequence[str]]) -> Codes:
        return np.fromiter(map(self.__getitem__, map(tuple, lists)), np.int32, len(lists))

    def column(self, codes: Codes) -> Sets:
        sizes = np.fromiter(map(len, self._numbers), np.int64, len(self._numbers))
        indptr = np.concatenate(([0], np.cumsum(sizes)))
        members = (member for numbers in self._numbers for member in numbers)
        return Sets(codes, indptr, np.fromiter(members, np.int32, int(indptr[-1])), tuple(self.names))
