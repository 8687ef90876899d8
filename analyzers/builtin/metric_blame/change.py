"""Size of each series' change in the window against its history, and the rate of such changes by chance.

A reading counts in robust deviations: less the median of the history, over its interquartile range / 1.349 (the robust
scaling of BARO: Pham et al., FSE 2024). A change is what a series keeps up, the least of `length` readings in
a row, so that a single peak is none. Its chance is read off what the series itself kept up in the history: above
`_LOWER` of them the logarithms log(1 + deviation) have an exponential tail, whose scale is half its own (from two
quantiles, within `_LIGHT` and `_HEAVY`) and half the median of all series. Evidence is the logarithm of one
over the number of series that are expected to change as much by chance, in nats; below 0 where one is.

A tail that is extrapolated from few stretches misses single peaks, such as quantiles of a handful of requests have. If
a share p of the readings of the history is as far off, so many in a row have a chance of p to the power of their number
at least, if they are independent, and more if they are not: evidence is at most that (`_most_by_peaks`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.metric_blame.habits import failures, habits, harm_of, lasting, less_habits
from analyzers.builtin.metric_blame.indicators import EXTERNAL
from analyzers.builtin.metric_blame.series import Identity, Observed
from analyzers.builtin.stats.changepoint import credible, reference_of, run_lengths

Floats = NDArray[np.float64]

FARTHEST = 1000.0
"""Deviations beyond are as good as this one."""
_LIGHT, _HEAVY = 0.2, 0.6
_LOWER, _UPPER = 0.85, 0.97
_LEAST_SHARE, _LEAST_PEERS = 0.02, 0.25
"""A scale is at least this share of the median, and of the middle scale of the same metric elsewhere."""
_LEAST_MISSING = 0.002
"""Least scale of a share of errors, or of what is missing to availability; that of errors counted is one."""
_RECENT = 2
"""Windows before this one that the tail is not taken from, where three times as many are known."""
_BOUT = 0.5
"""A change lasts while a reading deviates by half of what was kept up, and began with the first of those."""
_BRIEF = 4
"""A quarter of a window is brief, besides the time that a change has to be kept up."""
_STRETCHES = 8
"""Most lengths of a stretch by which single readings bound the evidence."""
_SURGE = 1.2
_STRETCH = {"latency": 2.0, "internal": 1.0, "errors": 1.0, "availability": 1.0}
"""Powers of the load of all by which a metric may follow it."""


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """Lasting change of a series: `size` robust deviations (signed), from column `first` up to `last`, with `nats`
    against chance. `before` is the median of its history, `value` what it was at in the middle of the change.
    """

    series: int
    identity: Identity
    size: float
    nats: float
    first: int
    last: int
    before: float
    value: float

    @property
    def external(self) -> bool:
        return self.identity.sort in EXTERNAL

    @property
    def rise(self) -> float:
        return self.value - self.before


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """Of each series that could be judged what it kept up; `surge` is how much the load of all grew in the window."""

    found: tuple[Change, ...]
    surge: float
    judged: int
    unlearnt: int


def changes(seen: Observed, length: int, least: int) -> Changes:
    """`length` columns have to deviate together; series with less than `least` readings before are not judged."""
    past = seen.values[:, : seen.now]
    enough = (np.isfinite(past).sum(axis=1) >= least) & np.isfinite(seen.values[:, seen.now :]).any(axis=1)
    rows = np.flatnonzero(enough)
    if not len(rows):
        return Changes((), 1.0, 0, len(seen.series))
    identities = [seen.series[row] for row in rows.tolist()]
    load = _load(seen, rows, identities)
    values = _less_load(seen.values[rows], identities, load)
    median, scale = _normal(values[:, : seen.now], identities)
    deviation = np.clip((values - median[:, None]) / scale[:, None], -FARTHEST, FARTHEST)
    deviation = _bridged(deviation)
    columns = len(seen.starts) - seen.now
    # A fault that lasts is in the last windows of the history too: those say nothing of chance.
    before = seen.now - _RECENT * columns if seen.now >= 3 * _RECENT * columns else seen.now
    tests = len(rows) * max(1, columns // length)
    brief = columns // _BRIEF + 1  # of readings that deviate `length` in a row have deviated
    filled = np.nan_to_num(deviation, nan=0.0)
    harmful, grave = _harm(seen, values, median, identities, length)
    found = []
    for sign in (1.0, -1.0):
        retained = _sustained(sign * filled, length)
        size = retained[:, seen.now :].max(axis=1)
        past = retained[:, :before]
        excused = ~(lasting(retained[:, seen.now :], size, brief) | grave)
        failed = failures(past, size, brief // 2, harmful & ~excused)
        nats = _nats(np.where(failed, np.nan, past), size, tests)
        nats = less_habits(nats, habits(past, size, columns, excused), excused, identities)
        alone = np.where(_covering(failed, length), np.nan, sign * deviation[:, :before])
        nats = np.minimum(nats, _most_by_peaks(alone, sign * filled, seen.now, length) - math.log(tests))
        for at, identity in enumerate(identities):
            if sign > 0 or (size[at] > 0 and identity.sort in ("other", "load")):
                found.append(
                    _change(
                        seen,
                        int(rows[at]),
                        sign * deviation[at],
                        float(size[at]),
                        float(nats[at]),
                        float(median[at]),
                    )
                )
    surge = float(np.quantile(load[seen.now :], 0.75)) if len(load) else 1.0
    return Changes(tuple(found), surge, len(rows), len(seen.series) - len(rows))


def _change(seen: Observed, row: int, deviation: Floats, size: float, nats: float, median: float) -> Change:
    first, last, value = 0, len(seen.starts) - seen.now, median
    if nats > 0:
        first, last = _bout(deviation[seen.now :], size)
        here = seen.values[row, seen.now + first : seen.now + last]
        read = here[np.isfinite(here)]
        value = float(np.median(read)) if len(read) else median
    return Change(row, seen.series[row], size, nats, seen.now + first, seen.now + last, median, value)


def onset(seen: Observed, one: Change) -> tuple[int, int, int]:
    """First, median and last column of the 95 % interval of when the change began, by Bayesian online change-point
    detection over the window against the history of its series."""
    values = seen.values[[one.series]]
    usual = reference_of(values[:, : seen.now])
    scaled = (values[:, seen.now :] - usual.level[:, None]) / usual.scale[:, None]
    stop = np.array([one.last - 1 - seen.now])
    found = run_lengths(np.clip(scaled, -FARTHEST, FARTHEST), usual.rho, usual.samples, stop=stop)
    begins = found.beginning[0]
    if begins.sum() <= 0:
        return one.first, one.first, one.first
    low, median, high = credible(begins)
    return seen.now + low, seen.now + median, seen.now + high


def _load(seen: Observed, rows: NDArray[np.int64], identities: Sequence[Identity]) -> Floats:
    """Load on all in each column, as a multiple of the history: the median over components."""
    mine = [row for row, one in zip(rows.tolist(), identities, strict=True) if one.sort == "load"]
    if len(mine) < 3:
        return np.ones(len(seen.starts))
    past = np.nanmedian(seen.values[mine, : seen.now], axis=1)
    used = [row for row, usual in zip(mine, past.tolist(), strict=True) if usual > 0]
    if len(used) < 3:
        return np.ones(len(seen.starts))
    ratios = _carried(seen.values[used] / past[past > 0][:, None])
    there = np.isfinite(ratios).any(axis=0)
    found = np.ones(len(seen.starts))
    found[there] = np.nanmedian(ratios[:, there], axis=0)
    return found


def _less_load(values: Floats, identities: Sequence[Identity], load: Floats) -> Floats:
    """Values without what a load of all explains that grew by more than a fifth."""
    if load.max() <= _SURGE:
        return values
    more = np.maximum(1.0, load / _SURGE)
    powers = np.array([_STRETCH.get(one.sort, 0.0) for one in identities])
    return np.asarray(values / more[None, :] ** powers[:, None])


def _normal(past: Floats, identities: Sequence[Identity]) -> tuple[Floats, Floats]:
    """Median and scale of each series in its history."""
    low, median, high = _quantiles(past, (0.25, 0.5, 0.75))
    scale = (high - low) / 1.349
    groups: dict[str, list[int]] = defaultdict(list)
    for at, one in enumerate(identities):
        groups[one.name].append(at)
    least = _LEAST_SHARE * np.abs(median)
    for members in groups.values():
        if identities[members[0]].sort in ("availability", "errors"):
            known = past[members][np.isfinite(past[members])]
            counted = len(known) and (known > 1).any() and bool((known == np.round(known)).all())
            floor = 1.0 if counted else _LEAST_MISSING * (100.0 if len(known) and known.max() > 1.5 else 1.0)
            least[members] = np.maximum(least[members], floor)
            continue
        spread = [scale[at] for at in members if scale[at] > 0]
        still = [at for at in members if scale[at] <= 0]
        if spread and still:
            least[still] = np.maximum(least[still], _LEAST_PEERS * float(np.median(spread)))
    return median, np.maximum(scale, np.maximum(least, 1e-12))


def _harm(
    seen: Observed, values: Floats, median: Floats, identities: Sequence[Identity], length: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Series that kept up in the window what harms callers, and those that harm them gravely."""
    reached = _sustained(np.nan_to_num(_carried(values)), length)[:, seen.now :].max(axis=1)
    requested: dict[str, float] = {}
    for one, row in zip(identities, values[:, seen.now :], strict=True):
        if one.sort == "load" and np.isfinite(row).any():
            requested[one.component] = max(requested.get(one.component, 0.0), float(np.nanmedian(row)))
    requests = np.array([requested.get(one.component, math.nan) for one in identities])
    return harm_of(reached, median, requests, identities)


