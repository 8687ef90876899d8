"""Stages of NetBouncer: devices, then links, then the refit of flagged components. Pure numpy.

Beside it stands the refit of what PLL would name. The answer that explains more with fewer components is taken: the
descent can spread the loss of two links over all the links that their paths share.

Noise: the loss that healthy paths show, taken from the quieter half of the paths, at its upper 95 % bound.

The link stage is coordinate descent on the regularised squares of success probabilities. It minimises `sum_j (y_j -
prod_{i in j} x_i)^2 + sum_i lambda_i x_i (1 - x_i)` over 0 <= x <= 1 (Tan et al., NSDI 2019), where y_j is the share
of path j's probes that came back. One coordinate has a closed form; links that share no path are independent given
the rest, so a colour of such links is updated at once and the sweep is still exact.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, gammaincinv, pdtr, xlogy

from analyzers.builtin.netbouncer.refit import CLEAN, Bar, Bursts, Fit
from analyzers.builtin.paths import Incidence, bad_among, solve
from analyzers.builtin.stats.probability import at_least

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

LEAST_PATHS = 3
"""A device is judged by at least so many paths."""
FLAGGED = 1e-3
"""A link whose success the descent puts lower than one by more than this is looked into."""
FLOOR = 0.5
"""The penalty's floor as a share of the smallest loss of interest: a link of that loss is above it in most samples,
and what else gets over it has to stand the test."""
LEAST = 0.33
"""Least loss of a named component, as a share of the smallest loss of interest: where nine losses are expected three
are seen in one sample of fifty.
"""
LESS = 0.8
"""Noise that falls below this share of itself without the blamed is worth another look."""
FALSE = 0.03
"""The share of false ones among the blamed that the bar of the second and further ones allows for at most."""
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
    were flagged and did not stand the test, with their ratios, `unexplained` the paths that lost more than noise
    and the blamed explain.
    """

    blamed: tuple[Blamed, ...]
    success: Floats
    noise: float
    clean: Mask
    cleared: tuple[tuple[int, float], ...]
    unexplained: Mask


def noise_of(seen: Incidence, among: Mask) -> float:
    """Losses a probe on the quiet ones `among` the paths, upper 95 % bound (Gamma posterior of a Poisson rate).

    The rate that makes the quieter paths likely: those that lost at most one probe more than the median path, as a
    Poisson distribution cut off there. Their plain mean would be 0 wherever most paths lost nothing.
    """
    attempts, failures = seen.attempts[among], seen.failures[among]
    cut = np.floor(attempts * np.median(failures / attempts)) + 1
    quiet = failures <= cut
    kinds, paths = np.unique(np.column_stack([attempts, cut])[quiet], axis=0, return_counts=True)
    sent, lost = float(kinds[:, 0] @ paths), float(failures[quiet].sum())

    def expected(noise: float) -> float:
        mean = noise * kinds[:, 0]
        # Every cut is one or more.
        below = pdtr(kinds[:, 1] - 1, mean) / np.maximum(pdtr(kinds[:, 1], mean), 1e-300)
        return float(paths @ (mean * below))

    low, high = lost / max(sent, 1.0), 0.1
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if expected(middle) < lost else (low, middle)
    exposure = lost / low if lost else sent
    return float(min(0.1, gammaincinv(lost + 0.5, 0.95) / max(exposure, 1.0)))


def judge(seen: Incidence, is_link: Mask, min_loss: float, one_penalty: float, alpha: float) -> Found:
    """Components to blame. `is_link` tells links from devices, shape (components,).

    Twice, if the paths of the first answer are what the noise was mostly made of: small losses pass for it.
    """
    all_paths = np.ones(seen.paths, dtype=bool)
    noise = noise_of(seen, all_paths)
    found = _judged(seen, is_link, noise, min_loss, one_penalty, alpha)
    rest = ~seen.containing([one.component for one in found.blamed]) & all_paths
    if found.blamed and rest.mean() >= 0.5:
        quieter = noise_of(seen, rest)
        if quieter < LESS * noise:
            return _judged(seen, is_link, quieter, min_loss, one_penalty, alpha)
    return found


