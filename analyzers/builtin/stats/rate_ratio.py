"""Ratio of the failure rates of two groups, when both are seen in the same strata.

Mantel and Haenszel's rate ratio with the variance of Greenland and Robins (Biometrics 41, 1985): a stratum
(a day, say) that is bad for both groups does not bias it, and strata in which one group is absent do no harm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

Z95 = 1.959963984540054


class TooFewCountsError(ValueError):
    """The counts cannot give a ratio; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Stratum:
    """Failures and time at risk (in any one unit) of the near and the far group within one stratum."""

    near_failures: float
    near_time: float
    far_failures: float
    far_time: float


@dataclass(frozen=True, slots=True)
class RateRatio:
    """`ratio` is the far rate over the near rate, less one: 0.114 means 11.4 % more failures far than near.

    `low` and `high` are the ends of its 95 % interval. `dispersion` is how much more the strata, and the units, scatter
    than independent failures would (1: no more); the interval is widened by its root.
    """

    ratio: float
    low: float
    high: float
    dispersion: float

    @property
    def differs(self) -> bool:
        """Whether the interval excludes equal rates."""
        return self.low > 0 or self.high < 0


def rate_ratio(strata: Sequence[Stratum], of_units: float = 1.0) -> RateRatio:
    """The rate ratio pooled over strata. Raises TooFewCountsError if a group has no time or no failure in them.

    Failures that come in clumps (a cluster that takes fifty disks down) are not independent: the interval
    uses the dispersion of the strata around the pooled ratio when that is above 1, and adds what that `of_units` is
    above 1: some fail again and again.
    """
    both = [one for one in strata if one.near_time > 0 and one.far_time > 0]
    if not both:
        raise TooFewCountsError(
            "near and far units are never seen in the same stratum: they cannot be compared"
        )
    near, far = sum(one.near_failures for one in both), sum(one.far_failures for one in both)
    if near <= 0 or far <= 0:
        which = "near and no far" if near <= 0 and far <= 0 else "near" if near <= 0 else "far"
        raise TooFewCountsError(f"no {which} unit failed: a ratio of rates needs failures on both sides")
    above = sum(one.far_failures * one.near_time / _time(one) for one in both)
    below = sum(one.near_failures * one.far_time / _time(one) for one in both)
    spread = sum(
        (one.near_failures + one.far_failures) * one.near_time * one.far_time / _time(one) ** 2
        for one in both
    )
    ratio = above / below
    dispersion = max(1.0, _dispersion(both, ratio)) + max(0.0, of_units - 1)
    wide = math.exp(Z95 * math.sqrt(dispersion * spread / (above * below)))
    return RateRatio(ratio - 1, ratio / wide - 1, ratio * wide - 1, dispersion)


def _time(one: Stratum) -> float:
    return one.near_time + one.far_time


def _dispersion(strata: Sequence[Stratum], ratio: float) -> float:
    """Pearson's statistic of the far share of each stratum's failures, per degree of freedom."""
    seen = [one for one in strata if one.near_failures + one.far_failures > 0]
    if len(seen) < 3:
        return 1.0
    statistic = 0.0
    for one in seen:
        failures = one.near_failures + one.far_failures
        share = ratio * one.far_time / (ratio * one.far_time + one.near_time)
        statistic += (one.far_failures - failures * share) ** 2 / (failures * share * (1 - share))
    return statistic / (len(seen) - 1)


def what_if_colocation(
    near_failures: float, near_unit_days: float, far_failures: float, far_unit_days: float
) -> RateRatio:
    """The ratio of typed-in totals: one stratum. Raises TooFewCountsError as `rate_ratio`, ValueError for bad
    figures."""
    given = {
        "near_failures": near_failures,
        "near_unit_days": near_unit_days,
        "far_failures": far_failures,
        "far_unit_days": far_unit_days,
    }
    for name, value in given.items():
        if not (math.isfinite(value) and value >= 0):
            raise ValueError(f"{name} is {value}: must be a number from 0")
    return rate_ratio([Stratum(near_failures, near_unit_days, far_failures, far_unit_days)])