def _quantiles(values: Floats, at: Sequence[float]) -> tuple[Floats, ...]:
    """Quantiles of each row over what was measured; numpy's own with NaN takes a millisecond a row."""
    ordered = np.sort(values, axis=1)
    last = np.maximum(np.isfinite(values).sum(axis=1) - 1, 0)
    found = []
    for share in at:
        place = share * last
        low = np.floor(place).astype(np.int64)
        high = np.minimum(low + 1, last)
        rows = np.arange(len(values))
        found.append(ordered[rows, low] + (place - low) * (ordered[rows, high] - ordered[rows, low]))
    return tuple(found)


def _bridged(deviation: Floats) -> Floats:
    """A missing reading between two others as the smaller of both deviations, 0 if they are of different signs: it
    interrupts no change, and makes no change of a single reading."""
    found = deviation.copy()
    before, after = deviation[:, :-2], deviation[:, 2:]
    between = np.isnan(deviation[:, 1:-1]) & np.isfinite(before) & np.isfinite(after)
    smaller = np.where(np.abs(before) < np.abs(after), before, after)
    found[:, 1:-1] = np.where(between, np.where(before * after > 0, smaller, 0.0), deviation[:, 1:-1])
    return found


def _covering(columns: NDArray[np.bool_], length: int) -> NDArray[np.bool_]:
    """Readings that any of these columns, each the end of `length` readings in a row, covers."""
    found = columns.copy()
    for back in range(1, length):
        found[:, :-back] |= columns[:, back:]
    return found


