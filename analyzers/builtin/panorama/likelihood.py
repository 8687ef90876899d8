"""Explanation of the bad cells: an observer, a subject as a whole, or a subject in one context.

Each cell speaks by the likelihood ratio of its failures and observations, bad against as usual, bounded so that
one cell is one witness however often it calls. A cell is bad if its observer is unreliable, or its
subject fails in that context or in all. The most probable set of culprits is found by ascent: take what explains
most, take back what is no longer needed. An observer that complains about everyone explains its many cells at once
and no subject is needed for them; that is how blame is swapped from the subjects to it. All steps of time are
solved side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaln

from analyzers.builtin.panorama.observed import Observed, Tally, Usual

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

OBSERVER, SUBJECT, PLACE = 0, 1, 2
REACH = (0.9, 0.95, 0.95)
"""Share of its cells that each sort of culprit makes bad."""

STRAY = 1e-3
"""Share of cells that are bad though nobody is to blame: a link, a bad request."""

BOUND = 7.0
"""The most, in nats, that one cell may say: 1,100 to 1."""

_TINY = 1e-30
_ROUNDS = 40
_BETTER = 1e-6
"""Nats by which an exchange must gain, so that rounding does not make it swing."""


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Rows are cells at steps of time that matter; arrays of shape (rows,) but `owner` of shape (3, rows).

    `owner[sort]` numbers the candidate of that sort (a component or place at one step), below `counts[sort]`;
    -1 where the cell has none, for heartbeats belong to no subject as a whole. `needed[sort]` is the threshold.
    """

    weight: Floats
    owner: Ints
    counts: tuple[int, int, int]
    needed: tuple[float, float, float]


def cell_weights(failed: Ints, total: Ints, usual: Usual, cell: Ints) -> Floats:
    """Nats for "bad" against "as usual", beta-binomial both, within +-BOUND; shape of `cell`, which numbers cells.

    A bad share is anywhere from `usual.least_fault` to 1.
    """
    a, b, least = usual.a[cell], usual.b[cell], usual.least_fault[cell]
    good = total - failed
    weight = betaln(failed + 1, good + 1) - betaln(failed + a, good + b) + betaln(a, b)
    above = np.flatnonzero(least > 0)
    low = least[above]
    reached = betainc(good[above] + 1, failed[above] + 1, 1 - low)
    weight[above] += np.log(np.maximum(reached, _TINY)) - np.log1p(-low)
    return np.asarray(np.clip(weight, -BOUND, BOUND))


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """Per sort: whether each candidate is a culprit, and its evidence, in nats above the threshold, beside the
    other culprits (for those that are none: what they would add).
    """

    chosen: tuple[Bools, Bools, Bools]
    surplus: tuple[Floats, Floats, Floats]


def solve(problem: Problem) -> Solution:
    """The set of culprits by ascent. Rounds take every candidate that explains more than its rivals do, then drop
    what is no longer needed, then exchange a subject for those of its places that explain more, or the reverse.
    """
    chosen = [np.zeros(count, dtype=bool) for count in problem.counts]
    for _ in range(_ROUNDS):
        surplus = surpluses(problem, chosen)
        adds = [np.where(on, -np.inf, value) for on, value in zip(chosen, surplus, strict=True)]
        taken = _best_of_rivals(problem, adds)
        if not any(one.any() for one in taken):
            drops = [np.where(on, -value, -np.inf) for on, value in zip(chosen, surplus, strict=True)]
            taken = _best_of_rivals(problem, drops)
            if not any(one.any() for one in taken):
                taken = _exchanges(problem, chosen)
            if not any(one.any() for one in taken):
                break
        for on, change in zip(chosen, taken, strict=True):
            on ^= change
    found = surpluses(problem, chosen)
    return Solution((chosen[0], chosen[1], chosen[2]), (found[0], found[1], found[2]))


def _exchanges(problem: Problem, chosen: list[Bools]) -> list[Bools]:
    """Changes by which a subject as a whole and its places stand in for each other and more is explained.

    Subjects share no cells, so that all are tried at once.
    """
    if not problem.counts[SUBJECT]:
        return [np.zeros_like(one) for one in chosen]
    subject, place = problem.owner[SUBJECT], problem.owner[PLACE]
    nested = (subject >= 0) & (place >= 0)
    parent = np.full(problem.counts[PLACE], -1, dtype=np.int64)
    parent[place[nested]] = subject[nested]
    inner = parent >= 0
    no_place = [chosen[OBSERVER], np.zeros_like(chosen[SUBJECT]), np.where(inner, False, chosen[PLACE])]
    alone = surpluses(problem, no_place)
    worth = np.maximum(alone[PLACE], 0.0)
    parts = np.bincount(parent[inner], worth[inner], minlength=problem.counts[SUBJECT])
    whole = np.maximum(alone[SUBJECT], 0.0)
    covered = np.bincount(parent[inner], chosen[PLACE][inner], minlength=problem.counts[SUBJECT]) > 0
    split = chosen[SUBJECT] & ~covered & (parts > whole + _BETTER)
    join = ~chosen[SUBJECT] & covered & (whole > parts + _BETTER)
    wanted = inner & split[np.maximum(parent, 0)] & (alone[PLACE] > 0)
    unwanted = inner & join[np.maximum(parent, 0)] & chosen[PLACE]
    return [np.zeros_like(chosen[OBSERVER]), split | join, wanted | unwanted]