def _judged(
    seen: Incidence, is_link: Mask, noise: float, min_loss: float, one_penalty: float, alpha: float
) -> Found:
    clean = at_least(seen.failures, seen.attempts, noise) > CLEAN
    devices = _devices(seen, is_link, clean)
    left = ~seen.containing(devices) & np.ones(seen.paths, dtype=bool)
    x = np.ones(seen.components)
    suspects = _links(seen, is_link, clean, left, min_loss, one_penalty, x)
    wholly = _never_clean(seen, is_link, clean, left, suspects)
    bursts, least = _bursts(seen, clean, left), LEAST * min_loss
    fit = Fit(seen, noise, [*devices, *suspects, *wholly], len(devices) + len(suspects), bursts, least)
    bar = bar_of(alpha, seen.components)
    fit.merge([*range(len(devices), len(fit.components))], bar(1))
    requested = is_link & (np.bincount(seen.column[left[seen.row]], minlength=seen.components) > 0)
    answers = [_answer(seen, fit, requested, bar)]
    covering = [one.component for one in solve("pll", bad_among(seen, ~clean), least=2)]
    if set(covering) != {component for _, component in answers[0].believed}:
        greedy = Fit(seen, noise, covering, len(covering), bursts, least)
        answers.append(_answer(seen, greedy, requested, bar))
    cost = bar(max(len(one.believed) for one in answers))
    most = max(one.fit.bursts.most for one in answers)
    best = max(answers, key=lambda one: one.worth(seen, cost, most))
    known = [component for _, component in best.believed]
    blamed = [
        Blamed(component, *best.fit.figures(place), device=component in set(devices))
        for place, component in best.believed
    ]
    order = sorted(
        blamed, key=lambda one: (-one.ratio, int(seen.mark[one.component]), seen.names[one.component])
    )
    cleared = tuple({one: ratio for one, ratio in best.cleared if one not in known}.items())
    return Found(tuple(order), x, noise, clean, cleared, _unexplained(seen, best.fit))


@dataclass(frozen=True, slots=True, eq=False)
class _Answer:
    """A set of components that stands the test (place in the fit, component), and who did not (component, ratio)."""

    fit: Fit
    believed: list[tuple[int, int]]
    cleared: list[tuple[int, float]]

    def worth(self, seen: Incidence, cost: float, most: float) -> float:
        """Twice the log-likelihood, of which a path says no more than `most`, less the cost of each component."""
        lacking = self.fit.lacking(seen)
        return -float(np.minimum(lacking, most).sum()) - len(self.believed) * cost


def _answer(seen: Incidence, fit: Fit, requested: Mask, bar: Bar) -> _Answer:
    """Part of a fit that stands the test, with what it overlooked."""
    believed, cleared = _believed(seen, fit, bar)
    known = [component for _, component in believed]
    overlooked = _overlooked(seen, requested, fit, known, bar(len(known) + 1))
    if overlooked:
        least = float(-np.expm1(-fit.least))
        fit = Fit(seen, float(-np.expm1(-fit.base)), [*known, *overlooked], len(known), fit.bursts, least)
        fit.grow(bar)
        believed, more = _believed(seen, fit, bar)
        cleared = [*cleared, *more]
    return _Answer(fit, believed, cleared)


def _believed(seen: Incidence, fit: Fit, bar: Bar) -> tuple[list[tuple[int, int]], list[tuple[int, float]]]:
    """Those that stand the test (place, component), and those that do not (component, ratio). What the latter leave
    unexplained are bursts, and the more there are, the more of them meet on one component by chance.
    """
    cleared: list[tuple[int, float]] = []
    while True:
        believed, more = fit.pruned(bar)
        cleared += more
        struck = _unexplained(seen, fit)
        if struck.sum() <= fit.bursts.struck:
            return believed, cleared
        fit.suppose(Bursts(int(struck.sum()), seen.paths, struck))


def _unexplained(seen: Incidence, fit: Fit) -> Mask:
    """Paths that lost more than noise and the components of the model explain; shape (paths,)."""
    return at_least(seen.failures, seen.attempts, -np.expm1(-fit.everywhere(seen.paths))) <= CLEAN


