"""The link stage: success probabilities by coordinate descent on the regularised squares. Pure numpy.

Minimises `sum_j (y_j - prod_{i in j} x_i)^2 + sum_i lambda_i x_i (1 - x_i)` over 0 <= x <= 1 (Tan et al., NSDI 2019),
where y_j is the share of path j's probes that came back. One coordinate has a closed form; links that share no
path are independent given the rest, so a colour of such links is updated at once and the sweep is still exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SWEEPS = 100
SETTLED = 1e-6
"""Change of the objective at which sweeping ends."""


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Entry k: path `row[k]` crosses link `column[k]`; `share` are the paths' y, shape (paths,); `penalty` the links'
    lambda, shape (links,).
    """

    row: Ints
    column: Ints
    share: Floats
    penalty: Floats


def success(problem: Problem, colour: Ints | None = None) -> Floats:
    """The links' success probabilities, shape (links,); `colour` as `coloured` gives it."""
    row, column, share = problem.row, problem.column, problem.share
    links = len(problem.penalty)
    crossing = np.maximum(np.bincount(column, minlength=links), 1)
    x = np.bincount(column, share[row], minlength=links) / crossing
    colour = coloured(problem) if colour is None else colour
    groups = [np.flatnonzero(colour[column] == one) for one in range(int(colour.max(initial=-1)) + 1)]
    before = np.inf
    for _ in range(SWEEPS):
        for entries in groups:
            _update(problem, x, entries)
        value = objective(problem, x)
        if before - value < SETTLED:
            break
        before = value
    return x


def _update(problem: Problem, x: Floats, entries: Ints) -> None:
    """The best value of each link of one colour, given all others. Writes to `x`."""
    row, column = problem.row[entries], problem.column[entries]
    rest = _products(problem, x, entries)
    s1 = np.bincount(column, rest * problem.share[row], minlength=len(x))
    s2 = np.bincount(column, rest * rest, minlength=len(x))
    mine = np.unique(column)
    s1, s2, penalty = s1[mine], s2[mine], problem.penalty[mine]
    convex = s2 > penalty
    inside = (2 * s1 - penalty) / np.where(convex, 2 * (s2 - penalty), 1.0)
    # Where the parabola opens downwards, or is a line, one of the two ends is best.
    x[mine] = np.where(convex, np.clip(inside, 0.0, 1.0), (s2 < 2 * s1).astype(float))


def _products(problem: Problem, x: Floats, entries: Ints) -> Floats:
    """For each entry the product of the other links on its path; by multiplying, because a link may be 0."""
    zero = x[problem.column] == 0.0
    logs = np.log(np.where(zero, 1.0, x[problem.column]))
    paths = len(problem.share)
    total = np.bincount(problem.row, logs, minlength=paths)
    zeros = np.bincount(problem.row, zero, minlength=paths)
    row = problem.row[entries]
    others = zeros[row] - zero[entries]
    return np.where(others > 0, 0.0, np.exp(total[row] - logs[entries]))


def objective(problem: Problem, x: Floats) -> float:
    zero = x[problem.column] == 0.0
    logs = np.bincount(
        problem.row, np.log(np.where(zero, 1.0, x[problem.column])), minlength=len(problem.share)
    )
    dead = np.bincount(problem.row, zero, minlength=len(problem.share)) > 0
    fitted = np.where(dead, 0.0, np.exp(logs))
    return float(((problem.share - fitted) ** 2).sum() + (problem.penalty * x * (1 - x)).sum())


def coloured(problem: Problem) -> Ints:
    """A colour for each link such that no path crosses two of one colour: the first that is free, link by link."""
    links = len(problem.penalty)
    order = np.argsort(problem.column, kind="stable")
    ends = np.searchsorted(problem.column[order], np.arange(links + 1))
    used: list[int] = [0] * len(problem.share)
    row = problem.row[order].tolist()
    colour = np.zeros(links, dtype=np.int64)
    for link in range(links):
        paths = row[ends[link] : ends[link + 1]]
        taken = 0
        for path in paths:
            taken |= used[path]
        free = ~taken & (taken + 1)  # the lowest bit that is not set
        colour[link] = free.bit_length() - 1
        for path in paths:
            used[path] |= free
    return colour
