"""The keys of sums as texts and as whole numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from analyzers.contract import Paths, Sums

Ints = NDArray[np.int64]


def texts(sums: Sums, key: str) -> tuple[str, ...]:
    """A key of names or texts, one a row. Raises TypeError for keys of another sort."""
    column = sums.keys[key]
    if isinstance(column, Paths | np.ndarray):
        raise TypeError(f"key {key} holds no texts")
    return tuple(column)


def whole(sums: Sums, key: str) -> Ints:
    """A key of times, counts, flags or slices, one a row. Raises TypeError for keys of another sort."""
    column = sums.keys[key]
    if not isinstance(column, np.ndarray):
        raise TypeError(f"key {key} holds no numbers")
    return column.astype(np.int64, copy=False)


def numbered(column: Sequence[str]) -> tuple[tuple[str, ...], Ints]:
    """The distinct texts, sorted, and the place of each row's text among them, shape (rows,)."""
    names = tuple(sorted(set(column)))
    place = {name: i for i, name in enumerate(names)}
    return names, np.fromiter((place[text] for text in column), np.int64, len(column))
