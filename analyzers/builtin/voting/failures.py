"""The default method where only failing flows name their path: which component has more of them than its peers?

What a component carried is then not known. Under noise alone, the failing flows over a component are as many as over
the peers of its kind that other failing flows pass, however much traffic that is: a flow that fails by chance passes
a component with the traffic of a usual one, and the further failing flows there are a fair sample of how many there
are. Traffic is uneven, and so is what healthy components lose, so that the number of peers is a gamma mixture of
Poisson numbers (negative binomial); where peers have enough failing flows to show how uneven, an exponential tail
through their quantiles bounds the evidence as well.

Traffic that is uneven shows as evidence, too: a busy host has many of the flows that bad links elsewhere fail. A
component that fails flows itself fails them on all paths; so those that pass no other blamed component must be more
than usual.

First a cover, as 007 votes: the component with most failing flows, its flows taken away before the next. Then each
has the flows that noise and the others do not explain, the usual number is learnt again from what is left, whoever
does not pass is dropped, the weakest first, and whoever passes now is taken in. Several failing flows of one pair of
hosts are one testimony.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.flows.explain import MOST, REPLACEABLE, Rules, deviance, thresholds
from analyzers.builtin.flows.observed import Observed

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

EVEN = 50.0
"""Shape of the gamma mixture that is nearly Poisson."""
LOSSES, TRAFFIC = 0.5, 0.75
"""Squared relative spread of what healthy components lose, and of the traffic of those of the most numerous kind, which
evens out over those of a kind that are fewer and so carry more. Their sum gives the least shape of the mixture.
"""
FURTHER = 3.0
"""Nats that a component needs here beyond what it needs where its traffic is known: what is usual is less certain."""

_ROUNDS = 20
_TRIED = 3  # candidates tried on before the search ends
_FIRST = 20.0  # how many times the usual number a member of the cover has, before it is fitted
_PEERS = 20
_COUNTED = 1.0  # usual failing flows from which their spread shows
_TAIL = (0.75, 0.9)  # quantiles through which the tail is laid: less than a tenth of the peers are bad
_NORMAL = 0.5
_MOST_OF_KIND = 0.5
_SEEN = 2.0
"""Number of further failing flows that a component may have had before any was seen."""


@dataclass(frozen=True, slots=True, eq=False)
class Outvoting:
    """The blamed components, best first: `votes` pairs of hosts whose failing flows only this one explains, `usual` how
    many would be there by chance, `evidence` and `needed` in nats, `share[r]` the part of failing row r that each
    chosen one has, shape (rows, chosen). `alone` and `left` are the evidence of every component before and beside the
    chosen, `threshold` what one more needs, `unexplained` the failing rows that no chosen one explains. `apart` is the
    least multiple, over the chosen, of the most failing flows of an unblamed component of its kind.
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
    apart: float


def outvote(seen: Observed, rules: Rules) -> Outvoting:
    """Judge one window."""
    search = _Search(seen, rules)
    if seen.failing.rows:
        search.cover()
        search.grow()
        while search.prune():
            search.fit()
    return search.outcome()


