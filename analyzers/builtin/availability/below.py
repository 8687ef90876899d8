"""Is a component below its target by more than chance?

An outage or two says little: with three nines a component may be down for 43 minutes a month, and one outage of
an hour is below target without being a sign of anything. What is asked is how probable at least so much
downtime is for a component whose true availability is the target, and whose outages are like those of the others; and
how probable it is that such a one goes out on so many days. The sum alone hides what fails again and again: one long
outage by chance weighs as much as twenty short ones, which are none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # scipy.special takes a third of a second to load, and does when it is first used
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_APART = 20.0
"""Causes are told apart up to means that differ by this factor; shorter ones are taken as so long."""

_MANY = 500.0
"""Expected outages above which their sum is as good as normal."""

_FAR = 6.5
"""Where the sum is so far out, in the scale of `_reach`, the chance is below 1e-17 and no longer computed."""

_AT_ONCE = 256

_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Lengths:
    """What outages are like: by cause the share of the downtime and the mean minutes; of shape (rows, causes)."""

    share: Floats
    mean: Floats


def lengths_of_others(minutes: Floats, owner: Ints, cause: Ints, causes: int, rows: Ints) -> Lengths:
    """For each owner in `rows` what the outages of all others are like; its own where no other had one.

    Lengths within a cause are taken as exponential. Where they scatter more than that (some last for days), the mean
    that longer ones promise is taken, `E[x^2] / 2 E[x]`: it is the same for an exponential, and more if the tail is
    heavier.
    """
    sums = []
    for power in (0, 1, 2):
        every = np.bincount(cause, minutes**power, minlength=causes)
        own = np.zeros((len(rows), causes))
        place = np.full(int(owner.max(initial=-1)) + 1, -1, dtype=np.int64)
        place[rows[rows < len(place)]] = np.flatnonzero(rows < len(place))
        mine = place[owner] >= 0
        np.add.at(own, (place[owner[mine]], cause[mine]), minutes[mine] ** power)
        rest = np.maximum(every - own, 0.0)
        alone = rest.sum(axis=1) <= 1e-9
        rest[alone] = every
        sums.append(rest)
    count, total, square = sums
    some = (count > 0.5) & (total > 0)
    mean = np.where(some, total / np.maximum(count, 1), 0.0)
    promised = np.where(some, square / np.where(some, 2 * total, 1.0), 0.0)
    mean = np.maximum(mean, promised)
    longest = mean.max(axis=1, keepdims=True)
    share = np.where(some, total, 0.0) / np.maximum(total.sum(axis=1, keepdims=True), 1e-300)
    return Lengths(share, np.maximum(mean, longest / MOST_APART))


def chances(lost: Floats, allowed: Floats, lengths: Lengths) -> Floats:
    """The probability of losing at least `lost` where `allowed` is expected; all above 0, of shape (rows,).

    Outages of each cause come as a Poisson process, as many as their share of `allowed` needs, and their lengths are
    exponential: a compound Poisson sum. An exponential of mean m is a geometric number of exponentials of the
    shortest mean, so that the sum is a random number J of alike stages, whose distribution follows by recursion, and
    the chance is `sum_k Poisson(k; lost / shortest) P(J > k)`. All terms are positive: far tails are exact, too.
    """
    found = np.ones(len(lost))
    expected = (allowed[:, None] * lengths.share / lengths.mean).sum(axis=1)
    many = expected > _MANY
    variance = 2 * (allowed[:, None] * lengths.share * lengths.mean).sum(axis=1)
    found[many] = scipy.special.ndtr((allowed[many] - lost[many]) / np.sqrt(variance[many]))
    few = np.flatnonzero(~many)
    for first in range(0, len(few), _AT_ONCE):
        rows = few[first : first + _AT_ONCE]
        found[rows] = _tails(lost[rows], allowed[rows], Lengths(lengths.share[rows], lengths.mean[rows]))
    return found


def together(lost: Floats, days: Floats) -> Floats:
    """One probability out of two that were looked at: the smaller, doubled."""
    return np.asarray(np.minimum(1.0, 2 * np.minimum(lost, days)))


def days_by_chance(start: Ints, minutes: Floats, owner: Ints, allowed: Floats, rows: Ints) -> Floats:
    """The probability that outages begin on at least so many days where `allowed` minutes are expected; (rows,).

    Days and not outages are counted, because what flaps for an hour is one thing that happened. As many outages are
    taken as usual as `allowed` minutes hold of the others' mean length, or of the component's own if that is shorter:
    who goes out often for a moment may.
    """
    owners = len(allowed)
    day = start // _DAY - int(start.min(initial=0)) // _DAY
    apart = int(day.max(initial=0)) + 1
    days = np.bincount(np.unique(owner * apart + day) // apart, minlength=owners)
    count, total = np.bincount(owner, minlength=owners), np.bincount(owner, minutes, minlength=owners)
    others = (total.sum() - total[rows]) / np.maximum(1, count.sum() - count[rows])
    own = total[rows] / np.maximum(1, count[rows])
    usual = np.where(others > 0, np.minimum(own, others), own)
    return np.asarray(scipy.special.gammainc(np.maximum(1, days[rows]), allowed[rows] / usual))


def _reach(allowed: Floats, longest: Floats) -> Floats:
    """Minutes beyond which the chance is below 1e-17 even if all outages were of the longest sort."""
    return np.asarray((np.sqrt(allowed / longest) + _FAR) ** 2 * longest)


def _tails(lost: Floats, allowed: Floats, lengths: Lengths) -> Floats:
    shortest = np.where(lengths.share > 0, lengths.mean, np.inf).min(axis=1)
    stages = np.minimum(lost, _reach(allowed, lengths.mean.max(axis=1))) / shortest
    most = int(np.max(stages + 12 * np.sqrt(stages))) + 40
    rate = allowed[:, None] * lengths.share / lengths.mean
    go_on = np.where(lengths.share > 0, 1 - shortest[:, None] / lengths.mean, 0.0)
    at = np.zeros((most + 1, len(lost)))  # at[j]: the probability of j stages
    at[0] = np.exp(-rate.sum(axis=1))
    once, twice = np.zeros_like(rate), np.zeros_like(rate)
    for j in range(1, most + 1):
        once = at[j - 1][:, None] + go_on * once
        twice = once + go_on * twice
        at[j] = (rate * (1 - go_on) * twice).sum(axis=1) / j
    beyond = np.maximum(0.0, 1 - at.sum(axis=0))
    more = np.cumsum(at[:0:-1], axis=0)[::-1] + np.where(beyond > 1e-12, beyond, 0.0)
    k = np.arange(most, dtype=np.float64)[:, None]
    poisson = np.exp(k * np.log(stages) - stages - scipy.special.gammaln(k + 1))
    return np.asarray(np.minimum(1.0, (poisson * more).sum(axis=0)))
