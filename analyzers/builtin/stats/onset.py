"""Begin and end of a fault where some failures are usual, from failures counted in slices of a window."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np
import scipy  # scipy.special takes a third of a second to load, and does when it is first used
from numpy.typing import NDArray

from analyzers.builtin.paths import Incidence, of_layer, texts, whole, with_sources
from analyzers.builtin.reductions import SLICE
from analyzers.contract import Paths, Window

_ORDINARY = 0.01
"""Failures that come by chance less often than this are not those that are usual."""


def last_unusual(counts: NDArray[Any], expected: float) -> int:
    """The last slice that fails, without those at the end that together fail no more than is usual, where `expected`
    failures of the whole window are. Some slice has to fail.

    Else what always fails a little would keep a component failing after its repair, and open its incident again.
    """
    failing = np.flatnonzero(counts)
    since = np.cumsum(counts[::-1])[::-1][failing]
    usual = expected * (len(counts) - failing) / len(counts)
    unusual = failing[scipy.special.pdtrc(since - 1, usual) < _ORDINARY]
    return int((unusual if len(unusual) else failing)[-1])


def spans(
    window: Window, layer: str, seen: Incidence, blamed: Sequence[int], noise: float
) -> dict[int, tuple[datetime, datetime]]:
    """When each of the blamed failed: the beginning of its first slice and the end of the last, where a share `noise`
    of what is tried fails anyway. Paths that hold another blamed one say nothing, unless there are no others. Who did
    not fail is left out, and all are where the window does not tell of time. Where `over_time` was grouped by `src`,
    that is a component of its paths too.
    """
    found: dict[int, tuple[datetime, datetime]] = {}
    if "over_time" not in window.sums:
        return found
    sums = of_layer(window.sums["over_time"], layer)
    (table,) = (key for key in sums.keys.values() if isinstance(key, Paths))
    table = with_sources(table, texts(sums, "src")) if "src" in sums.keys else table
    at, failures = whole(sums, "slice"), np.asarray(sums.values["failures"])
    names = {name: place for place, name in enumerate(table.names)}
    places = [names.get(seen.names[one], -1) for one in blamed]
    crowd, here = _blamed_on(table, places), seen.per_path(blamed)
    for one, place in zip(blamed, places, strict=True):
        mine, covering = _blamed_on(table, [place]) > 0, seen.containing([one])
        if (mine & (crowd == 1)).any():
            mine, covering = mine & (crowd == 1), covering & (here == 1)
        if mine.any():
            counts = np.bincount(at[mine], failures[mine], minlength=-(-window.length // SLICE))
            last = last_unusual(counts, noise * float(seen.attempts[covering].sum()))
            start = window.start + int(at[mine].min()) * SLICE
            found[one] = start, min(window.start + (last + 1) * SLICE, window.end)
    return found


def _blamed_on(table: Paths, places: Sequence[int]) -> NDArray[np.int64]:
    """How many of these names each path holds; shape (paths,)."""
    owner = np.repeat(np.arange(len(table)), np.diff(table.indptr))
    return np.bincount(owner[np.isin(table.indices, places)], minlength=len(table)).astype(np.int64)
