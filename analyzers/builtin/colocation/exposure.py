"""How long near and far units were up, and how often each went down, stratum by stratum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.stats.intervals import MINUTE, Segments, Spells, main_label, spells, sweep
from analyzers.builtin.stats.rate_ratio import Stratum
from analyzers.builtin.uptime.uptimes import FAR, NEAR, UNTOLD, Uptimes

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

DAY_MINUTES = 1440.0
CLASSES = ("near", "far")


@dataclass(frozen=True, slots=True, eq=False)
class Exposure:
    """`days` (unit-days at risk) and `failures` have shape (2, strata), near first; `edges` (strata + 1,).

    `by_cause` of shape (2, causes) counts failures, `units` those ever at risk in each class; `untold` is the
    number of failures of units of which nobody says how far they were placed.
    """

    edges: Ints
    days: Floats
    failures: Ints
    causes: tuple[str, ...]
    by_cause: Ints
    units: tuple[int, int]
    untold: int

    def strata(self) -> list[Stratum]:
        return [
            Stratum(float(nf), float(nt), float(ff), float(ft))
            for nf, nt, ff, ft in zip(
                self.failures[NEAR], self.days[NEAR], self.failures[FAR], self.days[FAR], strict=True
            )
        ]


def exposure_of(rows: Uptimes, edges: Ints) -> Exposure:
    """Cut at `edges` (microseconds, ascending). A failure is the start of a stretch of down time; a stretch
    that began before the first edge is none. A unit is at risk while it is up.
    """
    low, high = int(edges[0]), int(edges[-1])
    pieces, places = _swept(rows, low, high)
    down = pieces.any(range(len(rows.causes)))
    risk = [pieces.active[len(rows.causes)] & ~down & place for place in places]
    found = spells(pieces, down)
    begun = _began_inside(rows, found, low)
    first = np.searchsorted(found.of_segment[down], np.arange(len(found)))
    at_start = np.flatnonzero(down)[first]
    where = np.select([places[NEAR][at_start], places[FAR][at_start]], [NEAR, FAR], UNTOLD)
    cause = main_label(pieces, found, range(len(rows.causes)))
    stratum = np.searchsorted(edges, found.start, side="right") - 1
    failures = np.zeros((2, len(edges) - 1), dtype=np.int64)
    by_cause = np.zeros((2, len(rows.causes)), dtype=np.int64)
    for side in (NEAR, FAR):
        mine = begun & (where == side)
        failures[side] = np.bincount(stratum[mine], minlength=len(edges) - 1)
        by_cause[side] = np.bincount(cause[mine], minlength=len(rows.causes))
    days = np.stack([_days(pieces, one, edges) for one in risk])
    near_units, far_units = (len(np.unique(pieces.owner[one])) for one in risk)
    untold = int(np.sum(begun & (where == UNTOLD)))
    return Exposure(edges, days, failures, rows.causes, by_cause, (near_units, far_units), untold)


def _swept(rows: Uptimes, low: int, high: int) -> tuple[Segments, list[Bools]]:
    """Segments with a label for each cause of being down and one for being up; and where each class holds."""
    causes = len(rows.causes)
    up = causes
    state = np.where(rows.down, rows.cause, up)
    place = causes + 1 + rows.placed
    twice = [np.concatenate([column, column]) for column in (rows.unit, rows.start, rows.end)]
    label = np.concatenate([state, place])
    pieces = sweep(twice[0], twice[1], twice[2], label, causes + 4, low, high)
    near, far = pieces.active[causes + 1 + NEAR], pieces.active[causes + 1 + FAR]
    return pieces, [near & ~far, far & ~near]


def _began_inside(rows: Uptimes, found: Spells, low: int) -> Bools:
    """Whether each stretch of down time began at `low` or later, not before it."""
    earlier = np.unique(rows.unit[rows.down & (rows.start < low) & (rows.end > low)])
    return np.asarray((found.start != low) | ~np.isin(found.owner, earlier))


def _days(pieces: Segments, where: Bools, edges: Ints) -> Floats:
    """Unit-days in each stratum over the segments where `where` holds."""
    start, end = np.sort(pieces.start[where]), np.sort(pieces.end[where])
    return np.diff(_elapsed(start, edges) - _elapsed(end, edges)) / (MINUTE * DAY_MINUTES)


def _elapsed(moments: Ints, edges: Ints) -> Floats:
    """For each edge the sum, over the sorted moments before it, of the time from the moment to the edge."""
    before = np.searchsorted(moments, edges)
    relative = (moments - edges[0]).astype(np.float64)
    total = np.concatenate([[0.0], np.cumsum(relative)])
    return np.asarray(before * (edges - edges[0]).astype(np.float64) - total[before])