def surpluses(problem: Problem, chosen: Sequence[Bools]) -> list[Floats]:
    """For every candidate the gain in log-likelihood of being in over being out, less what is needed."""
    ratio = np.exp(problem.weight)
    covered = [_covered(problem, sort, chosen[sort]) for sort in range(3)]
    out: list[Floats] = []
    for sort in range(3):
        spared = np.full(len(ratio), 1 - STRAY)
        for other in range(3):
            if other != sort:
                spared *= np.where(covered[other], 1 - REACH[other], 1.0)
        without, within = 1 - spared, 1 - spared * (1 - REACH[sort])
        gain = np.log(1 - within + within * ratio) - np.log(1 - without + without * ratio)
        owned = problem.owner[sort] >= 0
        total = np.bincount(problem.owner[sort][owned], gain[owned], minlength=problem.counts[sort])
        out.append(np.asarray(total - problem.needed[sort], dtype=np.float64))
    return out


def _covered(problem: Problem, sort: int, chosen: Bools) -> Bools:
    owner = problem.owner[sort]
    return (owner >= 0) & chosen[np.maximum(owner, 0)] if len(chosen) else np.zeros(len(owner), dtype=bool)


def _best_of_rivals(problem: Problem, value: list[Floats]) -> list[Bools]:
    """Candidates above 0 that no rival on any of their cells exceeds; of equals the narrower sort wins."""
    rows = problem.owner.shape[1]
    mine = np.full((3, rows), -np.inf)
    for sort in range(3):
        owned = problem.owner[sort] >= 0
        mine[sort][owned] = value[sort][problem.owner[sort][owned]]
    taken = []
    for sort in range(3):
        rival = np.full(problem.counts[sort], -np.inf)
        narrower = np.full(problem.counts[sort], -np.inf)
        owned = problem.owner[sort] >= 0
        for other in range(3):
            if other != sort:
                best = narrower if other > sort else rival
                np.maximum.at(best, problem.owner[sort][owned], mine[other][owned])
        taken.append((value[sort] > 0) & (value[sort] >= rival) & (value[sort] > narrower))
    return taken


def rivals(
    problem: Problem, chosen: list[Bools], sort: int, number: int, within: float
) -> list[tuple[int, int]]:
    """Candidates (sort, number) that explain almost as much in the place of a culprit: at most `within` nats less."""
    own = float(surpluses(problem, chosen)[sort][number])
    without = [one.copy() for one in chosen]
    without[sort][number] = False
    found = []
    for other, value in enumerate(surpluses(problem, without)):
        close = (value >= own - within) & ~without[other]
        if other == sort:
            close[number] = False
        mine = problem.owner[sort] == number
        touched = np.unique(problem.owner[other][mine & (problem.owner[other] >= 0)])
        found += [(other, int(one)) for one in touched if close[one]]
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Weighed:
    """The problem of all steps, where its rows lie (`cell`, `step`), and its candidates' names and steps."""

    problem: Problem
    solution: Solution
    cell: Ints
    step: Ints
    name: tuple[Ints, Ints, Ints]
    at: tuple[Ints, Ints, Ints]


def weigh(seen: Observed, counted: Tally, usual: Usual, probe: Bools, margin: float) -> Weighed:
    """Solve every step. `usual` says what is no fault; `probe` of shape (cells,) marks the cells whose context probes
    rather than uses."""
    failed, total = counted.failed.reshape(-1), counted.total.reshape(-1)

    def weights(rows: Ints) -> Floats:
        return cell_weights(failed[rows], total[rows], usual, rows // seen.steps)

    some = np.flatnonzero(failed)
    bad = np.zeros(counted.failed.shape, dtype=bool)
    bad.reshape(-1)[some] = weights(some) > 0
    names = [seen.observer, np.where(probe, -1, seen.subject), seen.place]
    sizes = [len(seen.components), len(seen.components), len(seen.place_subject)]
    rows = _rows_that_matter(bad, names, sizes)
    weight = weights(rows)
    cell, step = np.divmod(rows, seen.steps)
    owners, counts, owner_of, when = [], [], [], []
    for name, size in zip(names, sizes, strict=True):
        code = np.where(name[cell] >= 0, step * size + name[cell], -1)
        owned, number = np.unique(code[code >= 0], return_inverse=True)
        owner = np.full(len(code), -1, dtype=np.int64)
        owner[code >= 0] = number
        owners.append(owner)
        counts.append(len(owned))
        at, owner_at = np.divmod(owned, size)
        owner_of.append(owner_at)
        when.append(at)
    observers = len(np.unique(seen.observer))
    subjects = len(np.unique(seen.subject))
    needed = tuple(
        float(np.log(max(1, many)) + margin) for many in (observers, subjects, len(seen.place_subject))
    )
    problem = Problem(
        weight,
        np.stack(owners),
        (counts[0], counts[1], counts[2]),
        (needed[0], needed[1], needed[2]),
    )
    return Weighed(
        problem,
        solve(problem),
        cell,
        step,
        (owner_of[0], owner_of[1], owner_of[2]),
        (when[0], when[1], when[2]),
    )


def _rows_that_matter(bad: Bools, names: list[Ints], sizes: list[int]) -> Ints:
    """Flat places in (cells, steps) of every cell that shares an owner with a bad cell of the same step."""
    cells, steps = bad.shape
    matter = np.zeros_like(bad)
    for name, size in zip(names, sizes, strict=True):
        owned = np.flatnonzero(name >= 0)
        touched = np.zeros((size, steps), dtype=bool)
        cell, step = np.nonzero(bad[owned])
        touched[name[owned][cell], step] = True
        matter[owned] |= touched[name[owned]]
    return np.flatnonzero(matter.reshape(cells * steps))
