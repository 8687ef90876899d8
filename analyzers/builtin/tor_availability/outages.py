"""Outages of a device class: how often, how long and why each device was out.

Overlapping outages of one device count once, all is clipped to the period, an outage without an end lasts
until the period's end, or, if it began long ago, until its believed end, and time in planned work is nobody's
loss, whatever else was reported in it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import scipy  # scipy.special takes a third of a second to load, and does when it is first used
from numpy.typing import NDArray

from analyzers.builtin.paths import texts, whole
from analyzers.builtin.stats.intervals import MINUTE, Spells, believed_ends, main_label, spells, sweep
from analyzers.builtin.stats.nines import TargetComparison
from analyzers.builtin.stats.probability import q_values
from analyzers.contract import Assumption, Sums

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

KNOWN = ("soft", "hard")
"""Causes that every deployment has; soft: mended by a reboot, hard: replaced."""

_SHARED, _BY_CHANCE = 3, 1e-3
"""Devices that go out within the same minute, at least, and how probable as many may be, for them to share a cause."""

_FLAPPING = 60 * MINUTE
"""Time after an outage within which another of the same device is a part of it."""

_MOST_SCATTER = 1.0
"""Upper limit of the overdispersion of devices that do not stand out: rates as exponential, which few repeaters among
all devices do not hide behind."""

_TIMES = 3.0
"""Times the usual number of outages from which on a device can stand out."""

_MOST_TURNS = 25
"""Times that what is normal is learnt anew."""

_LEAST_PAIRS = 2.0
"""Pairs of outages of one device that chance must bring for overdispersion to be told from it."""

_LONG_SHARE, _LONG_Z, _LEAST_OUTAGES = 0.8, 3.5, 6
"""A device is out for unusually long if it lost this share of all, its longest outage is so many robust standard
deviations of the logarithm above the median, and so many outages are there to compare."""

_TOGETHER = MINUTE
"""Outages that begin within the same minute are one event: a power feed, not as many independent ones."""


@dataclass(frozen=True, slots=True, eq=False)
class Outages:
    """Figures per device, shape (devices seen,), and per unplanned spell.

    `devices` are sorted; `lost` and `planned` are minutes; `count` is the number of unplanned spells; `cause`
    has shape (spells,) and indexes `causes`. `period` is in minutes. `doubtful` are minutes more that would be lost if
    the `unended` outages whose end was never told went on until the end.
    """

    devices: tuple[str, ...]
    period: float
    lost: Floats
    planned: Floats
    doubtful: Floats
    count: Ints
    spells: Spells
    causes: tuple[str, ...]
    cause: Ints
    ongoing: int
    unended: tuple[str, ...]

    def event_minutes(self, without: NDArray[np.bool_] | None = None) -> list[float]:
        """Minutes lost in each independent event: spells that begin within one minute are one.

        `without` of shape (devices seen,) marks devices to leave out.
        """
        counted = np.ones(len(self.spells), dtype=bool) if without is None else ~without[self.spells.owner]
        if not counted.any():
            return []
        _, event = np.unique(self.spells.start[counted] // _TOGETHER, return_inverse=True)
        return [float(cost) for cost in np.bincount(event, self.spells.minutes[counted])]

    def own(self) -> Ints:
        """Outages that speak of each device itself, shape (devices seen,).

        An outage that begins within a minute with more others than chance brings is of what they share (a power feed);
        outages within `_FLAPPING` of each other are one that flaps.
        """
        starts, owner = self.spells.start, self.spells.owner
        _, event, size = np.unique(starts // _TOGETHER, return_inverse=True, return_counts=True)
        together = scipy.special.pdtrc(size - 1, len(starts) / max(1.0, self.period)) * max(1, len(size))
        alone = ~((size >= _SHARED) & (together < _BY_CHANCE))[event]
        owner, starts, ends = owner[alone], starts[alone], self.spells.end[alone]
        again = np.zeros(len(owner), dtype=bool)
        again[1:] = (owner[1:] == owner[:-1]) & (starts[1:] - ends[:-1] < _FLAPPING)
        return np.bincount(owner[~again], minlength=len(self.devices))


def outages_of(sums: Sums, fleet: Sums | None, kind: str, start: int, end: int, open_hours: float) -> Outages:
    """The outages of devices named `kind/…` from `start` to `end` (microseconds).

    `fleet`, if given, adds the devices that the topology knows and that were never out. For `open_hours` see
    `open_ends`.
    """
    names = texts(sums, "device")
    mine = np.array([name.startswith(f"{kind}/") for name in names], dtype=bool)
    begun, over = whole(sums, "start"), whole(sums, "end")
    mine &= (begun < end) & (over > start)
    known = {name for name, taken in zip(names, mine.tolist(), strict=True) if taken}
    if fleet is not None:
        known |= {name for name in texts(fleet, "component") if name.startswith(f"{kind}/")}
    devices = tuple(sorted(known))
    number = {name: i for i, name in enumerate(devices)}
    rows = np.flatnonzero(mine)
    owner = np.array([number[names[row]] for row in rows.tolist()], dtype=np.int64)
    reported_causes = texts(sums, "cause")
    row_causes = [reported_causes[row] for row in rows.tolist()]
    causes = (*KNOWN, *sorted(set(row_causes) - set(KNOWN)))
    place = {cause: i for i, cause in enumerate(causes)}
    begun, over, planned = begun[rows], over[rows], whole(sums, "planned")[rows] > 0
    work, untold = len(causes), len(causes) + 1
    label = np.where(planned, work, np.array([place[cause] for cause in row_causes], dtype=np.int64))
    believed, doubted = believed_ends(begun, over, planned, end, open_hours)
    pieces = sweep(
        np.concatenate([owner, owner[doubted]]),
        np.concatenate([begun, believed[doubted]]),
        np.concatenate([believed, over[doubted]]),
        np.concatenate([label, np.where(planned[doubted], untold + 1, untold)]),
        untold + 2,
        start,
        end,
    )
    at_work = pieces.active[work]
    unplanned = range(len(causes))
    lost = pieces.any(unplanned) & ~at_work
    found = spells(pieces, lost)
    open_ended = {devices[one] for one in owner[doubted & ~planned].tolist()}
    return Outages(
        devices=devices,
        period=(end - start) / MINUTE,
        lost=pieces.time(lost, len(devices)),
        planned=pieces.time(at_work, len(devices)),
        doubtful=pieces.time(pieces.active[untold] & ~lost & ~at_work, len(devices)),
        count=np.bincount(found.owner, minlength=len(devices)),
        spells=found,
        causes=causes,
        cause=main_label(pieces, found, unplanned),
        ongoing=int(np.sum(believed[~planned] > end)),
        unended=tuple(sorted(open_ended)),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Excess:
    """Whether a device goes out more often than its class; arrays of shape (devices seen,).

    `expected` is how often it would be out at the rate of the devices that are not repeaters, `p` the chance of as many
    or more, `q` the same after Benjamini and Hochberg over the whole class. `scatter` is by how much the rates of the
    others differ, as the squared coefficient of variation; 0 where chance alone explains their counts.
    """

    expected: Floats
    p: Floats
    q: Floats
    scatter: float = 0.0

    def repeaters(self, level: float) -> NDArray[np.bool_]:
        return self.q < level


def excess_of(seen: Outages, devices: int, level: float) -> Excess:
    """Compare each device with the rest; repeaters are taken out of what is normal until none is added.

    Counts are Poisson, or negative binomial where the rates of the others differ: from all devices at first, so that
    what differs by kind is not taken for repeaters, then without those found. A repeater goes out `_TIMES` as often as
    the others at least: less is a device as others are.
    """
    count = seen.own()
    normal = np.ones(len(seen.devices), dtype=bool)
    unseen = devices - len(seen.devices)
    scatter = _scatter(count, devices)
    for _ in range(_MOST_TURNS):
        others = count[normal].sum() - np.where(normal, count, 0)
        peers = normal.sum() + unseen - normal
        expected = (others + 0.5) / np.maximum(peers, 1)
        p = np.where((count > 0) & (count >= _TIMES * expected), _as_many(count, expected, scatter), 1.0)
        found = Excess(expected, p, q_values(p, devices), scatter)
        still = ~found.repeaters(level)
        if np.array_equal(still, normal):
            break
        normal = still
        scatter = _scatter(count[normal], int(normal.sum()) + unseen)
    return found


def _as_many(count: Ints, expected: Floats, scatter: float) -> Floats:
    """The chance of `count` or more outages, which are 1 or more where it is read."""
    if scatter <= 0:
        return np.asarray(scipy.special.pdtrc(np.maximum(count - 1, 0), expected))
    shape = 1 / scatter
    return np.asarray(scipy.special.betainc(np.maximum(count, 1), shape, expected / (shape + expected)))


def _scatter(count: Ints, devices: int) -> float:
    """Overdispersion by moments, less two standard errors of what Poisson counts would show."""
    mean = count.sum() / max(1, devices)
    pairs, chance = float((count * (count - 1)).sum()), devices * mean**2
    if chance < _LEAST_PAIRS:
        return 0.0
    error = np.sqrt(devices * (4 * mean**3 + 2 * mean**2))
    return float(np.clip((pairs - chance - 2 * error) / chance, 0.0, _MOST_SCATTER))


def out_for_long(seen: Outages) -> NDArray[np.bool_]:
    """The device, if any, that lost most of all that was lost by an outage far longer than the others; (devices seen,).

    The standard deviation is that of the logarithms of the minutes by their median absolute deviation, at least 0.5.
    """
    found = np.zeros(len(seen.devices), dtype=bool)
    total = float(seen.lost.sum())
    if len(seen.spells) < _LEAST_OUTAGES or total <= 0:
        return found
    worst = int(np.argmax(seen.lost))
    minutes = np.log(np.maximum(seen.spells.minutes, 0.1))
    middle = float(np.median(minutes))
    deviation = max(0.5, 1.4826 * float(np.median(np.abs(minutes - middle))))
    longest = float(minutes[seen.spells.owner == worst].max())
    found[worst] = seen.lost[worst] >= _LONG_SHARE * total and longest - middle > _LONG_Z * deviation
    return found


@dataclass(frozen=True, slots=True)
class Group:
    """Devices that share a label of the topology, against the rest of the class; `rows` of the devices seen."""

    label: str
    value: str
    rows: frozenset[int]
    outages: int
    minutes: float
    other_devices: int
    other_outages: int

    @property
    def devices(self) -> int:
        return len(self.rows)


def groups_of(seen: Outages, fleet: Sums | None) -> tuple[Group, ...]:
    """Every value of every label that part of the class has, most outages a device first."""
    if fleet is None:
        return ()
    labels = dict(zip(texts(fleet, "component"), texts(fleet, "labels"), strict=True))
    members: dict[tuple[str, str], list[int]] = {}
    for row, device in enumerate(seen.devices):
        for label, value in _labels(labels.get(device, "")).items():
            members.setdefault((label, str(value)), []).append(row)
    total, count = int(seen.count.sum()), len(seen.devices)
    found = []
    for (label, value), rows in members.items():
        if 2 <= len(rows) < count:
            mine = int(seen.count[rows].sum())
            lost = float(seen.lost[rows].sum())
            found.append(Group(label, value, frozenset(rows), mine, lost, count - len(rows), total - mine))
    return tuple(sorted(found, key=lambda one: (-one.outages / one.devices, one.label, one.value)))


def _labels(text: str) -> Mapping[str, Any]:
    return dict(json.loads(text)) if text else {}


REPEATER = 0.05
"""Share of false ones among the devices that are said to go out more often than their class."""


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """Measures of the period. `low` and `high` bound the availability; `low` is None without an outage. `worst` is
    the availability if outages whose end was never told went on until the end; `low` leaves room for that.

    `outstanding` (devices seen,) marks the devices that go out more often than their class or for far longer. `chance`
    is how probable what the others lost is in a class that has just what it needs.
    """

    kind: str
    start: datetime
    end: datetime
    devices: int
    seen: Outages
    status: TargetComparison
    worst: TargetComparison
    low: float | None
    high: float
    excess: Excess
    groups: tuple[Group, ...]
    outstanding: NDArray[np.bool_]
    chance: float
    assumptions: tuple[Assumption, ...]

    @property
    def repeaters(self) -> NDArray[np.bool_]:
        return self.excess.repeaters(REPEATER)

    @property
    def surely_missed(self) -> bool:
        return self.high < self.status.required
