"""Uptime rows as arrays: unit, state, times, cause, and distance of placement."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.paths import numbered, texts, whole
from analyzers.contract import Sums

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

NEAR, FAR, UNTOLD = 0, 1, 2
UNKNOWN_CAUSE = "unknown"


@dataclass(frozen=True, slots=True, eq=False)
class Uptimes:
    """Rows sorted by unit and start; arrays of shape (rows,). `cause` indexes `causes`, `placed` is NEAR, FAR
    or UNTOLD.
    """

    units: tuple[str, ...]
    unit: Ints
    start: Ints
    end: Ints
    down: Bools
    causes: tuple[str, ...]
    cause: Ints
    placed: Ints


def uptimes_of(sums: Sums) -> Uptimes:
    """A row that does not say how far its unit was placed takes what the unit's row before it said."""
    units, unit = numbered(texts(sums, "unit"))
    causes, cause = numbered([text or UNKNOWN_CAUSE for text in texts(sums, "cause")])
    start, end = whole(sums, "start"), whole(sums, "end")
    down = np.array([state == "down" for state in texts(sums, "state")], dtype=bool)
    classes = {"near": NEAR, "far": FAR}
    placed = np.array([classes.get(text, UNTOLD) for text in texts(sums, "hops_class")], dtype=np.int64)
    order = np.lexsort((down, end, start, unit))
    unit, placed = unit[order], _filled(unit[order], placed[order])
    return Uptimes(units, unit, start[order], end[order], down[order], causes, cause[order], placed)


def _filled(unit: Ints, placed: Ints) -> Ints:
    """Gaps take the value before them within their unit."""
    row = np.arange(len(unit))
    last = np.maximum.accumulate(np.where(placed != UNTOLD, row, -1)) if len(row) else row
    known = (last >= 0) & (unit[np.maximum(last, 0)] == unit)
    return np.where(known, placed[np.maximum(last, 0)], UNTOLD)
