"""Binomial refit of what was flagged: losses, what stands the test, what was overlooked. Pure numpy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, chdtrc, chdtri, gammaln

from analyzers.builtin.paths import Incidence
from analyzers.builtin.stats.probability import at_least

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

CLEAN = 0.01
"""A path is clean while the model loses as much as it lost with at least this probability."""
BURSTS, PRIOR_PATHS = 4e-4, 100.0
"""Prior of bursts: the number of paths with a burst of losses of their own before anything is seen, and the number
of paths that counts as."""

Bar = Callable[[int], float]
"""Addition to twice the log-likelihood that each of so many blamed ones needs."""

LENIENT = 5.0
"""Factor by which the meeting of bursts on a component's paths may be more probable than its losses. Few components
have so few paths that it is near that.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Bursts:
    """Paths that lose probes for reasons of their own: `struck` of `paths` did, which makes the share of them a
    Beta(struck + prior, paths - struck + prior). `on` says which, of all paths, where that is known.
    """

    struck: float
    paths: float
    on: Mask = field(default_factory=lambda: np.zeros(0, dtype=bool))

    @property
    def share(self) -> float:
        """The expected share of the paths."""
        return (self.struck + BURSTS * PRIOR_PATHS) / (self.paths + PRIOR_PATHS)

    @property
    def most(self) -> float:
        """Largest evidence of one path for a component, as twice a log-likelihood."""
        return -2 * math.log(self.share)

    def chance(self, lossy: int, paths: int) -> float:
        """The probability that at least so many of some paths have a burst: the tail of a beta-binomial."""
        if not lossy:
            return 1.0
        a = self.struck + BURSTS * PRIOR_PATHS
        b = self.paths - self.struck + (1 - BURSTS) * PRIOR_PATHS
        hits = np.arange(lossy, paths + 1)
        ways = gammaln(paths + 1) - gammaln(hits + 1) - gammaln(paths - hits + 1)
        return min(1.0, float(np.exp(ways + betaln(hits + a, paths - hits + b) - betaln(a, b)).sum()))


NO_BURSTS = Bursts(0.0, 1e18)

_JOINT = 5
"""Rounds in which a component and those beside it are fitted together to see what it adds."""


