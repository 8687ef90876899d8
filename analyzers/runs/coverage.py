"""What a run looked at: the names in its kept window, and which of them stand on one path.

An analyzer that names nothing says something about a component only if its window held that component.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.contract import INVENTORY, Paths, Sums
from analyzers.runs.models import StoredWindow
from ingest.queries import load_sums

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class WindowSums:
    """The sums of one window, asked for names."""

    sums: Mapping[str, Sums]

    def names(self, components: Iterable[str]) -> bool:
        """Whether a row of the window names one of the components; that it exists is no news of it."""
        wanted = frozenset(components)
        told = (sums for name, sums in self.sums.items() if name != INVENTORY)
        return any(rows_naming(sums, wanted).size for sums in told)

    def beside(self, components: Collection[str], other: str) -> bool:
        """Whether `other` shares a row, say a path, with one of the components."""
        wanted, others = frozenset(components), frozenset({other})
        return any(
            np.intersect1d(rows_naming(sums, wanted), rows_naming(sums, others)).size
            for sums in self.sums.values()
        )


def rows_naming(sums: Sums, components: frozenset[str]) -> Rows:
    """The rows of a table that have one of the components among their keys, ascending."""
    found = [_rows_of_key(key, components) for key in sums.keys.values() if not isinstance(key, np.ndarray)]
    return np.unique(np.concatenate(found)) if found else np.empty(0, np.int64)


def _rows_of_key(key: Paths | Iterable[str], components: frozenset[str]) -> Rows:
    if not isinstance(key, Paths):
        return np.array([row for row, name in enumerate(key) if name in components], np.int64)
    places = [place for name in components if (place := _place(key.names, name)) is not None]
    entries = np.flatnonzero(np.isin(key.indices, places))
    return np.unique(np.searchsorted(key.indptr, entries, side="right") - 1)


def _place(names: tuple[str, ...], name: str) -> int | None:
    place = bisect_left(names, name)
    return place if place < len(names) and names[place] == name else None


def seen(window_hash: str) -> WindowSums | None:
    """What is kept under a hash; None if nothing is."""
    kept = StoredWindow.objects.filter(pk=window_hash).first()
    return None if kept is None else WindowSums(load_sums(bytes(kept.body)))
