"""Deepview as published, on one window: cross-validate the penalty, solve, test each component against the
mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from analyzers.builtin.deepview.lasso import Plan, correlations, entries_of, quadratic_program
from analyzers.builtin.deepview.observed import Observed, component_sets, locate, observe
from analyzers.contract import Params, Window

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
    """What the published method makes of a window: theta and one-sided p-value of every component."""

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
