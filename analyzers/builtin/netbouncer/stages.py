"""Devices, then links, then the refit of what was flagged. Pure numpy.

Noise: the loss that healthy paths show, taken from the quieter half of the paths, at its upper 95 % bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from analyzers.builtin.incidence import Incidence
from analyzers.builtin.netbouncer.descent import Problem, success

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

CLEAN = 0.01
"""A path is clean while noise loses as much as it lost with at least this probability."""
LEAST_PATHS = 3
"""A device is judged by at least so many paths."""
FLAGGED = 1e-3
"""A link whose success the descent puts lower than one by more than this is looked into."""
FLOOR = 0.5
"""The penalty's floor as a share of the smallest loss of interest: a link of that loss is above it in most samples,
and what else gets over it has to stand the test."""
MOSTLY = 0.25
"""A link of which at most this share of the paths is clean may be what several flagged ones have in common."""


@dataclass(frozen=True, slots=True)
class Blamed:
    """A component that loses more than noise: its own loss with a 95 % interval, and twice the log-likelihood
    that it adds to noise and the other blamed ones.
    """

    component: int
    loss: float
    low: float
    high: float
    ratio: float
    p_value: float
    device: bool


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """`success` are the descent's probabilities (1 where it had nothing to decide), `cleared` the components that
    were flagged and did not stand the test, with their ratios.
    """

    blamed: tuple[Blamed, ...]
    success: Floats
    noise: float
    clean: Mask
    cleared: tuple[tuple[int, float], ...]


def noise_of(seen: Incidence) -> float:
    """Losses a probe on quiet paths, upper 95 % bound (Gamma posterior of a Poisson rate)."""
    rate = seen.failures / seen.attempts
    quiet = rate <= np.median(rate)
    lost, sent = seen.failures[quiet].sum(), seen.attempts[quiet].sum()
    return float(min(0.1, stats.gamma.ppf(0.95, lost + 0.5) / max(sent, 1.0)))


def judge(seen: Incidence, is_link: Mask, min_loss: float, one_penalty: float, alpha: float) -> Found:
    """Who is to blame. `is_link` tells links from devices, shape (components,)."""
    noise = noise_of(seen)
    clean = np.asarray(stats.binom.sf(seen.failures - 1, seen.attempts, noise) > CLEAN, dtype=np.bool_)
    devices = _devices(seen, is_link, clean)
    left = ~seen.holding(devices) & np.ones(seen.paths, dtype=bool)
    x = np.ones(seen.components)
    suspects = _links(seen, is_link, clean, left, min_loss, one_penalty, x)
    wholly = _never_clean(seen, is_link, clean, left, suspects)
    fit = _Fit(seen, noise, [*devices, *suspects, *wholly], len(devices) + len(suspects))
    threshold = float(stats.chi2.isf(min(1.0, 2 * alpha), 1))
    fit.merge([*range(len(devices), len(fit.components))], threshold)
    kept, cleared = fit.pruned(threshold)
    blamed = [fit.told(place, component in set(devices)) for place, component in kept]
    order = sorted(
        blamed, key=lambda one: (-one.ratio, int(seen.mark[one.component]), seen.names[one.component])
    )
    return Found(tuple(order), x, noise, clean, tuple(cleared))


def _devices(seen: Incidence, is_link: Mask, clean: Mask) -> list[int]:
    """Devices that no clean path crosses, the one with most lossy paths first; its paths speak for no other."""
    found: list[int] = []
    open_ = np.ones(seen.paths, dtype=bool)
    while True:
        inside = open_[seen.row]
        crossing = np.bincount(seen.column[inside], minlength=seen.components)
        good = np.bincount(seen.column[inside & clean[seen.row]], minlength=seen.components)
        whole = ~is_link & (crossing >= LEAST_PATHS) & (good == 0)
        if not whole.any():
            return found
        places = np.flatnonzero(whole)
        best = max(places.tolist(), key=lambda one: (crossing[one], int(seen.mark[one])))
        found.append(best)
        open_ &= ~seen.holding([best])


def _links(
    seen: Incidence, is_link: Mask, clean: Mask, left: Mask, min_loss: float, one_penalty: float, x: Floats
) -> list[int]:
    """Links that the descent finds lossy. A link that no lossy path crosses is left at 1. Writes to `x`."""
    lossy = left & ~clean
    inside = lossy[seen.row] & is_link[seen.column]
    free = np.unique(seen.column[inside])
    if not len(free):
        return []
    # The descent's end depends on the order of the links, which must not depend on their names.
    free = free[np.argsort(seen.mark[free], kind="stable")]
    place = np.full(seen.components, -1, dtype=np.int64)
    place[free] = np.arange(len(free))
    entries = left[seen.row] & (place[seen.column] >= 0)
    paths, row = np.unique(seen.row[entries], return_inverse=True)
    column = place[seen.column[entries]]
    share = 1.0 - seen.failures[paths] / seen.attempts[paths]
    crossing = np.bincount(column, minlength=len(free)).astype(np.float64)
    penalty = np.full(len(free), one_penalty) if one_penalty else 2.0 * crossing * min_loss * FLOOR
    x[free] = success(Problem(row.ravel().astype(np.int64), column, share, penalty))
    flagged = free[1.0 - x[free] > FLAGGED]
    return [int(one) for one in flagged]


def _never_clean(
    seen: Incidence, is_link: Mask, clean: Mask, left: Mask, flagged: Sequence[int]
) -> list[int]:
    """Links of which nearly every path that is left is lossy, and that the descent did not flag.

    The descent may spread such a link's loss over the links beyond it, which explains the paths as well.
    """
    inside = left[seen.row]
    crossing = np.bincount(seen.column[inside], minlength=seen.components)
    good = np.bincount(seen.column[inside & clean[seen.row]], minlength=seen.components)
    whole = is_link & (crossing > 1) & (good <= MOSTLY * crossing)
    whole[list(flagged)] = False
    places = np.flatnonzero(whole)
    return [int(one) for one in places[np.argsort(seen.mark[places], kind="stable")]]


class _Fit:
    """Losses of flagged components by maximum likelihood: a path loses `1 - exp(-(noise + sum of its theta))`."""

    def __init__(self, seen: Incidence, noise: float, components: Sequence[int], held: int) -> None:
        """`held` of the components, the first, are in the model; the others may come in."""
        self.components = list(components)
        self.inside = set(range(held))
        place = np.full(seen.components, -1, dtype=np.int64)
        place[self.components] = np.arange(len(self.components))
        entries = place[seen.column] >= 0
        self.paths, row = np.unique(seen.row[entries], return_inverse=True)
        self.row, self.column = row.ravel(), place[seen.column[entries]]
        self.lost, self.sent = seen.failures[self.paths], seen.attempts[self.paths]
        self.base = -np.log1p(-noise)
        order = np.argsort(self.column, kind="stable")
        ends = np.searchsorted(self.column[order], np.arange(len(self.components) + 1))
        rows = self.row[order]
        self.rows = [rows[a:b] for a, b in pairwise(ends.tolist())]
        self.theta = np.zeros(len(self.components))
        self.eta = np.full(len(self.paths), self.base)
        self._settle(sorted(self.inside))

    def merge(self, places: Sequence[int], threshold: float) -> None:
        """Where one component explains as well what several do, all of whose paths are its own, it takes their place:
        each of them costs `threshold` in twice the log-likelihood, as the test says."""
        for parent in sorted(places, key=lambda one: (-len(self.rows[one]), one)):
            mine = np.zeros(len(self.paths), dtype=bool)
            mine[self.rows[parent]] = True
            near = self.column[mine[self.row]]
            within = [
                int(one)
                for one in np.unique(near)
                if one != parent and int(one) in self.inside and mine[self.rows[int(one)]].all()
            ]
            if within:
                self._try(parent, within, threshold)

    def _try(self, parent: int, within: Sequence[int], threshold: float) -> None:
        rows = self.rows[parent]
        before = _loglik(self.lost[rows], self.sent[rows], self.eta[rows])
        kept = {place: float(self.theta[place]) for place in (parent, *within)}
        was_inside = parent in self.inside
        for place in within:
            self._set(place, 0.0)
        self._step(parent)
        back = self._joined(parent, within, threshold)
        after = _loglik(self.lost[rows], self.sent[rows], self.eta[rows])
        saved = len(within) - len(back) - (not was_inside)
        if 2 * (before - after) < saved * threshold:
            self.inside -= set(within) - set(back)
            self.inside.add(parent)
            return
        for place, theta in kept.items():
            self._set(place, theta)

    def _joined(self, parent: int, within: Sequence[int], threshold: float) -> list[int]:
        """Those that lose something of their own beside the parent; they are fitted with it."""
        back: list[int] = []
        while len(back) < len(within):
            gains = {}
            for place in within:
                if place not in back:
                    self._step(place)
                    gains[place] = self._ratio(place)
                    self._set(place, 0.0)
            best = max(gains, key=lambda one: (gains[one], -one))
            if gains[best] < threshold:
                break
            back.append(best)
            self._settle([parent, *back])
        return back

    def _set(self, place: int, theta: float) -> None:
        self.eta[self.rows[place]] += theta - self.theta[place]
        self.theta[place] = theta

    def _settle(self, places: Sequence[int] | range, rounds: int = 30) -> None:
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
        """Twice the log-likelihood lost without the component, the others held."""
        rows = self.rows[place]
        with_ = _loglik(self.lost[rows], self.sent[rows], self.eta[rows])
        without = _loglik(
            self.lost[rows], self.sent[rows], np.maximum(self.eta[rows] - self.theta[place], self.base)
        )
        return float(2 * (with_ - without))

    def pruned(self, threshold: float) -> tuple[list[tuple[int, int]], list[tuple[int, float]]]:
        """Those that stand the test (place, component), and those that do not (component, ratio). The weakest goes
        first, and the rest are fitted again on what it leaves."""
        places = sorted(self.inside)
        cleared: list[tuple[int, float]] = []
        while places:
            ratios = np.array([self._ratio(place) for place in places])
            weak = np.flatnonzero(ratios < threshold)
            if not len(weak):
                break
            # All at once while there are many: links that lose nothing do not lean on each other.
            for at in sorted(weak.tolist(), key=lambda one: ratios[one])[: max(1, len(weak) // 2)]:
                place = places[at]
                cleared.append((self.components[place], float(ratios[at])))
                self._set(place, 0.0)
            gone = {component for component, _ in cleared}
            places = [place for place in places if self.components[place] not in gone]
            self._settle(places)
        return [(place, self.components[place]) for place in places], cleared

    def told(self, place: int, device: bool) -> Blamed:
        rows = self.rows[place]
        theta = self.theta[place]
        rest = np.maximum(self.eta[rows] - theta, self.base)
        low, high = _interval(self.lost[rows], self.sent[rows], rest, theta)
        ratio = self._ratio(place)
        p_value = float(0.5 * stats.chi2.sf(max(ratio, 0.0), 1))
        loss, least, most = (float(-np.expm1(-one)) for one in (theta, low, high))
        return Blamed(self.components[place], loss, least, most, ratio, p_value, device)


def _loglik(lost: Floats, sent: Floats, eta: Floats) -> float:
    eta = np.clip(eta, 1e-12, 30.0)
    return float((lost * np.log(-np.expm1(-eta)) - (sent - lost) * eta).sum())


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
    """Where the likelihood falls by 1.92, which is what 95 % of a chi-square with one degree allows."""
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
