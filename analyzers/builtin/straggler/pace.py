"""Pace of a job by its iteration times: slower than before, as before, or no iteration any more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.straggler.series import Grid, Observed, Pace

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
State = Literal["slower", "as before", "stopped", "paused", "unknown"]

_BEFORE_SECONDS = 600.0
_ENOUGH = 3
"""Iteration times on either side."""
_Z = 4.0
_AROUND_SECONDS = 60.0
_EACH = 1.5
"""Iterations in a burst, on average, from which the job goes on in them."""
_JOIN_SECONDS = 180.0
"""A node went apart with its job if this close to it."""
_SILENT = 5
"""Usual gaps between iteration times that a job is silent for when it has stopped."""
_LASTED_SECONDS = 300.0
_SPLITS = 60
"""Moments at which a job may have become slower, that are tried."""
_SAME_WORK = 0.5
"""Share of a slowdown by which the load of nodes falls if they wait rather than work."""


@dataclass(frozen=True, slots=True)
class Change:
    """`ratio` of the iteration times to those before."""

    state: State
    ratio: float = 1.0


def pace_of(seen: Observed, grid: Grid, node: str) -> Pace | None:
    """The job that a node of a grid works for: the one whose iteration times name it, the one with the grid's labels,
    or the only one.
    """
    if naming := [one for one in seen.paces if node in one.nodes]:
        return naming[0]
    shared = [one for one in seen.paces if one.job and set(one.job) & set(grid.cohort)]
    if len(shared) == 1:
        return shared[0]
    anonymous = [one for one in seen.paces if not one.nodes]
    return anonymous[0] if len(seen.paces) == 1 and anonymous else None


def during(seen: Observed, pace: Pace, first: int, last: int, least: float, stopped_seconds: float) -> Change:
    """Change of iterations in columns `first` to `last`, against those before."""
    ended = stopped_at(seen, pace, stopped_seconds)
    if ended is not None and last >= ended and first >= ended - seen.columns(_JOIN_SECONDS):
        return Change("stopped")
    before = _there(pace.values[max(0, first - seen.columns(_BEFORE_SECONDS)) : max(0, first - 1)])
    inside = _there(pace.values[first:last])
    if len(before) < _ENOUGH:
        return Change("unknown")
    if len(inside) < _ENOUGH:
        return Change("paused")
    return _compared(before, inside, least)


def between_bursts(seen: Observed, pace: Pace, on: Flags, least: float) -> Change:
    """Change of iterations that ended in a column of the window that is on and follows one, against those around
    columns that are off from a minute before the first burst to a minute after the last: another node may have
    slowed the job at another time. A job that pauses in each burst (a checkpoint) ends hardly an iteration in them.

    `on` has shape (columns,).
    """
    now = on.copy()
    now[: seen.now] = False
    if not now.any():
        return Change("unknown")
    about, lit = seen.columns(_AROUND_SECONDS), np.flatnonzero(now)
    near = np.zeros(len(on), dtype=np.bool_)
    near[max(0, int(lit[0]) - about) : int(lit[-1]) + 1 + about] = True
    after = np.concatenate([[False], on[:-1]])
    known = np.isfinite(pace.values) & near
    inside, before = pace.values[known & now & after], pace.values[known & ~on & ~after]
    if len(before) < _ENOUGH:
        return Change("unknown")
    if len(inside) < max(_ENOUGH, _EACH * int((now & ~after).sum())):
        return Change("paused")
    return _compared(before, inside, least)


def stopped_at(seen: Observed, pace: Pace, stopped_seconds: float) -> int | None:
    """The column after the last iteration, if none came for long."""
    there = np.flatnonzero(np.isfinite(pace.values))
    if len(there) < _ENOUGH:
        return None
    gap = float(np.quantile(np.diff(there), 0.9))
    silent = len(pace.values) - 1 - int(there[-1])
    if silent < max(seen.columns(stopped_seconds), _SILENT * gap):
        return None
    return int(there[-1]) + 1


@dataclass(frozen=True, slots=True)
class Slowdown:
    """The job is `ratio` times as slow from column `first` up to `last` as before."""

    first: int
    last: int
    ratio: float


def slowdown(seen: Observed, pace: Pace, least: float) -> Slowdown | None:
    """The largest lasting slowdown of a job that reaches into the window, or None."""
    at = np.flatnonzero(np.isfinite(pace.values))
    values = pace.values[at]
    lasted = seen.columns(_LASTED_SECONDS)
    best: Slowdown | None = None
    for split in range(_ENOUGH, len(at) - _ENOUGH, max(1, len(at) // _SPLITS)):
        first = int(at[split])
        before = values[at < first][-seen.columns(_BEFORE_SECONDS) :]
        after = values[(at >= first) & (at < first + lasted)]
        if len(after) < _ENOUGH or at[-1] + 1 - first < lasted:
            continue
        change = _compared(before, after, least)
        if change.state != "slower" or (best is not None and change.ratio <= best.ratio):
            continue
        over = np.flatnonzero((at >= first) & (pace.values[at] < (1 + change.ratio) / 2 * np.median(before)))
        last = int(at[over[0]]) if len(over) else int(at[-1]) + 1
        if last > seen.now and last - first >= lasted:
            best = Slowdown(first, last, change.ratio)
    return best


def is_other_work(seen: Observed, pace: Pace, one: Slowdown) -> bool:
    """Whether nodes are as busy as before while iterations are slower: then there is more to do in each."""
    shares = []
    for grid in seen.grids:
        if not grid.of_the_load or pace_of(seen, grid, grid.nodes[0]) is not pace:
            continue
        start = max(0, one.first - seen.columns(_BEFORE_SECONDS))
        before, inside = (
            _there(grid.values[:, start : one.first]),
            _there(grid.values[:, one.first : one.last]),
        )
        if len(before) and len(inside) and np.median(before) > 0:
            shares.append(float(np.median(inside) / np.median(before)))
    fallen = 1 - min(shares) if shares else 1.0
    return fallen < _SAME_WORK * (1 - 1 / one.ratio)


def _compared(before: Floats, inside: Floats, least: float) -> Change:
    usual = float(np.median(before))
    if usual <= 0:
        return Change("unknown")
    ratio = float(np.median(inside)) / usual
    noise = 1.4826 * float(np.median(np.abs(before - usual))) / usual
    error = 1.2533 * max(noise, 0.002) * float(np.sqrt(1 / len(before) + 1 / len(inside)))
    slower = ratio >= 1 + least and ratio - 1 >= _Z * error
    return Change("slower" if slower else "as before", ratio)


def _there(values: Floats) -> Floats:
    return np.asarray(values[np.isfinite(values)])
