"""Voting as published: 007's weighted votes, and the plain majority of SkeletonHunter's underlay step.

007 (Arzani et al., NSDI 2018): every failing flow gives each of the h links on its path 1/h of a vote; the link
with most votes is blamed, its flows are taken away, and so on while the best has at least 1 % of the votes left. That
rule has no floor: once the real links are gone, a few stray losses each exceed 1 % of what is left. So a blamed
component needs the losses of at least `least` pairs of hosts.

Majority: every failing path votes for each component on it, and whoever has most votes is at fault.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.flows.observed import Observed
from analyzers.builtin.paths import mixed, summed

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST = 64

NOISE_VOTES = 0.2
"""A flow whose strongest link has no more votes than this lost its packet to noise (the authors' simulator)."""


@dataclass(frozen=True, slots=True)
class VoteResult:
    """A blamed component: the votes it had when it was blamed, and the failing rows that gave them. `others` had the
    same votes of the same rows.
    """

    component: int
    others: tuple[int, ...]
    votes: float
    rows: tuple[int, ...]


def votes_of(seen: Observed) -> Floats:
    """007's votes of each component, before any is taken away; shape (components,)."""
    failing = seen.failing
    return failing.per_component(failing.flows / np.maximum(failing.hops, 1), seen.components)


def discounted(seen: Observed, share: float, least: int) -> tuple[VoteResult, ...]:
    """007: blame by turns as long as the best has at least `share` of the votes that are left."""
    failing = seen.failing
    weight = failing.flows / np.maximum(failing.hops, 1)
    left = np.ones(failing.rows, dtype=bool)
    elected: list[VoteResult] = []
    while len(elected) < MOST:
        inside = left[failing.row]
        row, column = failing.row[inside], failing.column[inside]
        given = np.bincount(column, weight[row], minlength=seen.components)
        votes = np.where(_pairs(seen, row, column) >= least, given, 0.0).astype(np.float64)
        if not len(votes) or votes.max() < max(share * float(given.sum()), 1e-12):
            break
        found = _first(seen, votes, row, column)
        elected.append(found)
        left[list(found.rows)] = False
    return tuple(elected)


def majority(seen: Observed, least: int) -> tuple[VoteResult, ...]:
    """Component on most failing paths, if `least` pairs of hosts say so."""
    failing = seen.failing
    votes = failing.per_component(failing.flows, seen.components)
    if not len(votes) or votes.max() <= 0:
        return ()
    found = _first(seen, votes, failing.row, failing.column)
    top = np.flatnonzero(votes >= votes.max() * (1 - 1e-12))
    if len(np.unique(failing.pair[list(found.rows)])) < least:
        return ()
    others = tuple(c for c in top.tolist() if c != found.component)
    return (VoteResult(found.component, others, found.votes, found.rows),)


def blamed_by_flow(seen: Observed, votes: Floats) -> Ints:
    """For each failing row the component on its path with most votes, -1 if noise; shape (rows,). Components with
    equal votes: the one with the smallest mark.
    """
    failing = seen.failing
    order = np.lexsort((seen.paths.mark[failing.column], -votes[failing.column], failing.row))
    row, first = np.unique(failing.row[order], return_index=True)
    chosen = np.full(failing.rows, -1, dtype=np.int64)
    chosen[row] = failing.column[order][first]
    chosen[row[votes[chosen[row]] <= NOISE_VOTES]] = -1
    return chosen


def _pairs(seen: Observed, row: Ints, column: Ints) -> Ints:
    """Of how many pairs of hosts the rows speak against each component."""
    pair = seen.failing.pair
    span = int(pair.max(initial=0)) + 1
    distinct = np.unique(column * span + pair[row])
    return np.bincount(distinct // span, minlength=seen.components)


def _first(seen: Observed, votes: Floats, row: Ints, column: Ints) -> VoteResult:
    """The component with most votes; the smallest mark among equals."""
    equal = np.flatnonzero(votes >= votes.max() * (1 - 1e-12))
    lead = int(equal[np.argmin(seen.paths.mark[equal])])
    rows = summed(column, mixed(row), seen.components)
    same = equal[(rows[equal] == rows[lead]) & (equal != lead)]
    mine = row[column == lead]
    return VoteResult(lead, tuple(same.tolist()), float(votes[lead]), tuple(mine.tolist()))
