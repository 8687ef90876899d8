"""Events in which no component of a region is at fault, and what Deepview is told of that hour. Pure.

The hours before are as ever, so that history says nothing of the event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
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
EventRecords = tuple[Fleet, Failures]

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
    now = EVENTS[event].hour(QuietRegion(fleet, rng, kind, failures, start))
    return replace(now, history=plain.history)


@dataclass(frozen=True, slots=True)
class QuietRegion:
    """A region as it would be without the event, which begins at `start`."""

    fleet: Fleet
    rng: np.random.Generator
    kind: Background
    failures: Failures
    start: float


def _upgrade(ever: QuietRegion) -> Window:
    """A compute cluster is empty: its units were shut down for a planned upgrade."""
    gone = ever.fleet.carries(str(ever.rng.choice(ever.fleet.of_kind("compute_cluster"))))
    return _without(ever.fleet, ever.failures, ever.start, gone)


def _drain(ever: QuietRegion) -> Window:
    """The units of one ToR were moved to its neighbours in the cluster, and fail with the hosts on which they are now:
    a host that stands empty takes nobody with it.
    """
    fleet, rng, start = ever.fleet, ever.rng, ever.start
    tor = str(rng.choice(fleet.of_kind("tor")))
    cluster = "compute_cluster/" + tor.removeprefix("tor/").rpartition("-")[0]
    leaving = np.flatnonzero(fleet.carries(tor))
    others = np.flatnonzero(fleet.carries(cluster) & ~fleet.carries(tor))
    moved = _moved(fleet, leaving, rng.choice(others, len(leaving)))
    return _seen(moved, background(moved, rng, ever.kind, start, start + HOUR), start)


def _stale_topology(ever: QuietRegion) -> Window:
    return _seen(*_misplaced(ever.fleet, ever.rng, ever.failures, ever.start), ever.start)


def _misplaced(fleet: Fleet, rng: np.random.Generator, failures: Failures, _start: float) -> EventRecords:
    """One unit in twenty runs elsewhere, and nobody said so."""
    moved = np.flatnonzero(rng.random(fleet.units) < SHARE)
    return _moved(fleet, moved, rng.integers(0, fleet.units, len(moved))), failures


def _clock_step(ever: QuietRegion) -> Window:
    return window(
        *_fallen_back(ever.fleet, ever.rng, ever.failures, ever.start), ever.start, ever.start + HOUR
    )


def _fallen_back(fleet: Fleet, rng: np.random.Generator, failures: Failures, start: float) -> EventRecords:
    """The clocks of one host in twenty fell back by an hour: what fails there in the next one counts in this one."""
    stepped = _some_hosts(fleet, rng)[failures.unit] & (failures.minute >= start + HOUR)
    stamped = failures.minute - np.where(stepped, HOUR, 0.0)
    order = np.lexsort((failures.unit, stamped))
    return fleet, Failures(stamped[order], failures.unit[order])


def _agent_crash(ever: QuietRegion) -> Window:
    return window(*_unheard(ever.fleet, ever.rng, ever.failures, ever.start), ever.start, ever.start + HOUR)


def _unheard(fleet: Fleet, rng: np.random.Generator, failures: Failures, start: float) -> EventRecords:
    """One host in twenty tells nobody from `start` on what fails on it."""
    reported = ~_some_hosts(fleet, rng)[failures.unit] | (failures.minute < start)
    return fleet, Failures(failures.minute[reported], failures.unit[reported])


def _missing_rows(ever: QuietRegion) -> Window:
    """One row in twenty is lost, of failures and of placements; failures of units placed nowhere stay unmatched."""
    failures = ever.failures
    reported = ever.rng.random(len(failures.unit)) >= SHARE
    received = Failures(failures.minute[reported], failures.unit[reported])
    return _without(ever.fleet, received, ever.start, ever.rng.random(ever.fleet.units) < SHARE)


def _left_out_later(
    fleet: Fleet, _rng: np.random.Generator, failures: Failures, _start: float
) -> EventRecords:
    """Rows that are missing are left out of what is written."""
    return fleet, failures


@dataclass(frozen=True, slots=True)
class Event:
    """`hour` is the window that is seen; `report` where units are told to be and what is told of failures, None where
    rows cannot tell it: a unit that is placed nowhere any more has no row that says so.
    """

    hour: Callable[[QuietRegion], Window]
    report: Callable[[Fleet, np.random.Generator, Failures, float], EventRecords] | None = None


EVENTS: Mapping[str, Event] = MappingProxyType(
    {
        "upgrade": Event(_upgrade),
        "drain": Event(_drain),
        "clock_step": Event(_clock_step, _fallen_back),
        "agent_crash": Event(_agent_crash, _unheard),
        "missing_rows": Event(_missing_rows, _left_out_later),
        "stale_topology": Event(_stale_topology, _misplaced),
    }
)
REPORTED_EVENTS = tuple(name for name, event in EVENTS.items() if event.report)


def records_of(
    fleet: Fleet, rng: np.random.Generator, failures: Failures, start: float, event: str
) -> EventRecords:
    """Reported places of units, and reported failures until an hour after `start`."""
    if event and (report := EVENTS[event].report):
        fleet, failures = report(fleet, rng, failures, start)
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
    received = Failures(failures.minute[~lost], failures.unit[~lost])
    now = window(fleet, received, start, start + HOUR)
    failing = replace(now.sums["failing"], unmatched=unmatched)
    placed = _placed(fleet, np.bincount(fleet.path_of[~gone], minlength=len(fleet.paths)))
    return replace(now, sums={**now.sums, "paths": placed, "failing": failing})


def _seen(fleet: Fleet, failures: Failures, start: float) -> Window:
    """The hour, of a fleet of which some paths may carry nobody."""
    now = window(fleet, failures, start, start + HOUR)
    return replace(now, sums={**now.sums, "paths": _placed(fleet, fleet.units_on)})


def _placed(fleet: Fleet, units_on: Ints) -> Sums:
    """The paths that still carry units: nobody tells of the others."""
    rows = np.flatnonzero(units_on)
    paths = gathered(fleet.paths, rows)
    return Sums({"components": paths}, {"attempts": units_on[rows].astype(np.int64)}, len(rows))
