"""The default method where only failing flows name their path: which component has more of them than its peers?

What a component carried is then not known. Under noise alone, the failing flows over a component are as many as over
the peers of its kind that other failing flows pass, however much traffic that is: a flow that fails by chance passes a
component with the traffic of a usual one, and the further failing flows there are a fair sample of how many there
are. Traffic is uneven, so that the number of peers is a gamma mixture of Poisson numbers (negative binomial).

Greedy, as `explain`: take the component with most evidence, give it the flows that noise and those taken before do not
explain, learn the usual number again from what is left, and drop whoever the others have made unnecessary. Several
failing flows of one pair of hosts are one testimony.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.voting.explain import COUNTED, MOST, REPLACEABLE, Rules, tail_of, thresholds
from analyzers.builtin.voting.observed import Observed

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

EVEN, UNEVEN = 50.0, 2.0
"""Shapes of the gamma mixture: nearly Poisson, and a standard deviation of the traffic of 70 %."""

_ROUNDS = 20
_TRIED = 3  # candidates tried on before the search ends
_TOGETHER = 16  # candidates tried on together
_PEERS = 20
_SEEN = 2.0
"""How many further failing flows a component may have had before any was seen."""


@dataclass(frozen=True, slots=True, eq=False)
class Outvoting:
    """The blamed components, best first: `votes` pairs of hosts whose failing flows only this one explains, `usual` how
    many would be there by chance, `evidence` and `needed` in nats, `share[r]` the part of failing row r that each
    chosen one has, shape (rows, chosen). `alone` and `left` are the evidence of every component before and beside the
    chosen, `threshold` what one more needs, `unexplained` the failing rows that no chosen one explains.
    """

    chosen: list[int]
    votes: Floats
    usual: Floats
    evidence: Floats
    needed: Floats
    rival: tuple[tuple[int, ...], ...]
    share: Floats
    alone: Floats
    left: Floats
    threshold: Floats
    unexplained: float


def outvote(seen: Observed, rules: Rules) -> Outvoting:
    """Judge one window."""
    search = _Search(seen, rules)
    if seen.failing.rows:
        search.grow()
        while search.prune():
            search.fit()
    return search.outcome()


class _Search:
    def __init__(self, seen: Observed, rules: Rules) -> None:
        self.seen, self.rules = seen, rules
        self.needed = thresholds(seen, rules.margin)
        failing = seen.failing
        _, pair, times = np.unique(failing.pair, return_inverse=True, return_counts=True)
        self.weight = 1.0 / times[pair.ravel()]
        self.chosen: list[int] = []
        self.ratio = np.zeros(0)
        self.usual, self.shape = self._learnt(self.weight)
        self.alone = self._evidence(self._votes(self.weight))

    def grow(self) -> None:
        """Take in whoever passes, best first. Candidates are tried on: as long as their flows count among what is
        usual, they hide each other. So several are tried on together if none passes alone.
        """
        while len(self.chosen) < MOST and (self._grown(1) or self._grown(_TOGETHER)):
            pass

    def _grown(self, most: int) -> bool:
        """Take in up to so many, the best first, if all members pass then; whether it did."""
        before = self.chosen, self.ratio, self.usual, self.shape
        for at in range(min(most, MOST - len(self.chosen))):
            for component in self._candidates()[: _TRIED if most == 1 else 1]:
                held = self.chosen, self.ratio, self.usual, self.shape
                self._take(component)
                if self._all_pass():
                    return True
                if most == 1 or at == most - 1:
                    self.chosen, self.ratio, self.usual, self.shape = held
        self.chosen, self.ratio, self.usual, self.shape = before
        return False

    def _candidates(self) -> list[int]:
        votes = self._votes(self._left())
        evidence = deviance(votes, self.usual, self.shape)
        evidence[self.chosen] = 0.0
        order = np.lexsort((self.seen.paths.mark, -votes, -evidence))
        enough = votes[order] >= self.rules.min_flows - 1e-9
        return [c for c in order[enough].tolist() if c not in self.chosen]

    def _take(self, component: int) -> None:
        self.chosen, self.ratio = [*self.chosen, component], np.append(self.ratio, 1.0)
        self.fit()

    def _all_pass(self) -> bool:
        bar = self._bar(len(self.chosen))[self.chosen]
        return all(self._own(at)[1] >= bar[at] for at in reversed(range(len(self.chosen))))

    def prune(self) -> bool:
        """Drop the weakest member that does not pass beside the others; whether there was one."""
        bar = self._bar(len(self.chosen))[self.chosen]
        surplus = [self._own(at)[1] - bar[at] for at in range(len(self.chosen))]
        if min(surplus, default=0.0) >= 0:
            return False
        worst = int(np.argmin(surplus))
        self.chosen = [*self.chosen[:worst], *self.chosen[worst + 1 :]]
        self.ratio = np.delete(self.ratio, worst)
        return True

    def _bar(self, blamed: int) -> Floats:
        return np.asarray(self.needed - math.log(max(1, blamed)))

    def fit(self) -> None:
        """How many times the usual number each member has, and the usual number, by turns."""
        for _ in range(_ROUNDS):
            before = self.ratio
            share = self._shares()
            mine = self.weight @ share
            self.ratio = mine / self.usual[self.chosen]
            self.usual, self.shape = self._learnt(self._left())
            if np.allclose(before, self.ratio, rtol=1e-3):
                return

    def _odds(self) -> Floats:
        """One for noise and the sum of the members' ratios, for each failing row."""
        odds = np.ones(self.seen.failing.rows)
        for component, ratio in zip(self.chosen, self.ratio.tolist(), strict=True):
            odds[self._rows(component)] += ratio
        return odds

    def _shares(self) -> Floats:
        odds, share = self._odds(), np.zeros((self.seen.failing.rows, len(self.chosen)))
        for at, component in enumerate(self.chosen):
            rows = self._rows(component)
            share[rows, at] = self.ratio[at] / odds[rows]
        return share

    def _left(self) -> Floats:
        """What of each failing row is noise."""
        return np.asarray(self.weight / self._odds())

    def _rows(self, component: int) -> Ints:
        failing = self.seen.failing
        return np.asarray(failing.row[failing.column == component], dtype=np.int64)

    def _votes(self, left: Floats) -> Floats:
        return self.seen.failing.per_component(left, self.seen.components)

    def _own(self, at: int) -> tuple[Floats, float]:
        """What is left of each row without a member, and that member's evidence."""
        left = self.weight / self._odds()
        rows = self._rows(self.chosen[at])
        left[rows] *= 1 + self.ratio[at]
        return left, float(self._evidence(self._votes(left))[self.chosen[at]])

    def _evidence(self, votes: Floats) -> Floats:
        """Nats of each component, of which the spread among its peers leaves no more than an exponential tail would."""
        nats = deviance(votes, self.usual, self.shape)
        beyond = (votes - self.usual) / np.sqrt(self.usual)
        for one in np.unique(self.seen.kinds).tolist():
            mine = (self.seen.kinds == one) & (self.usual >= COUNTED)
            peers = mine.copy()
            peers[self.chosen] = False
            if np.count_nonzero(peers) >= _PEERS:
                high, scale = tail_of(beyond[peers])
                nats[mine] = np.minimum(
                    nats[mine], np.maximum(0.0, math.log(10) + (beyond[mine] - high) / scale)
                )
        return nats

    def _learnt(self, left: Floats) -> tuple[Floats, Floats]:
        """The usual number of each component, and the shape of the mixture, by its kind."""
        seen, failing = self.seen, self.seen.failing
        votes = self._votes(left)
        usual, shape = np.ones(seen.components), np.full(seen.components, UNEVEN)
        kind, rest = seen.kinds[failing.column], ~np.isin(failing.column, self.chosen)
        for one in np.unique(seen.kinds).tolist():
            mine, members = (kind == one) & rest, seen.kinds == one
            rows = failing.row[mine]
            if not len(rows):
                continue
            weight = self.weight[rows]
            mean, spread = _level(votes[failing.column[mine]] - left[rows], weight)
            usual[members] = max(mean, _SEEN / (1 + float(weight.sum())))
            shape[members] = min(max(spread, UNEVEN), EVEN)
        return usual, shape

    def outcome(self) -> Outvoting:
        owns = [self._own(at) for at in range(len(self.chosen))]
        evidence = np.array([one[1] for one in owns])
        order = np.lexsort((self.seen.paths.mark[self.chosen], self.needed[self.chosen] - evidence)).tolist()
        rivals = [self._rivals(owns[at][0], float(evidence[at])) for at in order]
        share = self._shares()[:, order]
        chosen = [self.chosen[at] for at in order]
        left = self._evidence(self._votes(self._left()))
        return Outvoting(
            chosen, self.weight @ share, self.usual[chosen], evidence[order], self._bar(len(chosen))[chosen],
            tuple(rivals), share, self.alone, left, self._bar(len(chosen) + 1), float((1 - share.sum(axis=1)).sum()),
        )  # fmt: skip

    def _rivals(self, left: Floats, evidence: float) -> tuple[int, ...]:
        """Components that explain as much beside the others as a member does without which so much is `left`."""
        near = np.flatnonzero(self._evidence(self._votes(left)) >= evidence - REPLACEABLE)
        return tuple(c for c in near.tolist() if c not in self.chosen)


def _level(others: Floats, weight: Floats) -> tuple[float, float]:
    """The mean of what other failing flows pass the components of one, without the highest, and the shape of the gamma
    mixture that gives its spread: numbers seen through those they count have the shape and one more.
    """
    order = np.argsort(others)
    below = np.cumsum(weight[order]) / weight.sum()
    most = others[order][np.searchsorted(below, 0.75)] + 1
    held = np.minimum(others, most)
    mean = float(np.average(held, weights=weight))
    if mean < 1:
        return mean, UNEVEN
    beyond = float(np.average((held - mean) ** 2, weights=weight)) - mean
    return mean, EVEN if beyond <= 0 else mean * mean / beyond - 1


def deviance(votes: Floats, usual: Floats, shape: Floats) -> Floats:
    """Nats by which a mean of `votes` explains them better than the mean `usual`; 0 if they are fewer. Negative
    binomial.
    """
    more = np.maximum(votes, usual)
    nats = more * np.log(more / usual) - (more + shape) * np.log((more + shape) / (usual + shape))
    return np.asarray(np.where(votes > usual, np.maximum(nats, 0.0), 0.0))
