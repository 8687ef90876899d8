"""Availability in shares, nines and minutes, and what typed-in figures come to.

Pure arithmetic, used by the analyzers of this floor, by reports and by the what-if pages. Units: minutes for
durations, shares in [0, 1] for availabilities; a month has 30 days and a year 365.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal

import scipy  # scipy.special takes a third of a second to load, and does when it is first used

MONTH_MINUTES = 30 * 24 * 60
YEAR_MINUTES = 365 * 24 * 60

_SLACK = 1e-9
"""Relative slack of comparisons with a requirement: 1 - 10^-6 has no exact binary form."""


def nines(availability: float) -> float:
    """Number of nines of an availability: 3 for 0.999, 3.3 for 0.9995, infinity for 1.

    Raises ValueError outside [0, 1].
    """
    lost = 1 - _share(availability, "availability")
    return math.inf if lost == 0 else -math.log10(lost)


def availability_of(count: float) -> float:
    """The availability with that many nines: 0.999 for 3, 0.99968 for 3.5. Raises ValueError below 0."""
    if not count >= 0:
        raise ValueError(f"{count} nines: must be 0 or more")
    return 1.0 - math.pow(10.0, -count)


def required_of_dependency(target_nines: float) -> float:
    """The availability that a dependency must have so that its dependents can keep their target.

    A dependency has one nine more than what depends on it (Treynor, Dahlin, Rau and Beyer, "The Calculus of
    Service Availability", ACM Queue 15(2), 2017); then a dependent loses a tenth of its budget to it.
    """
    return availability_of(target_nines + 1)


def meets(availability: float, required: float) -> bool:
    """Whether the requirement is met, judged on what is lost (binary fractions forgiven)."""
    return (1 - availability) <= (1 - required) * (1 + _SLACK) + 1e-15


def downtime_per_year(availability: float) -> float:
    """Minutes down in a year of 365 days: 5.3 for 99.999 %, 53 for 99.99 %."""
    return (1 - _share(availability, "availability")) * YEAR_MINUTES


def uptime_share(up: float, down: float) -> float:
    """Sum of times up over the sum of all; both in one unit. Raises ValueError if there is no time at all."""
    if up < 0 or down < 0 or up + down <= 0:
        raise ValueError(f"up {up} and down {down}: times are not negative and not both nothing")
    return up / (up + down)


def show_availability(availability: float) -> str:
    """A share such as `99.99993 %`: two digits of what is lost, never rounded up, so never a false 100 %."""
    exact = Decimal(repr(_share(float(availability), "availability")))
    percent, lost = 100 * exact, 100 * (1 - exact)
    if lost == 0:
        return "100 %"
    decimals = max(1, 1 - lost.adjusted())
    shown = percent.quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_FLOOR)
    return f"{shown.normalize():f} %"


def show_minutes(minutes: float) -> str:
    """`45 s`, `12 min`, `3 h 20 min` or `2 days 4 h`."""
    if minutes < 1:
        return f"{60 * minutes:.2g} s" if minutes else "0 min"
    if minutes < 59.5:
        return f"{minutes:.0f} min" if minutes >= 9.5 else f"{minutes:.2g} min"
    whole = round(minutes)
    if whole < 48 * 60:
        hours, rest = divmod(whole, 60)
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    days, rest = divmod(round(minutes / 60), 24)
    return f"{days} days {rest} h" if rest else f"{days} days"


def show_days(minutes: float) -> str:
    """`1 day`, `28 days`, `0.5 days`."""
    shown = f"{minutes / 1440:.3g}"
    return f"{shown} day" if shown == "1" else f"{shown} days"


@dataclass(frozen=True, slots=True)
class OutageMix:
    """Mix of outages: a share `soft` comes back after a reboot, `soft_minutes` later on average; the rest is
    replaced and takes `hard_minutes`. The defaults are those of the talk on Deepview at NetAI 2018.
    """

    soft: float = 0.9
    soft_minutes: float = 20.0
    hard_minutes: float = 120.0

    @property
    def mean_minutes(self) -> float:
        return self.soft * self.soft_minutes + (1 - self.soft) * self.hard_minutes


@dataclass(frozen=True, slots=True)
class TargetComparison:
    """An availability held against what its dependents need."""

    availability: float
    required: float
    target_nines: float

    @property
    def met(self) -> bool:
        return meets(self.availability, self.required)

    @property
    def on_critical_path(self) -> bool:
        """Whether the dependents cannot keep their target whatever else they do well: no extra nine."""
        return not self.met

    @property
    def shown(self) -> str:
        return show_availability(self.availability)

    @property
    def nines(self) -> float:
        return nines(self.availability)

    @property
    def minutes_per_year(self) -> float:
        """Minutes that one device is down in a year."""
        return downtime_per_year(self.availability)

    @property
    def budget_used(self) -> float:
        """Loss as a multiple of the allowed one; 1 is just enough."""
        allowed = 1 - self.required
        return (1 - self.availability) / allowed


def what_if_tor_availability(
    rebooted_per_month: float,
    mix: OutageMix = OutageMix(),
    target_nines: float = 5.0,
    month_minutes: float = MONTH_MINUTES,
) -> TargetComparison:
    """Comparison for a class of devices of which a share `rebooted_per_month` goes out in a month.

    `A = 1 - (f_soft d_soft + f_hard d_hard) r / T`, Zhang et al., NetAI 2018. With the defaults and 0.001 this
    is 0.9999993: one nine more than five, so that a single ToR is not on the critical path of five-nines VMs.
    `rebooted_per_month` may exceed 1 (each device more than once). Raises ValueError for shares outside
    [0, 1], negative durations, and outages that would not fit into the month.
    """
    _share(mix.soft, "share of soft outages")
    for name, minutes in (("soft", mix.soft_minutes), ("hard", mix.hard_minutes)):
        if not (math.isfinite(minutes) and minutes >= 0):
            raise ValueError(f"{name} outages of {minutes} minutes: must be 0 or more")
    if not (math.isfinite(month_minutes) and month_minutes > 0):
        raise ValueError(f"a period of {month_minutes} minutes: must be more than 0")
    if not (math.isfinite(rebooted_per_month) and rebooted_per_month >= 0):
        raise ValueError(f"{rebooted_per_month} of the devices go out in a month: must be 0 or more")
    lost = mix.mean_minutes * rebooted_per_month / month_minutes
    if lost > 1:
        raise ValueError(f"devices would be out for {lost:.2g} times the whole period")
    return TargetComparison(1 - lost, required_of_dependency(target_nines), target_nines)


UNSEEN = 2.0
"""Factor over the longest outage seen of the cost of one that was not seen, where lengths are drawn and not known."""


def lost_interval(
    weights: Sequence[float], total: float, level: float = 0.95, unseen: float = 1.0
) -> tuple[float, float | None]:
    """The confidence interval of the share that is lost, from the times lost in independent events.

    `weights[i]` is what event i cost and `total` the time observed, in one unit. Events come as a Poisson
    process, what each costs is as seen: the gamma interval of a weighted sum of Poisson counts (Fay and
    Feuer, Statistics in Medicine 16, 1997). Without an event the upper end is None: nothing says how
    long one would last. The upper end allows for one event more, of `unseen` times the most that one cost: 1 where
    what an event can cost is known, `UNSEEN` where twenty outages need not hold one of the long ones.
    """
    paid = [weight for weight in weights if weight > 0]
    if not paid:
        return 0.0, None
    tail = (1 - level) / 2
    lost, square, most = sum(paid), sum(weight * weight for weight in paid), unseen * max(paid)
    low = square / (2 * lost) * float(scipy.special.chdtri(2 * lost * lost / square, 1 - tail))
    above, spread = lost + most, square + most * most
    high = spread / (2 * above) * float(scipy.special.chdtri(2 * above * above / spread, tail))
    return min(1.0, low / total), min(1.0, high / total)


def missed_by_chance(weights: Sequence[float], allowed: float) -> float:
    """The probability that as much as `weights`, what each event cost, is lost where `allowed` is expected; one unit.

    Events come as a Poisson process, what each costs is as seen: the tail that belongs to the lower end of
    `lost_interval`. 1 without an event.
    """
    paid = [weight for weight in weights if weight > 0]
    if not paid:
        return 1.0
    lost, square = sum(paid), sum(weight * weight for weight in paid)
    return float(scipy.special.gammainc(lost * lost / square, allowed * lost / square))


def _share(value: float, what: str) -> float:
    if not 0 <= value <= 1:
        raise ValueError(f"{what} {value}: must be a share from 0 to 1")
    return value
