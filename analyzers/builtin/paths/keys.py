"""The keys of sums as texts and as whole numbers, and the rows of one network layer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from analyzers.contract import Paths, Sums

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


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


def of_layer(sums: Sums, layer: str) -> Sums:
    """The rows of one layer (key `layer`, as `probe` has it); all, where rows have none."""
    if "layer" not in sums.keys:
        return sums
    kept = np.asarray([one == layer for one in texts(sums, "layer")], dtype=np.bool_)
    if kept.all():
        return sums
    keys = {
        name: _taken(key, kept) if isinstance(key, Paths) else _picked(key, kept)
        for name, key in sums.keys.items()
    }
    return Sums(keys, {name: value[kept] for name, value in sums.values.items()}, int(kept.sum()))


def _picked(key: Sequence[str] | Ints | Floats, kept: Mask) -> Sequence[str] | Ints | Floats:
    if isinstance(key, np.ndarray):
        return key[kept]
    return tuple(one for one, wanted in zip(key, kept.tolist(), strict=True) if wanted)


def _taken(paths: Paths, kept: Mask) -> Paths:
    lengths = np.diff(paths.indptr)
    indptr = np.concatenate([[0], np.cumsum(lengths[kept])]).astype(np.int64)
    return Paths(paths.names, indptr, paths.indices[np.repeat(kept, lengths)])
