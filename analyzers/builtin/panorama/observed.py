"""Observations as counts: a cell for each observer, subject and context, a column for each slice of time.

A call that waits is reported twice, as pending when it is sent and as healthy or unhealthy when it is answered.
A pending report that stays without an answer for longer than its time limit is a negative observation.

The usual share of failed calls of each subject in each context is learnt from the window and those before it. Healthy
services fail some calls: bad requests, timeouts, retries. The usual share of a place (a subject in a context) is a
low quantile over stretches of time, so that a fault that fills most of them is not learnt, shrunk towards the median
of the places of the same context and of all places. No place may be usual above a ceiling that the other places set
(their median and their upper spread, `_LOWEST_CEILING` to `_HIGHEST_CEILING`): a place that fails most calls for as
long as the history reaches is never usual, and with it a total outage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.panorama.analyzer import SLICE
from analyzers.builtin.paths import numbered, texts, whole
from analyzers.contract import Window

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_MOST_STEPS = 600
_MOST_ENTRIES = 20_000_000

USUAL = 100.0
"""One failure in 200 observations is usual where nothing is wrong, mostly fewer."""
_LEAST_RARE = 5.0
_SOUND = 0.5
"""Share of the cells from which it is learnt what is usual: those in which least seems to hang."""


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """Observations of subjects by observers. Cells are sorted by observer, subject, context; their owners have shape
    (cells,).

    `observer` and `subject` index `components`, `context` indexes `contexts`, `place` numbers the pairs of subject and
    context (`place_subject`, `place_context` of shape (places,)). `healthy`, `unhealthy` and `pending` count
    reports, shape (cells, steps); a step is `fold` slices.
    """

    components: tuple[str, ...]
    contexts: tuple[str, ...]
    observer: Ints
    subject: Ints
    context: Ints
    place: Ints
    place_subject: Ints
    place_context: Ints
    healthy: Ints
    unhealthy: Ints
    pending: Ints
    fold: int

    @property
    def cells(self) -> int:
        return len(self.observer)

    @property
    def steps(self) -> int:
        return int(self.healthy.shape[1])

    def steps_of(self, seconds: float) -> int:
        """Number of steps in so many seconds, at least one."""
        return max(1, round(seconds / (self.fold * SLICE.total_seconds())))


def observe(window: Window) -> Observed:
    sums = window.sums["seen"]
    components, both = numbered((*texts(sums, "observer"), *texts(sums, "subject")))
    observer, subject = both[: sums.rows], both[sums.rows :]
    contexts, context = numbered(texts(sums, "context"))
    code = (observer * len(components) + subject) * max(1, len(contexts)) + context
    cells, cell = np.unique(code, return_inverse=True)
    pair, cell_context = np.divmod(cells, max(1, len(contexts)))
    cell_observer, cell_subject = np.divmod(pair, max(1, len(components)))
    places, place = np.unique(cell_subject * max(1, len(contexts)) + cell_context, return_inverse=True)
    place_subject, place_context = np.divmod(places, max(1, len(contexts)))
    slices = max(1, -(-window.length // SLICE))
    fold = max(-(-slices // _MOST_STEPS), -(-slices * len(cells) // _MOST_ENTRIES), 1)
    steps = -(-slices // fold)
    step = np.minimum(whole(sums, "slice") // fold, steps - 1)
    times, status = np.asarray(sums.values["times"]), np.array(texts(sums, "status"), dtype=object)

    def count(name: str) -> Ints:
        mine = np.flatnonzero(status == name)
        flat = np.bincount(cell[mine] * steps + step[mine], times[mine], minlength=len(cells) * steps)
        return flat.astype(np.int64).reshape(len(cells), steps)

    return Observed(
        components=components,
        contexts=contexts,
        observer=cell_observer,
        subject=cell_subject,
        context=cell_context,
        place=place,
        place_subject=place_subject,
        place_context=place_context,
        healthy=count("healthy"),
        unhealthy=count("unhealthy"),
        pending=count("pending"),
        fold=fold,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Failures and observations of each cell over the look-back that ends with each step; (cells, steps).

    `hung` are those among the failed that were sent and not answered in time. `usual` says how rare failures are where
    nothing is wrong: mostly fewer than one in twice as many, shape (cells,).
    """

    failed: Ints
    total: Ints
    hung: Ints
    usual: Floats


