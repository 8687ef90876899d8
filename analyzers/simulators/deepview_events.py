"""Events in which no component of a region is at fault, and what Deepview is told of that hour. Pure.

The hours before are as ever, so that history says nothing of the event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from analyzers.contract import Sums, Window
from analyzers.simulators.deepview import (
    Background,
    Failures,
    background,
    window,
    with_history,
)
from analyzers.simulators.fleet import Fleet
from analyzers.simulators.routes import gathered

Mask = NDArray[np.bool_]
Ints = NDArray[np.int64]

HOUR, PAST = 60.0, 12
SHARE = 0.05
"""Of the hosts, units or rows that an event touches."""


def eventful_hour(fleet: Fleet, rng: np.random.Generator, kind: Background, event: str) -> Window:
    """An hour with one of `EVENTS` (or none: an empty text) after twelve hours without."""
    start = PAST * HOUR
    failures = background(fleet, rng, kind, 0, start + 2 * HOUR)
    plain = with_history(fleet, failures, start + HOUR)
    if not event:
        return plain
    if event not in EVENTS:
        raise ValueError(f"no benign event {event!r}; there are {', '.join(EVENTS)}")
    now = (
        _drain(fleet, rng, kind, start) if event == "drain" else _TELLING[event](fleet, rng, failures, start)
    )
    return replace(now, history=plain.history)


def _upgrade(fleet: Fleet, rng: np.random.Generator, failures: Failures, start: float) -> Window:
    """A compute cluster is empty: its units were shut down for a planned upgrade."""
    gone = fleet.carries(str(rng.choice(fleet.of_kind("compute_cluster"))))
    return _without(fleet, failures, start, gone)


def _drain(fleet: Fleet, rng: np.random.Generator, kind: Background, start: float) -> Window:
    """The units of one ToR were moved to its neighbours in the cluster, and fail with the hosts on which they are now:
    a host that stands empty takes nobody with it.
    """
    tor = str(rng.choice(fleet.of_kind("tor")))
    cluster = "compute_cluster/" + tor.removeprefix("tor/").rpartition("-")[0]
    leaving = np.flatnonzero(fleet.carries(tor))
    others = np.flatnonzero(fleet.carries(cluster) & ~fleet.carries(tor))
    moved = _moved(fleet, leaving, rng.choice(others, len(leaving)))
    return _seen(moved, background(moved, rng, kind, start, start + HOUR), start)


def _stale_topology(fleet: Fleet, rng: np.random.Generator, failures: Failures, start: float) -> Window:
    """One unit in twenty runs elsewhere, and nobody said so."""
    moved = np.flatnonzero(rng.random(fleet.units) < SHARE)
    return _as_told(fleet, failures, start, moved, rng.integers(0, fleet.units, len(moved)))


def _clock_step(fleet: Fleet, rng: np.random.Generator, failures: Failures, start: float) -> Window:
    return window(fleet, _fallen_back(fleet, rng, failures, start), start, start + HOUR)


def _fallen_back(fleet: Fleet, rng: np.random.Generator, failures: Failures, start: float) -> Failures:
    """The clocks of one host in twenty fell back by an hour: what fails there in the next one counts in this one."""
    stepped = _some_hosts(fleet, rng)[failures.unit] & (failures.minute >= start + HOUR)
    told = failures.minute - np.where(stepped, HOUR, 0.0)
    order = np.lexsort((failures.unit, told))
    return Failures(told[order], failures.unit[order])


def _agent_crash(fleet: Fleet, rng: np.random.Generator, failures: Failures, start: float) -> Window:
    return window(fleet, _unheard(fleet, rng, failures, start), start, start + HOUR)


def _unheard(fleet: Fleet, rng: np.random.Generator, failures: Failures, start: float) -> Failures:
    """One host in twenty tells nobody from `start` on what fails on it."""
    heard = ~_some_hosts(fleet, rng)[failures.unit] | (failures.minute < start)
    return Failures(failures.minute[heard], failures.unit[heard])


def _missing_rows(fleet: Fleet, rng: np.random.Generator, failures: Failures, start: float) -> Window:
    """One row in twenty is lost, of failures and of placements; failures of units placed nowhere stay unmatched."""
    heard = rng.random(len(failures.unit)) >= SHARE
    told = Failures(failures.minute[heard], failures.unit[heard])
    return _without(fleet, told, start, rng.random(fleet.units) < SHARE)


_TELLING: Mapping[str, Callable[[Fleet, np.random.Generator, Failures, float], Window]] = MappingProxyType(
    {
        "upgrade": _upgrade,
        "clock_step": _clock_step,
        "agent_crash": _agent_crash,
        "missing_rows": _missing_rows,
        "stale_topology": _stale_topology,
    }
)
"""Events that change what is told of the failures there are; a drain changes the failures."""

EVENTS = ("upgrade", "drain", "clock_step", "agent_crash", "missing_rows", "stale_topology")


TOLD_EVENTS = ("clock_step", "agent_crash", "missing_rows", "stale_topology")
"""Those of which rows can tell: a unit that is placed nowhere any more has no row that says so."""


def told_of(
    fleet: Fleet, rng: np.random.Generator, failures: Failures, start: float, event: str
) -> tuple[Fleet, Failures]:
    """Where units are told to be, and what is told of failures until an hour after `start`; rows that are missing are
    left out of what is written.
    """
    if event == "stale_topology":
        moved = np.flatnonzero(rng.random(fleet.units) < SHARE)
        fleet = _moved(fleet, moved, rng.integers(0, fleet.units, len(moved)))
    elif event == "clock_step":
        failures = _fallen_back(fleet, rng, failures, start)
    elif event == "agent_crash":
        failures = _unheard(fleet, rng, failures, start)
    over = failures.minute < start + HOUR
    return fleet, Failures(failures.minute[over], failures.unit[over])


def _moved(fleet: Fleet, units: Ints, like: Ints) -> Fleet:
    """The fleet with each of `units` placed where the unit in `like` is."""
    path_of, host_of = fleet.path_of.copy(), fleet.host_of.copy()
    path_of[units], host_of[units] = fleet.path_of[like], fleet.host_of[like]
    units_on = np.bincount(path_of, minlength=len(fleet.paths))
    return replace(fleet, path_of=path_of, host_of=host_of, units_on=units_on)


def _some_hosts(fleet: Fleet, rng: np.random.Generator) -> Mask:
    """Whether each unit's host is one of the few; shape (units,)."""
    return np.asarray((rng.random(len(fleet.host_names)) < SHARE)[fleet.host_of], dtype=np.bool_)