class _Search:
    def __init__(self, seen: Observed, rules: Rules) -> None:
        self.seen, self.rules = seen, rules
        self.needed = thresholds(seen, rules.margin + FURTHER)
        failing = seen.failing
        _, pair, times = np.unique(failing.pair, return_inverse=True, return_counts=True)
        self.weight = 1.0 / times[pair.ravel()]
        by_column = np.argsort(failing.column, kind="stable")
        self._row = failing.row[by_column]
        self._start = np.searchsorted(failing.column[by_column], np.arange(seen.components + 1))
        peers = np.bincount(seen.kinds, minlength=1)
        self._least_shape = 1 / (LOSSES + TRAFFIC * peers[seen.kinds] / peers.max())
        self.chosen: list[int] = []
        self.ratio = np.zeros(0)
        self.usual, self.shape = self._learnt(self.weight)
        self.alone = self._evidence(self._votes(self.weight))

    def cover(self) -> None:
        """Start with the components that hold most failing flows, the flows of each taken away before the next, as 007
        does: what a switch loses shows on it as a whole before it shows on the hosts behind it.
        """
        left = self.weight.copy()
        while len(self.chosen) < MOST:
            votes = self._votes(left)
            best = int(np.lexsort((self.seen.paths.mark, -votes))[0])
            if votes[best] < self.rules.min_flows - 1e-9:
                break
            self.chosen = [*self.chosen, best]
            left[self._rows(best)] = 0.0
        self.ratio = np.full(len(self.chosen), _FIRST)
        self.fit()
        while self.prune():
            self.fit()

    def grow(self) -> None:
        """Take in whoever else passes, best first, as long as all members pass then."""
        while len(self.chosen) < MOST and self._grown():
            pass

    def _grown(self) -> bool:
        for component in self._candidates()[:_TRIED]:
            before = self.chosen, self.ratio, self.usual, self.shape
            self._take(component)
            if self._all_pass():
                return True
            self.chosen, self.ratio, self.usual, self.shape = before
        return False

    def _candidates(self) -> list[int]:
        """Components that pass on their own, and the next one, which may pass once its flows are not noise."""
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
        return bool(np.all(self._surpluses()[1] >= 0))

    def prune(self) -> bool:
        """Drop the weakest members that do not pass beside the others, a quarter of them at a time; whether any was."""
        joint, surplus = self._surpluses()
        weak = int(np.count_nonzero(surplus < 0))
        if not weak:
            return False
        strong = np.sort(np.lexsort((joint, surplus))[max(1, weak // 4) :])
        self.chosen = [self.chosen[at] for at in strong.tolist()]
        self.ratio = self.ratio[strong]
        return True

    def _surpluses(self) -> tuple[Floats, Floats]:
        """Nats that each member has over what it needs beside the others: of its part of all failing flows, and the
        least of that and of those on its flows without another member, which need `FURTHER` less; shape (members,).
        """
        bar = self._bar(len(self.chosen))[self.chosen]
        joint = self._own() - bar
        return joint, np.minimum(joint, self._apart() - bar + FURTHER)

    def _bar(self, blamed: int) -> Floats:
        return np.asarray(self.needed - math.log(max(1, blamed)))

    def fit(self) -> None:
        """Fit, by turns, of each member's multiple of the usual number, and of the usual number."""
        for _ in range(_ROUNDS):
            before = self.ratio
            left = self._left()
            self.ratio = before * self._votes(left)[self.chosen] / self.usual[self.chosen]
            self.usual, self.shape = self._learnt(self._left())
            if np.allclose(before, self.ratio, rtol=1e-2):
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
        """Noise in each failing row."""
        return np.asarray(self.weight / self._odds())

    def _rows(self, component: int) -> Ints:
        return self._row[self._start[component] : self._start[component + 1]]

    def _votes(self, left: Floats) -> Floats:
        return self.seen.failing.per_component(left, self.seen.components)

    def _own(self) -> Floats:
        """Nats of each member beside the others; shape (members,)."""
        votes = self._votes(self._left())
        votes[self.chosen] *= 1 + self.ratio
        return self._evidence(votes)[self.chosen]

    def _apart(self) -> Floats:
        """Nats of each member for the failing flows that pass no other member; shape (members,)."""
        members = np.zeros(self.seen.failing.rows)
        for component in self.chosen:
            members[self._rows(component)] += 1
        votes, lone = self._votes(self._left()), self._votes(np.where(members == 1, self.weight, 0.0))
        votes[self.chosen] = lone[self.chosen]
        return self._evidence(votes)[self.chosen]

    def _without(self, at: int) -> Floats:
        """Rest of each row without a member."""
        left = self._left()
        left[self._rows(self.chosen[at])] *= 1 + self.ratio[at]
        return left

    def _evidence(self, votes: Floats) -> Floats:
        """Nats of each component for its `votes`, of which the spread among its peers leaves no more than an
        exponential tail would. Peers are all of its kind, blamed or not: where many stand out a little, none does.
        """
        nats = deviance(votes, self.usual, self.shape)
        beyond = (votes - self.usual) / np.sqrt(self.usual)
        for one in np.unique(self.seen.kinds).tolist():
            mine = (self.seen.kinds == one) & (self.usual >= _COUNTED)
            if np.count_nonzero(mine) >= _PEERS:
                high, higher = np.quantile(beyond[mine], _TAIL)
                scale = max(float(higher - high) / math.log((1 - _TAIL[0]) / (1 - _TAIL[1])), _NORMAL)
                nats[mine] = np.minimum(
                    nats[mine], np.maximum(0.0, (beyond[mine] - high) / scale - math.log(1 - _TAIL[0]))
                )
        return nats

    def _learnt(self, left: Floats) -> tuple[Floats, Floats]:
        """The usual number of each component, and the shape of the mixture, by its kind: of those that are not blamed,
        but of all where most of a kind are, each with what it explains itself, because these are what is usual.
        """
        seen, failing = self.seen, self.seen.failing
        itself = np.ones(seen.components)
        votes = self._votes(left)
        itself[self.chosen] += self.ratio
        usual, shape = np.ones(seen.components), self._least_shape.copy()
        kind, rest = seen.kinds[failing.column], ~np.isin(failing.column, self.chosen)
        for one in np.unique(seen.kinds).tolist():
            members = seen.kinds == one
            most = np.count_nonzero(members[self.chosen]) > _MOST_OF_KIND * np.count_nonzero(members)
            mine = (kind == one) & (rest | most)
            rows = failing.row[mine]
            if not len(rows):
                continue
            weight, least = self.weight[rows], float(shape[members][0])
            column = failing.column[mine]
            mean, spread = _level((votes[column] - left[rows]) * itself[column], weight, least)
            usual[members] = max(mean, _SEEN / (1 + float(weight.sum())))
            shape[members] = min(max(spread, least), EVEN)
        return usual, shape

    def outcome(self) -> Outvoting:
        evidence = self._own()
        order = np.lexsort((self.seen.paths.mark[self.chosen], self.needed[self.chosen] - evidence)).tolist()
        rivals = [self._rivals(self._without(at), float(evidence[at])) for at in order]
        share = self._shares()[:, order]
        chosen = [self.chosen[at] for at in order]
        left = self._evidence(self._votes(self._left()))
        return Outvoting(
            chosen, self.weight @ share, self.usual[chosen], evidence[order], self._bar(len(chosen))[chosen],
            tuple(rivals), share, self.alone, left, self._bar(len(chosen) + 1), float((1 - share.sum(axis=1)).sum()),
            self._set_apart(),
        )  # fmt: skip

    def _set_apart(self) -> float:
        """`Outvoting.apart`; infinite where nobody is chosen, or no other of the kind has failing flows."""
        votes = self._votes(self._left())
        own, others = votes[self.chosen] * (1 + self.ratio), votes.copy()
        others[self.chosen] = 0.0
        most = np.zeros(int(self.seen.kinds.max(initial=0)) + 1)
        np.maximum.at(most, self.seen.kinds, others)
        return float(np.min(own / np.maximum(most[self.seen.kinds[self.chosen]], 1e-9), initial=math.inf))

    def _rivals(self, left: Floats, evidence: float) -> tuple[int, ...]:
        """Components that explain as much beside the others as a member does without which so much is `left`."""
        near = np.flatnonzero(self._evidence(self._votes(left)) >= evidence - REPLACEABLE)
        return tuple(c for c in near.tolist() if c not in self.chosen)


def _level(others: Floats, weight: Floats, least: float) -> tuple[float, float]:
    """The mean of what other failing flows pass the components of one, without the highest, and the shape of the gamma
    mixture that gives its spread: numbers seen through those they count have the shape and one more.
    """
    order = np.argsort(others)
    below = np.cumsum(weight[order]) / weight.sum()
    most = others[order][np.searchsorted(below, 0.75)] + 1
    capped = np.minimum(others, most)
    mean = float(np.average(capped, weights=weight))
    if mean < 1:
        return mean, least
    beyond = float(np.average((capped - mean) ** 2, weights=weight)) - mean
    return mean, EVEN if beyond <= 0 else mean * mean / beyond - 1
