"""The published method: a non-negative Lasso on logarithms, and a test against the mean.

Zhang et al. (NSDI 2018) model the share of units of path i that survive as the product of the components'
survival probabilities, take logarithms, and solve

min over beta <= 0 of  ||y - X beta||^2 + lambda ||beta||_1,   y_i = log(1 - e_i / n_i)

with lambda from cross-validation; a component is blamed when a one-sided test says that its beta lies below
the mean. The paper's exact statistic was not available to us: `z_mean` tests against mean and deviation of
all estimates, `refit` tests the least-squares refit on the chosen components. Here theta = -beta and z = -y,
both >= 0.

Solving touches failing paths only. `z_i = 0` wherever nothing failed, so `X'z` needs failing rows; what
healthy rows add to `||X theta||^2` lies in the Gram matrix, of which only columns that can enter are ever
made, once per plan. A column j with `(X'z)_j <= m a` can never enter: all of X, theta and z are >= 0, so its
correlation with the residual only falls. (`a` is scikit-learn's alpha for m rows: its objective is `||z - X
theta||^2 / 2m + a sum theta`.)
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from analyzers.contract import Paths

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(slots=True, eq=False)
class Plan:
    """The paths of a topology by column, and the Gram columns met so far; kept as long as the topology is.

    `rows[starts[j]:starts[j + 1]]` are the paths that hold component j. Memory is the incidence twice (by
    path, by component) and one sparse Gram column for each component that ever entered.
    """

    sets: Paths
    rows: NDArray[np.int32]
    starts: Ints
    gram: dict[int, tuple[Ints, Floats]] = field(default_factory=dict)

    @staticmethod
    def of(sets: Paths) -> Plan:
        owner = np.repeat(np.arange(len(sets), dtype=np.int32), np.diff(sets.indptr))
        rows = owner[np.argsort(sets.indices, kind="stable")]
        counts = np.bincount(sets.indices, minlength=len(sets.names))
        return Plan(sets, rows, np.concatenate([[0], np.cumsum(counts)]))

    def column(self, component: int) -> NDArray[np.int32]:
        return self.rows[self.starts[component] : self.starts[component + 1]]

    def gram_column(self, component: int) -> tuple[Ints, Floats]:
        """The components that share a path with this one, and on how many paths."""
        if component not in self.gram:
            entries = entries_of(self.sets, self.column(component))
            together = np.bincount(entries, minlength=len(self.sets.names))
            others = np.flatnonzero(together)
            self.gram[component] = others, together[others].astype(np.float64)
        return self.gram[component]

    def gram_block(self, columns: Ints) -> Floats:
        """X'X restricted to the given columns, dense."""
        place = np.full(len(self.sets.names), -1, dtype=np.int64)
        place[columns] = np.arange(len(columns))
        block = np.zeros((len(columns), len(columns)))
        for at, component in enumerate(columns.tolist()):
            others, counts = self.gram_column(component)
            inside = place[others] >= 0
            block[at, place[others[inside]]] = counts[inside]
        return block


def entries_of(sets: Paths, rows: NDArray[np.int32]) -> NDArray[np.int32]:
    """The components of the given paths, one after the other."""
    starts, ends = sets.indptr[rows], sets.indptr[rows + 1]
    lengths = ends - starts
    offsets = np.repeat(starts - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
    return sets.indices[offsets + np.arange(int(lengths.sum()))]


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """theta of the components in `support`, all others are 0; `objective` as scikit-learn defines it."""

    support: Ints
    theta: Floats
    objective: float


def correlations(plan: Plan, failing: NDArray[np.int32], z: Floats) -> Floats:
    """X'z from the failing rows alone; shape (components,)."""
    lengths = np.diff(plan.sets.indptr)[failing]
    entries = entries_of(plan.sets, failing)
    return np.bincount(entries, np.repeat(z, lengths), minlength=len(plan.sets.names)).astype(np.float64)


def solve(plan: Plan, failing: NDArray[np.int32], z: Floats, alpha: float) -> Solution:
    """The non-negative Lasso over all m paths of the plan, of which only `failing` have z > 0."""
    paths = len(plan.sets)
    pull = correlations(plan, failing, z)
    columns = np.flatnonzero(pull > alpha * paths)
    theta = descend(plan, columns, pull[columns], alpha * paths)
    kept = np.flatnonzero(theta)
    support = columns[kept]
    theta = theta[kept]
    quadratic = float(theta @ plan.gram_block(support) @ theta) if len(support) else 0.0
    fitted = float(z @ z) - 2 * float(pull[support] @ theta) + quadratic
    return Solution(support, theta, fitted / (2 * paths) + alpha * float(theta.sum()))


def descend(plan: Plan, columns: Ints, pull: Floats, penalty: float) -> Floats:
    """Minimise `theta' G theta / 2 - (pull - penalty)' theta` over theta >= 0; shape (columns,).

    A working set grows by the columns that violate optimality most; within it coordinate descent on its dense
    Gram block, with the support solved exactly now and then. Ends when the duality gap is below 1e-10 of the
    start.
    """
    theta = np.zeros(len(columns))
    place = np.full(len(plan.sets.names), -1, dtype=np.int64)
    place[columns] = np.arange(len(columns))
    gain = pull - penalty
    working: list[int] = []
    block = np.zeros((0, 0))
    downhill = gain.copy()  # minus the gradient
    scale = float(gain.max(initial=0.0))
    while len(columns):
        fresh = np.flatnonzero(downhill > 1e-9 * scale)
        fresh = fresh[~np.isin(fresh, working)]
        if not len(fresh):
            break
        fresh = fresh[np.argsort(-downhill[fresh], kind="stable")][: max(10, len(working))]
        working.extend(sorted(fresh.tolist()))
        block = plan.gram_block(columns[working])
        theta[working] = quadratic_program(block, gain[working], theta[working])
        downhill = gain.copy()
        for at in np.flatnonzero(theta).tolist():
            others, counts = plan.gram_column(int(columns[at]))
            inside = place[others] >= 0
            downhill[place[others[inside]]] -= theta[at] * counts[inside]
    return theta


def quadratic_program(gram: Floats, gain: Floats, start: Floats) -> Floats:
    """Minimise `x' G x / 2 - gain' x` over x >= 0, G positive semidefinite and non-negative; shape
    (columns,).
    """
    x = start.copy()
    left = gain - gram @ x
    diagonal = gram.diagonal()
    limit = 1e-10 * float(np.abs(gain).max(initial=0.0))
    for sweep in range(2000):
        for at in range(len(x)):
            new = max(0.0, x[at] + left[at] / diagonal[at])
            if new != x[at]:
                left -= (new - x[at]) * gram[at]
                x[at] = new
        if np.all(left <= limit) and np.all(np.abs(left[x > 0]) <= limit):
            break
        if sweep % 5 == 4:
            exact = _on_support(gram, gain, x)
            if exact is not None:
                x, left = exact, gain - gram @ exact
    return x


def _on_support(gram: Floats, gain: Floats, x: Floats) -> Floats | None:
    """The unconstrained optimum on the support of x, if it stays inside; it ends the slow tail of the
    descent.
    """
    support = np.flatnonzero(x)
    if not len(support):
        return None
    inside = gram[np.ix_(support, support)]
    best = np.linalg.lstsq(inside, gain[support], rcond=1e-12)[0]
    if np.any(best < 0):
        return None
    exact = np.zeros_like(x)
    exact[support] = best
    before, after = (0.5 * v @ gram @ v - gain @ v for v in (x, exact))
    return exact if after <= before else None
