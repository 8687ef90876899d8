"""From steps to episodes: since when something is bad, until when, and whether it still is.

An episode may be a process that stopped, and may be restarting, rather than one that serves badly. A process that is
restarted is gone altogether for some seconds: neither callers nor probes reach it. While that lasts, it reports
nothing itself; once it is back, that is not asked. A gray failure is the opposite, because some view of it stays
well. A stop is given the time that a restart takes before anybody is blamed; bad service is not.

A network may be cut in two: sides that reach each other within themselves and not across. A process that crashes is a
side of one. Where several processes still answer each other and none of the other side does, what lies between them
is at fault, and no process is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from analyzers.builtin.panorama.likelihood import OBSERVER, PLACE, SUBJECT, Weighed
from analyzers.builtin.panorama.observed import LEAST, Observed, Tally, Usual

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
    subject: int
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
        subject, at = weighed.name[sort][on], weighed.at[sort][on]
        surplus = weighed.solution.surplus[sort][on]
        order = np.lexsort((at, subject))
        subject, at, surplus = subject[order], at[order], surplus[order]
        breaks = np.flatnonzero((np.diff(subject) != 0) | (np.diff(at) > _GAP + 1)) + 1
        for chosen in np.split(np.arange(len(subject)), breaks):
            if not len(chosen):
                continue
            best = int(chosen[np.argmax(surplus[chosen])])
            begun, over = int(at[chosen[0]]), int(at[chosen[-1]])
            cells = np.flatnonzero(owner == subject[best])
            if sort != OBSERVER:
                cells = _credible(seen, cells, np.asarray(blamed[:, begun : over + 1].any(axis=1)))
            run = _Run(sort, int(subject[best]), cells, begun, over, int(at[best]), float(surplus[best]))
            found.append(_episode(run, seen, counted, usual, look_back))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """Steps `begun` to `over` at which something was chosen, with most evidence at `best`."""

    sort: int
    subject: int
    cells: Ints
    begun: int
    over: int
    best: int
    surplus: float


def _credible(seen: Observed, cells: Ints, blamed: Bools) -> Ints:
    """The cells whose observers are not to blame, or all of them if there are none."""
    sound = cells[~blamed[seen.observer[cells]]]
    return sound if len(sound) else cells


def _episode(run: _Run, seen: Observed, counted: Tally, usual: Usual, look_back: int) -> Episode:
    """Begin and end: the stretch around the best step over which the failures are most in excess.

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
    return Episode(run.sort, run.subject, first, last, bool(still), cells, lost, total, run.surplus, run.best)


LEFT = 0.1
"""Share of good answers, and of a process's own usual reports, up to which it is gone; of failures, when it is not."""

BEFORE, AFTER = 1, 2
"""Steps around a stop in which some calls fail already, or still: answers are told when they come."""


@dataclass(frozen=True, slots=True)
class Stop:
    """A process was gone from step `first` to step `last`, once in this window; `still` if it is at the end."""

    first: int
    last: int
    still: bool

    @property
    def steps(self) -> int:
        return self.last - self.first + 1


def component_of(seen: Observed, one: Episode) -> int:
    """The component that an episode is about."""
    return int(seen.place_subject[one.subject]) if one.sort == PLACE else one.subject


def stops_of(seen: Observed, probe: Bools, episodes: Sequence[Episode]) -> dict[int, Stop]:
    """By component the stop that explains its episodes; one that stopped twice has none: it was not restarted."""
    found = {}
    for component in {component_of(seen, one) for one in episodes if one.sort != OBSERVER}:
        stop = stop_of(seen, probe, component)
        if stop is not None:
            found[component] = stop
    return found


def stop_of(seen: Observed, probe: Bools, component: int) -> Stop | None:
    """Span in which the component was gone, if it was just once. `probe` of shape (cells,) marks the cells that
    probe."""
    about, own = seen.subject == component, seen.observer == component
    reports = (seen.healthy[own] + seen.unhealthy[own] + seen.pending[own]).sum(axis=0)
    silent = reports <= LEFT * reports.max(initial=0)
    answered, requested = np.zeros(seen.steps), np.zeros(seen.steps)
    ill = np.zeros(seen.steps, dtype=bool)
    unreached = np.ones(seen.steps, dtype=bool)
    for view in (about & ~probe, about & probe):
        good = seen.healthy[view].sum(axis=0)
        bad = (seen.unhealthy[view] + seen.pending[view]).sum(axis=0)
        ill |= bad > 0
        unreached &= good <= LEFT * (good + bad)
        answered += good
        requested += good + bad
    gone = np.flatnonzero(ill & unreached)
    if not len(gone):
        return None
    first, last = int(gone[0]), int(gone[-1])
    if answered[first : last + 1].sum() > LEFT * requested[first : last + 1].sum():
        return None
    still = bool(unreached[last + 1 :].all())
    if still and not silent[first + AFTER : last + 1].all():
        return None
    return Stop(first, last, still)


