"""The usual share of failed calls of each subject in each context, learnt from the window and those before it.

Healthy services fail some calls: bad requests, timeouts, retries. The usual share of a place (a subject in a context)
is a low quantile over stretches of time, so that a fault that fills most of them is not learnt, shrunk towards the
median of the places of the same context and of all places. No place may be usual above a ceiling that the other places
set (their median and their upper spread, `_LOWEST_CEILING` to `_HIGHEST_CEILING`): a place that fails most calls for as
long as the history reaches is never usual, and with it a total outage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.panorama.observed import Observed, Tally
from analyzers.builtin.paths import texts
from analyzers.contract import Window

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

LEAST = 0.005
"""Usual share of failures where fewer are seen: one in 200."""

_LOWEST_CEILING, _HIGHEST_CEILING = 0.05, 0.2
_UPPER = 2.5
"""Standard deviations, of the logarithm of the shares of all places, up to which a place may be usual."""

_QUANTILE, _ALONE = 0.35, 0.5
"""The quantile over stretches of time with three past windows or more, and with fewer."""
ENOUGH_WINDOWS = 3
"""Past windows from which on they say what is usual."""

_SLACK = 0.02
"""Share of failures that a stretch may have beyond twice the quantile, and beyond chance, to be learnt from."""

_PEERS = 4
"""Places of a context from which on their median is what the context is taken for."""

_FAR_ABOVE = 1.5
"""Times its limit from which on a place's own share is not read at all."""

_OWN = 40.0
"""Calls for which what is usual elsewhere counts beside a place's own."""

_CONCENTRATION = 40.0
"""Calls for which the usual share counts in the prior of a cell's share over one look-back, at most: it varies."""

_LEAST_A = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class Usual:
    """`share` (cells,) is the usual share of failures and `a`, `b` the beta prior of what one look-back shows of it.

    `chronic` (places,) marks the places whose own share is above what may be usual, `ceiling`; `typical` is the median
    of the places; `windows` is the number of past windows used and `good_before` (cells,) their good answers.
    """

    share: Floats
    a: Floats
    b: Floats
    chronic: Bools
    ceiling: float
    typical: float
    windows: int
    good_before: Floats

    @property
    def least_fault(self) -> Floats:
        """The share of failures from which on a cell may be called bad: twice what is usual, shape (cells,)."""
        return np.where(self.share > LEAST, np.minimum(2 * self.share, self.share + 0.1), 0.0)


def usual_of(seen: Observed, counted: Tally, past: Sequence[Window], look_back: int) -> Usual:
    before = [one for one in (_past(seen, window) for window in past) if one[1].any()]
    learnt = len(before) >= ENOUGH_WINDOWS
    # With windows to compare, a window is one stretch of time; without, each look-back of this one is.
    ends = np.arange(seen.steps - 1, -1, -look_back)
    now = [(counted.failed[:, ends], counted.total[:, ends])]
    if learnt:
        now = [(one[0].sum(axis=1)[:, None], one[1].sum(axis=1)[:, None]) for one in now]
    failed, total = (
        np.column_stack([*(one[side][:, None] for one in before), *(one[side] for one in now)])
        for side in (0, 1)
    )
    level = _QUANTILE if learnt else _ALONE
    places = _places(seen, _by_place(seen, failed), _by_place(seen, total), level)
    share = places.share[seen.place]
    if learnt:
        kept = places.kept[seen.place]
        calls = (total * kept).sum(axis=1)
        own = (failed * kept).sum(axis=1) / np.maximum(calls, 1)
        share = (np.minimum(own, places.limit[seen.place]) * calls + share * _OWN) / (calls + _OWN)
    good = np.zeros(seen.cells)
    for one in before:
        good += one[1] - one[0]
    share = np.maximum(share, _LEAST_A / (counted.usual + _LEAST_A))
    share = np.clip(share, LEAST, _HIGHEST_CEILING)
    a = np.maximum(_LEAST_A, _CONCENTRATION * share)
    b = a * (1 - share) / share
    return Usual(share, a, b, places.chronic, places.ceiling, places.typical, len(before), good)


def _by_place(seen: Observed, cells: Floats) -> Floats:
    out = np.zeros((len(seen.place_subject), cells.shape[1]))
    np.add.at(out, seen.place, cells)
    return out


