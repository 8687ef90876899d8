"""Processes that call each other and report what they see: observers, subjects, contexts, and what goes wrong.

After the evaluation of Panorama (Huang et al., OSDI 2018): a call graph whose edges use some of the callee's
contexts, heartbeats beside it, and faults that callers see and heartbeats do not. Every call is drawn, so that
order, lateness and loss of reports are real. Half of the contexts report a call as pending when it is sent.
Times are seconds on an axis of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

HEALTHY, PENDING, UNHEALTHY = 0, 1, 2
STATUSES = ("healthy", "pending", "unhealthy")
HEARTBEAT = "heartbeat"
_NEVER = np.inf


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a system; ranges are inclusive. `rate` is calls a second of one caller in one context."""

    processes: int = 30
    degree: tuple[int, int] = (3, 8)
    contexts: tuple[int, int] = (3, 10)
    used: tuple[int, int] = (2, 6)
    rate: tuple[float, float] = (1.0, 20.0)
    watchers: int = 3
    noise: float = 1e-4


SMALL = Shape(processes=12, degree=(3, 4), contexts=(3, 4), used=(2, 3), rate=(1.0, 4.0), watchers=2)


@dataclass(frozen=True, slots=True, eq=False)
class System:
    """Observers with their subjects and contexts. Cells are sorted by observer, subject and context; arrays of shape
    (cells,).

    `context` indexes `contexts`, `pending` says where calls are reported as pending first.
    """

    shape: Shape
    processes: tuple[str, ...]
    contexts: tuple[str, ...]
    observer: Ints
    subject: Ints
    context: Ints
    rate: Floats
    pending: Bools

    @property
    def is_heartbeat(self) -> Bools:
        return np.equal(self.context, self.contexts.index(HEARTBEAT))


@dataclass(frozen=True, slots=True)
class Fault:
    """Fault from `start` to `end`.

    Kinds: `gray` (calls to `process` in `context` fail with `severity`), `hang` (they are never answered),
    `crash` (all calls to it fail, and it reports nothing), `overload` (as an observer it sees a share `severity` of all
    its calls time out), `partition` (it and the others do not reach each other), `silent` (its agent reports
    nothing), `clock` (its clock is `severity` seconds ahead), `drain` (nobody calls it any more; its heart beats).
    """

    kind: str
    process: int
    start: float
    end: float = _NEVER
    severity: float = 1.0
    context: int = -1


@dataclass(frozen=True, slots=True)
class Transport:
    """Transport of reports: a share `lost` never arrives, a share `late` comes `late_seconds` later on average."""

    lost: float = 0.0
    late: float = 0.0
    late_seconds: float = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class Reports:
    """Observations in order of their time; arrays of shape (reports,). `arrival` is when each is known."""

    system: System
    time: Floats
    arrival: Floats
    cell: Ints
    status: Ints


def build(shape: Shape, rng: np.random.Generator) -> System:
    """Draw a call graph and which contexts each edge uses; every process is watched by heartbeats."""
    count = shape.processes
    processes = tuple(f"proc/p{i + 1:02d}" for i in range(count))
    own = rng.integers(shape.contexts[0], shape.contexts[1] + 1, count)
    contexts = tuple(sorted([HEARTBEAT, *(f"rpc_{i}" for i in range(shape.contexts[1]))]))
    number = {name: i for i, name in enumerate(contexts)}
    cells: list[tuple[int, int, int]] = []
    for observer in range(count):
        others = [process for process in range(count) if process != observer]
        degree = min(int(rng.integers(shape.degree[0], shape.degree[1] + 1)), len(others))
        for subject in rng.choice(others, degree, replace=False).tolist():
            used = min(int(rng.integers(shape.used[0], shape.used[1] + 1)), int(own[subject]))
            chosen = rng.choice(int(own[subject]), used, replace=False).tolist()
            cells += [(observer, subject, number[f"rpc_{context}"]) for context in chosen]
        for subject in rng.choice(others, min(shape.watchers, len(others)), replace=False).tolist():
            cells.append((observer, subject, number[HEARTBEAT]))
    cells.sort()
    table = np.array(cells, dtype=np.int64)
    low, high = np.log(shape.rate[0]), np.log(shape.rate[1])
    rate = np.exp(rng.uniform(low, high, len(table)))
    beats = table[:, 2] == number[HEARTBEAT]
    asks_first = rng.random((count, len(contexts))) < 0.5
    pending = asks_first[table[:, 1], table[:, 2]] & ~beats
    return System(
        shape, processes, contexts, table[:, 0], table[:, 1], table[:, 2], np.where(beats, 1.0, rate), pending
    )


def observe(
    system: System,
    rng: np.random.Generator,
    seconds: float,
    faults: Sequence[Fault] = (),
    transport: Transport = Transport(),
) -> Reports:
    """Draw every call of so many seconds and what its caller reports of it."""
    cell, sent = _calls(system, rng, seconds)
    took = np.minimum(rng.lognormal(np.log(0.01), 1.0, len(cell)), 1.0)
    failed = rng.random(len(cell)) < system.shape.noise
    lost = np.zeros(len(cell), dtype=bool)  # never answered
    mute = np.zeros(len(cell), dtype=bool)  # never reported
    ahead = np.zeros(len(cell))
    for fault in faults:
        _apply(system, rng, fault, cell, sent, failed, lost, mute, ahead)
    took = np.where(failed, rng.uniform(0.01, 1.0, len(cell)), took)
    requested = system.pending[cell]
    status = np.where(failed, UNHEALTHY, HEALTHY)
    answers = ~lost & ~mute
    time = np.concatenate([sent[requested & ~mute], (sent + took)[answers]])
    statuses = np.concatenate([np.full(int(np.sum(requested & ~mute)), PENDING), status[answers]])
    observer = np.concatenate([cell[requested & ~mute], cell[answers]])
    shift = np.concatenate([ahead[requested & ~mute], ahead[answers]])
    return _sent_off(system, rng, time, observer, statuses, shift, transport)


