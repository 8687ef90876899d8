"""The default method: the few components that explain the losses which noise does not.

Greedy: take the component whose own loss rate adds most to the likelihood, estimate the noise again from
the paths it is not on, refit all, and go on until nobody adds enough; then drop whoever the others have made
unnecessary. Each must pass a threshold in nats, lose at least `min_loss` of its packets, and be what explains the
losses of at least `min_flows` pairs of hosts.

The threshold of one is the log of the chances to be fooled, and that of each of k is lower by log k: what is bounded
is the share of false ones among the blamed (Benjamini and Hochberg 1995), so that where nobody is at fault nobody is
blamed, and beside ten bad links the eleventh needs fewer losses to be believed.

A packet on path i is lost with probability `1 - exp(-eta_i)`, `eta_i = b_i + sum_j X_ij theta_j`, theta >= 0: every
component lets it pass independently. Packets of one flow are lost in bursts, whose usual length is learnt from short
flows (`burst_of`), so what counts are y_i bursts, and how many only up to a bound c_i (`bounds`); from there on a row
of n_i packets says that these were c_i or more: a censored count. With failing rows F, and `N_j` packets sent over j,

loglik = sum_{i in F} v_i(eta_i) - sum_j N_j theta_j - sum_i n_i b_i
v_i(eta) = y_i log(expm1(eta))                        where y_i < c_i,
           log P(Poisson(n_i eta) >= c_i) + n_i eta   else; with c_i = 1 it is log(expm1(n_i eta))

which is concave in theta. A count that is cut at c_i while all n_i packets count as carried would make a component look
better than it is where few long flows carry most packets, and the rest of what it loses would be put down to its
neighbours. The first form is the Poisson likelihood for small rates, and stays right for a component that loses
everything. Rows that lost nothing are in `N_j` alone, so the cost grows with what failed.

Losses in health are a rate per packet for each path profile, from the paths that no blamed component is on. 007's
noise is a rate per link. Rates of link classes cannot be told from one another where every path passes one link of
each class, and names say nothing about classes here; what matters to a component is only how much its paths lose
anyway. So the rate is kept per profile of path. It enters as its upper bound: a rate taken too low by half costs many
false blames, one taken too high costs little.

Where hops are missing from a share m of the places on paths (`missing_hops`), a row that does not name the blamed j may
have passed it: it loses m / (1 - m) P_ij theta_j besides, where P_ij is the largest share of the packets over a
component of row i that pass j, too. Otherwise the neighbours of j are blamed for these rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc, gammaincinv, gammaln

from analyzers.builtin.flows.observed import Observed

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST = 64
SHORTLIST = 64

_TRIED = 3  # candidates tried on before the search ends
_COVER, _INTEREST = 32, 3.0  # how many components the search begins with at most, and the nats that each adds
_HALF = 0.5
_DIFFERENT, _DIFFERENT_SHARE, _MISSING = 3, 0.1, 0.3
"""Rows and their share that name paths of different lengths, from which hops are missing; the most that may be."""
_HARDLY, _SHORT = (0.0, 0.1, 0.2, 0.3), 4.5
"""Shares of a component's loss, and the nats by which one of them explains its long paths better than all of it."""
COUNTED = 5.0
"""Losses by noise on a component from which their spread among its peers shows more than chance."""
PEERS = 50
UNEQUAL = 0.2
"""Squared relative spread of what healthy components lose with their paths, unless these show less."""
_UPPER, _LOWEST = 0.97, 0.75  # the upper quantile, and where it is if many of the peers are blamed
_NORMAL = 0.3
"""Least scale of the tail of peers: between those of normal numbers at three and at four standard deviations."""

