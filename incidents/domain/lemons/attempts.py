"""Failures of nodes in attempts that they share, such as those of jobs.

A failed attempt of `s` nodes counts 1/s for each of them, against the failures usual for attempts of that size, so that
an attempt of one node says most of it. The weighted sums are scaled to counts with a variance equal to their mean (as
Fay and Feuer 1997 do for standardized rates). A lemon raises the counts of the nodes beside it: the strongest suspect
is taken out with its attempts, and the others are judged by what is left, until nothing stands out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incidents.domain.lemons.rates import Floats, fit_null, p_values

Ints = NDArray[np.int64]

MOST_TAKEN_OUT = 50
LEAST_EXPECTED = 0.5
"""Expected failures from which on a node is judged."""


@dataclass(frozen=True, slots=True, eq=False)
class Attempts:
    """Attempts in compressed sparse row form: attempt `i` ran on the nodes `nodes[indptr[i]:indptr[i + 1]]` (indices
    below `width`), `tries[i]` times, of which `failures[i]` failed."""

    indptr: Ints
    nodes: Ints
    tries: Floats
    failures: Floats
    width: int

    @property
    def sizes(self) -> Ints:
        return np.diff(self.indptr)

    @property
    def rows(self) -> Ints:
        """The attempt of each entry of `nodes`."""
        return np.repeat(np.arange(len(self.tries)), self.sizes)

    def without(self, node: int) -> Attempts:
        """Those that the node took no part in."""
        rows = self.rows
        kept = np.ones(len(self.tries), dtype=bool)
        kept[rows[self.nodes == node]] = False
        indptr = np.concatenate([[0], np.cumsum(self.sizes[kept])]).astype(np.int64)
        return Attempts(indptr, self.nodes[kept[rows]], self.tries[kept], self.failures[kept], self.width)

    def usual(self) -> Floats:
        """The usual failures of each attempt, shape (attempts,): the share that failed among those of about as many
        nodes (powers of two), times its tries."""
        stratum = np.ceil(np.log2(np.maximum(self.sizes, 1))).astype(np.int64)
        tries = np.bincount(stratum, self.tries)
        failed = np.bincount(stratum, self.failures, minlength=len(tries))
        share = np.divide(failed, tries, out=np.zeros_like(tries), where=tries > 0)
        return np.asarray(share[stratum] * self.tries)

    def per_node(self) -> tuple[Floats, Floats]:
        """Weighted failures and expected failures of each node, scaled to counts, both of shape (width,)."""
        rows, usual = self.rows, self.usual()
        weights = 1 / np.maximum(self.sizes, 1)

        def added(values: Floats) -> Floats:
            return np.asarray(np.bincount(self.nodes, values[rows], minlength=self.width), dtype=np.float64)

        expected, variance = added(weights * usual), added(weights**2 * usual)
        scale = np.divide(expected, variance, out=np.zeros_like(expected), where=variance > 0)
        return added(weights * self.failures) * scale, expected * scale

    def of_group(self, members: Ints) -> tuple[float, float, float]:
        """Failures, expected failures and their variance of a group of nodes, in whole attempts: one counts by the
        share of its nodes that belong to the group."""
        belongs = np.isin(self.nodes, members)
        share = np.bincount(self.rows[belongs], minlength=len(self.tries)) / np.maximum(self.sizes, 1)
        usual = self.usual()
        return float(share @ self.failures), float(share @ usual), float((share**2) @ usual)


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """By node, each of shape (width,): failures, failures that peers would have had, p-value (nan: not judged).
    `taken_out` are the nodes that stood out, `left` the attempts without them."""

    failures: Floats
    expected: Floats
    p: Floats
    spread: float
    taken_out: tuple[int, ...]
    left: Attempts


def judge(attempts: Attempts, level: float) -> Judged:
    """Each node against its peers. `level` is the false-discovery rate at which a node is taken out with its attempts
    before the others are judged."""
    failures, expected = attempts.per_node()
    known = expected >= LEAST_EXPECTED
    p, own, peers = np.where(known, 1.0, np.nan), failures.copy(), expected.copy()
    open_, taken, spread = known.copy(), [], 0.0
    for _ in range(MOST_TAKEN_OUT):
        # One whose attempts all went with a neighbour's has nothing left that speaks against it: its p-value is 1.
        left = np.flatnonzero(open_ & (expected >= LEAST_EXPECTED))
        p[open_] = 1.0
        if len(left) < 2:
            break
        null = fit_null(failures[left], expected[left])
        spread = null.spread
        p[left] = p_values(null, failures[left], expected[left])
        own[left], peers[left] = failures[left], null.rate * expected[left]
        strongest = int(left[np.argmin(p[left])])
        if not _stands_out(p[left], int(known.sum()), level):
            break
        open_[strongest] = False
        taken.append(strongest)
        attempts = attempts.without(strongest)
        failures, expected = attempts.per_node()
    return Judged(own, peers, p, spread, tuple(taken), attempts)


def _stands_out(p: Floats, tests: int, level: float) -> bool:
    """Whether Benjamini and Hochberg's rule names any."""
    ordered = np.sort(p)
    return bool(np.any(ordered <= level * np.arange(1, len(p) + 1) / tests))