def explains(seen: Observed, stop: Stop, one: Episode) -> bool:
    """Whether all is well in the episode's cells before the stop and after it."""
    around = np.ones(seen.steps, dtype=bool)
    around[max(0, stop.first - BEFORE) : stop.last + AFTER + 1] = False
    ill = int(seen.unhealthy[one.cells][:, around].sum())
    return ill <= LEFT * (ill + int(seen.healthy[one.cells][:, around].sum()))


LEAST_SIDE = 3
"""Components that a side has at least."""

_COMPLAINING = 2
"""Observers of each side that complain about the other, at least."""

_CUT = 0.85
"""Share of the pairs across that fail, and of those within that do not."""

_TURNS = 60
_SHIFT = 3.0
"""Added to the diagonal, so that the leading eigenvector is that of the largest eigenvalue, not of the least."""

_EXPLAINED = 0.8
"""Share of an episode's failed calls that must cross the cut for it to be explained by it."""


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """`side` numbers the side of each component, -1 for those on none, shape (components,), at one step."""

    side: Ints
    sizes: tuple[int, ...]

    def crossed(self, seen: Observed) -> Bools:
        """The cells whose observer and subject are on different sides."""
        one, other = self.side[seen.observer], self.side[seen.subject]
        return np.asarray((one >= 0) & (other >= 0) & (one != other))


def partition_between(seen: Observed, counted: Tally, first: int, last: int) -> Partition | None:
    """The cut that steps `first` to `last` show, if there is one.

    Pairs that mostly answer each other belong on one side and pairs that mostly do not on different sides: sides are
    the signs of the leading eigenvector of that signed graph, each component then moved to the side that most of its
    pairs say (Kunegis et al., SDM 2010).
    """
    inside, size = slice(first, last + 1), len(seen.components)
    low, high = np.minimum(seen.observer, seen.subject), np.maximum(seen.observer, seen.subject)
    code, pair = np.unique(low * size + high, return_inverse=True)
    well = np.bincount(pair, seen.healthy[:, inside].sum(axis=1))
    ill = np.bincount(pair, seen.unhealthy[:, inside].sum(axis=1) + counted.hung[:, last])
    sign = np.sign(well - ill)
    nonzero = sign != 0
    one, other = np.divmod(code[nonzero], size)
    sign = sign[nonzero]
    if (sign < 0).sum() < LEAST_SIDE or not (sign > 0).any():
        return None
    side = _sides(one, other, sign, size)
    across = side[one] != side[other]
    sizes = np.bincount(side[np.unique(np.concatenate([one, other]))], minlength=2)
    if sizes.min() < LEAST_SIDE or not across.any() or across.all():
        return None
    if np.mean(sign[across] < 0) < _CUT or np.mean(sign[~across] > 0) < _CUT:
        return None
    # Observers that lie are a side that complains of the other and is not complained of.
    complains = (seen.unhealthy[:, inside].any(axis=1)) & (side[seen.observer] != side[seen.subject])
    complaining = np.bincount(side[np.unique(seen.observer[complains])], minlength=2)
    if complaining.min() < _COMPLAINING:
        return None
    side[np.setdiff1d(np.arange(size), np.concatenate([one, other]))] = -1
    return Partition(side, tuple(sizes.tolist()))


def _sides(one: Ints, other: Ints, sign: NDArray[np.float64], size: int) -> Ints:
    """0 or 1 for each of `size` components, from the signs of their pairs."""
    ends = np.concatenate([one, other]), np.concatenate([other, one])
    graph = csr_array((np.concatenate([sign, sign]), ends), shape=(size, size))
    vector = np.cos(np.arange(size))  # any start that favours no side
    for _ in range(_TURNS):
        vector = graph @ vector + _SHIFT * vector
        vector /= max(float(np.abs(vector).max()), 1e-12)
    side = np.where(vector >= 0, 1.0, -1.0)
    for _ in range(_TURNS):
        pull = graph @ side
        moved = np.where(pull * side < 0)[0]
        if not len(moved):
            break
        worst = moved[np.argmax(np.abs(pull[moved]))]
        side[worst] = -side[worst]
    return (side > 0).astype(np.int64)


def explained(
    seen: Observed, counted: Tally, episodes: Sequence[Episode]
) -> tuple[list[Episode], Partition | None]:
    """The episodes whose failures cross a cut that lasts as long as one of them, and the first of these cuts."""
    spans = sorted({(one.first, one.last) for one in episodes})
    cuts = [cut for span in spans if (cut := partition_between(seen, counted, *span)) is not None]
    crossed = [one.crossed(seen) for one in cuts]
    found = []
    for one in episodes:
        cells = np.flatnonzero(seen.observer == one.subject) if one.sort == OBSERVER else one.cells
        failed = counted.failed[cells, one.best]
        most = max((int(failed[across[cells]].sum()) for across in crossed), default=0)
        if most and most >= _EXPLAINED * failed.sum():
            found.append(one)
    return found, cuts[0] if found else None
