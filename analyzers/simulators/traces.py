"""Simulated traces: services with replicas that call each other, faults of five kinds, and what is no fault.

    system = build_system(rng)
    fault = draw_fault(system, rng, "network_delay")
    batches = [record(system, rng, minute) for minute in range(6)] + [record(system, rng, 6, fault)]

A request enters at one of the system's entries and runs down its tree of calls. Every call is two spans, the
caller's and the called one's; between them lies the way. Own times and ways are log-normal with a spread that
is the operation's own, drift a little from minute to minute, and the mix of requests changes, too. Everything
is drawn from the generator that is passed in. Times are microseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Row = dict[str, Any]

EPOCH = datetime(2026, 1, 5, tzinfo=UTC)
MINUTE_US = 60_000_000
FIRST_REPORTING_SEED = 2_000_000

FAULTS = ("cpu_contention", "cpu_consumed", "network_delay", "exception", "return")
EVENTS = MappingProxyType(
    {
        "upgrade": "restart",
        "drain": "drain",
        "clock_step": "clock_step",
        "agent_crash": "agent_crash",
        "missing_rows": "lost_spans",
    }
)
"""Names here of the events of the benign suite; spans know no topology."""
BENIGN = ("restart", "load", "lost_spans", "clock_step", "new_operation", "drain", "agent_crash")

MINUTE_DRIFT = 0.12
"""Standard deviation of the logarithm of an operation's typical time from one minute to the next."""


@dataclass(frozen=True, slots=True)
class Operation:
    """`calls` are operations called one after the other, each with its probability."""

    service: int
    name: str
    own_us: float
    spread: float
    calls: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class System:
    """`entries` are (operation, requests a minute); `way_us` is the typical way of a call to each service."""

    services: tuple[str, ...]
    replicas: tuple[tuple[str, ...], ...]
    operations: tuple[Operation, ...]
    entries: tuple[tuple[int, float], ...]
    way_us: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Fault:
    """`instance` is None if all replicas are hit. `strength` is a factor for CPU faults, microseconds for a
    delay, the share of requests for the others.
    """

    kind: str
    service: int
    instance: int | None
    strength: float
    start_us: float = 0.0
    """From where in the minute on."""


COLUMNS = ("trace", "span", "parent", "service", "pod", "operation", "time", "duration_us", "error")


@dataclass(frozen=True, slots=True)
class SpanColumns:
    """Spans in columns of shape (spans,): numbers of trace, span and parent (0 at the top), service,
    replica and operation as texts, start in microseconds from `EPOCH`.
    """

    columns: Mapping[str, NDArray[Any]]

    @property
    def rows(self) -> int:
        return len(self.columns["trace"])

    def only(self, mask: Flags) -> SpanColumns:
        return SpanColumns({name: column[mask] for name, column in self.columns.items()})


def build_system(
    rng: np.random.Generator, services: int = 12, requests: float = 150.0, replicas: int = 3
) -> System:
    """A system of three layers of services with one to `replicas` replicas and two or three operations each."""
    layer = np.sort(rng.integers(0, 3, services))
    layer[0], layer[-1] = 0, 2
    count = rng.integers(1, replicas + 1, services)
    owners = [owner for owner in range(services) for _ in range(int(rng.integers(2, 4)))]
    operations = []
    for number, owner in enumerate(owners):
        below = [other for other, one in enumerate(owners) if layer[one] > layer[owner]]
        few = min(len(below), int(rng.integers(1, 4))) if below else 0
        called = rng.choice(below, few, replace=False).tolist() if few else []
        chances = [1.0 if rng.random() < 0.7 else float(rng.uniform(0.3, 0.9)) for _ in called]
        own, spread = float(np.exp(rng.normal(7.6, 1.0))), float(rng.uniform(0.2, 0.7))
        calls = tuple(zip(called, chances, strict=True))
        operations.append(Operation(owner, f"Do{number}", own, spread, calls))
    tops = [number for number, owner in enumerate(owners) if layer[owner] == 0]
    weights = rng.dirichlet(np.full(len(tops), 3.0)) * requests
    return System(
        tuple(f"svc-{letters(number)}" for number in range(services)),
        tuple(tuple(_pod(rng, number) for _ in range(int(count[number]))) for number in range(services)),
        tuple(operations),
        tuple(zip(tops, weights.tolist(), strict=True)),
        tuple(np.exp(rng.normal(7.3, 0.4, services)).tolist()),
    )


