"""Is a component below its target by more than chance?

An outage or two says little: with three nines a component may be down for 43 minutes a month, and one outage of
an hour is below target without being a sign of anything. What is asked is how probable at least so much
downtime is for a component whose true availability is the target.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc, gammaln

Floats = NDArray[np.float64]

_MANY = 10_000.0


def chance(lost: float, allowed: float, typical: float) -> float:
    """The probability of losing at least `lost` where `allowed` is expected and one outage takes `typical`.

    All in one unit and above 0. Outages come as a Poisson process with mean `allowed / typical`, and their
    lengths are exponential: a compound Poisson sum, whose tail is
    `sum_k Poisson(k) Q(k, lost / typical)`, Q the upper regularised incomplete gamma function.
    """
    rate, reach = allowed / typical, lost / typical
    if rate > _MANY:  # the sum is as good as normal: mean `rate`, variance `2 rate`
        return 0.5 * math.erfc((reach - rate) / math.sqrt(2 * 2 * rate))
    k = np.arange(1, int(rate + 12 * math.sqrt(rate)) + 40)
    weight = np.exp(k * math.log(rate) - rate - gammaln(k + 1))
    return float(min(1.0, np.sum(weight * gammaincc(k, reach))))


def typical_minutes(minutes: Floats, owner: NDArray[np.int64], row: int) -> float:
    """The mean outage of all other components; of its own where no other had one."""
    others = minutes[owner != row]
    return float(others.mean() if len(others) else minutes[owner == row].mean())
