"""Distance of a healthy member of a fleet by chance, learnt from the members that are better than usual.

Faults make members worse, so that those above the median show how health scatters, tails included. The better half of
each metric is taken for half of Student's t, whose degrees of freedom are how heavy its tails are (Lange, Little and
Taylor, 1989), mixed with a small share of members that are better for a reason of their own (a faster part, another
kind of machine): such members say nothing about the others. A few members tell the width and the tails of one metric
poorly, so all metrics of a fleet learn together which tails, widths and shares occur (empirical Bayes). What remains
unknown is averaged over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # scipy.special takes a third of a second to load, and does when it is first used
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FREEDOM = (3.0, 4.0, 5.0, 7.0, 10.0, 20.0, 200.0)
"""Degrees of freedom that are tried; with 200 tails are normal as far as anyone could see."""
APART = (0.002, 0.02, 0.1, 0.3)
"""Shares of the better half that are better for a reason of their own."""

USUAL = 0.006
"""The width of a benchmark that nothing is known of, as a normal deviation and a share of the usual value: between the
.1 % of bandwidths and the 2 to 3 % of launch times."""
_USUAL_APART, _APART_IN_FLEET = 0.5, 0.65
"""Spread of widths around that, as deviations of the logarithm: from fleet to fleet, and between metrics of a fleet."""

_SEEN_TAILS = np.array([0.02, 0.025, 0.04, 0.06, 0.1, 0.14, 0.17])
_SEEN_APART = np.array([1.5, 0.4, 0.2, 0.1])
"""Metrics of each tail, and of each share, that a fleet is taken to have had before it was looked at."""

_STEPS = np.linspace(-4.0, 4.0, 17)
"""Widths that are tried, in standard errors of the width."""
_REACH = 0.1
"""Half of the members that are better for a reason of their own are better by more than this."""
_EXACT, _BINS = 64, 192
"""Members of a metric that are taken one by one, from the farthest; the others are pooled in so many bins."""
_ROUNDS = 30
_OUT = 4.0
"""Widths from which on a member stands out."""
_FEW = 2.0
"""Members that what is known of other fleets weighs as much as."""
_QUARTER = 0.6744897501960817
"""The upper quartile of the normal distribution."""


@dataclass(frozen=True, slots=True, eq=False)
class Better:
    """The better half of a metric: by how much each of `members` is better than usual (at least 0, as logarithms)."""

    members: tuple[str, ...]
    values: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Tails:
    """Tails learnt of each group: `weight` of every tail, width and share that is tried, `scale` of Student's t for
    every tail and width; shapes (freedom, widths, shares) and (freedom, widths). `width` is how far healthy members
    scatter, as a normal deviation; shape (groups,).
    """

    weight: tuple[Floats, ...]
    scale: tuple[Floats, ...]
    width: Floats

    def only(self, groups: Sequence[int]) -> Tails:
        """Tails of some of the groups, in the order that is given."""
        chosen = list(groups)
        return Tails(
            tuple(self.weight[at] for at in chosen),
            tuple(self.scale[at] for at in chosen),
            self.width[chosen],
        )

    def chance(self, group: int, off: Floats) -> Floats:
        """The probability that a healthy member of the group is as far off or farther; shape of `off`."""
        if not len(off):
            return np.empty(0)
        beyond = scipy.special.stdtr(np.array(FREEDOM)[:, None, None], -off / self.scale[group][:, :, None])
        return np.asarray((self.weight[group].sum(axis=2)[:, :, None] * beyond).sum(axis=(0, 1)))


def learn(better: Sequence[Better], least_width: float) -> Tails:
    """Tails of the better halves of all metrics of a fleet. `least_width` is the least that healthy members are
    taken to scatter by.
    """
    if not better:
        return Tails((), (), np.empty(0))
    odd = _odd(better, least_width)
    pooled = [
        _pooled(one.values[[name not in odd for name in one.members]] if odd else one.values)
        for one in better
    ]
    centre = _usual_width(pooled, least_width)
    fits = [_fit(values, times, centre, least_width) for values, times in pooled]
    tails, apart = _shares(np.array([_log_mean(likelihood) for likelihood, _ in fits]))
    prior = np.log(tails)[:, None, None] + np.log(apart)[None, None, :]
    weights, widths = [], []
    for likelihood, tried in fits:
        weight = np.exp(likelihood + prior - (likelihood + prior).max())
        weight /= weight.sum()
        weights.append(weight)
        widths.append(float(np.exp((weight.sum(axis=(0, 2)) * np.log(tried)).sum())))
    return Tails(tuple(weights), tuple(_scales(tried) for _, tried in fits), np.array(widths))


def _odd(better: Sequence[Better], least: float) -> frozenset[str]:
    """Members that stand out in two metrics or more: chance makes such nodes seldom, however heavy its tails."""
    seen: set[str] = set()
    twice: set[str] = set()
    for one in better:
        if not len(one.values):
            continue
        known = len(one.values)
        middle = np.log(max(float(np.median(one.values)) / _QUARTER, least))
        width = np.exp((known * middle + _FEW * np.log(USUAL)) / (known + _FEW))
        out = {one.members[at] for at in np.flatnonzero(one.values > _OUT * width).tolist()}
        twice |= seen & out
        seen |= out
    return frozenset(twice)


def _pooled(better: Floats) -> tuple[Floats, Floats]:
    """Values and how often each counts: the farthest one by one, the others in bins, so that time does not grow with
    the members.
    """
    ordered = np.sort(better)[::-1]
    if len(ordered) <= _EXACT + _BINS:
        return ordered, np.ones(len(ordered))
    parts = np.array_split(ordered[_EXACT:], _BINS)
    values = np.concatenate([ordered[:_EXACT], [np.sqrt(np.mean(part**2)) for part in parts]])
    return values, np.concatenate([np.ones(_EXACT), [float(len(part)) for part in parts]])


def _middle(values: Floats, times: Floats) -> float:
    """The weighted median of values in descending order."""
    return float(values[np.searchsorted(np.cumsum(times), times.sum() / 2)])


def _usual_width(pooled: Sequence[tuple[Floats, Floats]], least: float) -> float:
    """The width that metrics of this fleet have usually: the mean of their logarithms, with what is known of others."""
    total, weights = np.log(USUAL) / _USUAL_APART**2, 1 / _USUAL_APART**2
    for values, times in pooled:
        if len(values):
            weight = 1 / (_APART_IN_FLEET**2 + 1.2 / times.sum())
            total += weight * np.log(max(_middle(values, times) / _QUARTER, least))
            weights += weight
    return float(np.exp(total / weights))


def _scales(tried: Floats) -> Floats:
    """Scales of Student's t with the same quartile as normal deviations `tried`; shape (freedom, widths)."""
    freedom = np.array(FREEDOM)[:, None]
    return np.asarray(tried[None, :] * _QUARTER / scipy.special.stdtrit(freedom, 0.75))