def _without(fleet: Fleet, failures: Failures, start: float, gone: Mask) -> Window:
    """The hour without the units that are `gone`; their failures name units that are placed nowhere."""
    lost = gone[failures.unit]
    inside = lost & (failures.minute >= start) & (failures.minute < start + HOUR)
    unmatched = len(np.unique(failures.unit[inside]))
    told = Failures(failures.minute[~lost], failures.unit[~lost])
    now = window(fleet, told, start, start + HOUR)
    failing = replace(now.sums["failing"], unmatched=unmatched)
    placed = _placed(fleet, np.bincount(fleet.path_of[~gone], minlength=len(fleet.paths)))
    return replace(now, sums={**now.sums, "paths": placed, "failing": failing})


def _as_told(fleet: Fleet, failures: Failures, start: float, units: Ints, like: Ints) -> Window:
    """The hour as it looks when each of `units` is placed where the unit in `like` is."""
    return _seen(_moved(fleet, units, like), failures, start)


def _seen(fleet: Fleet, failures: Failures, start: float) -> Window:
    """The hour, of a fleet of which some paths may carry nobody."""
    now = window(fleet, failures, start, start + HOUR)
    return replace(now, sums={**now.sums, "paths": _placed(fleet, fleet.units_on)})


def _placed(fleet: Fleet, units_on: Ints) -> Sums:
    """The paths that still carry units: nobody tells of the others."""
    rows = np.flatnonzero(units_on)
    paths = gathered(fleet.paths, rows)
    return Sums({"components": paths}, {"attempts": units_on[rows].astype(np.int64)}, len(rows))
