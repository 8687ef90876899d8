"""Metrics of services that call each other, with faults, their propagation along the calls, and a load that changes.

Services stand in layers; each calls some of the layers below, once or a few times a request. A request takes the own
time of its service and that of its calls; it fails if it fails itself or if a call fails that is not caught. Load
comes in at the first layer, as a day's wave with a first-order autoregression, and follows the calls. Services report
means of `step` seconds: latency (mean and p99), error ratio, requests, CPU, memory, disk writes and network bytes.

Faults: `cpu_hog`, `memory_leak`, `disk` (resources, then latency), `delay` (latency alone), `errors`, `loss` (latency,
a few errors, and network). Benign events: `EVENTS`. The numbers are our choice, of the order of small web services.

Seeds below `FIRST_REPORTING_SEED` are for choosing and calibrating; published figures use seeds from there on.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.contract import Paths, Sums, Window
from analyzers.simulators.tables import paths_of
from analyzers.simulators.truth import happened

FIRST_REPORTING_SEED = 2_000_000
EPOCH = datetime(2026, 1, 5, tzinfo=UTC)
LENGTH = timedelta(minutes=10)
PAST = 12
SLICE = 30

Floats = NDArray[np.float64]
Row = dict[str, Any]

FAULTS = ("cpu_hog", "memory_leak", "disk", "delay", "errors", "loss")
EVENTS = ("surge", "deployment", "batch", "peaks", "missing_rows", "earlier_fault")
METRICS = (
    "request_latency_seconds",
    "request_latency_p99_seconds",
    "request_error_ratio",
    "requests_per_second",
    "cpu_usage_cores",
    "memory_usage_bytes",
    "disk_write_bytes_per_second",
    "network_transmit_bytes_per_second",
)
LATENCY, P99, ERRORS, REQUESTS, CPU, MEMORY, DISK, NETWORK = METRICS


@dataclass(frozen=True, slots=True)
class Fault:
    """`service` is at fault from second `start` to `end`; `severity` is the factor or the share, by kind."""

    kind: str
    service: int
    severity: float
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Preset:
    """`unseen` is the share of services without metrics, `forgotten` that of calls that the topology has not."""

    services: int = 20
    step: int = 30
    seconds: int = (PAST + 1) * 600
    unseen: float = 0.0
    forgotten: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """`values[m]` of shape (services, readings), NaN where nothing was reported. `calls[c]` are the services that c
    calls, with how often; `known` those that the topology has."""

    preset: Preset
    values: dict[str, Floats]
    calls: tuple[dict[int, float], ...]
    known: tuple[frozenset[int], ...]
    faults: tuple[Fault, ...] = ()
    names: tuple[str, ...] = field(default=())

    def name(self, service: int) -> str:
        return f"service/{self.names[service]}"


def draw_fault(preset: Preset, rng: np.random.Generator, kind: str, begins: tuple[float, float]) -> Fault:
    severity = {
        "cpu_hog": rng.uniform(1.5, 5),
        "memory_leak": rng.uniform(1.3, 3),
        "disk": rng.uniform(3, 20),
        "delay": rng.uniform(1.5, 8),
        "errors": rng.uniform(0.02, 0.4),
        "loss": rng.uniform(1.5, 6),
    }[kind]
    start = float(rng.uniform(*begins))
    return Fault(kind, int(rng.integers(0, preset.services)), float(severity), start, preset.seconds)


def run(preset: Preset, rng: np.random.Generator, faults: tuple[Fault, ...] = (), event: str = "") -> Run:
    """An application with these faults and a benign event. Raises ValueError for an event that there is not."""
    if event and event not in EVENTS:
        raise ValueError(f"no benign event {event!r}; there are {', '.join(EVENTS)}")
    count, readings = preset.services, preset.seconds // preset.step
    layer, calls = _graph(count, rng)
    time: Floats = np.arange(readings, dtype=np.float64) * preset.step
    begins = preset.seconds - LENGTH.total_seconds()
    load = _load(rng, time, begins, event)
    requests = _requests(layer, calls, load, rng)
    own = rng.lognormal(np.log(0.01), 0.7, count)[:, None] * _wander(rng, count, readings, 0.03)
    own *= (requests / np.median(requests, axis=1)[:, None]) ** 0.3
    errors = np.clip(
        rng.lognormal(np.log(0.0005), 1.0, count)[:, None] * _wander(rng, count, readings, 0.3), 0, 1
    )
    resources = _resources(rng, requests)
    if event == "earlier_fault":
        at = float(rng.uniform(0.2, 0.6)) * begins
        faults = (Fault("delay", int(rng.integers(0, count)), 4.0, at, at + 600), *faults)
    for one in faults:
        _strike(one, time, own, errors, resources)
    _happen(event, rng, time, begins, resources)
    latency, failing = _passed_on(calls, own, errors, rng)
    values = {
        LATENCY: latency * _noise(rng, latency.shape, 0.02),
        P99: latency * rng.uniform(2, 5, count)[:, None] * _noise(rng, latency.shape, 0.1),
        ERRORS: rng.poisson(failing * requests * preset.step) / np.maximum(requests * preset.step, 1),
        REQUESTS: requests * _noise(rng, latency.shape, 0.02),
        **resources,
    }
    if event == "peaks":
        for table in values.values():
            table[rng.random(table.shape) < 0.004] *= 4.0
    unseen = rng.random(count) < preset.unseen
    for table in values.values():
        table[unseen] = np.nan
        if event == "missing_rows":
            table[rng.random(table.shape) < 0.2] = np.nan
    known = tuple(frozenset(one for one in called if rng.random() >= preset.forgotten) for called in calls)
    names = tuple(f"s{at:02d}" for at in rng.permutation(count).tolist())
    return Run(preset, values, calls, known, faults, names)


def _graph(count: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], tuple[dict[int, float], ...]]:
    """Layers and calls: each service below the first is called by one to three of the layers above."""
    depth = max(2, min(6, count // 4))
    layer = np.sort(
        np.concatenate([[0], np.arange(depth), rng.integers(1, depth, max(0, count - depth - 1))])
    )[:count]
    calls: list[dict[int, float]] = [{} for _ in range(count)]
    for service in range(count):
        above = np.flatnonzero(layer < layer[service])
        if len(above):
            near = above[layer[above] == layer[above].max()]
            for caller in {int(rng.choice(near)), *rng.choice(above, int(rng.integers(0, 3))).tolist()}:
                calls[int(caller)][service] = float(rng.choice([1.0, 1.0, 1.0, 0.5, 2.0, 3.0]))
    return layer, tuple(calls)


def _load(rng: np.random.Generator, time: Floats, begins: float, event: str) -> Floats:
    phase, depth = rng.uniform(0, 2 * np.pi), rng.uniform(0.1, 0.4)
    load = rng.uniform(20, 300) * (1 + depth * np.sin(2 * np.pi * time / 86_400 + phase))
    load *= _wander(rng, 1, len(time), 0.05)[0]
    if event == "surge":
        load[time >= begins + rng.uniform(30, 180)] *= rng.uniform(1.5, 2.5)
    return load


def _requests(
    layer: NDArray[np.int64], calls: tuple[dict[int, float], ...], load: Floats, rng: np.random.Generator
) -> Floats:
    requests = np.zeros((len(calls), len(load)))
    first = np.flatnonzero(layer == 0)
    for service in range(len(calls)):  # callers come before those that they call
        if layer[service] == 0:
            requests[service] = load / len(first)
        for called, times in calls[service].items():
            requests[called] += times * requests[service]
    return np.maximum(requests, 0.1) * _wander(rng, len(calls), len(load), 0.01)


def _resources(rng: np.random.Generator, requests: Floats) -> dict[str, Floats]:
    shape = requests.shape
    relative = requests / np.median(requests, axis=1)[:, None]
    levels = rng.lognormal(0, 0.8, (4, shape[0], 1))
    return {
        CPU: 0.3
        * levels[0]
        * (0.2 + 0.8 * relative)
        * _wander(rng, shape[0], shape[1], 0.05)
        * _noise(rng, shape, 0.05),
        MEMORY: 3e8 * levels[1] * (0.9 + 0.1 * relative) * _wander(rng, shape[0], shape[1], 0.02),
        DISK: 1e5 * levels[2] * (0.5 + 0.5 * relative) * _noise(rng, shape, 0.3),
        NETWORK: 1e6 * levels[3] * relative * _noise(rng, shape, 0.05),
    }


def _strike(one: Fault, time: Floats, own: Floats, errors: Floats, resources: dict[str, Floats]) -> None:
    on = (time >= one.start) & (time < one.end)
    at, more = one.service, one.severity
    ramp = np.clip((time[on] - one.start) / 180.0, 0.0, 1.0)
    if one.kind == "cpu_hog":
        resources[CPU][at, on] *= more
        own[at, on] *= 1 + (more - 1) * 0.6
    elif one.kind == "memory_leak":
        resources[MEMORY][at, on] *= 1 + (more - 1) * ramp
        own[at, on] *= 1 + (more - 1) * ramp**2
    elif one.kind == "disk":
        resources[DISK][at, on] *= more
        own[at, on] *= 1 + 0.15 * (more - 1)
    elif one.kind == "delay":
        own[at, on] *= more
    elif one.kind == "errors":
        errors[at, on] = np.clip(errors[at, on] + more, 0, 1)
    else:
        own[at, on] *= more
        errors[at, on] = np.clip(errors[at, on] + 0.005 * more, 0, 1)
        resources[NETWORK][at, on] *= 0.8


def _happen(
    event: str, rng: np.random.Generator, time: Floats, begins: float, resources: dict[str, Floats]
) -> None:
    count = len(resources[CPU])
    if event == "deployment":
        on = time >= begins + rng.uniform(0, 240)
        for at in rng.choice(count, 2, replace=False).tolist():
            resources[MEMORY][at, on] *= rng.uniform(0.6, 1.5)
            resources[CPU][at, on] *= rng.uniform(0.8, 1.3)
    elif event == "batch":
        at, start = int(rng.integers(0, count)), begins + rng.uniform(0, 240)
        on = (time >= start) & (time < start + 240)
        resources[CPU][at, on] *= 2.5
        resources[DISK][at, on] *= 6.0


def _passed_on(
    calls: tuple[dict[int, float], ...],
    own: Floats,
    errors: Floats,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Latency and error ratio of each service with what its calls add."""
    latency, failing = own.copy(), errors.copy()
    for service in reversed(range(len(calls))):
        for called, times in calls[service].items():
            latency[service] += times * latency[called]
            caught = float(rng.choice([0.0, 0.0, 0.5, 0.9]))
            passed = (1 - caught) * (1 - (1 - failing[called]) ** min(times, 3))
            failing[service] = 1 - (1 - failing[service]) * (1 - passed)
    return latency, failing