REPLACEABLE = 1.0
"""Nats within which another component explains the losses as well."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Bars of a component; `margin` in nats over the log of the components of its kind times the kinds, less the log
    of the number of blamed ones. `complete`: paths are taken to name all hops. `bursts`: packets of a row are of one
    flow, which noise loses several at once; not so where a row sums probes that were sent one by one. `unequal`:
    healthy components may lose unequally where each has too few losses for a tail of its peers.
    """

    margin: float
    min_loss: float
    min_flows: int
    complete: bool = True
    bursts: bool = True
    unequal: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Explained:
    """The blamed components, best first. `evidence` and `needed` in nats, `threshold[c]` what c would need as one more,
    `rival[i]` are components that would do as well in place of `chosen[i]`, `rate` the noise per packet of each path
    profile, `share[r]` the part of failing row r's losses that each of its components in `chosen` has, by column;
    shape (rows, chosen). `spread` is the scale of the tail of what components lose without a fault, in standard
    deviations, about .5 if all lose alike; 0 where too little is lost to say. `short` components would be blamed if
    their longest paths lost as the shorter ones do.
    """

    chosen: list[int]
    theta: Floats
    evidence: Floats
    needed: Floats
    rival: tuple[tuple[int, ...], ...]
    rate: Floats
    share: Floats
    model: Model
    threshold: Floats
    spread: float
    short: int


def explain(seen: Observed, rules: Rules) -> Explained:
    """Judge one window."""
    search = _Search(seen, rules)
    if seen.failing.rows:
        search.cover()
        search.prune(together=False)
        search.grow()
        for _ in range(3):
            if not search.prune():
                break
            search.grow()
        if not rules.complete and (missing := missing_hops(seen)):
            search.suspect_hidden(missing)
            search.prune()
    return search.outcome()


def thresholds(seen: Observed, margin: float) -> Floats:
    """Nats that each component needs alone: every kind gets an equal share of the chances to be fooled."""
    peers = np.bincount(seen.kinds, minlength=1)
    chances = np.maximum(peers[seen.kinds] * np.count_nonzero(peers), 2)
    return np.asarray(np.log(chances) + margin, dtype=np.float64)


def missing_hops(seen: Observed) -> float:
    """The share of the places on paths whose hop is missing, 0 if none seems to be: failing flows of one pair of hosts
    then name paths of different lengths.
    """
    different, several = lengths(seen)
    if different < _DIFFERENT or different < _DIFFERENT_SHARE * several:
        return 0.0
    return min(_MISSING, different / several / float(seen.failing.hops.mean()))


def lengths(seen: Observed) -> tuple[int, int]:
    """Failing rows with fewer hops than the longest one of their pair of hosts, and all rows but one of each pair."""
    pair, hops = seen.failing.pair, seen.failing.hops
    longest = np.zeros(int(pair.max(initial=-1)) + 1, dtype=np.int64)
    np.maximum.at(longest, pair, hops)
    return int(np.count_nonzero(hops < longest[pair])), len(pair) - len(np.unique(pair))


def _by_hops(seen: Observed) -> Floats:
    """Packets over each component by the hops of their paths; shape (components, most hops + 1)."""
    longest = int(max(seen.paths.hops.max(initial=0), seen.failing.hops.max(initial=0))) + 1
    key = seen.paths.column * longest + seen.paths.hops[seen.paths.row]
    packets = np.bincount(key, seen.paths.attempts[seen.paths.row], minlength=seen.components * longest)
    return np.asarray(packets.reshape(seen.components, longest), dtype=np.float64)


