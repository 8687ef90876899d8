"""The likelihood of `explain`: which components add to what paths lose anyway.

A packet on path i is lost with probability `1 - exp(-eta_i)`, `eta_i = b_i + sum_j X_ij theta_j`, theta >= 0: every
component lets it pass independently. With failing rows F (e_i events each) and `N_j` packets sent over component j,

loglik = sum_{i in F} e_i log(expm1(eta_i)) - sum_j N_j theta_j - sum_i n_i b_i

which is concave in theta. For small rates it is the Poisson likelihood of the losses, and it stays right for a
component that loses everything. Rows that lost nothing are in `N_j` alone, so the cost grows with what failed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.voting.observed import Observed

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CEILING = 16.0
"""Largest theta: all but one packet in nine million."""

_STEPS = 60


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """For some components the best theta of each alone, beside those already in the base, and the nats that the
    log-likelihood gains.
    """

    component: Ints
    theta: Floats
    gain: Floats


class Model:
    """Failing rows, ordered by component, with the events that each counts."""

    def __init__(self, seen: Observed, events: Floats) -> None:
        self.seen = seen
        self.events = events
        failing = seen.failing
        order = np.argsort(failing.column, kind="stable")
        self._row = failing.row[order]
        self._start = np.searchsorted(failing.column[order], np.arange(seen.components + 1))

    def rows_of(self, component: int) -> Ints:
        """The failing rows that pass a component."""
        return self._row[self._start[component] : self._start[component + 1]]

    def eta(self, rate: Floats, chosen: list[int], theta: Floats) -> Floats:
        """What each failing row loses per packet: noise `rate` of its profile plus the chosen components."""
        eta = np.maximum(rate[self.seen.failing.profile], 1e-12)
        for component, value in zip(chosen, theta.tolist(), strict=True):
            eta[self.rows_of(component)] += value
        return eta

    def loglik(self, eta: Floats, chosen: list[int], theta: Floats) -> float:
        """Up to a constant that depends on the noise rate only."""
        return float(np.sum(self.events * _log_expm1(eta)) - np.sum(self.seen.carried[chosen] * theta))

    def shortlist(self, eta: Floats, most: int) -> Ints:
        """The components that would gain most, by the score test at theta = 0."""
        failing, count = self.seen.failing, self.seen.components
        died = -np.expm1(-eta)
        slope = failing.per_component(self.events / died, count) - self.seen.carried
        bend = failing.per_component(self.events * np.exp(-eta) / died**2, count)
        z = np.where(slope > 0, slope / np.sqrt(np.maximum(bend, 1e-300)), 0.0)
        order = np.lexsort((self.seen.paths.mark, -z))[:most]
        return order[z[order] > 0].astype(np.int64)

    def steps(self, eta: Floats, components: Ints) -> Steps:
        """Newton's method for all of them at once. The slope in theta is convex and falling, so steps from the left
        never pass the root.
        """
        spans = [self.rows_of(c) for c in components.tolist()]
        row = np.concatenate([*spans, np.zeros(0, dtype=np.int64)])
        local = np.repeat(np.arange(len(spans)), [len(span) for span in spans])
        events, base, carried = self.events[row], eta[row], self.seen.carried[components]
        theta = _left_of_root(events, base, local, carried)
        for _ in range(_STEPS):
            died = -np.expm1(-(base + theta[local]))
            slope = np.bincount(local, events / died, minlength=len(spans)) - carried
            bend = np.bincount(local, events * (1 - died) / died**2, minlength=len(spans))
            move = np.where(bend > 0, np.maximum(slope, 0) / np.maximum(bend, 1e-300), 0.0)
            theta = np.minimum(theta + move, CEILING)
            if (move <= 1e-9 * theta).all():
                break
        gain = events * (_log_expm1(base + theta[local]) - _log_expm1(base))
        gained = np.bincount(local, gain, minlength=len(spans)) - carried * theta
        return Steps(components, theta, np.maximum(gained, 0.0))

    def gain(self, rows: Ints, eta: Floats, carried: float, theta: float) -> float:
        """What the log-likelihood of some rows gains by `theta` beside their `eta`, of `carried` packets in all."""
        return float(self.events[rows] @ (_log_expm1(eta + theta) - _log_expm1(eta))) - carried * theta

    def refit(self, rate: Floats, chosen: list[int], theta: Floats, sweeps: int = 30) -> Floats:
        """The joint maximum over the chosen components, by turns."""
        theta = theta.copy()
        eta = self.eta(rate, chosen, theta)
        for _ in range(sweeps if len(chosen) > 1 else 1):
            before = theta.copy()
            for at, component in enumerate(chosen):
                rows = self.rows_of(component)
                eta[rows] -= theta[at]
                theta[at] = self.steps(eta, np.array([component])).theta[0]
                eta[rows] += theta[at]
            if np.all(np.abs(theta - before) <= 1e-6 * (theta + 1e-9)):
                break
        return theta


def _left_of_root(events: Floats, base: Floats, local: Ints, carried: Floats) -> Floats:
    """A theta at which the slope is not negative: with the largest base in every row it would be the root."""
    total = np.bincount(local, events, minlength=len(carried))
    largest = np.zeros(len(carried))
    np.maximum.at(largest, local, base)
    share = np.minimum(total / np.maximum(carried, 1e-300), -np.expm1(-CEILING))
    return np.asarray(np.clip(-np.log1p(-share) - largest, 0.0, CEILING))


def _log_expm1(x: Floats) -> Floats:
    return np.asarray(x + np.log(-np.expm1(-x)))