def letters(number: int) -> str:
    return chr(97 + number // 26 % 26) + chr(97 + number % 26)


def _pod(rng: np.random.Generator, service: int) -> str:
    return f"svc-{letters(service)}-{rng.integers(16**8):08x}-{letters(int(rng.integers(676)))}x"


def reached(system: System) -> list[int]:
    """Services that requests pass often: those worth a fault."""
    passes = np.zeros(len(system.operations))
    for entry, rate in system.entries:
        stack = [(entry, rate)]
        while stack:
            number, often = stack.pop()
            passes[number] += often
            stack += [(called, often * chance) for called, chance in system.operations[number].calls]
    by_service = np.bincount([one.service for one in system.operations], passes)
    return [service for service, often in enumerate(by_service.tolist()) if often >= 20]


def draw_fault(system: System, rng: np.random.Generator, kind: str) -> Fault:
    """A fault of a kind in a service that is passed often; in one of several replicas half of the time.

    A changed return or an exception needs a service that calls others.
    """
    where = reached(system)
    if kind in ("return", "exception"):
        calling = {one.service for one in system.operations if one.calls}
        where = [service for service in where if service in calling]
    service = int(rng.choice(where))
    pods = len(system.replicas[service])
    instance = int(rng.integers(pods)) if pods > 1 and rng.random() < 0.5 else None
    strength = {
        "cpu_contention": float(rng.uniform(5, 20)),
        "cpu_consumed": float(rng.uniform(20, 100)),
        "network_delay": float(np.exp(rng.uniform(np.log(20e3), np.log(2e6)))),
        "exception": float(rng.uniform(0.2, 0.9)),
        "return": float(rng.uniform(0.3, 1.0)),
    }[kind]
    return Fault(kind, service, instance, strength)


def record(
    system: System,
    rng: np.random.Generator,
    minute: int,
    fault: Fault | None = None,
    benign: str | None = None,
) -> SpanColumns:
    """The spans of one minute."""
    loaded = benign == "load"
    if benign == "restart":
        pods = tuple(tuple(_pod(rng, number) for _ in one) for number, one in enumerate(system.replicas))
        system = replace(system, replicas=pods)
    if benign == "new_operation":
        system = _with_new_operation(system, rng)
    if benign == "drain":
        system = _drained(system, rng)
    drift = np.exp(rng.normal(0, MINUTE_DRIFT, len(system.operations))) * (1.4 if loaded else 1.0)
    way_drift = float(np.exp(rng.normal(0, MINUTE_DRIFT))) * (1.4 if loaded else 1.0)
    run = _Run(system, rng, fault, drift, way_drift, minute * MINUTE_US)
    for entry, rate in system.entries:
        count = int(rng.poisson(rate * (2.0 if loaded else 1.0) * np.exp(rng.normal(0, 0.15))))
        if count:
            run.enter(entry, count)
    recorded = SpanColumns({name: np.concatenate([one[name] for one in run.noted]) for name in COLUMNS})
    if benign == "lost_spans":
        return recorded.only(rng.random(recorded.rows) >= 0.05)
    if benign == "agent_crash":
        return recorded.only(recorded.columns["pod"] != _one_pod(recorded, rng))
    return _with_a_wrong_clock(recorded, rng) if benign == "clock_step" else recorded


def _drained(system: System, rng: np.random.Generator) -> System:
    """One replica of a service that has several gets no requests any more; the others take them."""
    several = [number for number, one in enumerate(system.replicas) if len(one) > 1]
    if not several:
        raise ValueError("a drain needs a service with two replicas or more")
    chosen = int(rng.choice(several))
    gone = int(rng.integers(len(system.replicas[chosen])))
    left = tuple(pod for number, pod in enumerate(system.replicas[chosen]) if number != gone)
    return replace(system, replicas=(*system.replicas[:chosen], left, *system.replicas[chosen + 1 :]))


def _one_pod(recorded: SpanColumns, rng: np.random.Generator) -> str:
    pods = np.unique(recorded.columns["pod"])
    return str(pods[int(rng.integers(len(pods)))])


def _with_a_wrong_clock(recorded: SpanColumns, rng: np.random.Generator) -> SpanColumns:
    """One replica's clock is up to five seconds ahead or behind."""
    pods = np.unique(recorded.columns["pod"])
    off = recorded.columns["pod"] == pods[int(rng.integers(len(pods)))]
    time = recorded.columns["time"] + off * rng.uniform(-5e6, 5e6)
    return SpanColumns({**recorded.columns, "time": time})


def _with_new_operation(system: System, rng: np.random.Generator) -> System:
    """A release: one operation calls a new one of a service below it, in every request."""
    calling = [number for number, one in enumerate(system.operations) if one.calls]
    changed = int(rng.choice(calling))
    target = system.operations[system.operations[changed].calls[0][0]].service
    added = Operation(target, "Added", 2000.0, 0.4, ())
    old = system.operations[changed]
    new = replace(old, calls=(*old.calls, (len(system.operations), 1.0)))
    operations = (*system.operations[:changed], new, *system.operations[changed + 1 :], added)
    return replace(system, operations=operations)


@dataclass(slots=True)
class _Run:
    """One minute being recorded; arrays have one entry for each request that reaches a node."""

    system: System
    rng: np.random.Generator
    fault: Fault | None
    drift: Floats
    way_drift: float
    begin_us: int
    noted: list[dict[str, NDArray[Any]]] = field(default_factory=list)

    def enter(self, entry: int, count: int) -> None:
        offset = np.sort(self.rng.uniform(0, MINUTE_US, count))
        trace = self._ids(count)
        late = offset >= (self.fault.start_us if self.fault else np.inf)
        pod = self._pods(self.system.operations[entry].service, count)
        self._serve(entry, pod, trace, np.zeros(count, dtype=np.int64), self.begin_us + offset, late)

    def _serve(
        self, number: int, pod: Ints, trace: Ints, parent: Ints, start: Floats, late: Flags
    ) -> tuple[Floats, Flags]:
        """Record an operation of many requests; its durations, and which of them ended in an error."""
        one = self.system.operations[number]
        hit = self._hit(one.service, pod, late)
        own = one.own_us * np.exp(self.rng.normal(0, one.spread, len(trace)))
        own *= self.drift[number] if number < len(self.drift) else 1.0
        if self.fault is not None and self.fault.kind in ("cpu_contention", "cpu_consumed"):
            own = np.where(hit, own * self.fault.strength, own)
        stop, failing = self._stopping(len(one.calls), hit)
        error = np.zeros(len(trace), dtype=np.bool_)
        span, elapsed = self._ids(len(trace)), own / 2
        for place, (called, chance) in enumerate(one.calls):
            goes = (self.rng.random(len(trace)) < chance) & (place < stop) & ~error
            if goes.any():
                lasts, failed = self._call(
                    one.service,
                    called,
                    pod[goes],
                    trace[goes],
                    span[goes],
                    (start + elapsed)[goes],
                    late[goes],
                )
                elapsed[goes] += lasts
                error[goes] |= failed
        error |= failing
        duration = elapsed + np.where(error, 0.0, own / 2)
        self._note(trace, span, parent, one.service, pod, one.name, start, duration, error)
        return duration, error

    def _call(
        self, caller: int, called: int, pod: Ints, trace: Ints, parent: Ints, start: Floats, late: Flags
    ) -> tuple[Floats, Flags]:
        """The caller's side of a call and all below it."""
        to = self.system.operations[called]
        server = self._pods(to.service, len(trace))
        typical = self.system.way_us[to.service] * self.way_drift
        way = typical * np.exp(self.rng.normal(0, 0.4, len(trace)))
        way = self._slowed(way, self._hit(caller, pod, late) | self._hit(to.service, server, late))
        span = self._ids(len(trace))
        lasts, failed = self._serve(called, server, trace, span, start + way / 2, late)
        self._note(trace, span, parent, caller, pod, f"call {to.name}", start, lasts + way, failed)
        return lasts + way, failed

    def _slowed(self, way: Floats, hit: Flags) -> Floats:
        if self.fault is None:
            return way
        if self.fault.kind == "network_delay":
            return np.where(hit, way + self.fault.strength * self.rng.uniform(0.8, 1.2, len(way)), way)
        if self.fault.kind in ("cpu_contention", "cpu_consumed"):
            return np.where(hit, way * min(self.fault.strength, 8.0), way)
        return way

    def _stopping(self, calls: int, hit: Flags) -> tuple[Ints, Flags]:
        """After how many calls each request stops, and whether that is an error; a changed return is none."""
        stop = np.full(len(hit), calls)
        error = np.zeros(len(hit), dtype=np.bool_)
        if self.fault is None or self.fault.kind not in ("exception", "return") or not calls:
            return stop, error
        struck = hit & (self.rng.random(len(hit)) < self.fault.strength)
        stop = np.where(struck, self.rng.integers(0, calls), stop)
        return stop, struck & (self.fault.kind == "exception")

    def _hit(self, service: int, pod: Ints, late: Flags) -> Flags:
        fault = self.fault
        if fault is None or fault.service != service:
            return np.zeros(len(pod), dtype=np.bool_)
        return late if fault.instance is None else np.asarray(late & (pod == fault.instance))

    def _pods(self, service: int, count: int) -> Ints:
        return self.rng.integers(0, len(self.system.replicas[service]), count)

    def _ids(self, count: int) -> Ints:
        return self.rng.integers(1, 2**62, count)

    def _note(
        self,
        trace: Ints,
        span: Ints,
        parent: Ints,
        service: int,
        pod: Ints,
        operation: str,
        start: Floats,
        duration: Floats,
        error: Flags,
    ) -> None:
        count = len(trace)
        self.noted.append(
            {
                "trace": trace,
                "span": span,
                "parent": parent,
                "service": np.full(count, self.system.services[service]),
                "pod": np.array(self.system.replicas[service])[pod],
                "operation": np.full(count, operation),
                "time": start,
                "duration_us": duration,
                "error": error,
            }
        )