def tally(seen: Observed, look_back: int, limit: int) -> Tally:
    """Counts over `look_back` steps; pending reports count as failed once they are overdue.

    How long an answer takes is learnt for each cell, up to `limit` steps. What hangs is what was sent less what was
    answered, over the look-back and as long as an answer takes, as a share of it: what is under way at the end makes up
    for what was at the beginning. Lost reports and late ones look like a few calls that hang, so that cells in which
    nothing is wrong tell how usual that is. An observer that reports nothing says nothing of answers either.
    """
    answered = np.cumsum(seen.healthy + seen.unhealthy, axis=1)
    failed = _trailing(np.cumsum(seen.unhealthy, axis=1), look_back)
    total = _trailing(answered, look_back)
    hung = np.zeros_like(failed)
    usual = np.full(len(failed), USUAL)
    waiting = np.flatnonzero(seen.pending.any(axis=1))
    sent = np.cumsum(seen.pending[waiting], axis=1)
    lags = usual_lags(sent, answered[waiting], limit)
    alive = _alive(seen)
    for lag in range(1, limit + 1):
        mine, requested = waiting[lags == lag], sent[lags == lag]
        due = _trailing(_delayed(requested, lag), look_back)
        whole = look_back + lag
        open_ = np.maximum(0, _trailing(requested, whole) - _trailing(answered[mine], whole))
        overdue = np.minimum(due, (2 * open_ * look_back + whole) // (2 * whole))
        hung[mine] = np.where(alive[seen.observer[mine]], overdue, 0)
        total[mine] = np.maximum(total[mine], due - hung[mine])
    usual[waiting] = _rarity(hung[waiting], total[waiting])
    return Tally(failed + hung, total + hung, hung, usual)


def _rarity(hung: Ints, total: Ints) -> float:
    """Rarity of a call that seems to hang where nothing is wrong, from the cells in which fewest do."""
    share = np.sort(hung.sum(axis=1) / np.maximum(1, (hung + total).sum(axis=1)))
    sound = share[: max(1, int(_SOUND * len(share)))]
    mean = float(sound.mean()) if len(sound) else 0.0
    return float(np.clip(0.5 / mean, _LEAST_RARE, USUAL)) if mean else USUAL


def _alive(seen: Observed) -> Bools:
    """Whether an observer reported anything in a step or in the one before it, shape (components, steps)."""
    reported = np.zeros((len(seen.components), seen.steps), dtype=bool)
    cell, step = np.nonzero(seen.healthy + seen.unhealthy + seen.pending)
    reported[seen.observer[cell], step] = True
    reported[:, 1:] |= reported[:, :-1].copy()
    return reported


def usual_lags(sent: Ints, answered: Ints, limit: int) -> Ints:
    """The fewest steps, at most `limit`, after which most of the time nothing is overdue; shape (cells,).

    `sent` and `answered` are running sums of shape (cells, steps). A cell that hangs for most of the window
    gets `limit`.
    """
    lags = np.full(len(sent), limit, dtype=np.int64)
    for lag in range(limit - 1, 0, -1):
        overdue = _delayed(sent, lag) - answered
        lags[np.median(overdue, axis=1) <= 0] = lag
    return lags


def _trailing(running: Ints, width: int) -> Ints:
    """Sums over the last `width` steps from running sums."""
    out = running.copy()
    out[:, width:] -= running[:, :-width]
    return out


def _delayed(running: Ints, by: int) -> Ints:
    out = np.zeros_like(running)
    out[:, by:] = running[:, :-by] if by else running
    return out


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
        normal = places.normal[seen.place]
        calls = (total * normal).sum(axis=1)
        own = (failed * normal).sum(axis=1) / np.maximum(calls, 1)
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

    `normal` (places, stretches) are the stretches that it was learnt from.
    """

    share: Floats
    normal: Bools
    limit: Floats
    chronic: Bools
    ceiling: float
    typical: float


def _places(seen: Observed, failed: Floats, total: Floats, level: float) -> _Places:
    shares = failed / np.maximum(total, 1)
    anchor = quantile_of_rows(shares, total, level)[:, None]
    # A quantile of few calls is too low: it says which stretches are faulty, and the others are pooled.
    normal = shares <= 2 * anchor + _SLACK + 3 * np.sqrt((anchor + _SLACK) / np.maximum(total, 1))
    own = (failed * normal).sum(axis=1) / np.maximum((total * normal).sum(axis=1), 1)
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
    return _Places(share, normal, limit, (own > limit) & (calls >= _OWN), ceiling, typical)


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
