"""Failures in simulated regions, for Deepview: a healthy background and faults with known truth.

Times are minutes on an axis of their own; `window` and `sliding` cut it. The failures of a unit are events,
as the telemetry has them, and a window counts a unit once. Seeds below `FIRST_REPORTING_SEED` were used to
choose defaults and to calibrate scores; figures that are published use seeds from there on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from analyzers.contract import Sums, Window
from analyzers.simulators.fleet import Fleet
from analyzers.simulators.tables import sums_of

FIRST_REPORTING_SEED = 2_000_000
EPOCH = datetime(2026, 1, 5, tzinfo=UTC)
SLICE_MINUTES = 5

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Background:
    """Failures of a healthy fleet.

    `rate` is the failures per unit and hour, uneven over paths by Gamma(0.5, 2). `hosts` hosts an hour die
    and take between 1 and 20 of their units with them. `customers` a day, on average, lose up to 30 units in
    one storage cluster to an error of their own, such as an expired account; their units run on a few hosts.
    """

    rate: float = 1e-4
    hosts: float = 0.0
    customers: float = 0.0


INDEPENDENT = Background()
CLUMPED = Background(hosts=1.0)


@dataclass(frozen=True, slots=True)
class Fault:
    """A component that fails a share `severity` of its units per hour from minute `start` to `end`.

    `shape` is `steady`, `stop` (all within the first three minutes), `ramp` (ever faster) or `flapping` (five
    minutes on, ten off).
    """

    component: str
    severity: float
    start: float
    end: float
    shape: str = "steady"


@dataclass(frozen=True, slots=True, eq=False)
class Failures:
    """Failures of units, by time: `minute` and `unit` of shape (failures,)."""

    minute: Floats
    unit: Ints

    def plus(self, *others: Failures) -> Failures:
        minute = np.concatenate([self.minute, *(other.minute for other in others)])
        unit = np.concatenate([self.unit, *(other.unit for other in others)])
        order = np.lexsort((unit, minute))
        return Failures(minute[order], unit[order])


NONE = Failures(np.empty(0), np.empty(0, dtype=np.int64))


def background(
    fleet: Fleet, rng: np.random.Generator, kind: Background, start: float, end: float
) -> Failures:
    """A healthy stretch of time."""
    hours = (end - start) / 60
    weight = (fleet.units_on * rng.gamma(0.5, 2.0, len(fleet.units_on)))[fleet.path_of] / fleet.units_on[
        fleet.path_of
    ]
    count = rng.poisson(kind.rate * hours * float(weight.sum()))
    unit = rng.choice(fleet.units, size=count, p=weight / weight.sum())
    alone = Failures(rng.uniform(start, end, count), unit.astype(np.int64))
    return alone.plus(
        *_dead_hosts(fleet, rng, rng.poisson(kind.hosts * hours), start, end),
        *_customer_errors(fleet, rng, rng.poisson(kind.customers * hours / 24), start, end),
    )


def _dead_hosts(
    fleet: Fleet, rng: np.random.Generator, count: int, start: float, end: float
) -> list[Failures]:
    clumps = []
    for host in rng.choice(fleet.host_of, size=count):
        units = np.flatnonzero(fleet.host_of == host)
        lost = rng.permutation(units)[: rng.integers(1, 21)]
        clumps.append(Failures(rng.uniform(start, end) + rng.uniform(0, 2, len(lost)), lost))
    return clumps


def _customer_errors(
    fleet: Fleet, rng: np.random.Generator, count: int, start: float, end: float
) -> list[Failures]:
    """One customer's units: in one storage cluster and one compute cluster, packed on up to four hosts."""
    errors = []
    storage, clusters = fleet.of_kind("storage_cluster"), fleet.of_kind("compute_cluster")
    for _ in range(count):
        both = fleet.carries(str(rng.choice(storage))) & fleet.carries(str(rng.choice(clusters)))
        units = np.flatnonzero(both)
        if not len(units):
            continue
        hosts = rng.permutation(np.unique(fleet.host_of[units]))[:4]
        lost = rng.permutation(units[np.isin(fleet.host_of[units], hosts)])[: rng.integers(0, 31)]
        errors.append(Failures(rng.uniform(start, end) + rng.uniform(0, 10, len(lost)), lost))
    return errors