def _fit(values: Floats, times: Floats, centre: float, least: float) -> tuple[Floats, Floats]:
    """Log posteriors of shape (freedom, widths, shares), without what tails and shares are likely, and the widths that
    are tried (as normal deviations).
    """
    members = times.sum() if len(times) else 0.0
    known, prior = members / 1.2, 1 / _APART_IN_FLEET**2
    seen = np.log(max(_middle(values, times) / _QUARTER, least)) if len(values) else np.log(centre)
    middle = (known * seen + prior * np.log(centre)) / (known + prior)
    tried = np.maximum(np.exp(middle + _STEPS / np.sqrt(known + prior)), least)
    scale = _scales(tried)
    freedom = np.array(FREEDOM)
    special = scipy.special.gammaln((freedom + 1) / 2) - scipy.special.gammaln(freedom / 2)
    height = np.log(2) + (special - np.log(freedom * np.pi) / 2)[:, None] - np.log(scale)
    likelihood = np.empty((len(freedom), len(tried), len(APART)))
    reach = _REACH / (values + _REACH) ** 2
    for at, one in enumerate(FREEDOM):
        core = np.exp(
            height[at][:, None] - (one + 1) / 2 * np.log1p((values[None, :] / scale[at][:, None]) ** 2 / one)
        )
        for place, share in enumerate(APART):
            likelihood[at, :, place] = np.log((1 - share) * core + share * reach) @ times
    away = (np.log(tried) - np.log(centre)) / _APART_IN_FLEET
    return likelihood - (away**2 / 2)[None, :, None], tried


def _log_mean(likelihood: Floats) -> Floats:
    """The evidence for each tail and share, the width averaged out; shape (freedom, shares)."""
    top = likelihood.max()
    return np.asarray(top + np.log(np.exp(likelihood - top).mean(axis=1) + 1e-300))


def _shares(evidence: Floats) -> tuple[Floats, Floats]:
    """Frequency of each tail and each share of odd members among metrics whose evidence has shape (metrics, freedom,
    shares); by expectation and maximization from what was seen before.
    """
    times = np.exp(evidence - evidence.max(axis=(1, 2), keepdims=True))
    tails, apart = _SEEN_TAILS / _SEEN_TAILS.sum(), _SEEN_APART / _SEEN_APART.sum()
    for _ in range(_ROUNDS):
        mine = times * tails[None, :, None] * apart[None, None, :]
        mine /= mine.sum(axis=(1, 2), keepdims=True)
        tails = mine.sum(axis=(0, 2)) + _SEEN_TAILS
        apart = mine.sum(axis=(0, 1)) + _SEEN_APART
        tails, apart = tails / tails.sum(), apart / apart.sum()
    return tails, apart