class _Search:
    def __init__(self, seen: Observed, rules: Rules) -> None:
        self.seen, self.rules = seen, rules
        self.needed = thresholds(seen, rules.margin)
        self.chosen: list[int] = []
        self.theta = np.zeros(0)
        self.rate = np.full(seen.profiles, float(seen.failing.lost.sum()) / max(seen.sent, 1.0))
        self.own = own_rates(seen)
        self.by_hops = _by_hops(seen)
        self.short: set[int] = set()
        self.model = Model(seen, bounds(seen, self.rate))
        self._learn_noise()

    def cover(self) -> None:
        """Start with whoever adds most to the likelihood, one after the other, whatever its peers lose: several bad
        components make each other's peers look as if they lost unequally in health, until all of them are known.
        """
        while len(self.chosen) < _COVER:
            eta = self.model.eta(self.rate, self.chosen, self.theta)
            steps = self.model.steps(eta, self.model.shortlist(eta, SHORTLIST))
            gain = np.where(np.isin(steps.component, self.chosen), 0.0, steps.gain)
            if gain.max(initial=0.0) < _INTEREST:
                break
            best = int(np.lexsort((self.seen.paths.mark[steps.component], -gain))[0])
            self.chosen = [*self.chosen, int(steps.component[best])]
            self.theta = np.append(self.theta, steps.theta[best])
            self._update_noise()
        self._learn_noise()

    def grow(self) -> None:
        """Take in whoever passes, best first. A candidate is tried on with the noise of the paths it is not on: before
        that, what a busy component loses passes for noise and hides it.
        """
        while len(self.chosen) < MOST:
            eta = self.model.eta(self.rate, self.chosen, self.theta)
            steps = self.model.steps(eta, self.model.shortlist(eta, SHORTLIST))
            order = np.lexsort((self.seen.paths.mark[steps.component], -steps.gain))
            new = [
                at for at in order.tolist() if steps.component[at] not in self.chosen and steps.gain[at] > 0
            ]
            if not any(self._taken(int(steps.component[at]), float(steps.theta[at])) for at in new[:_TRIED]):
                return

    def _taken(self, component: int, theta: float) -> bool:
        """Take a component in if it passes, and say whether it does."""
        before, counted = (self.chosen, self.theta, self.rate), (self.model.bound, self.model.burst)
        self.chosen, self.theta = [*self.chosen, component], np.append(self.theta, theta)
        self._learn_noise()
        eta, _, fitted = self._without(len(self.chosen) - 1)
        gain = float(self.model.steps(eta, np.array([component])).gain[0])
        beyond = self._beyond(self.model.eta(self.rate, self.chosen, self.theta))
        gain = min(gain, self._among_peers(component, eta, *beyond))
        if gain >= self._bar(len(self.chosen))[component] and self._counts(eta, component, fitted):
            if self._on_long_paths(eta, component, fitted):
                return True
            self.short.add(component)
        self.chosen, self.theta, self.rate = before
        self.model.count(*counted)
        return False

    def _bar(self, blamed: int) -> Floats:
        """Nats that each component needs as one of so many."""
        return np.asarray(self.needed - math.log(max(1, blamed)))

    def _counts(self, eta: Floats, component: int, theta: float) -> bool:
        """Whether the component loses enough of its packets, and what enough pairs of hosts lost, either most probably
        or in sum; `eta` is without it.
        """
        rows, failing = self.model.rows_of(component), self.seen.failing
        lost = float(failing.lost[rows] @ (theta / (theta + eta[rows])))
        pair, place = np.unique(failing.pair[rows], return_inverse=True)
        most = np.zeros(len(pair))
        np.maximum.at(most, place.ravel(), theta / (theta + eta[rows]))
        enough = max(most.sum(), np.count_nonzero(most > _HALF)) >= self.rules.min_flows
        return bool(lost >= self.rules.min_loss * self.seen.carried[component] and enough)

    def _on_long_paths(self, eta: Floats, component: int, theta: float) -> bool:
        """Whether its longest paths lose as they should. Where hops are missing, the neighbour of a bad link seems to
        lose what the bad one does, but only on paths too short to name that; `eta` is without it.
        """
        rows, packets = self.model.rows_of(component), self.by_hops[component]
        hops, eta = self.seen.failing.hops[rows], eta[rows]
        for least in np.flatnonzero(packets)[1:].tolist():
            long, carried = hops >= least, float(packets[least:].sum())
            gains = [
                self.model.gain(rows[long], eta[long], carried, share * theta) for share in (*_HARDLY, 1.0)
            ]
            if max(gains[:-1]) - gains[-1] >= _SHORT:
                return False
        return True

    def _learn_noise(self) -> None:
        """Noise from what the chosen are not on, the events it leaves to count, and the fit to both."""
        self._update_noise()
        self.theta = self.model.refit(self.rate, self.chosen, self.theta)

    def _update_noise(self) -> None:
        self.rate, bound, burst = settled(self.seen, self.own, *self._clear(), self.rate, self.rules.bursts)
        self.model.count(bound, burst)

    def _clear(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """The paths and the failing rows without a chosen component."""
        rows = np.ones(self.seen.failing.rows, dtype=bool)
        for component in self.chosen:
            rows[self.model.rows_of(component)] = False
        return ~self.seen.paths.containing(self.chosen), rows

    def suspect_hidden(self, missing: float) -> None:
        """Let rows lose what the blamed lose that they may have passed without naming them, by the share of hops that
        is `missing`.
        """
        seen, failing = self.seen, self.seen.failing
        hidden = np.zeros(failing.rows)
        for component, theta in zip(self.chosen, self.theta.tolist(), strict=True):
            both = seen.paths.per_component(seen.paths.attempts * seen.paths.containing([component]))
            share = both / np.maximum(seen.carried, 1.0)
            passed = np.zeros(failing.rows)
            np.maximum.at(passed, failing.row, share[failing.column])
            passed[self.model.rows_of(component)] = 0.0
            hidden += missing / (1 - missing) * theta * passed
        self.model.hidden = hidden
        self._learn_noise()

    def prune(self, *, together: bool = True) -> bool:
        """Drop members that the others make unnecessary, the least needed first, a quarter of these at a time, and say
        whether any was. Each of several needs less, but not if they do not count `together`: those of a cover are
        candidates, and many doubtful ones would vouch for each other.
        """
        dropped = False
        while self.chosen:
            evidence = self.evidence()
            surplus = evidence - self._bar(len(self.chosen) if together else 1)[self.chosen]
            weak = surplus < 0
            for at in np.flatnonzero(~weak).tolist():
                weak[at] = not self._counts(*self._without(at))
                if not weak[at] and not self._on_long_paths(*self._without(at)):
                    weak[at] = True
                    self.short.add(self.chosen[at])
            if not weak.any():
                return dropped
            order = np.argsort(np.where(weak, surplus, np.inf), kind="stable")
            strong = np.sort(order[max(1, np.count_nonzero(weak) // 4) :])
            self.chosen, self.theta = [self.chosen[at] for at in strong.tolist()], self.theta[strong]
            self._learn_noise()
            dropped = True
        return dropped

    def _without(self, at: int) -> tuple[Floats, int, float]:
        """The rows' eta without one member, that member, and its theta."""
        eta = self.model.eta(self.rate, self.chosen, self.theta)
        eta[self.model.rows_of(self.chosen[at])] -= self.theta[at]
        return eta, self.chosen[at], float(self.theta[at])

    def evidence(self) -> Floats:
        """Loss of log-likelihood without each member, the others refitted where that could matter."""
        explained = self.model.eta(self.rate, self.chosen, self.theta)
        full, beyond = self.model.loglik(explained, self.chosen, self.theta), self._beyond(explained)
        lost = np.zeros(len(self.chosen))
        for at in range(len(self.chosen)):
            rest = [*self.chosen[:at], *self.chosen[at + 1 :]]
            theta = np.delete(self.theta, at)
            lost[at] = full - self.model.loglik(self.model.eta(self.rate, rest, theta), rest, theta)
            if lost[at] < 3 * self.needed[self.chosen[at]]:
                theta = self.model.refit(self.rate, rest, theta)
                lost[at] = full - self.model.loglik(self.model.eta(self.rate, rest, theta), rest, theta)
            lost[at] = min(lost[at], self._among_peers(self.chosen[at], self._without(at)[0], *beyond))
        return lost

    def _among_peers(self, component: int, eta: Floats, beyond: Floats, usual: Floats) -> float:
        """Nats of a component's losses among those of its peers: how many standard deviations they are beyond noise, on
        an exponential tail through two quantiles of the peers. Healthy components lose unequally, and where much is
        lost anyway that shows as evidence.

        `eta` is without the component; `beyond` and `usual` (`_beyond`) are with it, because what it loses would else
        pass for losses of the components on its paths. The blamed are peers as well, at the upper end, with the
        quantiles below them: left out, they would take the tail with them. Infinite where peers are too few to say how
        unequally.
        """
        own, beyond = self._own(component, eta, float(usual[component])), beyond.copy()
        beyond[[*self.chosen, component]] = math.inf
        peers = (usual >= usual[component] / 2) & (usual <= 2 * usual[component])
        if np.count_nonzero(peers) < PEERS:
            return math.inf
        if usual[component] < COUNTED:
            if not self.rules.unequal:
                return math.inf
            return self._beside_unequal(own, float(usual[component]), beyond[peers], usual[peers])
        upper = min(_UPPER, max(_LOWEST, 1 - 1.5 * float(np.isinf(beyond[peers]).mean())))
        lower = max(0.5, 1 - 3 * (1 - upper))
        sorted_peers = np.sort(beyond[peers])
        low, high = (float(sorted_peers[int(len(sorted_peers) * at)]) for at in (lower, upper))
        if math.isinf(high):
            return 0.0
        scale = max((high - low) / math.log((1 - lower) / (1 - upper)), _NORMAL)
        return max(0.0, (own - low) / scale - math.log(1 - lower))

    def _beside_unequal(self, own: float, usual: float, beyond: Floats, peers: Floats) -> float:
        """Nats of a component's losses, `own` standard deviations beyond the `usual`, if what its peers lose is gamma
        distributed about the noise. Too few are lost on each peer to lay a tail through them, but together their
        squares tell how unequal they are, with one standard error (`peers` are their usual losses).
        """
        counted = np.isfinite(beyond)
        mean, squares = peers[counted], (beyond[counted] ** 2) * np.maximum(peers[counted], COUNTED)
        weight = max(float(np.sum(mean**2)), 1e-9)
        unequal = max(float(np.sum(squares - mean)) / weight, 0.0)
        doubt = math.sqrt(float(np.sum(2 * mean**2 + mean))) / weight
        shape = 1 / max(unequal, min(UNEQUAL, unequal + doubt), 1e-3)
        count = usual + own * math.sqrt(max(usual, COUNTED))
        return float(deviance(np.array([count]), np.array([usual]), np.array([shape]))[0])

    def _beyond(self, eta: Floats) -> tuple[Floats, Floats]:
        """Losses of each component beyond noise where `eta` explains the rest, in standard deviations, and the
        losses of noise there.
        """
        seen, noise = self.seen, np.maximum(self.rate[self.seen.failing.profile], 1e-12)
        usual = seen.paths.per_component(seen.paths.attempts * self.rate[seen.profile])
        own = seen.failing.per_component(self.model.slope(eta) * noise, seen.components)
        return (own - usual) / np.sqrt(np.maximum(usual, COUNTED)), usual

    def _own(self, component: int, eta: Floats, usual: float) -> float:
        """The figure of `_beyond` for one component."""
        rows = self.model.rows_of(component)
        noise = np.maximum(self.rate[self.seen.failing.profile[rows]], 1e-12)
        lost = float(np.sum(self.model.slope(eta[rows], rows) * noise))
        return (lost - usual) / math.sqrt(max(usual, COUNTED))

    def _spread(self) -> float:
        beyond, usual = self._beyond(self.model.eta(self.rate, self.chosen, self.theta))
        peers = usual >= COUNTED
        peers[self.chosen] = False
        return tail_of(beyond[peers])[1] if np.count_nonzero(peers) >= PEERS else 0.0

    def outcome(self) -> Explained:
        evidence = self.evidence()
        order = np.lexsort((self.seen.paths.mark[self.chosen], -(evidence - self.needed[self.chosen])))
        self.chosen = [self.chosen[at] for at in order.tolist()]
        self.theta = self.theta[order]
        rivals = tuple(self._rivals(at) for at in range(len(self.chosen)))
        return Explained(
            self.chosen, self.theta, evidence[order], self._bar(len(self.chosen))[self.chosen], rivals, self.rate,
            self._shares(), self.model, self._bar(len(self.chosen) + 1), self._spread(),
            len(self.short - set(self.chosen)),
        )  # fmt: skip

    def _rivals(self, at: int) -> tuple[int, ...]:
        """Components that explain as much beside the others as this member does."""
        eta, component, _ = self._without(at)
        steps = self.model.steps(eta, self.model.shortlist(eta, SHORTLIST))
        own = steps.gain[steps.component == component]
        if not len(own):
            return ()
        near = (steps.gain >= own[0] - REPLACEABLE) & ~np.isin(steps.component, self.chosen)
        return tuple(sorted(steps.component[near].tolist()))

    def _shares(self) -> Floats:
        share = np.zeros((self.seen.failing.rows, len(self.chosen)))
        eta = self.model.eta(self.rate, self.chosen, self.theta)
        for at, component in enumerate(self.chosen):
            rows = self.model.rows_of(component)
            share[rows, at] = self.theta[at] / eta[rows]
        return share


def deviance(counts: Floats, usual: Floats, shape: Floats) -> Floats:
    """Nats by which a mean of `counts` explains them better than the mean `usual`; 0 if they are fewer. Negative
    binomial.
    """
    more = np.maximum(counts, usual)
    nats = more * np.log(more / usual) - (more + shape) * np.log((more + shape) / (usual + shape))
    return np.asarray(np.where(counts > usual, np.maximum(nats, 0.0), 0.0))


def tail_of(beyond: Floats) -> tuple[float, float]:
    """The .9 quantile and the scale of an exponential tail from there through the .97 quantile."""
    high, higher = np.quantile(beyond, (0.9, 0.97))
    return float(high), max(float(higher - high) / math.log(0.1 / 0.03), _NORMAL)


def tail(evidence: float) -> float:
    """The p-value of nats of evidence: half a chi-square with one degree of freedom (Chernoff 1954)."""
    return 0.5 * math.erfc(math.sqrt(max(evidence, 0.0)))


CEILING = 16.0
"""Largest theta: all but one packet in nine million."""

_STEPS = 60


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """For some components the best theta of each alone, beside those already in the base, and the nats that the
    log-likelihood gains.
    """

    component: Ints
    theta: Floats
    gain: Floats


class Model:
    """Likelihood of the failing rows, ordered by component; each counts its bursts of losses up to its `bound`."""

    def __init__(self, seen: Observed, bound: Floats) -> None:
        self.seen = seen
        failing = seen.failing
        order = np.argsort(failing.column, kind="stable")
        self._row = failing.row[order]
        self._start = np.searchsorted(failing.column[order], np.arange(seen.components + 1))
        self.hidden = np.zeros(failing.rows)
        self.count(bound)

    def count(self, bound: Floats, burst: float = 1.0) -> None:
        """Set the packets of a burst, and the number of bursts from which a row says only that there were as many or
        more.
        """
        self.bound, self.burst = bound, burst
        bursts = bursts_of(self.seen, burst)
        self.events = np.minimum(bursts, bound)
        self._cut = bursts >= bound

    def rows_of(self, component: int) -> Ints:
        """The failing rows that pass a component."""
        return self._row[self._start[component] : self._start[component + 1]]

    def eta(self, rate: Floats, chosen: list[int], theta: Floats) -> Floats:
        """Loss per packet of each failing row: noise `rate` of its profile, `hidden`, and the chosen components."""
        eta = np.maximum(rate[self.seen.failing.profile], 1e-12) + self.hidden
        for component, value in zip(chosen, theta.tolist(), strict=True):
            eta[self.rows_of(component)] += value
        return eta

    def value(self, eta: Floats, rows: Ints | None = None) -> Floats:
        """Log-likelihood of each row that lost something, plus what its packets add to `carried`; of all failing rows,
        or of some.
        """
        events, sent, cut = self._of(rows)
        value = events * _log_expm1(eta)
        value[cut] = _log_tail(events[cut], sent[cut] * eta[cut])
        return np.asarray(value)

    def slope(self, eta: Floats, rows: Ints | None = None) -> Floats:
        """Slope of `value` in eta: times a rate, the losses of that rate which are to be expected in the row."""
        return self._both(eta, rows)[0]

    def bend(self, eta: Floats, rows: Ints | None = None) -> Floats:
        """By how much `slope` falls with eta."""
        return self._both(eta, rows)[1]

    def _both(self, eta: Floats, rows: Ints | None) -> tuple[Floats, Floats]:
        """`slope` and `bend`, which share the hazards of censored counts."""
        events, sent, cut = self._of(rows)
        less = np.expm1(-eta)
        slope, bend = events / -less, events * np.exp(-eta) / less**2
        x = sent[cut] * eta[cut]
        hazard = _hazard(events[cut], x)
        slope[cut] = sent[cut] * (1 + hazard)
        bend[cut] = sent[cut] ** 2 * np.maximum(hazard * (1 + hazard - (events[cut] - 1) / x), 0.0)
        return np.asarray(slope), np.asarray(bend)

    def _of(self, rows: Ints | None) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        sent = self.seen.failing.sent
        return (
            (self.events, sent, self._cut)
            if rows is None
            else (self.events[rows], sent[rows], self._cut[rows])
        )

    def loglik(self, eta: Floats, chosen: list[int], theta: Floats) -> float:
        """Up to a constant that depends on the noise rate only."""
        return float(np.sum(self.value(eta)) - np.sum(self.seen.carried[chosen] * theta))

    def shortlist(self, eta: Floats, most: int) -> Ints:
        """The components that would gain most, by the score test at theta = 0."""
        failing, count = self.seen.failing, self.seen.components
        slope = failing.per_component(self.slope(eta), count) - self.seen.carried
        bend = failing.per_component(self.bend(eta), count)
        z = np.where(slope > 0, slope / np.sqrt(np.maximum(bend, 1e-300)), 0.0)
        order = np.lexsort((self.seen.paths.mark, -z))[:most]
        return order[z[order] > 0].astype(np.int64)

    def steps(self, eta: Floats, components: Ints) -> Steps:
        """Newton's method for all of them at once. The slope in theta is convex and falling, so steps from the left
        never pass the root. Where all is lost there is none below the ceiling: steps would creep there, since the slope
        of a censored count dies away exponentially.
        """
        spans = [self.rows_of(c) for c in components.tolist()]
        row = np.concatenate([*spans, np.zeros(0, dtype=np.int64)])
        local = np.repeat(np.arange(len(spans)), [len(span) for span in spans])
        base, carried = eta[row], self.seen.carried[components]
        highest = np.bincount(local, self.slope(base + CEILING, row), minlength=len(spans)) - carried
        theta = _left_of_root(self.events[row], base, local, carried)
        theta[highest >= 0] = CEILING
        for _ in range(_STEPS):
            now = base + theta[local]
            each = [np.bincount(local, one, minlength=len(spans)) for one in self._both(now, row)]
            slope, bend = each[0] - carried, each[1]
            move = np.where(bend > 0, np.maximum(slope, 0) / np.maximum(bend, 1e-300), 0.0)
            theta = np.minimum(theta + move, CEILING)
            if (move <= 1e-9 * theta).all():
                break
        gain = self.value(base + theta[local], row) - self.value(base, row)
        gained = np.bincount(local, gain, minlength=len(spans)) - carried * theta
        return Steps(components, theta, np.maximum(gained, 0.0))

    def gain(self, rows: Ints, eta: Floats, carried: float, theta: float) -> float:
        """Gain of log-likelihood of some rows by `theta` beside their `eta`, of `carried` packets in all."""
        return float(np.sum(self.value(eta + theta, rows) - self.value(eta, rows))) - carried * theta

    def refit(self, rate: Floats, chosen: list[int], theta: Floats, sweeps: int = 30) -> Floats:
        """The joint maximum over the chosen components, by turns."""
        theta = theta.copy()
        eta = self.eta(rate, chosen, theta)
        for _ in range(sweeps if len(chosen) > 1 else 1):
            before = theta.copy()
            for at, component in enumerate(chosen):
                rows = self.rows_of(component)
                eta[rows] -= theta[at]
                theta[at] = self.steps(eta, np.array([component])).theta[0]
                eta[rows] += theta[at]
            if np.all(np.abs(theta - before) <= 1e-6 * (theta + 1e-9)):
                break
        return theta


def _log_tail(least: Floats, mean: Floats) -> Floats:
    """Log of the probability that a Poisson number is at least so large, plus its mean."""
    value = _log_expm1(mean)
    several = least > 1
    tail = gammainc(least[several], mean[several])
    value[several] = np.log(np.maximum(tail, 1e-300)) + mean[several]
    return np.asarray(value)


def _hazard(least: Floats, mean: Floats) -> Floats:
    """Slope of the log of that probability in the mean."""
    hazard = np.exp(-mean) / -np.expm1(-mean)
    several = least > 1
    k, x = least[several], mean[several]
    density = np.exp((k - 1) * np.log(x) - x - gammaln(k))
    hazard[several] = density / np.maximum(gammainc(k, x), 1e-300)
    return np.asarray(hazard)


def _left_of_root(events: Floats, base: Floats, local: Ints, carried: Floats) -> Floats:
    """A theta at which the slope is not negative, since no row adds less to it than its events over its eta."""
    total = np.bincount(local, events, minlength=len(carried))
    largest = np.zeros(len(carried))
    np.maximum.at(largest, local, base)
    return np.asarray(np.clip(total / np.maximum(carried, 1e-300) - largest, 0.0, CEILING))


def _log_expm1(x: Floats) -> Floats:
    return np.asarray(x + np.log(-np.expm1(-x)))


Mask = NDArray[np.bool_]

BOUND = 0.95
"""Level of the one-sided upper bound."""

_ENOUGH = 0.02
"""Share of a profile's packets that must be on clear paths; with less, the rate of all clear paths is taken."""

_ROUNDS = 40


def upper_rate(events: Floats, packets: Floats) -> Floats:
    """The upper bound of a Poisson rate (Garwood 1936)."""
    return np.asarray(gammaincinv(events + 1, BOUND) / np.maximum(packets, 1.0), dtype=np.float64)


def own_rates(seen: Observed) -> Mask:
    """Profiles that may have a rate of their own: those of whose packets no component carries half or more.
    Otherwise that component's losses would pass for what such paths lose in health.
    """
    key = seen.profile[seen.paths.row] * seen.components + seen.paths.column
    used, place = np.unique(key, return_inverse=True)
    through = np.bincount(place.ravel(), seen.paths.attempts[seen.paths.row], minlength=len(used))
    most = np.zeros(seen.profiles)
    np.maximum.at(most, used // max(1, seen.components), through)
    whole = np.bincount(seen.profile, seen.paths.attempts, minlength=seen.profiles)
    return np.asarray(most < 0.5 * whole, dtype=np.bool_)


def background(seen: Observed, own: Mask, clear: Mask, events: Floats, clear_rows: Mask) -> Floats:
    """Lost events per packet for each profile, in health; shape (profiles,).

    `own` says which profiles have a rate of their own (`own_rates`), `clear` marks the paths without a blamed
    component, `clear_rows` such failing rows, and `events` is what each failing row counts. Without any clear
    path the rate is that of all paths.
    """
    packets = np.bincount(seen.profile, seen.paths.attempts * clear, minlength=seen.profiles)
    lost = np.bincount(seen.failing.profile, events * clear_rows, minlength=seen.profiles)
    if not packets.any():
        return np.full(seen.profiles, float(upper_rate(events.sum(), np.asarray(seen.sent))))
    everywhere = upper_rate(lost.sum(), packets.sum())
    whole = np.bincount(seen.profile, seen.paths.attempts, minlength=seen.profiles)
    alone = upper_rate(lost.astype(np.float64), packets.astype(np.float64))
    return np.asarray(np.where(own & (packets >= _ENOUGH * whole), alone, everywhere), dtype=np.float64)


def settled(
    seen: Observed, own: Mask, clear: Mask, clear_rows: Mask, rate: Floats, learn: bool
) -> tuple[Floats, Floats, float]:
    """Noise, bounds (`bounds`) and packets of a burst that fit each other, from a first guess of the noise: what counts
    depends on what is normal, and what is normal on what counts. A burst is one packet unless its length is to be
    learnt.
    """
    for _ in range(_ROUNDS):
        burst = burst_of(seen, clear_rows, rate) if learn else 1.0
        events = np.minimum(bursts_of(seen, burst), bounds(seen, rate))
        before, rate = rate, background(seen, own, clear, events, clear_rows)
        if np.all(np.abs(rate - before) <= 0.01 * before):
            break
    return rate, bounds(seen, rate), burst_of(seen, clear_rows, rate) if learn else 1.0


def bounds(seen: Observed, rate: Floats) -> Floats:
    """Bursts of each failing row that count at most: not many more than one beyond what noise explains. Where a row
    sums so many packets that losing some is normal, more of them count.
    """
    expected = seen.failing.sent * rate[seen.failing.profile]
    return np.asarray(1 + np.floor(expected + 3 * np.sqrt(expected)))


_SINGLE, _FEW_ROWS = 0.5, 5
"""Expected bursts up to which a row that failed had most probably one, and rows that show how long it usually is."""


def burst_of(seen: Observed, clear_rows: Mask, rate: Floats) -> float:
    """Packets that noise usually loses at once: those of failing rows without a blamed component, and so few packets
    that two bursts would be a rare chance. A row that lost most of its packets is no case of noise.
    """
    failing = seen.failing
    single = (
        clear_rows & (failing.sent * rate[failing.profile] <= _SINGLE) & (2 * failing.lost <= failing.sent)
    )
    return float(failing.lost[single].mean()) if np.count_nonzero(single) >= _FEW_ROWS else 1.0


def bursts_of(seen: Observed, burst: float) -> Floats:
    """Bursts of each failing row at least, if they are of so many packets."""
    return np.asarray(np.maximum(np.floor(seen.failing.lost / burst), 1.0))
