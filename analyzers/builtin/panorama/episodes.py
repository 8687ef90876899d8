"""From steps to episodes: since when something is bad, until when, and whether it still is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.panorama.likelihood import OBSERVER, PLACE, SUBJECT, Weighed
from analyzers.builtin.panorama.observed import Observed, Tally
from analyzers.builtin.panorama.usual import LEAST, Usual

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_GAP = 2
"""Steps for which a culprit may be missing within one episode."""

_RECOVERED = 0.01
"""Likelihood of what came after, at the episode's own rate against the usual one, below which it is over."""


@dataclass(frozen=True, slots=True, eq=False)
class Episode:
    """A culprit from its `first` to its `last` failure, both steps.

    `who` is a component or place as `sort` says. `cells` are its cells whose observers are not blamed themselves
    (all, if there is no other); `failed` and `total` are counted over them and the episode. `surplus` is the
    most evidence that one step had, at step `best`.
    """

    sort: int
    who: int
    first: int
    last: int
    ongoing: bool
    cells: Ints
    failed: int
    total: int
    surplus: float
    best: int

    @property
    def steps(self) -> int:
        return self.last - self.first + 1


def episodes_of(
    seen: Observed, counted: Tally, usual: Usual, weighed: Weighed, probe: Bools, look_back: int
) -> list[Episode]:
    """All episodes, of observers, then of subjects, then of places; each sort in the order of numbers."""
    blamed = np.zeros((len(seen.components), seen.steps), dtype=bool)
    on = weighed.solution.chosen[OBSERVER]
    blamed[weighed.name[OBSERVER][on], weighed.at[OBSERVER][on]] = True
    owners = {OBSERVER: seen.observer, SUBJECT: np.where(probe, -1, seen.subject), PLACE: seen.place}
    found = []
    for sort, owner in owners.items():
        on = weighed.solution.chosen[sort]
        who, at = weighed.name[sort][on], weighed.at[sort][on]
        surplus = weighed.solution.surplus[sort][on]
        order = np.lexsort((at, who))
        who, at, surplus = who[order], at[order], surplus[order]
        breaks = np.flatnonzero((np.diff(who) != 0) | (np.diff(at) > _GAP + 1)) + 1
        for chosen in np.split(np.arange(len(who)), breaks):
            if not len(chosen):
                continue
            best = int(chosen[np.argmax(surplus[chosen])])
            begun, over = int(at[chosen[0]]), int(at[chosen[-1]])
            cells = np.flatnonzero(owner == who[best])
            if sort != OBSERVER:
                cells = _credible(seen, cells, np.asarray(blamed[:, begun : over + 1].any(axis=1)))
            run = _Run(sort, int(who[best]), cells, begun, over, int(at[best]), float(surplus[best]))
            found.append(_episode(run, seen, counted, usual, look_back))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """Steps `begun` to `over` at which something was chosen, with most evidence at `best`."""

    sort: int
    who: int
    cells: Ints
    begun: int
    over: int
    best: int
    surplus: float


def _credible(seen: Observed, cells: Ints, blamed: Bools) -> Ints:
    """The cells whose observers are not to blame, or all of them if there are none."""
    kept = cells[~blamed[seen.observer[cells]]]
    return kept if len(kept) else cells


def _episode(run: _Run, seen: Observed, counted: Tally, usual: Usual, look_back: int) -> Episode:
    """Where it begins and ends: the stretch around the best step over which the failures are most in excess.

    Per step, failures at the rate of the best step are held against the usual rate (a change point by maximum
    likelihood; Page, 1954). What hangs counts evenly over the look-back that shows it.
    """
    cells = run.cells
    hung = counted.hung[cells].sum(axis=0) / look_back
    failed = seen.unhealthy[cells].sum(axis=0) + hung
    healthy = seen.healthy[cells].sum(axis=0)
    rate = counted.failed[cells, run.best].sum() / max(1, counted.total[cells, run.best].sum())
    calls = counted.total[cells].sum(axis=1)
    norm = float(np.average(usual.share[cells], weights=calls)) if calls.any() else LEAST
    rate = float(np.clip(rate, 2 * norm, 0.98))
    excess = failed * np.log(rate / norm) + healthy * np.log((1 - rate) / (1 - norm))
    low, high = max(0, run.begun - look_back + 1), run.over
    before = np.cumsum(excess[low : run.best + 1][::-1])
    after = np.cumsum(excess[run.best : high + 1])
    first, last = run.best - int(np.argmax(before)), run.best + int(np.argmax(after))
    inside = slice(first, last + 1)
    lost = int(seen.unhealthy[cells, inside].sum()) + int(counted.hung[cells, last].sum())
    total = lost + int(healthy[inside].sum())
    still = high >= seen.steps - 1 and float(excess[last + 1 :].sum()) > np.log(_RECOVERED)
    return Episode(run.sort, run.who, first, last, bool(still), cells, lost, total, run.surplus, run.best)