def strike(fleet: Fleet, rng: np.random.Generator, fault: Fault) -> Failures:
    """Failures by a fault in the units that depend on its component."""
    units = np.flatnonzero(fleet.carries(fault.component))
    hours = (fault.end - fault.start) / 60
    share = (
        fault.severity if fault.shape == "stop" else -np.expm1(hours * np.log1p(-min(fault.severity, 0.999)))
    )
    lost = units[rng.random(len(units)) < share]
    u = rng.random(len(lost))
    span = fault.end - fault.start
    if fault.shape == "stop":
        minute = fault.start + 3 * u
    elif fault.shape == "ramp":
        minute = fault.start + span * np.sqrt(u)
    elif fault.shape == "flapping":
        at = span * u / 3
        minute = fault.start + (at // 5) * 15 + at % 5
    else:
        minute = fault.start + span * u
    order = np.lexsort((lost, minute))
    return Failures(minute[order], lost[order])


def draw_faults(fleet: Fleet, rng: np.random.Generator, kind: str, start: float, end: float) -> list[Fault]:
    """Faults of a kind: `stop`, `gray`, `faint`, `multi` (2 to 4), `pair` (a ToR and its cluster), `ramp`,
    `flapping`.

    Severities: stop U(.5, 1), gray 10^U(-2, -1), faint 10^U(-2.7, -2), multi and pair 10^U(-2, 0).
    """
    if kind == "multi":
        chosen = _components(fleet, rng, int(rng.integers(2, 5)))
        return [Fault(name, 10 ** rng.uniform(-2, 0), start, end) for name in chosen]
    if kind == "pair":
        tor = str(rng.choice(fleet.of_kind("tor")))
        cluster = "compute_cluster/" + tor.removeprefix("tor/").rsplit("-", 1)[0]
        return [Fault(name, 10 ** rng.uniform(-2, 0), start, end) for name in (tor, cluster)]
    component = _components(fleet, rng, 1)[0]
    if kind == "stop":
        return [Fault(component, rng.uniform(0.5, 1), start, end)]
    if kind == "faint":
        return [Fault(component, 10 ** rng.uniform(-2.7, -2), start, end)]
    shape = kind if kind in ("ramp", "flapping") else "steady"
    return [Fault(component, 10 ** rng.uniform(-2, -1), start, end, shape)]


def _components(fleet: Fleet, rng: np.random.Generator, count: int) -> list[str]:
    """Distinct components, drawn by tier: ToR .35, compute .30, storage .25, T2 .07, T3 .03."""
    tiers = {"tor": 0.35, "compute_cluster": 0.30, "storage_cluster": 0.25, "t2": 0.07, "t3": 0.03}
    present = {kind: share for kind, share in tiers.items() if fleet.of_kind(kind)}
    total = sum(present.values())
    chosen: list[str] = []
    while len(chosen) < count:
        kind = str(rng.choice(list(present), p=[share / total for share in present.values()]))
        component = str(rng.choice(fleet.of_kind(kind)))
        if component not in chosen:
            chosen.append(component)
    return chosen


def window(
    fleet: Fleet,
    failures: Failures,
    start: float,
    end: float,
    history: Sequence[Window] = (),
    hosts: bool = True,
) -> Window:
    """The sums of the failures in [start, end), as Deepview's `placement` input declares them.

    With `hosts=False` the sender does not say which host a unit runs on.
    """
    inside = slice(*np.searchsorted(failures.minute, [start, end]))
    minute, unit = failures.minute[inside], failures.unit[inside]
    sums = {
        "paths": _placed(fleet),
        "failing": _failing(fleet, np.unique(unit), hosts),
        "over_time": _over_time(fleet, unit, ((minute - start) // SLICE_MINUTES).astype(np.int64)),
    }
    first, last = EPOCH + timedelta(minutes=start), EPOCH + timedelta(minutes=end)
    return Window(first, last, "simulated", "placement", sums, tuple(history))


def with_history(
    fleet: Fleet, failures: Failures, end: float, length: float = 60, past: int = 12, hosts: bool = True
) -> Window:
    """The window that ends at `end`, with the `past` windows before it."""
    starts = [end - length * back for back in range(past + 1, 1, -1)]
    history = [window(fleet, failures, at, at + length, hosts=hosts) for at in starts]
    return window(fleet, failures, end - length, end, history, hosts)


def _placed(fleet: Fleet) -> Sums:
    return Sums(keys={"components": fleet.paths}, values={"attempts": fleet.units_on}, rows=len(fleet.paths))


def _failing(fleet: Fleet, units: Ints, hosts: bool) -> Sums:
    path, host = fleet.path_of[units], fleet.host_of[units] if hosts else np.zeros(len(units), dtype=np.int64)
    span = len(fleet.host_names)
    rows, failures = np.unique(path * span + host, return_counts=True)
    sets = []
    for row in rows.tolist():
        named = (fleet.host_names[row % span],) if hosts else ()
        sets.append((*fleet.paths[row // span], *named))
    return sums_of(sets, {"failures": failures})


def _over_time(fleet: Fleet, unit: Ints, at: Ints) -> Sums:
    span = int(at.max(initial=0)) + 1
    distinct = np.unique((fleet.path_of[unit] * span + at) * fleet.units + unit)
    rows, failures = np.unique(distinct // fleet.units, return_counts=True)
    sets = [fleet.paths[row // span] for row in rows.tolist()]
    return sums_of(sets, {"failures": failures}, slices=rows % span)