class Fit:
    """Losses of flagged components by maximum likelihood: a path loses `1 - exp(-(noise + sum of its theta))`."""

    def __init__(
        self,
        seen: Incidence,
        noise: float,
        components: Sequence[int],
        inside: int,
        bursts: Bursts = NO_BURSTS,
        least: float = 0.0,
    ) -> None:
        """The first `inside` components are in the model; the others may come in. `bursts` bound what the paths may
        say for a component. A component that loses less than `least` is not believed.
        """
        self.components = list(components)
        self.least = -np.log1p(-least)
        self.inside = set(range(inside))
        place = np.full(seen.components, -1, dtype=np.int64)
        place[self.components] = np.arange(len(self.components))
        entries = place[seen.column] >= 0
        self.paths, row = np.unique(seen.row[entries], return_inverse=True)
        self.column = place[seen.column[entries]]
        self.begins = np.searchsorted(row.ravel(), np.arange(len(self.paths) + 1))
        self.lost, self.sent = seen.failures[self.paths], seen.attempts[self.paths]
        self.alone = np.bincount(seen.row, minlength=seen.paths)[self.paths] == 1
        self.suppose(bursts)
        self.base = -np.log1p(-noise)
        order = np.argsort(self.column, kind="stable")
        ends = np.searchsorted(self.column[order], np.arange(len(self.components) + 1))
        rows = row.ravel()[order]
        self.rows = [rows[a:b] for a, b in pairwise(ends.tolist())]
        self.theta = np.zeros(len(self.components))
        self.eta = np.full(len(self.paths), self.base)
        self._refit_places(sorted(self.inside))

    def suppose(self, bursts: Bursts) -> None:
        """Judge by those bursts."""
        self.bursts = bursts
        self.struck = bursts.on[self.paths] if len(bursts.on) else np.zeros(len(self.paths), dtype=bool)

    def merge(self, places: Sequence[int], threshold: float) -> None:
        """Merge several components into one that explains as well, all of whose paths are its own: each of them
        costs `threshold` in twice the log-likelihood, as the test says. So do a few that together carry all paths of
        more: two servers' bad links under one switch look like all of its uplinks.
        """
        order = sorted(places, key=lambda one: (-len(self.rows[one]), one))
        for parent in order:
            within = self._within([parent])
            if within:
                self._try([parent], within, threshold)
        for parent in order:
            if parent not in self.inside:
                together = [parent, *self._partners(parent, order)]
                if len(together) > 1 and (within := self._within(together)):
                    self._try(together, within, threshold)

    def _within(self, parents: Sequence[int]) -> list[int]:
        """Those inside of which every path is one of the parents', without the parents."""
        mine = self._mask(parents)
        near = self._crossing(np.flatnonzero(mine))
        return [
            one for one in near if one not in parents and one in self.inside and mine[self.rows[one]].all()
        ]

    def _partners(self, parent: int, places: Sequence[int]) -> list[int]:
        """Those of `places` that carry, where the parent does not, what shares a path with it."""
        mine = self._mask([parent])
        rest = self._mask(self._near(parent)) & ~mine
        return [one for one in places if rest[self.rows[one]].any() and not mine[self.rows[one]].any()]

    def _mask(self, places: Sequence[int]) -> NDArray[np.bool_]:
        """Paths that pass one of `places`."""
        mine = np.zeros(len(self.paths), dtype=bool)
        for place in places:
            mine[self.rows[place]] = True
        return mine

    def _try(self, parents: Sequence[int], within: Sequence[int], threshold: float) -> None:
        rows = np.flatnonzero(self._mask(parents))
        before = _loglik(self.lost[rows], self.sent[rows], self.eta[rows])
        fitted = {place: float(self.theta[place]) for place in (*parents, *within)}
        new = len(set(parents) - self.inside)
        for place in within:
            self._set(place, 0.0)
        self._refit_places(parents)
        back = self._joined(parents, within, threshold)
        after = _loglik(self.lost[rows], self.sent[rows], self.eta[rows])
        saved = len(within) - len(back) - new
        # As many others explain the same, and which of them are too many would no longer be seen.
        simpler = saved > 0 or len(parents) == 1
        if simpler and 2 * (before - after) < saved * threshold:
            self.inside -= set(within) - set(back)
            self.inside |= set(parents)
            return
        for place, theta in fitted.items():
            self._set(place, theta)

    def _joined(self, parents: Sequence[int], within: Sequence[int], threshold: float) -> list[int]:
        """Those that lose something of their own beside the parents; they are fitted with them."""
        back: list[int] = []
        while len(back) < len(within):
            gains = {place: self._gain(place, [*parents, *back]) for place in within if place not in back}
            best = max(gains, key=lambda one: (gains[one], -one))
            if gains[best] < threshold:
                break
            back.append(best)
            self._refit_places([*parents, *back])
        return back

    def _set(self, place: int, theta: float) -> None:
        self.eta[self.rows[place]] += theta - self.theta[place]
        self.theta[place] = theta

    def everywhere(self, paths: int) -> Floats:
        """The losses' sum on each of so many paths, noise on those that no component of the model touches."""
        eta = np.full(paths, self.base)
        eta[self.paths] = self.eta
        return eta

    def lacking(self, seen: Incidence) -> Floats:
        """Twice the log-likelihood that a loss of its own would add to each path of the model, shape (paths,)."""
        eta = self.everywhere(seen.paths)
        own = -np.log1p(-np.minimum(seen.failures / seen.attempts, 1 - 1e-12))
        lost, sent = seen.failures, seen.attempts
        return np.asarray(2 * (_logliks(lost, sent, np.maximum(own, 1e-12)) - _logliks(lost, sent, eta)))

    def grow(self, bar: Bar) -> None:
        """Take in those outside, the best first, as long as one passes the bar."""
        outside = [place for place in range(len(self.components)) if place not in self.inside]
        gains: dict[int, float] = {}
        changed = set(outside)
        while outside:
            gains |= {place: self._gain(place, self._near(place)) for place in outside if place in changed}
            best = max(outside, key=lambda one: (gains[one], -one))
            if gains[best] < bar(len(self.inside) + 1):
                return
            self.inside.add(best)
            # What has gained too little hardly gains more once another explains some of it.
            lowest = bar(len(self.components))
            outside = [place for place in outside if place != best and gains[place] >= lowest]
            refitted = self._near(best)
            self._refit_places(refitted)
            changed = self._beside(refitted)

    def _beside(self, places: Sequence[int]) -> set[int]:
        """Those whose gain depends on the losses of `places`, which are inside: they share a path with one of them, or
        with one inside that does.
        """
        shared = np.concatenate([self.rows[one] for one in places])
        inside = [one for one in self._crossing(shared) if one in self.inside]
        return set(self._crossing(np.concatenate([self.rows[one] for one in inside])))

    def _gain(self, place: int, others: Sequence[int]) -> float:
        """Twice the log-likelihood that a component outside adds when `others` are fitted with it: held where they are
        they keep what is its. 0 if it would lose less than `least`. Changes nothing.
        """
        fitted = {one: float(self.theta[one]) for one in others}
        rows = np.unique(np.concatenate([self.rows[one] for one in (place, *others)]))
        before = _logliks(self.lost[rows], self.sent[rows], self.eta[rows])
        self._refit_places([place, *others], rounds=_JOINT)
        after = _logliks(self.lost[rows], self.sent[rows], self.eta[rows])
        enough = self.theta[place] >= self.least
        for one, theta in ((place, 0.0), *fitted.items()):
            self._set(one, theta)
        return self._gain_of(place, 2 * (after - before)) if enough else 0.0

    def _gain_of(self, place: int, gains: Floats) -> float:
        """Joint evidence of the paths for a component, each at most `most`: the probes of one path may be lost in a
        burst that has nothing to do with what else passes its links. With one path only nothing tells.
        """
        alone = len(self.rows[place]) == 1
        return float(gains.sum() if alone else np.minimum(gains, self.bursts.most).sum())

    def _coincidence(self, place: int) -> float:
        """Probability that so many of the component's paths have a burst, by what is known of all other paths, as
        twice a log-likelihood with the same tail. A path that holds nothing else has no reasons of its own.
        """
        rows = self.rows[place]
        if self.alone[rows].all():
            return math.inf
        others = np.maximum(self.eta[rows] - self.theta[place], self.base)
        lossy = int(np.sum(at_least(self.lost[rows], self.sent[rows], -np.expm1(-others)) <= CLEAN))
        counted = int(np.count_nonzero(self.struck[rows]))
        elsewhere = Bursts(self.bursts.struck - counted, max(self.bursts.paths - len(rows), 1))
        return float(chdtri(1, min(1.0, 2 * elsewhere.chance(lossy, len(rows)) / LENIENT)))

    def _near(self, place: int) -> list[int]:
        """Those inside that share a path with one, and it."""
        return [one for one in self._crossing(self.rows[place]) if one in self.inside]

    def _crossing(self, rows: Ints) -> list[int]:
        """Those that some paths pass, in order."""
        begins, lengths = self.begins[rows], self.begins[rows + 1] - self.begins[rows]
        entries = np.arange(lengths.sum()) + np.repeat(begins - np.cumsum(lengths) + lengths, lengths)
        return [int(one) for one in np.unique(self.column[entries])]

    def _refit_places(self, places: Sequence[int] | range, rounds: int = 30) -> None:
        for _ in range(rounds):
            moved = 0.0
            for place in places:
                moved = max(moved, self._step(place))
            if moved < 1e-7:
                return

    def _step(self, place: int) -> float:
        """Newton's steps on one loss, the others held; how far it moved."""
        rows = self.rows[place]
        lost, sent, rest = self.lost[rows], self.sent[rows], self.eta[rows] - self.theta[place]
        value = _best(lost, sent, np.maximum(rest, self.base), float(self.theta[place]))
        moved = abs(value - float(self.theta[place]))
        self.theta[place] = value
        self.eta[rows] = rest + value
        return moved

    def _ratio(self, place: int) -> float:
        """Twice the log-likelihood lost without the component, the others held, and no more than bursts that meet on
        its paths by chance leave of it; 0 if it loses too little.
        """
        if self.theta[place] < self.least:
            return 0.0
        rows = self.rows[place]
        with_ = _logliks(self.lost[rows], self.sent[rows], self.eta[rows])
        without = _logliks(
            self.lost[rows], self.sent[rows], np.maximum(self.eta[rows] - self.theta[place], self.base)
        )
        return min(self._gain_of(place, 2 * (with_ - without)), self._coincidence(place))

    def pruned(self, bar: Bar) -> tuple[list[tuple[int, int]], list[tuple[int, float]]]:
        """Those that stand the test (place, component), and those that do not (component, ratio). The weakest goes
        first, and the rest are fitted again on what it leaves."""
        places = sorted(self.inside)
        cleared: list[tuple[int, float]] = []
        while places:
            ratios = np.array([self._ratio(place) for place in places])
            weak = np.flatnonzero(ratios < bar(len(places)))
            if not len(weak):
                break
            # All at once while there are many: links that lose nothing do not lean on each other.
            for at in sorted(weak.tolist(), key=lambda one: ratios[one])[: max(1, len(weak) // 2)]:
                place = places[at]
                cleared.append((self.components[place], float(ratios[at])))
                self._set(place, 0.0)
            gone = {component for component, _ in cleared}
            places = [place for place in places if self.components[place] not in gone]
            self._refit_places(places)
        return [(place, self.components[place]) for place in places], cleared

    def figures(self, place: int) -> tuple[float, float, float, float, float]:
        """Loss of a component, the ends of its 95 % interval, its ratio and p-value."""
        rows = self.rows[place]
        theta = self.theta[place]
        rest = np.maximum(self.eta[rows] - theta, self.base)
        low, high = _interval(self.lost[rows], self.sent[rows], rest, theta)
        ratio = self._ratio(place)
        p_value = float(0.5 * chdtrc(1, max(ratio, 0.0)))
        loss, least, most = (float(-np.expm1(-one)) for one in (theta, low, high))
        return loss, least, most, ratio, p_value


def _loglik(lost: Floats, sent: Floats, eta: Floats) -> float:
    return float(_logliks(lost, sent, eta).sum())


def _logliks(lost: Floats, sent: Floats, eta: Floats) -> Floats:
    eta = np.clip(eta, 1e-12, 30.0)
    return np.asarray(lost * np.log(-np.expm1(-eta)) - (sent - lost) * eta)


def _best(lost: Floats, sent: Floats, rest: Floats, start: float) -> float:
    """The theta >= 0 that maximises the concave likelihood, by safeguarded Newton steps."""
    low, high = 0.0, 20.0
    theta = min(max(start, 1e-6), high)
    if _slope(lost, sent, rest, 0.0)[0] <= 0:
        return 0.0
    for _ in range(60):
        slope, bend = _slope(lost, sent, rest, theta)
        low, high = (theta, high) if slope > 0 else (low, theta)
        step = theta - slope / bend if bend < 0 else (low + high) / 2
        new = step if low < step < high else (low + high) / 2
        if abs(new - theta) < 1e-10:
            return new
        theta = new
    return theta


def _slope(lost: Floats, sent: Floats, rest: Floats, theta: float) -> tuple[float, float]:
    eta = np.clip(rest + theta, 1e-12, 30.0)
    odds = np.exp(-eta) / -np.expm1(-eta)
    return float((lost * odds - (sent - lost)).sum()), float(-(lost * odds * (1 + odds)).sum())


def _interval(lost: Floats, sent: Floats, rest: Floats, theta: float) -> tuple[float, float]:
    """Interval at whose ends the likelihood falls by 1.92, which is what 95 % of a chi-square with one degree
    allows."""
    target = _loglik(lost, sent, rest + theta) - 1.92

    def crossing(near: float, far: float) -> float:
        for _ in range(50):
            middle = (near + far) / 2
            if _loglik(lost, sent, rest + middle) > target:
                near = middle
            else:
                far = middle
        return near

    return crossing(theta, 0.0), crossing(theta, 20.0)
