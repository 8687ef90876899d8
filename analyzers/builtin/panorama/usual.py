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

from analyzers.builtin.keys import texts
from analyzers.builtin.panorama.observed import Observed, Tally
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
_ENOUGH = 3

_PEERS = 4
"""Places of a context from which on their median is what the context is taken for."""

_OWN = 40.0
"""Calls for which what is usual elsewhere counts beside a place's own."""

_CONCENTRATION = 40.0
"""Calls for which the usual share counts in the prior of a cell's share over one look-back, at most: it varies."""

_LEAST_A = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class Usual:
    """`share` (cells,) is the usual share of failures and `a`, `b` the beta prior of what one look-back shows of it.

    `chronic` (places,) marks the places whose own share is above what may be usual, `ceiling`; `windows` is the number
    of past windows used.
    """

    share: Floats
    a: Floats
    b: Floats
    chronic: Bools
    ceiling: float
    typical: float
    windows: int

    @property
    def least_fault(self) -> Floats:
        """The share of failures from which on a cell may be called bad: twice what is usual, shape (cells,)."""
        return np.where(self.share > LEAST, np.minimum(2 * self.share, self.share + 0.1), 0.0)


def usual_of(seen: Observed, counted: Tally, past: Sequence[Window], look_back: int) -> Usual:
    failed, total = _stretches(seen, counted, look_back)
    before = [_past(seen, one) for one in past]
    used = [one for one in before if one[1].any()]
    failed = np.column_stack([*(one[0] for one in used), failed])
    total = np.column_stack([*(one[1] for one in used), total])
    level = _QUANTILE if len(used) >= _ENOUGH else _ALONE
    share, chronic, ceiling, typical = _places(seen, failed, total, level)
    usual = np.maximum(share[seen.place], _LEAST_A / (counted.usual + _LEAST_A))
    usual = np.clip(usual, LEAST, _HIGHEST_CEILING)
    a = np.maximum(_LEAST_A, _CONCENTRATION * usual)
    return Usual(usual, a, a * (1 - usual) / usual, chronic, ceiling, typical, len(used))


def _stretches(seen: Observed, counted: Tally, look_back: int) -> tuple[Floats, Floats]:
    """Failed and all calls of each place over every look-back of the window that does not overlap with another."""
    ends = np.arange(seen.steps - 1, -1, -look_back)[::-1]
    out = []
    for column in (counted.failed, counted.total):
        sums = np.zeros((len(seen.place_subject), len(ends)))
        np.add.at(sums, seen.place, column[:, ends])
        out.append(sums)
    return out[0], out[1]


def _past(seen: Observed, window: Window) -> tuple[Floats, Floats]:
    """Failed and all calls of each place of `seen` in a past window; what was sent and not answered failed."""
    sums = window.sums["seen"]
    number = {
        (seen.components[subject], seen.contexts[context]): place
        for place, (subject, context) in enumerate(
            zip(seen.place_subject.tolist(), seen.place_context.tolist(), strict=True)
        )
    }
    pairs = zip(texts(sums, "subject"), texts(sums, "context"), strict=True)
    place = np.fromiter((number.get(pair, -1) for pair in pairs), np.int64, sums.rows)
    column = {"healthy": 0, "unhealthy": 1, "pending": 2}
    status = np.fromiter((column[one] for one in texts(sums, "status")), np.int64, sums.rows)
    known = place >= 0
    flat = np.bincount(
        place[known] * 3 + status[known],
        np.asarray(sums.values["times"], dtype=np.float64)[known],
        minlength=3 * len(number),
    ).reshape(len(number), 3)
    open_ = np.maximum(0.0, flat[:, 2] - flat[:, 0] - flat[:, 1])
    return flat[:, 1] + open_, flat[:, 0] + flat[:, 1] + open_


def _places(
    seen: Observed, failed: Floats, total: Floats, level: float
) -> tuple[Floats, Bools, float, float]:
    """Usual share of each place, which are above the ceiling, the ceiling, and the median of all places."""
    own = quantile_of_rows(failed / np.maximum(total, 1), total, level)
    calls = total.sum(axis=1)
    heard = calls > 0
    spread = own[heard], np.minimum(calls[heard], _OWN)
    typical, upper = (float(one) for one in _quantiles(*spread, (0.5, 0.75)))
    deviation = np.log(max(upper, LEAST) / max(typical, LEAST)) / 0.674
    ceiling = float(np.clip(np.exp(np.log(max(typical, LEAST)) + _UPPER * deviation), _LOWEST_CEILING, _HIGHEST_CEILING))
    expected = np.full(len(own), min(typical, ceiling))
    for context in np.unique(seen.place_context).tolist():
        mine = np.flatnonzero((seen.place_context == context) & heard)
        if len(mine) >= _PEERS:
            peers = _quantiles(own[mine], np.minimum(calls[mine], _OWN), (0.5,))
            expected[mine] = np.minimum(float(peers[0]), _HIGHEST_CEILING)
    limit = np.maximum(ceiling, np.minimum(expected * np.exp(_UPPER * deviation), _HIGHEST_CEILING))
    share = (np.minimum(own, limit) * calls + expected * _OWN) / (calls + _OWN)
    return share, (own > limit) & (calls >= _OWN), ceiling, typical


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
    return np.interp(np.asarray(levels) * weight.sum(), running, share[order])
