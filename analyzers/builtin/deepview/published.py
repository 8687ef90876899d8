"""Deepview as published: a non-negative Lasso on logarithms, a test against the mean, and its verdict.

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

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from analyzers.builtin.deepview import evidence as show
from analyzers.builtin.deepview.evidence import simpler
from analyzers.builtin.deepview.observed import Observed, alike, component_sets, locate, observe
from analyzers.builtin.text import count, percent
from analyzers.contract import Evidence, Params, Paths, Suspect, Verdict, Window, quiet, table, text


def verdict_of(window: Window, tested: Tested, params: Params, measures: Mapping[str, Any]) -> Verdict:
    """Verdict of the published method; it gives no calibrated score."""
    names = tuple(tested.seen.names[j] for j in tested.blamed.tolist())
    figures = {**measures, "penalty": tested.alpha}
    suspects = _suspects(window, tested, names)
    blamed = {name for one in suspects for name in (one.component, *one.ambiguous_with)}
    others = simpler(window, tested.seen, 0.0, blamed)
    evidence = (
        *_estimates(tested, show.noun(window)),
        *show.charts(window, tested.seen, names, show.noun(window)),
        *([others] if others else []),
        text("Method", _account(tested, params)),
    )
    if not names:
        return quiet(figures, evidence)
    return Verdict("named", suspects, None, figures, evidence)


def _estimates(tested: Tested, noun: str) -> tuple[Evidence, ...]:
    seen, theta = tested.seen, tested.theta
    lost = seen.per_component(seen.failures)
    order = np.lexsort((np.arange(len(seen.names)), -theta))[:12].tolist()
    rows = tuple(
        (seen.names[j], int(seen.carried[j]), int(lost[j]), severity(theta[j]), float(tested.p_values[j]))
        for j in order
        if theta[j] > 0
    )
    columns = ("component", noun, "failed", "failure rate", "p")
    return (table("Components with a failure rate above zero", columns, rows),) if rows else ()


def _account(tested: Tested, params: Params) -> str:
    return (
        f"Method: non-negative Lasso on log(1 - e/n), penalty {tested.alpha:.3g} by cross-validation, "
        f"one-sided test ({params['test']}) against the mean at level {params['alpha']} (Zhang et al., NSDI "
        "2018). It has no baseline and gives no calibrated score."
    )


def _suspects(window: Window, tested: Tested, names: tuple[str, ...]) -> tuple[Suspect, ...]:
    seen, noun = tested.seen, show.noun(window)
    lost = seen.per_component(seen.failures)
    first = alike(component_sets(window.sums["paths"]))
    when = show.spans(window, dict.fromkeys(names, 0.0))  # it knows of no usual failures
    q_values = np.minimum(1.0, tested.p_values * len(seen.names))
    suspects = []
    for j in tested.blamed.tolist():
        twins = [seen.names[k] for k in np.flatnonzero(first == first[j]).tolist() if k != j]
        span = when.get(seen.names[j])
        rate = percent(severity(tested.theta[j]))
        sentence = (
            f"{seen.names[j]} fails {rate} of what depends on it, more than the mean component: "
            f"{count(lost[j])} of {count(seen.carried[j])} {noun} failed."
        )
        suspects.append(
            Suspect(
                component=seen.names[j],
                score=None,
                summary=sentence,
                p_value=float(tested.p_values[j]),
                q_value=float(q_values[j]),
                ambiguous_with=tuple(sorted(twins)),
                first_failure=span.first if span else None,
                last_failure=span.last if span else None,
            )
        )
    return tuple(suspects)


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

GRID = 30
"""Penalties tried, evenly in their logarithm from the one that blames nothing down to a thousandth of it."""

MOST_COLUMNS = 2000
"""Components that may enter; the smallest penalty is raised until no more can, so that no large matrix is
made.
"""

_SEED = 20180411  # folds are shuffled: in the order of paths a whole ToR would fall into one fold


@dataclass(frozen=True, slots=True, eq=False)
class Tested:
    """Result of the published method for a window: theta and one-sided p-value of every component."""

    seen: Observed
    theta: Floats
    p_values: Floats
    alpha: float
    blamed: Ints


def judge_by_mean(window: Window, params: Params) -> Tested:
    """Blame by `params["test"]` at level `params["alpha"]`; theta of shape (components,)."""
    seen = observe(window.sums)
    sets = component_sets(window.sums["paths"])
    failing, z = outcomes(window, seen)
    plan = Plan.of(sets)
    if not len(failing):
        nothing = np.zeros(len(seen.names))
        return Tested(seen, nothing, np.ones(len(seen.names)), 0.0, np.zeros(0, dtype=np.int64))
    alpha, columns, theta_columns = cross_validated(plan, failing, z, int(params["folds"]))
    theta = np.zeros(len(seen.names))
    theta[columns] = theta_columns
    p_values = _refit(plan, failing, z, theta) if params["test"] == "refit" else p_values_of_mean(theta)
    blamed = np.flatnonzero((theta > 0) & (p_values < float(params["alpha"])))
    order = np.lexsort((blamed, -theta[blamed], p_values[blamed]))
    return Tested(seen, theta, p_values, alpha, blamed[order])


def outcomes(window: Window, seen: Observed) -> tuple[NDArray[np.int32], Floats]:
    """The rows of `paths` with failures and their z = -log(1 - e/n); half a unit survives where none did."""
    placed = window.sums["paths"]
    sets = component_sets(placed)
    rows = locate(sets, seen.row, seen.column, seen.rows)
    attempts = np.asarray(placed.values["attempts"], dtype=np.float64)[rows]
    known = (rows >= 0) & (attempts > 0)
    lost = np.minimum(seen.failures[known], attempts[known])
    left = attempts[known] - lost
    survived = np.where(left > 0, left, 0.5) / attempts[known]
    order = np.argsort(rows[known], kind="stable")
    return rows[known][order].astype(np.int32), -np.log(survived)[order]


def cross_validated(
    plan: Plan, failing: NDArray[np.int32], z: Floats, folds: int
) -> tuple[float, Ints, Floats]:
    """The penalty with the least error on held-out paths, the columns that can enter, and their theta.

    Everything a fold needs is its Gram block and its X'z, so that no fold is ever passed over again.
    """
    paths = len(plan.sets)
    pull = correlations(plan, failing, z)
    most = float(pull.max()) / paths
    least = max(
        most / 1000, float(np.sort(pull)[::-1][:MOST_COLUMNS][-1]) / paths if len(pull) > MOST_COLUMNS else 0
    )
    penalties = np.geomspace(most, least, GRID)
    columns = np.flatnonzero(pull > penalties[-1] * paths)
    fold_of = np.random.default_rng(_SEED).permutation(paths) % folds
    parts = [_part(plan, columns, failing, z, fold_of, fold) for fold in range(folds)]
    gram = np.sum([part.gram for part in parts], axis=0)
    error = np.zeros(GRID)
    for part in parts:
        theta = np.zeros(len(columns))
        for at, penalty in enumerate(penalties):
            gain = pull[columns] - part.pull - penalty * (paths - part.paths)
            theta = _restricted(gram - part.gram, gain, theta)
            error[at] += part.square - 2 * part.pull @ theta + theta @ part.gram @ theta
    best = int(np.argmin(error))
    theta = _restricted(gram, pull[columns] - penalties[best] * paths, np.zeros(len(columns)))
    return float(penalties[best]), columns, theta


def _restricted(gram: Floats, gain: Floats, start: Floats) -> Floats:
    """Solve over the columns that can enter at this penalty; the others are 0 for sure."""
    theta = np.zeros(len(gain))
    can = np.flatnonzero((gain > 0) & (gram.diagonal() > 0))
    if len(can):
        theta[can] = quadratic_program(gram[np.ix_(can, can)], gain[can], start[can])
    return theta


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    paths: int
    gram: Floats
    pull: Floats
    square: float


def _part(
    plan: Plan, columns: Ints, failing: NDArray[np.int32], z: Floats, fold_of: Ints, fold: int
) -> _Part:
    """Gram block, X'z and z'z of one fold, over the given columns."""
    mine = fold_of[failing] == fold
    pull = correlations(plan, failing[mine], z[mine])[columns]
    incidence = [plan.column(component) for component in columns.tolist()]
    inside = [rows[fold_of[rows] == fold] for rows in incidence]
    place = np.full(len(plan.sets.names), -1, dtype=np.int64)
    place[columns] = np.arange(len(columns))
    gram = np.zeros((len(columns), len(columns)))
    for at, rows in enumerate(inside):
        entries = place[entries_of(plan.sets, rows)]
        gram[at] = np.bincount(entries[entries >= 0], minlength=len(columns))
    return _Part(int((fold_of == fold).sum()), gram, pull, float(z[mine] @ z[mine]))


def p_values_of_mean(theta: Floats) -> Floats:
    """One-sided p-values against the mean of all estimates; t with N - 1 degrees of freedom."""
    count = len(theta)
    deviation = float(theta.std(ddof=1)) if count > 1 else 0.0
    if deviation == 0.0:
        return np.ones(count)
    t = (theta - theta.mean()) / deviation
    return np.asarray(1.0 - stdtr(count - 1, t))


def _refit(plan: Plan, failing: NDArray[np.int32], z: Floats, theta: Floats) -> Floats:
    """One-sided p-values from ordinary least squares on the components that the Lasso chose."""
    p_values = np.ones(len(theta))
    support = np.flatnonzero(theta)
    freedom = len(plan.sets) - len(support)
    if not len(support) or freedom < 1:
        return p_values
    gram, pull = plan.gram_block(support), correlations(plan, failing, z)[support]
    inverse = np.linalg.pinv(gram, hermitian=True)
    fit = inverse @ pull
    residual = max(float(z @ z - pull @ fit), 1e-300)
    error = np.sqrt(np.maximum(residual / freedom * inverse.diagonal(), 1e-300))
    mean = float(np.maximum(fit, 0.0).sum()) / len(theta)
    p_values[support] = 1.0 - stdtr(freedom, (fit - mean) / error)
    return p_values


def severity(theta: float) -> float:
    """The share of units that a component fails: 1 - p_j of the paper."""
    return float(-math.expm1(-theta))


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
    nonzero = np.flatnonzero(theta)
    support = columns[nonzero]
    theta = theta[nonzero]
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