def bar_of(alpha: float, components: int) -> Bar:
    """Twice the log-likelihood that the test asks of each of so many blamed ones: level `alpha` of the only one, and of
    each of k besides `FALSE` (k - 1) / components, so that where many are bad it is the share of false ones among the
    blamed that is bounded (Benjamini and Hochberg 1995), and where none is the chance of any.
    """

    @functools.cache
    def bar(blamed: int) -> float:
        level = alpha + FALSE * max(0, blamed - 1) / max(1, components)
        return float(chdtri(1, min(1.0, 2 * level)))

    return bar


def _bursts(seen: Incidence, clean: Mask, left: Mask) -> Bursts:
    """Paths that lose probes for reasons of their own: lossy ones of which no component has a lossy path besides.
    A path that holds one component has none.
    """
    inside = left[seen.row]
    crossing = np.bincount(seen.column[inside], minlength=seen.components) - 1
    lossy = np.bincount(seen.column[inside & ~clean[seen.row]], minlength=seen.components) - 1
    shared = (lossy > MOSTLY * crossing)[seen.column] & inside
    alone = left & ~clean & (np.bincount(seen.row[shared], minlength=seen.paths) == 0)
    alone &= np.bincount(seen.row, minlength=seen.paths) > 1
    return Bursts(int(alone.sum()), int(np.count_nonzero(left & (clean | alone))), alone)


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
        open_ &= ~seen.containing([best])


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
    """Links that the descent did not flag although nearly every path that is left is lossy, or though they carry all
    paths of two that it did: it may spread a link's loss over the links beyond, which explains the paths as well.
    """
    inside = left[seen.row]
    crossing = np.bincount(seen.column[inside], minlength=seen.components)
    good = np.bincount(seen.column[inside & clean[seen.row]], minlength=seen.components)
    whole = is_link & (crossing > 1) & (good <= MOSTLY * crossing)
    whole |= is_link & (_carried(seen, flagged) > 1)
    whole[list(flagged)] = False
    places = np.flatnonzero(whole)
    return [int(one) for one in places[np.argsort(seen.mark[places], kind="stable")]]


def _carried(seen: Incidence, flagged: Sequence[int]) -> Ints:
    """Of how many flagged links each component carries all paths; shape (components,)."""
    carried = np.zeros(seen.components, dtype=np.int64)
    place = np.full(seen.components, -1, dtype=np.int64)
    place[list(flagged)] = np.arange(len(flagged))
    entries = np.flatnonzero(place[seen.column] >= 0)
    entries = entries[np.argsort(place[seen.column[entries]], kind="stable")]
    starts = np.searchsorted(seen.row, np.arange(seen.paths + 1))
    ends = np.searchsorted(place[seen.column[entries]], np.arange(len(flagged) + 1))
    for begin, end in pairwise(ends.tolist()):
        rows = seen.row[entries[begin:end]]
        near = np.concatenate([seen.column[starts[row] : starts[row + 1]] for row in rows.tolist()])
        names, times = np.unique(near, return_counts=True)
        carried[names[times == end - begin]] += 1
    return carried


def _overlooked(
    seen: Incidence, requested: Mask, fit: Fit, known: Sequence[int], threshold: float
) -> list[int]:
    """Links whose paths lost more than noise and the `known` explain, so much that one of them might stand the test.

    The penalty's floor hides a small loss on a link of few paths, and a bad link that shares one of them. The bound is
    what every path could gain if it had a loss of its own, which no loss that the paths share exceeds.
    """
    eta = fit.everywhere(seen.paths)
    share, expected = seen.failures / seen.attempts, -np.expm1(-eta)
    worse = share > expected
    lost, sent = seen.failures[worse], seen.attempts[worse]
    p, q = expected[worse], share[worse]
    gain = np.zeros(seen.paths)
    gain[worse] = 2 * (xlogy(lost, q / p) + xlogy(sent - lost, (1 - q) / (1 - p)))
    bound = np.bincount(seen.column, gain[seen.row], minlength=seen.components)
    possible = requested & (bound >= threshold)
    possible[list(known)] = False
    places = np.flatnonzero(possible)
    return [int(one) for one in places[np.argsort(seen.mark[places], kind="stable")]]


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
