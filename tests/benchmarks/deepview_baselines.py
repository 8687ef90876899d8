"""Two simple ways to blame components of paths, on the same windows as Deepview: a ratio of rates, and a regression."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from scipy.stats import poisson

from analyzers.contract import Paths, Window

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

SURE = 12.0
"""Nats of Poisson surprise that the ratio asks for."""

TIMES = 3.0
"""Multiple of the usual rate at which a component must fail to be blamed by the ratio; the regression asks for odds."""


def poisson_ratio(window: Window) -> list[str]:
    """Blame the component whose count is the least likely at the median rate of all; take its paths out; repeat."""
    names, passes, tried, failed = paths_of(window)
    alive, blamed = np.ones(len(tried), dtype=bool), list[str]()
    while len(blamed) < 10:
        counts, carried = (failed * alive) @ passes, (tried * alive) @ passes
        usual = float(np.median((counts + 0.5) / (carried + 1))) * carried
        surprise = np.asarray(-poisson.logsf(counts - 1, np.maximum(usual, 1e-9)), dtype=np.float64)
        surprise[(counts <= TIMES * usual) | (counts == 0)] = 0.0
        worst = int(np.argmax(surprise))
        if surprise[worst] < SURE:
            break
        blamed.append(names[worst])
        alive &= passes[:, worst] == 0
    return blamed


def logistic(window: Window) -> list[str]:
    """The components that multiply the odds by three in an L1 logistic regression; an attempt is a sample."""
    from sklearn.linear_model import LogisticRegression

    names, passes, tried, failed = paths_of(window)
    if failed.sum() == 0 or failed.sum() >= tried.sum():
        return []
    model = LogisticRegression(l1_ratio=1.0, solver="liblinear", C=0.1, intercept_scaling=100.0, max_iter=200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fit that has not converged is still an answer
        model.fit(
            np.vstack([passes, passes]),
            np.repeat([1, 0], len(tried)),
            sample_weight=np.concatenate([failed, np.maximum(tried - failed, 0.0)]),
        )
    return [names[j] for j in np.flatnonzero(model.coef_[0] > np.log(TIMES)).tolist()]


def paths_of(window: Window) -> tuple[tuple[str, ...], Floats, Floats, Floats]:
    """Names, which path passes which component, attempts and failures; shapes (paths, components) and (paths,)."""
    placed, failing = window.sums["paths"], window.sums["failing"]
    sets = _sets(placed.keys["components"])
    number = {name: j for j, name in enumerate(sets.names)}
    row_of = {sets[row]: row for row in range(len(sets))}
    passes = np.zeros((len(sets), len(sets.names)))
    passes[np.repeat(np.arange(len(sets)), np.diff(sets.indptr)), sets.indices] = 1.0
    failed = np.zeros(len(sets))
    lost = _sets(failing.keys["components"])
    for row, count in enumerate(np.asarray(failing.values["failures"]).tolist()):
        path = tuple(name for name in lost[row] if name in number)
        if path in row_of:
            failed[row_of[path]] += count
    return sets.names, passes, np.asarray(placed.values["attempts"], dtype=np.float64), failed


def _sets(keys: object) -> Paths:
    if not isinstance(keys, Paths):
        raise TypeError("the reduction is not grouped by components")
    return keys


BASELINES = {"a Poisson ratio": poisson_ratio, "L1 logistic regression": logistic}
