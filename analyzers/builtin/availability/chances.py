"""Probability of a component's outages, if it met its target and if it were like the others.

What a component did on a day is one event: what flaps for an hour happened once. Two figures are tested, because each
is blind to what the other sees: the number of days with an outage, and the sum of surprises `-ln P(as long)`, with the
lengths of the others as the measure (log-normal, as repair times are: Schroeder and Gibson, "A large-scale study of
failures in high-performance computing systems", DSN 2006; unknown mean and spread make it Student's t). One outage of
14 hours is a surprise of 6 or so, where the sum of its minutes would weigh as much as thirty outages. Days come as a
Poisson process at the rate that the target allows; held against the others, whose rates differ, their number is
negative binomial.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy  # scipy.special takes a third of a second to load, and does when it is first used
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Tail = Callable[[Floats], Floats]
"""The probability of n events or more, for n of shape (k, rows)."""

LOOKS = 4
"""Chances that are looked at; the smallest is multiplied by their number."""
CLEARLY = 2.0
"""Multiple of the allowed loss from which the others' rate says anything about the target."""
RATES_DIFFER = 2.0
"""Shape of the gamma distribution of rates among components: their standard deviation is .7 of the mean."""

_APART = 1e-3
"""Chance below which a component is not among the others that the rest are held against."""
_LEAST_SPREAD = 0.8
"""Spread of ln(minutes) that is believed even if the few outages seen are more alike."""
_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Days:
    """Days on which outages of an owner began: whose, and the minutes of all that began on it; of shape (days,)."""

    owner: Ints
    minutes: Floats


def days_of(start: Ints, minutes: Floats, owner: Ints) -> Days:
    day = start // _DAY - int(start.min(initial=0)) // _DAY
    apart = int(day.max(initial=0)) + 1
    keys, place = np.unique(owner * apart + day, return_inverse=True)
    return Days(keys // apart, np.bincount(place, minutes, len(keys)).astype(np.float64))


def chances(days: Days, time: Floats, allowed: Floats, lost: Floats, rows: Ints, idle: float = 0.0) -> Floats:
    """For each owner in `rows` the chance of outages like its own, of shape (rows,).

    `time`, `allowed` and `lost` are minutes of shape (owners,); `idle` is the time of others that had no outage and
    are no owners. Owners that stand out are left out of the others, and all are judged again.
    """
    usual = np.ones(len(time), dtype=bool)
    found = _chances(days, time, allowed, lost, rows, idle, usual)
    usual[rows[found < _APART]] = False
    return found if usual.all() else _chances(days, time, allowed, lost, rows, idle, usual)


def _chances(
    days: Days, time: Floats, allowed: Floats, lost: Floats, rows: Ints, idle: float, usual: Bools
) -> Floats:
    owners = len(time)
    count = np.bincount(days.owner, minlength=owners).astype(np.float64)
    others = _others(np.where(usual, count, 0.0), rows)
    peers = (
        (others + 1) / np.maximum(_others(np.where(usual, time, 0.0), rows) + idle, time[rows]) * time[rows]
    )
    surprise = _surprises(days, usual, rows, owners)
    expected = allowed[rows] / _usual_minutes(days, usual, rows, owners)
    times = count[rows]
    found = np.minimum(
        scipy.special.gammainc(np.maximum(times, 1), expected), chance_of_sum(surprise, expected)
    )
    ratio = peers / (peers + RATES_DIFFER)

    def unlike(n: Floats) -> Floats:
        return np.asarray(scipy.special.betainc(n, RATES_DIFFER, ratio))

    beside = np.minimum(unlike(np.maximum(times, 1)), _mixed(surprise, unlike))
    clear = lost[rows] >= CLEARLY * allowed[rows]
    return np.asarray(np.minimum(1.0, LOOKS * np.where(clear, np.minimum(found, beside), found)))


def _others(each: Floats, rows: Ints) -> Floats:
    """The sum over all owners but each of `rows`, of shape (rows,)."""
    return np.asarray(np.maximum(each.sum() - each[rows], 0.0))


def _usual_minutes(days: Days, usual: Bools, rows: Ints, owners: int) -> Floats:
    """Mean minutes of a day of the others, or of its own if those are shorter: who goes out often for a moment may."""
    count = np.bincount(days.owner, minlength=owners).astype(np.float64)
    total = np.bincount(days.owner, days.minutes, owners)
    own = total[rows] / np.maximum(1, count[rows])
    number, minutes = _others(np.where(usual, count, 0.0), rows), _others(np.where(usual, total, 0.0), rows)
    return np.where(number > 0, np.minimum(own, minutes / np.maximum(number, 1)), own)


def _surprises(days: Days, usual: Bools, rows: Ints, owners: int) -> Floats:
    """Sum over the days of each of `rows` of `-ln P(as long)`, by the logarithms of the others' minutes."""
    log = np.log(np.maximum(days.minutes, 1e-3))
    weight = usual[days.owner].astype(np.float64)
    number, first, second = (
        _others(np.bincount(days.owner, weight * log**power, owners).astype(np.float64), rows)
        for power in (0, 1, 2)
    )
    place = np.full(owners, -1, dtype=np.int64)
    place[rows] = np.arange(len(rows))
    mine = place[days.owner] >= 0
    row = place[days.owner[mine]]
    own = np.bincount(row, log[mine], len(rows)) / np.maximum(1, np.bincount(row, minlength=len(rows)))
    known = number >= 2
    middle = np.where(known, first / np.maximum(number, 1), own)
    free = np.where(known, number - 1, 1.0)
    squares = np.maximum(second - number * middle**2, 0.0)
    spread = np.maximum(np.where(known, np.sqrt(squares / free), 0.0), _LEAST_SPREAD)
    scale = spread * np.sqrt(1 + 1 / np.maximum(number, 1))
    longer = scipy.special.stdtr(free[row], (middle[row] - log[mine]) / scale[row])
    return np.asarray(np.bincount(row, -np.log(np.maximum(longer, 1e-300)), len(rows)), dtype=np.float64)


def chance_of_sum(total: Floats, expected: Floats) -> Floats:
    """P(X_1 + ... + X_N >= total) for exponential X of mean 1 and a Poisson N of mean `expected`; shape of `total`."""
    return _mixed(total, lambda n: np.asarray(scipy.special.gammainc(n, expected)))


def _mixed(total: Floats, tail: Tail) -> Floats:
    """`sum_k Poisson(k; total) P(N > k)`: all terms are positive, so that far tails are exact, too."""
    most = int(np.max(total + 12 * np.sqrt(total), initial=0)) + 40
    k = np.arange(most, dtype=np.float64)[:, None]
    weight = np.exp(scipy.special.xlogy(k, total) - total - scipy.special.gammaln(k + 1))
    return np.asarray(np.minimum(1.0, (weight * tail(k + 1)).sum(axis=0)))