def _wander(rng: np.random.Generator, count: int, readings: int, size: float) -> Floats:
    """Factors around 1 that wander: a first-order autoregression of half a dozen readings."""
    rho = 0.85
    steps = rng.normal(0, size * np.sqrt(1 - rho**2), (count, readings))
    found = np.empty((count, readings))
    state = rng.normal(0, size, count)
    for at in range(readings):
        state = rho * state + steps[:, at]
        found[:, at] = state
    return np.exp(found)


def _noise(rng: np.random.Generator, shape: tuple[int, ...], size: float) -> Floats:
    return np.exp(rng.normal(0, size, shape))


def rows_of(made: Run, start: datetime = EPOCH) -> list[Row]:
    """The run as `metric` rows in order of time."""
    labels = [{"service": name} for name in made.names]
    step = made.preset.step
    rows = []
    for at in range(made.preset.seconds // step):
        stamp = _stamp(start, at * step)
        rows += [
            {
                "time": stamp,
                "name": name,
                "labels": labels[service],
                "value": float(f"{table[service, at]:.6g}"),
            }
            for name, table in made.values.items()
            for service in np.flatnonzero(np.isfinite(table[:, at])).tolist()
        ]
    return rows


def topology_of(made: Run, start: datetime = EPOCH) -> list[Row]:
    return [
        {
            "time": _stamp(start, 0),
            "component": made.name(service),
            "depends_on": sorted(made.name(one) for one in made.known[service]),
        }
        for service in range(made.preset.services)
    ]


def window_of(made: Run, past: int = PAST, calls: bool = True) -> Window:
    """The last window of a run with up to `past` before it, as the reductions of `metric_blame` sum its rows."""
    windows = [_one(made, made.preset.seconds - (back + 1) * 600, calls) for back in range(past, -1, -1)]
    now = windows[-1]
    return Window(now.start, now.end, now.region, now.input, now.sums, tuple(windows[:-1]))


def _one(made: Run, start: int, calls: bool) -> Window:
    begin = EPOCH + timedelta(seconds=start)
    first, per = start // made.preset.step, SLICE // made.preset.step
    order = sorted(range(len(made.names)), key=lambda one: made.names[one])
    labels = [json.dumps({"service": made.names[one]}, separators=(",", ":")) for one in order]
    names = sorted(made.values)
    values = np.stack([made.values[name][order, first : first + 600 // made.preset.step] for name in names])
    read = np.isfinite(values).reshape(len(names), len(order), -1, per).sum(axis=3)
    total = np.nan_to_num(values).reshape(len(names), len(order), -1, per).sum(axis=3)
    at = np.nonzero(read)
    keys: dict[str, Any] = {
        "name": tuple([names[one] for one in at[0].tolist()]),
        "labels": tuple([labels[one] for one in at[1].tolist()]),
        "slice": at[2].astype(np.int64),
    }
    series = Sums(keys, {"total": total[at], "samples": read[at].astype(np.int64)}, len(at[0]))
    sums = {"series": series}
    if calls:
        sums["needs"] = _needs(made, order)
    kind = "metric_and_topology" if calls else "metric"
    return Window(begin, begin + LENGTH, "simulated", kind, sums)


def _needs(made: Run, order: list[int]) -> Sums:
    needed: Paths = paths_of([sorted(made.name(one) for one in made.known[at]) for at in order])
    keys: dict[str, Any] = {"component": tuple(made.name(at) for at in order), "depends_on": needed}
    return Sums(keys, {"rows": np.ones(len(order), dtype=np.int64)}, len(order))


def _stamp(start: datetime, seconds: float) -> str:
    return (start + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def scenario(name: str, seed: int, kind: str | None, event: str = "") -> tuple[dict[str, list[Row]], Row]:
    """Rows by kind and the truth: an application of which one service has a fault in the last ten minutes."""
    rng = np.random.default_rng(seed)
    preset = Preset(services=16)
    last = preset.seconds - LENGTH.total_seconds()
    faults = (draw_fault(preset, rng, kind, (last + 10, last + 180)),) if kind else ()
    made = run(preset, rng, faults, event)
    end = _stamp(EPOCH, preset.seconds)
    truth = {
        "scenario": name,
        "seed": seed,
        "start": _stamp(EPOCH, 0),
        "end": end,
        "faults": [
            {
                "component": made.name(one.service),
                "kind": one.kind,
                "severity": round(one.severity, 3),
                "start": _stamp(EPOCH, one.start),
                "end": end,
            }
            for one in faults
        ],
        "benign": happened(event, _stamp(EPOCH, last), end),
    }
    return {"metric": rows_of(made), "topology": topology_of(made)}, truth
