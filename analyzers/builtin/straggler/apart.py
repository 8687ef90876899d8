"""Distance of each node from its peers in one metric, its begin, and its frequency by chance."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.straggler.series import Grid, Observed

Floats = NDArray[np.float64]

SMOOTH_SECONDS = 60.0
_SHORT = 3
"""Columns of the running median where bursts are sought."""
_FILL = 2
"""Readings for which a last value stands in for missing ones; at least so many columns more."""
_FARTHEST = 20.0
_LEAST_SIZE = 0.05
"""A median near zero is no measure of a change: sizes are at least this share of the metric's largest usual value."""
_LEAST_SCALE = 0.002
_KNOWN = 30
"""Columns of history from which what a node always differs by is learnt."""
_LEARNT = 10
"""Readings of a series from which that is learnt."""
_BOUT = 0.5
"""Share of a deviation from which on, and up to which, it lasts."""
_MOST_NATS = 40.0


@dataclass(frozen=True, slots=True, eq=False)
class Apart:
    """One series that keeps away from its peers by `off` of their median (signed), from column `first` up to but not
    including `last`. `nats` is the evidence against chance; `bouts` is how often as much came and went; `from_start`
    says that it was so from the first column with data on; `in_bursts` that the deviation is what it has in its bouts.
    """

    grid: Grid
    series: int
    off: float
    first: int
    last: int
    nats: float
    bouts: int
    from_start: bool
    in_bursts: bool = False

    @property
    def node(self) -> str:
        return self.grid.nodes[int(self.grid.owner[self.series])]

    @property
    def member(self) -> str:
        return self.grid.members[self.series]


@dataclass(frozen=True, slots=True, eq=False)
class Deviations:
    """Shares by which series differ from their peers: as they are (`raw`) and as running medians (`smooth`), shape
    (series, columns). `sustained` is the largest that each kept up in the window, signed; `in_bursts` says that times
    at which it was so large are added up.
    """

    grid: Grid
    raw: Floats
    smooth: Floats
    sustained: Floats
    chance_median: float
    chance_scale: float
    in_bursts: bool = False

    def nats(self, off: float) -> float:
        """Evidence that a deviation is not one of the healthy series' of this metric."""
        over = (abs(off) - self.chance_median) / self.chance_scale
        return min(_MOST_NATS, over) - math.log(max(1, len(self.sustained)))


def deviations(seen: Observed, grid: Grid, persist: float) -> Deviations:
    """`persist` is in seconds."""
    raw = _relative(_held(grid.values, grid.gap))
    if seen.now >= _KNOWN:
        raw = raw - _usual(raw[:, : seen.now])[:, None]
    filled = _filled(raw, _FILL * grid.gap + 1)
    smooth = _running_median(filled, max(seen.columns(SMOOTH_SECONDS), 3 * grid.gap))
    length = seen.columns(persist)
    ups = _sustained(smooth, length) if grid.side >= 0 else None
    downs = _sustained(-smooth, length) if grid.side <= 0 else None
    parts = _parts(seen, smooth.shape[1], length)
    each = [_largest(ups, downs, part) for part in parts]
    median, scale = _tail(np.abs(np.stack(each)))
    return Deviations(grid, raw, smooth, each[-1], median, scale)


def in_bursts(seen: Observed, one: Deviations, persist: float) -> Deviations | None:
    """The same with what each series exceeds for `persist` seconds in all, whenever in the window: faults that come and
    go. None where the window is too short.
    """
    length, size = seen.columns(persist), one.raw.shape[1] - seen.now
    if size < length:
        return None
    smooth = _running_median(_filled(one.raw, _FILL * one.grid.gap + 1), _SHORT)
    ends = [*reversed(range(seen.now, size - 1, -size)), smooth.shape[1]]
    each = []
    for end in ends:
        ordered = np.sort(smooth[:, end - size : end], axis=1)
        up, down = np.maximum(ordered[:, -length], 0.0), np.maximum(-ordered[:, length - 1], 0.0)
        up, down = up * (one.grid.side >= 0), down * (one.grid.side <= 0)
        each.append(np.where(up >= down, up, -down))
    median, scale = _tail(np.abs(np.stack(each)))
    return Deviations(one.grid, one.raw, smooth, each[-1], median, scale, in_bursts=True)


def stretch(found: Deviations, series: int, metrics: int) -> Apart:
    """Stretch of the deviation of one series; `metrics` is the number of metrics looked at."""
    off = float(found.sustained[series])
    mine = math.copysign(1.0, off) * found.smooth[series]
    on = mine >= _BOUT * abs(off)
    runs = _runs(on)
    first, last = max(runs, key=lambda run: (mine[run[0] : run[1]].sum(), run[1]), default=(0, len(on)))
    measured = np.flatnonzero(np.isfinite(found.grid.values[series]))
    begin = int(measured[0]) if len(measured) else 0
    sharp = math.copysign(1.0, off) * found.raw[series]
    near = [at for at in range(max(0, first - 3), min(len(on), first + 4)) if sharp[at] >= _BOUT * abs(off)]
    first = near[0] if near else first
    if found.in_bursts:
        first, last = (runs[0][0], runs[-1][1]) if runs else (0, len(on))
    return Apart(
        found.grid,
        series,
        off,
        first,
        last,
        found.nats(off) - math.log(max(1, metrics)),
        len(runs),
        first <= begin + 2,
        found.in_bursts,
    )


