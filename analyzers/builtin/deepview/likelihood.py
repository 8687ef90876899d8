"""The non-negative binomial model with a survival-log link, on failing rows only.

A unit survives the window if every component on its path lets it: `P(fail) = 1 - exp(-eta)` with `eta_i = b +
sum_j X_ij theta_j`, `theta >= 0`. This is Deepview's product model (Zhang et al., NSDI 2018) without its log
transform. For failing rows F and `N_j` units carried by component j,

loglik = sum_{i in F} e_i log(expm1(eta_i)) - sum_j N_j theta_j - N b

which is concave in theta. Healthy rows are in `N_j` alone.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CEILING = 16.0
"""Largest theta: a component that fails all but one in nine million."""

_TINY = 1e-12


def log_expm1(x: Floats) -> Floats:
    """log(exp(x) - 1), exact for small and large x > 0."""
    return np.asarray(x + np.log(-np.expm1(-x)))


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """For each component that a failing row holds: the best theta for it alone, and the log-likelihood
    gained.
    """

    component: Ints
    theta: Floats
    gain: Floats


class Model:
    """Failing rows with a weight each (units, or witnesses) against what each component carries.

    `row` and `column` are the entries of the incidence of failing rows; `weight` has shape (rows,), `carried`
    shape (components,), `base` is the background eta of every row (> 0).
    """

    def __init__(
        self, row: Ints, column: Ints, weight: Floats, carried: Floats, total: float, base: float
    ) -> None:
        self.weight = weight
        self.carried = carried
        self.total = total
        self.base = max(base, _TINY)
        order = np.argsort(column, kind="stable")
        self.component, self.start = np.unique(column[order], return_index=True)
        self.row = row[order]
        self.local = np.repeat(np.arange(len(self.component)), np.diff([*self.start, len(order)]))
        self.position = np.full(len(carried), -1, dtype=np.int64)
        self.position[self.component] = np.arange(len(self.component))

    def counting(self, weight: Floats, base: float) -> Model:
        """The same rows with other weights and another background."""
        other = copy.copy(self)
        other.weight = weight
        other.base = max(base, _TINY)
        return other

    def member_rows(self, component: int) -> Ints:
        """The failing rows that hold a component."""
        at = self.position[component]
        if at < 0:
            return np.zeros(0, dtype=np.int64)
        end = self.start[at + 1] if at + 1 < len(self.start) else len(self.row)
        return self.row[self.start[at] : end]

    def eta(self, chosen: list[int], theta: Floats) -> Floats:
        """Of every failing row; shape (rows,)."""
        eta = np.full(len(self.weight), self.base)
        for component, value in zip(chosen, theta, strict=True):
            eta[self.member_rows(component)] += value
        return eta

    def loglik(self, chosen: list[int], theta: Floats) -> float:
        """Up to the constant that neither theta nor the choice of components changes."""
        linear = float(self.carried[chosen] @ theta) if chosen else 0.0
        return float(self.weight @ log_expm1(self.eta(chosen, theta))) - linear

    def steps(self, eta: Floats) -> Steps:
        """What each component could add to `eta`, all at once by Newton's method from the left.

        The derivative is convex and falls, so a Newton step from the left of the root never passes it. The
        start is the root if all of the component's rows had its largest eta, which lies to the left.
        """
        if not len(self.component):
            return Steps(self.component, np.zeros(0), np.zeros(0))
        weight, at = self.weight[self.row], eta[self.row]
        size = len(self.component)
        lost = np.bincount(self.local, weight, minlength=size)
        carried = np.maximum(self.carried[self.component], lost)
        share = np.minimum(lost / np.maximum(carried, _TINY), -np.expm1(-CEILING))
        theta = np.clip(-np.log1p(-share) - np.maximum.reduceat(at, self.start), 0.0, CEILING)
        for _ in range(60):
            alive = -np.expm1(-(at + theta[self.local]))
            slope = np.bincount(self.local, weight / alive, minlength=size) - carried
            bend = np.bincount(self.local, weight * (1 - alive) / alive**2, minlength=size)
            new = np.clip(theta + slope / np.maximum(bend, _TINY), 0.0, CEILING)
            moved = float(np.max(np.abs(new - theta) / (theta + 1e-6)))
            theta = new
            if moved < 1e-7:
                break
        rise = log_expm1(at + theta[self.local]) - log_expm1(at)
        gain = np.bincount(self.local, weight * rise, minlength=size) - carried * theta
        return Steps(self.component, theta, np.maximum(gain, 0.0))

    def fit(self, chosen: list[int], start: Floats | None = None) -> tuple[Floats, float]:
        """The best theta >= 0 of the chosen components together, shape (chosen,), and its log-likelihood."""
        if not chosen:
            return np.zeros(0), self.loglik([], np.zeros(0))
        first = np.full(len(chosen), 1e-3) if start is None else np.clip(start, 1e-6, CEILING)
        return self._newton(self._incidence(chosen), self.carried[chosen], first, self.base)

    def fit_base(self, chosen: list[int]) -> tuple[float, Floats, float]:
        """The best background and theta together: the background is a component that every unit depends
        on.
        """
        everywhere = np.ones((len(self.weight), 1))
        incidence = np.hstack([self._incidence(chosen), everywhere])
        carried = np.append(self.carried[chosen], self.total)
        first = np.append(np.full(len(chosen), 1e-3), self.weight.sum() / max(self.total, 1.0))
        theta, value = self._newton(incidence, carried, first, _TINY)
        return float(theta[-1]), theta[:-1], value

    def profile(self, component: int, theta: float, others: list[int], start: Floats) -> float:
        """The log-likelihood with one component's theta held and the others' refitted from `start`."""
        held = np.zeros(len(self.weight))
        held[self.member_rows(component)] = theta
        linear = float(self.carried[component]) * theta
        if not others:
            return float(self.weight @ log_expm1(self.base + held)) - linear
        first = np.clip(start, 1e-6, CEILING)
        return (
            self._newton(self._incidence(others), self.carried[others], first, self.base + held)[1] - linear
        )

    def _incidence(self, chosen: list[int]) -> Floats:
        incidence = np.zeros((len(self.weight), len(chosen)))
        for at, component in enumerate(chosen):
            incidence[self.member_rows(component), at] = 1.0
        return incidence

    def _newton(
        self, incidence: Floats, carried: Floats, theta: Floats, base: float | Floats
    ) -> tuple[Floats, float]:
        """Projected Newton with backtracking.

        Nested columns make the Hessian singular; a small ridge keeps the step finite and the optimum where it
        is.
        """
        carried = np.maximum(carried, self.weight @ incidence)
        value = self._value(incidence, carried, theta, base)
        for _ in range(100):
            alive = -np.expm1(-(base + incidence @ theta))
            slope = incidence.T @ (self.weight / alive) - carried
            free = ((theta > 0) | (slope > 0)) & ((theta < CEILING) | (slope < 0))
            if not free.any():
                break
            part = incidence[:, free]
            bend = part.T @ (part * (self.weight * (1 - alive) / alive**2)[:, None])
            bend[np.diag_indices_from(bend)] += 1e-9 * (1.0 + np.diag(bend))
            step = np.zeros(len(theta))
            step[free] = np.linalg.solve(bend, slope[free])
            theta, gained = self._advance(incidence, carried, theta, step, value, base)
            value += gained
            if gained <= 1e-10 * (1.0 + abs(value)):
                break
        return theta, value

    def _value(self, incidence: Floats, carried: Floats, theta: Floats, base: float | Floats) -> float:
        return float(self.weight @ log_expm1(base + incidence @ theta)) - float(carried @ theta)

    def _advance(
        self,
        incidence: Floats,
        carried: Floats,
        theta: Floats,
        step: Floats,
        value: float,
        base: float | Floats,
    ) -> tuple[Floats, float]:
        """The best of halved steps that improves the log-likelihood, and by how much (0: none does)."""
        length = 1.0
        for _ in range(40):
            new = np.clip(theta + length * step, 0.0, CEILING)
            gained = self._value(incidence, carried, new, base) - value
            if gained > 0:
                return new, gained
            length /= 2
        return theta, 0.0
