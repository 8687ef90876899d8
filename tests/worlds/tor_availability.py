"""Outages of a class of devices over a year, for `tor_availability`.

Topology: ToRs in rows of 20 with a firmware as label, told by `topology`; a fifth of the class fails twice as often.
Windows of 30 days, all judged.

Noise: outages of a device are Poisson with a rate of its own (gamma); 90 % are soft with a median of 20 minutes and
10 % hard with a median of two hours, both log-normal, as the talk on Deepview (NSDI 2018) counts them. Usual for real
switches: 98 % run three months without a failure, one vendor fails twice as often, 28 % of the failures are power
(Singh et al., CCR 2021); repair times are log-normal (Schroeder and Gibson, DSN 2006).

Two things may be wrong in a window, and both are `Fault`s. The class misses its target: `device_class/tor`, kind
`class_misses`, wherever the true unplanned downtime is above one in a million (a nine more than the five of what
depends on it). Somebody stands out: a device (`lemon`, `long_outage`), a firmware or a row of neighbours (kind begins
with `common_`, all its devices are acceptable). A lemon gets `LEMON` outages a month and more, where the chance that
any other of its class gets that many is below 1 in 1000.

Naming a device where only the class misses is false, except for one that was out for a day and more, or that has three
outages in the month and truly fails five times as often as its class; these are acceptable.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from tests.worlds import Fault, World

MONTH = timedelta(days=30)
START = datetime(1970, 1, 1, tzinfo=UTC) + 676 * MONTH
MONTHS = 12
END = START + MONTHS * MONTH
ALLOWED = 1e-6
LEMON = 7
ROW = 20
SHORTEST = 5.0
CLASS = "device_class/tor"


@dataclass(frozen=True)
class Plan:
    """`rate`: outages a device and month, gamma with `shape`. `soft_s`: the median of a soft one in seconds."""

    says: str
    devices: int = 400
    rate: float = 0.02
    soft_s: float = 1_200.0
    hard: float = 0.1
    shape: float = 4.0
    lemons: int = 0
    special: str = ""
    no_end: float = 0.0
    told_twice: float = 0.0
    without_topology: bool = False


PLANS = {
    "healthy": Plan("an outage in 5000 device-months, a minute each", rate=0.0002, soft_s=60, hard=0.0),
    "healthy_real": Plan("one device in 1000 a month, 20 minutes each or two hours", rate=0.001),
    "healthy_few": Plan("six devices without unplanned outages", 6, rate=0.0, special="maintenance"),
    "maintenance": Plan("every device is out once a month, planned", rate=0.0, special="maintenance"),
    "class_misses": Plan("2 % of the devices are out each month, nobody stands out"),
    "class_misses_badly": Plan("every fifth device is out each month, nobody stands out", rate=0.2),
    "no_topology": Plan("as class_misses, and only devices with outages are known", without_topology=True),
    "overdispersed": Plan(
        "rates that differ widely (gamma, shape .5), nobody is a lemon", rate=0.1, shape=0.5
    ),
    "short": Plan("every device has three outages of some 6 s a month", rate=3.0, soft_s=6, hard=0.0),
    "long": Plan("a device in 400 is out for two days a month", rate=0.0025, soft_s=172_800, hard=0.0),
    "unmarked_upgrade": Plan(
        "a rolling upgrade of all devices, 10 minutes each, not marked as planned", special="upgrade"
    ),
    "firmware_everywhere": Plan(
        "from the seventh month on all devices are out ten times as often", special="everywhere"
    ),
    "summer": Plan("three times as many outages in three months", special="summer"),
    "few": Plan("six devices, each out every other month", 6, rate=0.5),
    "few_lemon": Plan("six devices, one of them out a dozen times a month", 6, rate=0.05, lemons=1),
    "lemon": Plan("one device of 400 is out ten times a month", lemons=1),
    "lemon_in_noise": Plan("one lemon where rates differ widely", rate=0.05, shape=0.5, lemons=1),
    "lemon_short": Plan("one lemon whose outages take some 10 s", rate=0.01, soft_s=10, lemons=1, hard=0.0),
    "two_lemons": Plan("two lemons of 400", lemons=2),
    "lemon_firmware": Plan("40 devices of one firmware are out once a month each", special="firmware"),
    "power": Plan(
        "in four months a row of 20 devices is out at once for three quarters of an hour", special="power"
    ),
    "long_outage": Plan(
        "in four months one device is out for nine days", rate=0.0002, soft_s=60, hard=0, special="long"
    ),
    "missing_ends": Plan("30 % of the outages are never told to be over", no_end=0.3),
    "missing_ends_lemon": Plan(
        "one lemon, 30 % of the outages are never told to be over", no_end=0.3, lemons=1
    ),
    "told_twice": Plan(
        "outages are told when they begin and again when over, some by two monitors", told_twice=0.5
    ),
    "growing": Plan("a third of the devices is new in the year and a tenth is retired", special="growing"),
    "other_class": Plan(
        "ToRs are well, aggregation switches miss", rate=0.0002, soft_s=60, hard=0.0, special="other"
    ),
}
CASES = {name: plan.says for name, plan in PLANS.items()}


@dataclass
class Outage:
    """Times are seconds since the start. `judged` is false for what is no unplanned outage of the class."""

    device: str
    start: float
    end: float
    cause: str
    planned: bool = False
    judged: bool = True


@dataclass
class Fleet:
    plan: Plan
    rng: np.random.Generator
    names: list[str]
    firmware: list[str]
    rates: NDArray[np.float64]
    outages: list[Outage] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    since: dict[str, float] = field(default_factory=dict)
    until: dict[str, float] = field(default_factory=dict)


SECONDS = MONTH.total_seconds()


def make(seed: int, case: str) -> World:
    """The world of a case. Raises KeyError for a case that is not in `CASES`."""
    plan = PLANS[case]
    rng = np.random.default_rng([seed, crc32(case.encode())])
    fleet = _fleet(plan, rng)
    for month in range(MONTHS):
        _usual(fleet, month)
        _special(fleet, month)
    _lemons(fleet)
    fleet.outages = _apart(fleet.outages)
    fleet.faults += _misses(fleet)
    rows: dict[str, list[dict[str, Any]]] = {"outage": _rows(fleet)}
    if not plan.without_topology:
        rows["topology"] = _topology(fleet)
    return World(case, seed, rows, MONTH, START, tuple(fleet.faults), tuple(fleet.notes))


def _fleet(plan: Plan, rng: np.random.Generator) -> Fleet:
    names = [f"tor/dc2-r{i // ROW:02d}-t{i % ROW:02d}" for i in range(plan.devices)]
    frail = rng.random(plan.devices) < 0.2
    rates = plan.rate * rng.gamma(plan.shape, 1 / plan.shape, plan.devices) * np.where(frail, 2.0, 1.0)
    firmware = [str(one) for one in rng.choice(["9.3.5", "9.3.7", "10.1.2"], plan.devices, p=[0.6, 0.1, 0.3])]
    fleet = Fleet(plan, rng, names, firmware, rates)
    if plan.special == "growing":
        for name in rng.choice(names, plan.devices // 3, replace=False).tolist():
            fleet.since[name] = float(rng.uniform(0, MONTHS * SECONDS))
        for name in rng.choice(names, plan.devices // 10, replace=False).tolist():
            if name not in fleet.since:
                fleet.until[name] = float(rng.uniform(0, MONTHS * SECONDS))
    return fleet


def _usual(fleet: Fleet, month: int) -> None:
    """The outages that every device has at its own rate."""
    rng, factor = fleet.rng, 1.0
    if fleet.plan.special == "everywhere" and month >= 6:
        factor = 10.0
    elif fleet.plan.special == "summer" and month in (0, 10, 11):
        factor = 3.0
    counts = rng.poisson(fleet.rates * factor)
    for device in np.flatnonzero(counts).tolist():
        for _ in range(int(counts[device])):
            _out(fleet, fleet.names[device], month)


def _out(fleet: Fleet, device: str, month: int, at: float | None = None, cause: str = "") -> None:
    """One outage at some time of the month, soft or hard."""
    plan, rng = fleet.plan, fleet.rng
    hard = not cause and rng.random() < plan.hard
    lasts = (7_200.0 if hard else plan.soft_s) * float(np.exp(0.5 * rng.standard_normal()))
    start = (month + float(rng.random())) * SECONDS if at is None else at
    lives = fleet.since.get(device, 0.0) <= start < fleet.until.get(device, np.inf)
    if lives and start < MONTHS * SECONDS - 1:
        end = min(start + max(lasts, SHORTEST), MONTHS * SECONDS)
        fleet.outages.append(Outage(device, start, end, cause or ("hard" if hard else "soft")))


def _lemons(fleet: Fleet) -> None:
    plan, rng = fleet.plan, fleet.rng
    for device in rng.choice(plan.devices, plan.lemons, replace=False).tolist():
        counts = [LEMON + int(rng.poisson(3)) for _ in range(MONTHS)]
        for month, count in enumerate(counts):
            for place in range(count):
                at = (month + (place + float(rng.uniform(0.1, 0.9))) / count) * SECONDS
                _out(fleet, fleet.names[device], month, at, "soft")
        fleet.faults.append(Fault(fleet.names[device], "lemon", START, END))
        fleet.notes.append(f"{fleet.names[device]}: {min(counts)} to {max(counts)} outages a month")


def _special(fleet: Fleet, month: int) -> None:
    plan, rng = fleet.plan, fleet.rng
    if plan.special == "maintenance":
        for name in fleet.names:
            at = (month + float(rng.random()) * 0.99) * SECONDS
            fleet.outages.append(Outage(name, at, at + 1_800, "maintenance", planned=True, judged=False))
    elif plan.special == "upgrade" and month in (3, 9):
        for i, name in enumerate(fleet.names):
            at = (month + 0.4) * SECONDS + 60.0 * i
            fleet.outages.append(Outage(name, at, at + float(rng.uniform(400, 800)), "upgrade"))
    elif plan.special == "firmware":
        _firmware(fleet, month)
    elif plan.special == "power" and month in (2, 5, 8, 11):
        row = int(rng.integers(plan.devices // ROW))
        members = fleet.names[row * ROW : (row + 1) * ROW]
        at = (month + float(rng.uniform(0.1, 0.9))) * SECONDS
        for name in members:
            begin = at + float(rng.uniform(0, 20))
            fleet.outages.append(Outage(name, begin, begin + float(rng.uniform(2_400, 3_000)), "power"))
        _common(fleet, "common_power", members, month, f"row/dc2-r{row:02d}")
    elif plan.special == "long" and month in (1, 4, 7, 10):
        name = str(rng.choice(fleet.names))
        at = (month + float(rng.uniform(0.1, 0.6))) * SECONDS
        fleet.outages.append(Outage(name, at, at + 9 * 86_400, "hard"))
        fleet.faults.append(Fault(name, "long_outage", *_times(month)))
    elif plan.special == "other":
        for i in rng.integers(0, 24, int(rng.poisson(8))).tolist():
            at = (month + float(rng.random()) * 0.99) * SECONDS
            fleet.outages.append(Outage(f"agg/dc2-a{i:02d}", at, at + 1_800, "soft", judged=False))


def _firmware(fleet: Fleet, month: int) -> None:
    members = [name for name, one in zip(fleet.names, fleet.firmware, strict=True) if one == "9.3.7"]
    for name in members:
        for _ in range(int(fleet.rng.poisson(1.0))):
            _out(fleet, name, month, cause="soft")
    _common(fleet, "common_firmware", members, month, "firmware/9.3.7")


def _common(fleet: Fleet, kind: str, members: list[str], month: int, cause: str) -> None:
    fleet.faults.append(Fault(cause, kind, *_times(month), tuple(members)))


def _times(month: int) -> tuple[datetime, datetime]:
    return START + month * MONTH, START + (month + 1) * MONTH


def _apart(outages: list[Outage]) -> list[Outage]:
    """Outages by device and time; one that begins within another of its device is left out."""
    kept: list[Outage] = []
    for one in sorted(outages, key=lambda one: (one.device, one.start)):
        if not kept or kept[-1].device != one.device or one.start > kept[-1].end + 60:
            kept.append(one)
    return kept


def _misses(fleet: Fleet) -> list[Fault]:
    """The months in which the class misses its target, counted from the true times of unplanned outages."""
    found = []
    for month in range(MONTHS):
        begin, end = month * SECONDS, (month + 1) * SECONDS
        out = sum(max(0.0, min(one.end, end) - max(one.start, begin)) for one in fleet.outages if one.judged)
        there = sum(
            max(0.0, min(fleet.until.get(name, end), end) - max(fleet.since.get(name, begin), begin))
            for name in fleet.names
        )
        if out > ALLOWED * there:
            found.append(Fault(CLASS, "class_misses", *_times(month), _notable(fleet, begin, end)))
        fleet.notes.append(f"month {month}: availability {1 - out / there:.8f}")
    return found


def _notable(fleet: Fleet, begin: float, end: float) -> tuple[str, ...]:
    """Devices that a careful person may name in a month: out for a day, or often out and truly frail."""
    counts: Counter[str] = Counter()
    found = set()
    for one in fleet.outages:
        if one.judged and one.start < end and one.end > begin:
            counts[one.device] += 1
            if one.end - one.start >= 86_400:
                found.add(one.device)
    frail = {name for name, rate in zip(fleet.names, fleet.rates, strict=True) if rate > 5 * fleet.plan.rate}
    return tuple(sorted(found | {name for name, count in counts.items() if count >= 3 and name in frail}))


def _rows(fleet: Fleet) -> list[dict[str, Any]]:
    rng, plan = fleet.rng, fleet.plan
    rows: list[tuple[float, dict[str, Any]]] = []
    for one in fleet.outages:
        row: dict[str, Any] = {"device": one.device, "start": _shown(one.start), "cause": one.cause}
        if one.planned:
            row["planned"] = True
        whole = {**row, "end": _shown(one.end)}
        if rng.random() < plan.no_end:
            rows.append((one.start, row))
        elif rng.random() < plan.told_twice:
            rows += [(one.start, row), (one.end, whole)]
            if rng.random() < 0.3:
                other = {
                    **whole,
                    "start": _shown(one.start + 20),
                    "end": _shown(one.end + 30),
                    "cause": "unreachable",
                }
                rows.append((one.end + 40, other))
        else:
            rows.append((one.end, whole))
    return [row for _, row in sorted(rows, key=lambda pair: pair[0])]


def _topology(fleet: Fleet) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for name, firmware in zip(fleet.names, fleet.firmware, strict=True):
        since, row = fleet.since.get(name, -86_400.0), name.split("/")[1].rsplit("-", 1)[0]
        parents = [f"row/{row}"]
        rows.append(
            {"time": _shown(since), "component": name, "parents": parents, "labels": {"firmware": firmware}}
        )
        if name in fleet.until:
            rows.append({"time": _shown(fleet.until[name]), "component": name, "active": False})
    if fleet.plan.special == "other":
        rows += [{"time": _shown(-86_400.0), "component": f"agg/dc2-a{i:02d}"} for i in range(24)]
    return rows


def _shown(seconds: float) -> str:
    return (START + timedelta(seconds=round(seconds, 3))).isoformat()