def _relative(values: Floats) -> Floats:
    """Values less the median of their column, as shares of it."""
    if not np.isfinite(values).any():
        return np.zeros_like(values)
    level = np.full(values.shape[1], np.nan)
    there = np.isfinite(values).any(axis=0)
    level[there] = np.nanmedian(values[:, there], axis=0)
    sizes = np.abs(values[np.isfinite(values)])
    least = _LEAST_SIZE * max(float(np.quantile(sizes, 0.99)), _LEAST_SIZE * float(sizes.max()), 1e-300)
    size = np.maximum(np.abs(level), least)
    return np.asarray(np.clip((values - level) / size, -_FARTHEST, _FARTHEST))


def _held(values: Floats, gap: int) -> Floats:
    """Values with each held until the next reading is due, `gap` columns later: nodes are read at moments of their own,
    and in a column of one of them alone it has no peers.
    """
    found = values.copy()
    for _ in range(gap - 1):
        missing = np.isnan(found[:, 1:])
        found[:, 1:] = np.where(missing, found[:, :-1], found[:, 1:])
    return found


def _usual(past: Floats) -> Floats:
    """Usual difference of each series in the history, up to three deviations of what all differ by; shape (series,)."""
    found = np.zeros(len(past))
    enough = np.isfinite(past).sum(axis=1) >= _LEARNT
    found[enough] = np.nanmedian(past[enough], axis=1)
    if not enough.any():
        return found
    most = 3 * (1.4826 * float(np.median(np.abs(found[enough]))) + _LEAST_SCALE)
    return np.clip(found, -most, most)


def _filled(raw: Floats, columns: int) -> Floats:
    """Missing values as the last ones before them for a while, then as no deviation."""
    return np.nan_to_num(_held(raw, columns + 1), nan=0.0)


def _running_median(values: Floats, length: int) -> Floats:
    """Centred, over an odd number of columns."""
    length |= 1
    if length >= values.shape[1] or length == 1:
        return values
    padded = np.pad(values, ((0, 0), (length // 2, length // 2)), mode="edge")
    return np.asarray(np.median(np.lib.stride_tricks.sliding_window_view(padded, length, axis=1), axis=2))


def _sustained(values: Floats, length: int) -> Floats:
    """The least of each `length` columns that end at a column, by doubling; columns before that have the least of
    what there is, or nothing."""
    found = values.copy()
    done = 1
    while done < length:
        step = min(done, length - done)
        found[:, step:] = np.minimum(found[:, step:], found[:, :-step])
        found[:, :step] = -np.inf
        done += step
    found[:, : length - 1] = -np.inf
    return found


def _parts(seen: Observed, columns: int, length: int) -> list[slice]:
    """Columns at which deviations end: of stretches of the history as long as the window, then of the window. What
    ends within the first minute of the window belongs to the one before.
    """
    size = columns - seen.now
    begin = min(columns - 1, seen.now + seen.columns(SMOOTH_SECONDS)) if seen.now else 0
    past = [slice(max(0, end - size), end) for end in range(seen.now, 0, -size) if end - length >= 0]
    return [*reversed(past), slice(begin, columns)]


def _largest(ups: Floats | None, downs: Floats | None, part: slice) -> Floats:
    """The largest deviation that each series kept up, signed; 0 where it kept up none."""
    nothing = np.zeros(len(ups if ups is not None else downs if downs is not None else ()))
    up = nothing if ups is None else np.maximum(ups[:, part].max(axis=1), 0.0)
    down = nothing if downs is None else np.maximum(downs[:, part].max(axis=1), 0.0)
    return np.asarray(np.where(up >= down, up, -down))


def _tail(healthy: Floats) -> tuple[float, float]:
    """Median and scale of the exponential tail of the deviations of healthy series, of which a tenth may not be; shape
    (parts, series). Of few series the one that is farthest from the others counts in no part: it may have been at fault
    in all of them.
    """
    median = float(np.median(healthy))
    series = healthy.shape[1]
    if series >= 8:
        scale = (float(np.quantile(healthy, 0.75)) - median) / math.log(2)
        if series >= 32:
            scale = max(scale, (float(np.quantile(healthy, 0.9)) - median) / math.log(5))
    else:
        others = np.delete(healthy, int(np.argmax(healthy.max(axis=0))), axis=1)
        scale = float(others.max()) - median
    return median, max(scale, _LEAST_SCALE)


def _runs(on: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Stretches of columns that are on, two or more long."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], on.astype(np.int8), [0]])))
    return [(a, b) for a, b in edges.reshape(-1, 2).tolist() if b - a >= 2]