def _calls(system: System, rng: np.random.Generator, seconds: float) -> tuple[Ints, Floats]:
    """Cells and times of all calls: at random, but for heartbeats, which come once a second give or take."""
    beats = np.flatnonzero(system.is_heartbeat)
    times = rng.poisson(np.where(system.is_heartbeat, 0.0, system.rate) * seconds)
    cell = np.repeat(np.arange(len(times)), times)
    phase, tick = rng.random(len(beats))[:, None], np.arange(int(seconds))
    beaten = phase + tick + rng.normal(0, 0.03, (len(beats), len(tick)))
    inside = (beaten >= 0) & (beaten < seconds)
    return (
        np.concatenate([cell, np.broadcast_to(beats[:, None], beaten.shape)[inside]]),
        np.concatenate([rng.uniform(0, seconds, len(cell)), beaten[inside]]),
    )


def _apply(
    system: System,
    rng: np.random.Generator,
    fault: Fault,
    cell: Ints,
    sent: Floats,
    failed: Bools,
    lost: Bools,
    mute: Bools,
    ahead: Floats,
) -> None:
    """Mark the calls that a fault touches, in place."""
    during = (sent >= fault.start) & (sent < fault.end)
    to, by = system.subject[cell] == fault.process, system.observer[cell] == fault.process
    if fault.kind in ("gray", "hang"):
        hit = during & to & (system.context[cell] == fault.context)
        hit &= rng.random(len(cell)) < fault.severity
        (failed if fault.kind == "gray" else lost)[hit] = True
    elif fault.kind == "crash":
        failed[during & to] = True
        mute[during & by] = True
    elif fault.kind == "overload":
        failed[during & by & (rng.random(len(cell)) < fault.severity)] = True
    elif fault.kind == "partition":
        failed[during & (to ^ by)] = True
    elif fault.kind == "silent":
        mute[during & by] = True
    elif fault.kind == "drain":
        mute[during & to & ~system.is_heartbeat[cell]] = True
    elif fault.kind == "clock":
        ahead[during & by] += fault.severity
    else:
        raise ValueError(f"unknown kind of fault {fault.kind!r}")


def _sent_off(
    system: System,
    rng: np.random.Generator,
    time: Floats,
    cell: Ints,
    status: Ints,
    shift: Floats,
    transport: Transport,
) -> Reports:
    """Reports on their way: some lost, some late, each stamped by its observer's clock."""
    arrived = rng.random(len(time)) >= transport.lost
    delay = rng.uniform(0.02, 0.2, len(time))
    late = rng.random(len(time)) < transport.late
    delay += np.where(late, rng.exponential(transport.late_seconds, len(time)), 0.0)
    arrival, stamped = time + delay, time + shift
    order = np.flatnonzero(arrived)[np.argsort(stamped[arrived], kind="stable")]
    return Reports(system, stamped[order], arrival[order], cell[order], status[order])


def draw_gray(system: System, rng: np.random.Generator, kind: str, start: float, witnesses: int = 2) -> Fault:
    """A gray failure or a hang in a context that at least so many observers use; severity 0.3 to 1.

    A hang is drawn where callers say that they wait: elsewhere nobody could report one.
    """
    requested = system.pending if kind == "hang" else ~system.is_heartbeat
    place = system.subject * len(system.contexts) + system.context
    places, users = np.unique(place[requested & ~system.is_heartbeat], return_counts=True)
    chosen = int(rng.choice(places[users >= witnesses]))
    process, context = divmod(chosen, len(system.contexts))
    return Fault(kind, process, start, severity=float(rng.uniform(0.3, 1.0)), context=context)


def draw_overload(
    system: System, rng: np.random.Generator, share: float, start: float, spared: Sequence[int] = ()
) -> list[Fault]:
    """A share of all processes (at least one) whose calls time out 20 to 80 % of the time."""
    able = [process for process in range(len(system.processes)) if process not in spared]
    count = min(max(1, round(share * len(system.processes))), len(able))
    chosen = rng.choice(able, count, replace=False).tolist()
    return [Fault("overload", one, start, severity=float(rng.uniform(0.2, 0.8))) for one in chosen]


EVENTS = MappingProxyType(
    {"upgrade": "crash", "drain": "drain", "clock_step": "clock", "agent_crash": "silent"}
)
"""Events of the benign suite as what happens to one process; an upgrade is one restart of 3 to 6 s."""


def draw_event(
    system: System, rng: np.random.Generator, event: str, start: float
) -> tuple[list[Fault], Transport]:
    """An event of the benign suite (none: an empty text) at `start`, and how reports travel meanwhile."""
    if event and event not in (*EVENTS, "missing_rows"):
        raise ValueError(f"no benign event {event!r}; there are {', '.join((*EVENTS, 'missing_rows'))}")
    transport = Transport(lost=0.05) if event == "missing_rows" else Transport(0.01, 0.01)
    if event not in EVENTS:
        return [], transport
    process, ahead = int(rng.integers(len(system.processes))), float(rng.choice([-30, -3, 3, 30]))
    one = Fault(EVENTS[event], process, start, severity=ahead)
    return [until(one, start + float(rng.uniform(3, 6))) if event == "upgrade" else one], transport


def until(fault: Fault, end: float) -> Fault:
    return replace(fault, end=end)
