"""Failures of nodes in attempts that they share, such as those of jobs.

A failed attempt of `s` nodes counts 1/s for each of them, against the failures usual for attempts of that size, so
that an attempt of one node says most of it. Sums of unequal weights have a heavier tail than counts: each is compared
as a count, scaled and shifted so that mean, variance and third moment agree (scaling alone is what Fay and Feuer 1997
do). A lemon raises the counts of the nodes beside it: the strongest suspect is taken out with its attempts, and the
others are judged by what is left, until nothing stands out.
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
class Sums:
    """By node, each of shape (width,): weighted `failures` and `expected` failures; the same as `counts` with their
    `mean`, whose tail is that of a Poisson count."""

    failures: Floats
    expected: Floats
    counts: Floats
    mean: Floats


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
        retained = np.ones(len(self.tries), dtype=bool)
        retained[rows[self.nodes == node]] = False
        indptr = np.concatenate([[0], np.cumsum(self.sizes[retained])]).astype(np.int64)
        return Attempts(
            indptr, self.nodes[retained[rows]], self.tries[retained], self.failures[retained], self.width
        )

    def usual(self) -> Floats:
        """The share of failures that is usual for each attempt, shape (attempts,): that of the attempts of about as
        many nodes (powers of two)."""
        stratum = np.ceil(np.log2(np.maximum(self.sizes, 1))).astype(np.int64)
        tries = np.bincount(stratum, self.tries)
        failed = np.bincount(stratum, self.failures, minlength=len(tries))
        return np.asarray(np.divide(failed, tries, out=np.zeros_like(tries), where=tries > 0)[stratum])

    def per_node(self) -> Sums:
        """Sums of each node's attempts, in weighted failures and as counts."""
        rows, share = self.rows, self.usual()
        weights = 1 / np.maximum(self.sizes, 1)
        scatter = self.tries * share * (1 - share)

        def added(values: Floats) -> Floats:
            return np.asarray(np.bincount(self.nodes, values[rows], minlength=self.width), dtype=np.float64)

        failures, expected = added(weights * self.failures), added(weights * share * self.tries)
        variance = added(weights**2 * scatter)
        third = added(weights**3 * scatter * np.maximum(0.0, 1 - 2 * share))
        known = (variance > 0) & (expected > 0)
        unit = np.ones(self.width)
        unit[known] = np.maximum(third[known] / variance[known], variance[known] / expected[known])
        mean = np.where(known, variance / unit**2, 0.0)
        counts = np.where(known, np.maximum(0.0, (failures - expected) / unit + mean), 0.0)
        return Sums(failures, expected, counts, mean)

    def of_group(self, members: Ints) -> tuple[float, float, float]:
        """Failures, expected failures and their variance of a group of nodes, in whole attempts: one counts by the
        share of its nodes that belong to the group."""
        belongs = np.isin(self.nodes, members)
        share = np.bincount(self.rows[belongs], minlength=len(self.tries)) / np.maximum(self.sizes, 1)
        usual = self.usual()
        expected = usual * self.tries
        return (
            float(share @ self.failures),
            float(share @ expected),
            float((share**2) @ (expected * (1 - usual))),
        )


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
    sums = attempts.per_node()
    known = sums.mean >= LEAST_EXPECTED
    p, own, peers = np.where(known, 1.0, np.nan), sums.failures.copy(), sums.expected.copy()
    open_, taken, spread = known.copy(), [], 0.0
    for _ in range(MOST_TAKEN_OUT):
        # One whose attempts all went with a neighbour's has nothing left that speaks against it: its p-value is 1.
        left = np.flatnonzero(open_ & (sums.mean >= LEAST_EXPECTED))
        p[open_] = 1.0
        if len(left) < 2:
            break
        null = fit_null(sums.counts[left], sums.mean[left])
        spread = null.spread
        p[left] = p_values(null, sums.counts[left], sums.mean[left])
        own[left], peers[left] = sums.failures[left], null.rate * sums.expected[left]
        strongest = int(left[np.argmin(p[left])])
        if not _stands_out(p[left], int(known.sum()), level):
            break
        open_[strongest] = False
        taken.append(strongest)
        attempts = attempts.without(strongest)
        sums = attempts.per_node()
    return Judged(own, peers, p, spread, tuple(taken), attempts)


def _stands_out(p: Floats, tests: int, level: float) -> bool:
    """Whether Benjamini and Hochberg's rule names any."""
    ordered = np.sort(p)
    return bool(np.any(ordered <= level * np.arange(1, len(p) + 1) / tests))
