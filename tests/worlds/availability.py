"""Half a year of up and down times of services, disks and machines, for `availability`.

Topology: none but sites; a unit stands at one of them. Windows of 30 days, all judged, with a target of three nines: 43
minutes a month.

Noise: outages of a unit are a renewal process, with Weibull gaps (shape .7, as time between failures of real clusters)
and log-normal repair, 30 minutes in the median and a heavy tail, less at night than by day (Schroeder and Gibson, DSN
2006). A unit's rate is its own (gamma). What a unit loses in the long run is its rate times its mean repair time:
innocent units stay below half of the target by that, however unlucky a month is. In some cases a site fails as one,
rows are lost, ends are not told, two monitors tell the same outage, or work is planned.

Truth: a `Fault` is a unit that in the long run loses four times what the target allows or more, in months in which it
went down `EVIDENT` times or more for three times what a month allows: `often` (flaps), `slow` (comes back late),
`nightly` (a job of some minutes takes it down each night), `long` (a single outage of a week). Where many are bad alike
(`batch`), each is one. In `site` the units of a failing site are no faults of their own: one outage took them all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from zlib import crc32

import numpy as np

from tests.worlds import Fault, Row, World

MONTH = timedelta(days=30)
START = datetime(1970, 1, 1, tzinfo=UTC) + 682 * MONTH
MONTHS = 6
MINUTES = 720 * 60.0
"""Minutes of a month."""

ALLOWED = 1e-3 * MINUTES
EVIDENT = 3
SITES = 6


@dataclass(frozen=True)
class Plan:
    """`rate`: outages a unit and month, gamma with `shape`; `bad`: how many units are, and in which way; `wide`: the
    log-normal spread of repair. `told`: as `uptime` or as `outage`."""

    says: str
    units: int = 240
    rate: float = 0.12
    shape: float = 3.0
    wide: float = 1.1
    bad: int = 0
    way: str = "often"
    site: float = 0.0
    planned: float = 0.0
    lost: float = 0.0
    endless: float = 0.0
    twice: float = 0.0
    young: float = 0.0
    told: str = "uptime"


PLANS = {
    "healthy": Plan("an outage in eight unit-months, half an hour in the median"),
    "healthy_heavy": Plan("repair times with a much heavier tail", rate=0.05, wide=1.6),
    "healthy_unequal": Plan("rates that differ widely (gamma, shape .4)", rate=0.04, shape=0.4),
    "healthy_few": Plan("twelve units", units=12),
    "healthy_outages": Plan("told as outages, and every unit by topology", told="outage"),
    "healthy_lost": Plan("a third of the rows is lost", lost=1 / 3),
    "healthy_endless": Plan("a fifth of the outages is never told to be over", told="outage", endless=0.2),
    "healthy_young": Plan("a third of the units begins within the half-year", young=1 / 3),
    "maintenance": Plan("every unit is down for two planned hours each month", planned=1.0, told="outage"),
    "site": Plan("a site of six goes down at once in every other month, for 90 minutes", site=0.5),
    "often": Plan("one unit flaps: six to 25 outages a month", bad=1),
    "often_five": Plan("five units flap", bad=5),
    "often_few": Plan("one unit of twelve flaps", units=12, bad=1),
    "often_heavy": Plan("one unit flaps beside heavy tails", rate=0.05, wide=1.6, bad=1),
    "often_unequal": Plan("one unit flaps where rates differ widely", rate=0.04, shape=0.4, bad=1),
    "often_outages": Plan("two units flap, told as outages", bad=2, told="outage"),
    "often_twice": Plan(
        "two units flap, half of all outages told by two monitors", bad=2, told="outage", twice=0.5
    ),
    "often_endless": Plan(
        "two units flap, a fifth of the outages is never told to be over", bad=2, told="outage", endless=0.2
    ),
    "often_lost": Plan("two units flap, a third of the rows is lost", bad=2, lost=1 / 3),
    "often_site": Plan("two units flap, and sites go down as one", bad=2, site=0.5),
    "often_planned": Plan("two units flap beside planned work", bad=2, planned=1.0, told="outage"),
    "batch": Plan("a fifth of the units flaps", bad=48),
    "slow": Plan(
        "two units go down three to five times a month and come back ten times as late", bad=2, way="slow"
    ),
    "nightly": Plan("two units are down each night for some minutes", bad=2, way="nightly"),
    "long": Plan("in each month one unit is down for four to nine days", bad=1, way="long"),
}
CASES = {name: plan.says for name, plan in PLANS.items()}


@dataclass
class Unit:
    """Times are minutes since `START`; `outages` do not overlap."""

    name: str
    site: int
    born: float
    outages: list[tuple[float, float, str]] = field(default_factory=list)
    bad: bool = False


def make(seed: int, case: str) -> World:
    """The world of a case; the same seed gives the same rows. Raises KeyError for a case that is not in `CASES`."""
    plan = PLANS[case]
    rng = np.random.default_rng([seed, 1406, crc32(case.encode())])
    end = MONTHS * MINUTES
    units = [_unit(rng, plan, number, end) for number in range(plan.units)]
    _spoil(rng, plan, units, end)
    common = _sites(rng, plan, end)
    for unit in units:
        own = [*unit.outages, *((start, over, "power") for start, over, site in common if site == unit.site)]
        unit.outages = _apart(own, unit.born, end)
    rows = (
        {"outage": list(_outages(rng, plan, units, end)), "topology": [*_topology(units)]}
        if plan.told == "outage"
        else {"uptime": list(_uptime(rng, plan, units, end))}
    )
    return World(
        case=case,
        seed=seed,
        rows=rows,
        every=MONTH,
        judged_from=START,
        faults=tuple(_faults(units)),
        notes=(plan.says, f"{len(units)} units, {sum(len(unit.outages) for unit in units)} outages"),
    )


def _unit(rng: np.random.Generator, plan: Plan, number: int, end: float) -> Unit:
    kind = str(rng.choice(["service", "disk", "vm"]))
    born = float(rng.uniform(0, 0.8 * end)) if rng.random() < plan.young else 0.0
    unit = Unit(f"{kind}/u{number:03d}", int(rng.integers(SITES)), born)
    # A unit's long-run loss stays below half of the target: mean repair is the median times exp(spread^2 / 2).
    mean = 30 * np.exp(plan.wide**2 / 2)
    rate = min(float(rng.gamma(plan.shape, plan.rate / plan.shape)), 0.5 * ALLOWED / mean)
    unit.outages = list(_renewal(rng, rate, plan.wide, born, end))
    return unit


def _renewal(
    rng: np.random.Generator, rate: float, wide: float, start: float, end: float, later: float = 1.0
) -> Iterator[tuple[float, float, str]]:
    """Outages of `rate` a month from `start` on; `later` is how many times as long they take."""
    scale = (
        MINUTES / max(rate, 1e-9) / 1.2658
    )  # the mean of a Weibull gap of shape .7 is 1.2658 times its scale
    at = start + float(rng.uniform(0, 1)) * scale * float(rng.weibull(0.7))
    while at < end:
        by_day = 8 <= at / 60 % 24 < 20
        took = later * float(rng.lognormal(np.log(30 if by_day else 20), wide))
        yield at, at + took, str(rng.choice(["software", "hardware", "network"], p=[0.6, 0.25, 0.15]))
        at += took + scale * float(rng.weibull(0.7))


def _spoil(rng: np.random.Generator, plan: Plan, units: list[Unit], end: float) -> None:
    """Make some units bad, each in the way of the plan."""
    grown = [unit for unit in units if unit.born == 0.0]
    if plan.way == "long":
        for month in range(MONTHS if plan.bad else 0):
            unit = grown[int(rng.integers(len(grown)))]
            took = float(rng.uniform(4, 9)) * 24 * 60
            start = (month + float(rng.uniform(0, 0.65))) * MINUTES
            unit.outages.append((start, start + took, "hardware"))
            unit.bad = True
        return
    for at in rng.choice(len(grown), plan.bad, replace=False).tolist():
        unit = grown[at]
        unit.bad = True
        if plan.way == "often":
            rate = float(np.exp(rng.uniform(np.log(6), np.log(25))))
            unit.outages += _renewal(rng, rate, plan.wide, 0.0, end)
        elif plan.way == "slow":
            unit.outages += _renewal(rng, float(rng.uniform(3, 5)), plan.wide, 0.0, end, later=10.0)
        else:
            nights = np.arange(0, end, 24 * 60) + float(rng.uniform(60, 300))
            unit.outages += [
                (night, night + float(rng.uniform(6, 15)), "backup") for night in nights.tolist()
            ]


def _sites(rng: np.random.Generator, plan: Plan, end: float) -> list[tuple[float, float, int]]:
    """Outages of whole sites: from, until, which."""
    months = [month for month in range(MONTHS) if rng.random() < plan.site]
    starts = [(month + float(rng.uniform(0, 0.95))) * MINUTES for month in months]
    return [(start, min(start + 90.0, end), int(rng.integers(SITES))) for start in starts]


def _apart(
    outages: list[tuple[float, float, str]], start: float, end: float
) -> list[tuple[float, float, str]]:
    """Overlapping outages as one, within the time that the unit was there; shortest ones take half a minute."""
    joined: list[tuple[float, float, str]] = []
    for begun, over, cause in sorted(outages):
        first, last = max(begun, start), min(max(over, begun + 0.5), end - 1)
        if last <= first:
            continue
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]), joined[-1][2])
        else:
            joined.append((first, last, cause))
    return joined


def _faults(units: list[Unit]) -> Iterator[Fault]:
    """Months of bad units in which they lost enough to be seen."""
    for unit in units:
        for month in range(MONTHS if unit.bad else 0):
            first, last = month * MINUTES, (month + 1) * MINUTES
            inside = [min(over, last) - max(begun, first) for begun, over, _ in unit.outages]
            spent = [minutes for minutes in inside if minutes > 0]
            days = sum(spent) >= 2 * 24 * 60
            if sum(spent) >= 3 * ALLOWED and (len(spent) >= EVIDENT or days):
                yield Fault(unit.name, "below_target", _when(first), _when(last))


# -- rows --------------------------------------------------------------------------------------------------------


def _uptime(rng: np.random.Generator, plan: Plan, units: list[Unit], end: float) -> Iterator[Row]:
    """Stretches up and down; those up are told in pieces of at most a week, and some rows are lost."""
    for unit in units:
        at = unit.born
        stretches: list[tuple[float, float, str]] = []
        for begun, over, cause in unit.outages:
            stretches += [*_pieces(at, begun), (begun, over, cause)]
            at = over
        for begun, over, cause in [*stretches, *_pieces(at, end - 1)]:
            if over > begun and rng.random() >= plan.lost:
                state = {"state": "down", "cause": cause} if cause else {"state": "up"}
                yield {"unit": unit.name, "start": _text(begun), "end": _text(over), **state}


def _pieces(start: float, end: float) -> Iterator[tuple[float, float, str]]:
    week = 7 * 24 * 60.0
    while start < end:
        yield start, min(start + week, end), ""
        start += week


def _outages(rng: np.random.Generator, plan: Plan, units: list[Unit], end: float) -> Iterator[Row]:
    for unit in units:
        for begun, over, cause in unit.outages:
            row: dict[str, Any] = {"device": unit.name, "start": _text(begun), "cause": cause}
            if rng.random() < plan.endless:
                yield row
                continue
            yield {**row, "end": _text(over)}
            if rng.random() < plan.twice:  # another monitor saw it some seconds later and let go earlier
                late, early = rng.uniform(0, 0.2, 2).tolist()
                yield {
                    **row,
                    "start": _text(begun + late),
                    "end": _text(max(over - early, begun + late + 0.05)),
                }
        for month in range(MONTHS):
            if rng.random() < plan.planned:
                begun = (month + float(rng.uniform(0, 0.95))) * MINUTES
                yield {
                    "device": unit.name,
                    "start": _text(begun),
                    "end": _text(min(begun + 120, end - 1)),
                    "cause": "upgrade",
                    "planned": True,
                }


def _topology(units: list[Unit]) -> Iterator[Row]:
    for unit in units:
        yield {"time": _text(unit.born), "component": unit.name, "parents": [f"site/s{unit.site}"]}


def _when(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def _text(minutes: float) -> str:
    return _when(minutes).isoformat(timespec="milliseconds")
