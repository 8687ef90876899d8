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
        """The best theta >= 0 of the chosen together, shape (chosen,), and its log-likelihood."""
        if not chosen:
            return np.zeros(0), self.loglik([], np.zeros(0))
        pattern, weight = self._patterns(chosen)
        first = np.full(len(chosen), 1e-3) if start is None else np.clip(start, 1e-6, CEILING)
        return _newton(pattern, weight, self.carried[chosen], first, np.full(len(weight), self.base))

    def fit_base(self, chosen: list[int]) -> tuple[float, Floats, float]:
        """Background and theta together: the background is a component that every unit depends on."""
        pattern, weight = self._patterns(chosen)
        pattern = np.hstack([pattern, np.ones((len(weight), 1))])
        carried = np.append(self.carried[chosen], self.total)
        first = np.append(np.full(len(chosen), 1e-3), self.weight.sum() / max(self.total, 1.0))
        theta, value = _newton(pattern, weight, carried, first, np.full(len(weight), _TINY))
        return float(theta[-1]), theta[:-1], value

    def profile(self, component: int, theta: float, others: list[int], start: Floats) -> float:
        """The log-likelihood with one component's theta held and the others' refitted from `start`."""
        pattern, weight = self._patterns([component, *others])
        base = self.base + theta * pattern[:, 0]
        linear = float(self.carried[component]) * theta
        if not others:
            return float(weight @ log_expm1(base)) - linear
        first = np.clip(start, 1e-6, CEILING)
        return _newton(pattern[:, 1:], weight, self.carried[others], first, base)[1] - linear

    def _patterns(self, chosen: list[int]) -> tuple[Floats, Floats]:
        """Which of the chosen a row can hold, shape (patterns, chosen), and the weight of the rows that do.

        Rows that hold the same of the chosen have the same eta: together they are one.
        """
        code = np.zeros(len(self.weight), dtype=np.int64)
        for at, component in enumerate(chosen):
            code[self.member_rows(component)] |= 1 << at
        codes, group = np.unique(code, return_inverse=True)
        pattern = (codes[:, None] >> np.arange(len(chosen))) & 1
        return pattern.astype(np.float64), np.bincount(group, self.weight).astype(np.float64)


def _newton(
    pattern: Floats, weight: Floats, carried: Floats, theta: Floats, base: Floats
) -> tuple[Floats, float]:
    """Maximise the log-likelihood over theta >= 0 by projected Newton steps with backtracking.

    Nested columns make the Hessian singular; a small ridge keeps the step finite and the optimum where it is.
    """
    carried = np.maximum(carried, weight @ pattern)
    value = _value(pattern, weight, carried, theta, base)
    for _ in range(100):
        alive = -np.expm1(-(base + pattern @ theta))
        slope = pattern.T @ (weight / alive) - carried
        free = ((theta > 0) | (slope > 0)) & ((theta < CEILING) | (slope < 0))
        if not free.any():
            break
        part = pattern[:, free]
        bend = part.T @ (part * (weight * (1 - alive) / alive**2)[:, None])
        bend[np.diag_indices_from(bend)] += 1e-9 * (1.0 + np.diag(bend))
        step = np.zeros(len(theta))
        step[free] = np.linalg.solve(bend, slope[free])
        theta, gained = _advance(pattern, weight, carried, theta, step, value, base)
        value += gained
        if gained <= 1e-10 * (1.0 + abs(value)):
            break
    return theta, value


def _value(pattern: Floats, weight: Floats, carried: Floats, theta: Floats, base: Floats) -> float:
    return float(weight @ log_expm1(base + pattern @ theta)) - float(carried @ theta)


def _advance(
    pattern: Floats,
    weight: Floats,
    carried: Floats,
    theta: Floats,
    step: Floats,
    value: float,
    base: Floats,
) -> tuple[Floats, float]:
    """The first of halved steps that improves the log-likelihood, and by how much (0: none does)."""
    length = 1.0
    for _ in range(40):
        new = np.clip(theta + length * step, 0.0, CEILING)
        gained = _value(pattern, weight, carried, new, base) - value
        if gained > 0:
            return new, gained
        length /= 2
    return theta, 0.0