def _most_by_peaks(alone: Floats, filled: Floats, now: int, length: int) -> Floats:
    """Most evidence of one test that the single readings of the history (`alone`, NaN where there is none) leave, by
    stretches of the window from `length` readings on. Infinite where none of the history is as far off."""
    known = np.isfinite(alone).sum(axis=1)
    most = np.full(len(alone), -np.inf)
    columns = max(length, filled.shape[1] - now)
    start = max(0, now - columns)
    here = filled[:, start:]
    for readings in np.unique(np.linspace(length, columns, _STRETCHES).astype(np.int64)).tolist():
        size = _sustained(here, readings)[:, now - start :].max(axis=1)
        beyond = (alone >= size[:, None]).sum(axis=1)
        with np.errstate(divide="ignore"):
            nats = np.where(beyond > 0, readings * np.log(known / np.maximum(beyond, 1)), np.inf)
        most = np.maximum(most, nats)
    return most


def _carried(values: Floats) -> Floats:
    """A missing reading as the one before it, once."""
    found = values.copy()
    missing = np.isnan(found[:, 1:]) & np.isfinite(values[:, :-1])
    found[:, 1:] = np.where(missing, values[:, :-1], found[:, 1:])
    return found


def _sustained(deviation: Floats, length: int) -> Floats:
    """The least of `length` columns in a row, at the column that they end in; 0 before, and below 0."""
    found = deviation.copy()
    for back in range(1, length):
        found[:, back:] = np.minimum(found[:, back:], deviation[:, :-back])
    found[:, : length - 1] = 0.0
    return np.maximum(found, 0.0)


def _nats(past: Floats, size: Floats, tests: int) -> Floats:
    """Evidence against chance of so much kept up, of so many tests, where NaN was a failure; shape (series,)."""
    logs = np.log1p(past)
    low, high = _quantiles(logs, (_LOWER, _UPPER))
    own = np.clip((high - low) / math.log((1 - _LOWER) / (1 - _UPPER)), _LIGHT, _HEAVY)
    scale = (own + np.median(own)) / 2  # a short history says little of the tail of one series
    beyond = np.maximum(np.log1p(size) - low, 0.0) / scale
    return np.asarray(beyond - math.log(1 - _LOWER) - math.log(tests))


def _bout(deviation: Floats, size: float) -> tuple[int, int]:
    """The first column and the one after the last of the stretch with the largest sum that deviates by half of what
    was kept up."""
    on = np.nan_to_num(deviation, nan=-1.0) >= _BOUT * size
    edges = np.flatnonzero(np.diff(np.concatenate([[0], on.astype(np.int8), [0]]))).reshape(-1, 2).tolist()
    sums = [(float(np.nansum(deviation[a:b])), -a, b) for a, b in edges]
    _, first, last = max(sums)
    return -first, last
