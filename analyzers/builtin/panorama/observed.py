"""Observations as counts: a cell for each observer, subject and context, a column for each slice of time.

A call that waits is reported twice, as pending when it is sent and as healthy or unhealthy when it is answered.
A pending report that stays without an answer for longer than its time limit is a negative observation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.panorama.reductions import SLICE
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
    """Who saw whom how. Cells are sorted by observer, subject, context; their owners have shape (cells,).

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
        """How many steps make up so many seconds, at least one."""
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
        mine, asked = waiting[lags == lag], sent[lags == lag]
        due = _trailing(_delayed(asked, lag), look_back)
        whole = look_back + lag
        open_ = np.maximum(0, _trailing(asked, whole) - _trailing(answered[mine], whole))
        overdue = np.minimum(due, (2 * open_ * look_back + whole) // (2 * whole))
        hung[mine] = np.where(alive[seen.observer[mine]], overdue, 0)
        total[mine] = np.maximum(total[mine], due - hung[mine])
    usual[waiting] = _rarity(hung[waiting], total[waiting])
    return Tally(failed + hung, total + hung, hung, usual)


def _rarity(hung: Ints, total: Ints) -> float:
    """How rare it is that a call seems to hang where nothing is wrong, from the cells in which fewest do."""
    share = np.sort(hung.sum(axis=1) / np.maximum(1, (hung + total).sum(axis=1)))
    kept = share[: max(1, int(_SOUND * len(share)))]
    mean = float(kept.mean()) if len(kept) else 0.0
    return float(np.clip(0.5 / mean, _LEAST_RARE, USUAL)) if mean else USUAL


def _alive(seen: Observed) -> Bools:
    """Whether an observer reported anything in a step or in the one before it, shape (components, steps)."""
    said = np.zeros((len(seen.components), seen.steps), dtype=bool)
    cell, step = np.nonzero(seen.healthy + seen.unhealthy + seen.pending)
    said[seen.observer[cell], step] = True
    said[:, 1:] |= said[:, :-1].copy()
    return said


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