def _past(seen: Observed, window: Window) -> tuple[Floats, Floats]:
    """Failed and all calls of each cell of `seen` in a past window; what was sent and not answered failed."""
    sums = window.sums["seen"]
    names, contexts = seen.components, seen.contexts
    keys = zip(seen.observer.tolist(), seen.subject.tolist(), seen.context.tolist(), strict=True)
    number = {(names[one], names[other], contexts[way]): cell for cell, (one, other, way) in enumerate(keys)}
    rows = zip(*(texts(sums, key) for key in ("observer", "subject", "context")), strict=True)
    cell = np.fromiter((number.get(row, -1) for row in rows), np.int64, sums.rows)
    column = {"healthy": 0, "unhealthy": 1, "pending": 2}
    status = np.fromiter((column[one] for one in texts(sums, "status")), np.int64, sums.rows)
    known, times = cell >= 0, np.asarray(sums.values["times"], dtype=np.float64)
    code = cell[known] * 3 + status[known]
    flat = np.bincount(code, times[known], minlength=3 * seen.cells).reshape(seen.cells, 3)
    waiting = np.maximum(0.0, flat[:, 2] - flat[:, 0] - flat[:, 1])
    return flat[:, 1] + waiting, flat[:, 0] + flat[:, 1] + waiting


@dataclass(frozen=True, slots=True, eq=False)
class _Places:
    """Usual share of each place, what it may be at most, and which are above that by their own figures; (places,).

    `kept` (places, stretches) are the stretches that it was learnt from.
    """

    share: Floats
    kept: Bools
    limit: Floats
    chronic: Bools
    ceiling: float
    typical: float


def _places(seen: Observed, failed: Floats, total: Floats, level: float) -> _Places:
    shares = failed / np.maximum(total, 1)
    anchor = quantile_of_rows(shares, total, level)[:, None]
    # A quantile of few calls is too low: it says which stretches are faulty, and the others are pooled.
    kept = shares <= 2 * anchor + _SLACK + 3 * np.sqrt((anchor + _SLACK) / np.maximum(total, 1))
    own = (failed * kept).sum(axis=1) / np.maximum((total * kept).sum(axis=1), 1)
    calls = total.sum(axis=1)
    weight = np.minimum(calls, _OWN)
    typical, upper = (float(one) for one in _quantiles(own, weight, (0.5, 0.75)))
    deviation = np.log(max(upper, LEAST) / max(typical, LEAST)) / 0.674
    reach = float(np.exp(_UPPER * deviation))
    ceiling = float(np.clip(max(typical, LEAST) * reach, _LOWEST_CEILING, _HIGHEST_CEILING))
    expected = np.full(len(own), min(typical, ceiling))
    for context in np.unique(seen.place_context).tolist():
        mine = np.flatnonzero((seen.place_context == context) & (calls > 0))
        if len(mine) >= _PEERS:
            expected[mine] = min(float(_quantiles(own[mine], weight[mine], (0.5,))[0]), _HIGHEST_CEILING)
    limit = np.maximum(ceiling, np.minimum(expected * reach, _HIGHEST_CEILING))
    # What is far above the limit says nothing of what is usual there: its peers do.
    usable = own <= _FAR_ABOVE * limit
    limit = np.where(usable, limit, np.minimum(limit, np.maximum(expected, LEAST)))
    share = (np.minimum(own, limit) * calls + expected * _OWN) / (calls + _OWN)
    return _Places(share, kept, limit, (own > limit) & (calls >= _OWN), ceiling, typical)


def quantile_of_rows(share: Floats, weight: Floats, level: float) -> Floats:
    """The weighted quantile of each row, between the two nearest values; 0 for rows without weight."""
    order = np.argsort(share, axis=1)
    value, mass = np.take_along_axis(share, order, 1), np.take_along_axis(weight, order, 1)
    running = np.cumsum(mass, axis=1) - mass / 2
    whole = mass.sum(axis=1)
    out = np.zeros(len(share))
    for row in np.flatnonzero(whole > 0).tolist():
        some = mass[row] > 0
        out[row] = np.interp(level * whole[row], running[row][some], value[row][some])
    return out


def _quantiles(share: Floats, weight: Floats, levels: Sequence[float]) -> Floats:
    """Weighted quantiles of all values; 0 without any."""
    if not weight.sum():
        return np.zeros(len(levels))
    order = np.argsort(share)
    running = np.cumsum(weight[order]) - weight[order] / 2
    return np.asarray(np.interp(np.asarray(levels) * weight.sum(), running, share[order]))
