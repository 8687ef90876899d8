"""A simulated training job: nodes that work in step, metrics of each, and the job's iteration times.

An iteration takes as long as the slowest node computes, plus the exchange of gradients, plus what stalls it. A node
differs from the others by a level of its own in each metric, and wanders slowly around it. Metrics are read every
`Preset.step` seconds. What is wrong with a node is one of `FAULTS`; what looks like trouble and is none is one of
`EVENTS`. The numbers of a node are our choice, of the order that DCGM and node_exporter show of nodes with eight GPUs.

Seeds below `FIRST_REPORTING_SEED` are for choosing and calibrating; published figures use seeds from there on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.simulators.truth import happened

FIRST_REPORTING_SEED = 2_000_000
EPOCH = datetime(2026, 1, 5, tzinfo=UTC)

Floats = NDArray[np.float64]
Row = dict[str, Any]

METRICS = (
    "gpu_sm_active",
    "gpu_sm_clock_mhz",
    "gpu_power_watts",
    "gpu_memory_used_bytes",
    "nic_tx_throughput",
    "nic_pfc_pause_rate",
    "cpu_util",
    "disk_write_throughput",
)
ITERATION = "train_iteration_seconds"

FAULTS = ("throttle", "slow_nic", "slow_host", "slow_memory", "hang", "crash")
"""throttle: the clock of a GPU falls. slow_nic: a link pauses and resends. slow_host: other processes take the CPU, and
data comes late. slow_memory: kernels take longer at the same clock. hang: a node computes nothing any more, the others
wait for it. crash: a node's rows end, and iterations with them."""
STOPS = ("hang", "crash")
EVENTS = (
    "workload_change",
    "checkpoint",
    "evaluation",
    "elastic_resize",
    "time_shared",
    "slow_read",
    "moe_imbalance",
    "agent_crash",
    "clock_step",
    "missing_rows",
)
"""workload_change: longer sequences from some time on. checkpoint: every ten minutes an eighth of the nodes writes for
20 to 90 s and all wait. evaluation: node 0 evaluates for some minutes, iterations go on. elastic_resize: an eighth of
the nodes leaves, iterations take longer. time_shared: a quarter of the nodes shares its GPUs and loses them in turns.
slow_read: one read of one node takes a minute. moe_imbalance: nodes hold experts that are not equally asked.
agent_crash: rows of a node end, iterations go on. clock_step: clocks of some nodes are seconds off. missing_rows: a
fifth of the rows is not there.
"""


@dataclass(frozen=True, slots=True)
class Preset:
    """`spread` is how much nodes differ, as a share; `jitter` that of iteration times. `seconds` is the whole time, in
    readings `step` apart. Without `paced` nothing tells of iterations.
    """

    nodes: int = 64
    seconds: int = 2400
    step: int = 5
    spread: float = 0.01
    jitter: float = 0.01
    iteration: float = 8.0
    paced: bool = True


@dataclass(frozen=True, slots=True)
class Fault:
    """Node number `node` is slower by `severity` (a share of its speed) from second `start` until `end`; of each
    `period` seconds, if there is one, for the share `on` only.
    """

    kind: str
    node: int
    severity: float
    start: float
    end: float
    period: float = 0.0
    on: float = 1.0


@dataclass(eq=False)
class Run:
    """Record of a job. `values[metric]` has shape (nodes, readings), NaN where nothing was read; iterations ended at
    seconds `ended` and took `took`.
    """

    preset: Preset
    values: dict[str, Floats]
    ended: Floats
    took: Floats
    faults: tuple[Fault, ...] = ()
    event: str = ""
    shift: Floats = field(default_factory=lambda: np.zeros(0))
    """Seconds that the clock of each node is ahead."""

    def name(self, node: int) -> str:
        return f"node/gpu-{node:04d}"


def draw_faults(
    preset: Preset, rng: np.random.Generator, kind: str, onset: tuple[float, float], count: int = 1
) -> tuple[Fault, ...]:
    """Faults of a kind on different nodes, each from some moment between `onset` on until the end; slower by 10 to
    60 %."""
    nodes = rng.permutation(preset.nodes)[:count].tolist()
    return tuple(
        Fault(kind, node, float(rng.uniform(0.1, 0.6)), float(rng.uniform(*onset)), float(preset.seconds))
        for node in nodes
    )


def run(preset: Preset, rng: np.random.Generator, faults: Sequence[Fault] = (), event: str = "") -> Run:
    """The job with these faults and one benign event."""
    if event and event not in EVENTS:
        raise ValueError(f"no benign event {event!r}; there are {', '.join(EVENTS)}")
    world = _World(preset, rng)
    for fault in faults:
        world.break_(fault)
    if event:
        getattr(world, f"_{event}", lambda: None)()
    made = world.made()
    made.faults, made.event = tuple(faults), event
    if event == "clock_step":
        struck = rng.choice(preset.nodes, max(1, preset.nodes // 10), replace=False)
        made.shift = np.zeros(preset.nodes)
        made.shift[struck] = rng.uniform(-8, 8, len(struck))
    if event == "missing_rows":
        for values in made.values.values():
            values[rng.random(values.shape) < 0.2] = np.nan
    return made


class _World:
    """State of every node by reading, changed by faults and events before metrics are made of it."""

    def __init__(self, preset: Preset, rng: np.random.Generator) -> None:
        self.preset, self.rng = preset, rng
        self.time = np.arange(0.0, preset.seconds, preset.step)
        shape = preset.nodes, len(self.time)
        self.speed = np.ones(shape)
        self.clock = np.ones(shape)
        self.network = np.ones(shape)
        self.cpu = np.zeros(shape)
        self.write = np.zeros(shape)
        self.there = np.ones(shape, dtype=bool)
        self.in_job = np.ones(shape, dtype=bool)
        self.idle = np.zeros(shape, dtype=bool)
        self.longer = np.ones(len(self.time))
        self.stall = np.zeros(len(self.time), dtype=bool)
        self.ends = np.inf

    def break_(self, fault: Fault) -> None:
        at = (self.time >= fault.start) & (self.time < fault.end)
        if fault.period:
            at &= (self.time - fault.start) % fault.period < fault.on * fault.period
        node, left = fault.node, 1 - fault.severity
        if fault.kind == "throttle":
            self.speed[node, at] *= left
            self.clock[node, at] *= left
        elif fault.kind == "slow_memory":
            self.speed[node, at] *= left
        elif fault.kind == "slow_nic":
            self.network[node, at] *= left**2
        elif fault.kind == "slow_host":
            self.speed[node, at] *= left
            self.cpu[node, at] += 0.2 + fault.severity / 2
        elif fault.kind == "hang":
            self.idle[node, at] = True
            self.ends = min(self.ends, fault.start)
        elif fault.kind == "crash":
            self.there[node, at] = False
            self.ends = min(self.ends, fault.start)
        else:
            raise ValueError(f"no fault {fault.kind!r}; there are {', '.join(FAULTS)}")

    def _workload_change(self) -> None:
        self.longer[self.time >= self.preset.seconds * self.rng.uniform(0.7, 0.9)] = self.rng.uniform(
            1.2, 2.0
        )

    def _checkpoint(self) -> None:
        writers = self.rng.permutation(self.preset.nodes)[: max(1, self.preset.nodes // 8)]
        lasts = self.rng.uniform(20, 90)
        for start in np.arange(self.rng.uniform(0, 600), self.preset.seconds, 600):
            at = (self.time >= start) & (self.time < start + lasts)
            self.stall |= at
            self.write[np.ix_(writers, at)] = 1.0
            self.cpu[np.ix_(writers, at)] += 0.2

    def _evaluation(self) -> None:
        lasts, start = self.rng.uniform(120, 500), self.preset.seconds * self.rng.uniform(0.7, 0.85)
        at = (self.time >= start) & (self.time < start + lasts)
        self.cpu[0, at] += 0.3
        self.write[0, at] = 0.3

    def _elastic_resize(self) -> None:
        start = self.preset.seconds * self.rng.uniform(0.75, 0.85)
        gone = self.rng.permutation(self.preset.nodes)[: self.preset.nodes // 8]
        self.in_job[np.ix_(gone, self.time >= start)] = False
        self.idle[np.ix_(gone, self.time >= start)] = True
        self.there[np.ix_(gone, self.time >= start + self.rng.uniform(30, 400))] = False
        self.longer[self.time >= start] = self.preset.nodes / (self.preset.nodes - len(gone))

    def _time_shared(self) -> None:
        shared = self.rng.permutation(self.preset.nodes)[: self.preset.nodes // 4]
        period, on = self.rng.uniform(300, 600), self.rng.uniform(0.3, 0.6)
        for node in shared.tolist():
            phase = self.rng.uniform(0, period)
            self.speed[node, ((self.time + phase) % period) < on * period] *= 0.75

    def _slow_read(self) -> None:
        start = self.preset.seconds * self.rng.uniform(0.78, 0.95)
        at = (self.time >= start) & (self.time < start + self.rng.uniform(30, 90))
        node = int(self.rng.integers(self.preset.nodes))
        self.speed[node, at] *= 0.3
        self.cpu[node, at] += 0.2

    def _moe_imbalance(self) -> None:
        requested = np.exp(0.15 * self._wander(self.speed.shape, 300.0))
        self.speed /= requested

    def _agent_crash(self) -> None:
        node = int(self.rng.integers(self.preset.nodes))
        self.there[node, self.time >= self.preset.seconds * self.rng.uniform(0.75, 0.95)] = False

    def _wander(self, shape: tuple[int, int], seconds: float) -> Floats:
        """Values that change over so many seconds, with deviation 1 (a first-order autoregression)."""
        keep = float(np.exp(-self.preset.step / seconds))
        found = self.rng.standard_normal(shape)
        for at in range(1, shape[1]):
            found[:, at] = keep * found[:, at - 1] + np.sqrt(1 - keep**2) * found[:, at]
        return found

    def made(self) -> Run:
        preset, rng = self.preset, self.rng
        compute = 0.7 * preset.iteration * self.longer / self.speed
        exchange = 0.3 * preset.iteration / self.network
        slowest = np.where(self.in_job, compute, 0).max(axis=0) + np.where(self.in_job, exchange, 0).max(
            axis=0
        )
        going = (self.time < self.ends) & ~self.stall
        ended, took = self._iterations(slowest, going)
        shape = self.speed.shape
        level = {name: 1 + preset.spread * rng.standard_normal((preset.nodes, 1)) for name in METRICS}
        noise = {
            name: 0.7 * preset.spread * self._wander(shape, 60.0) + preset.spread * rng.standard_normal(shape)
            for name in METRICS
        }
        stuck = (self.time >= self.ends) & ~self.idle & self.there
        active = np.where(going, 0.9 * compute / slowest, 0.05)
        active = np.where(stuck, 0.85, np.where(self.idle | ~self.in_job, 0.0, active))
        sends = np.where(going & self.in_job & ~self.idle, preset.iteration / slowest, 0.0)
        paused = 1e4 * np.maximum(0, 1 / self.network - 1) * np.where(going, 1, 0)
        means = {
            "gpu_sm_active": active,
            "gpu_sm_clock_mhz": 1755 * self.clock * np.where(self.idle, 0.2, 1.0),
            "gpu_power_watts": 90 + 600 * active * self.clock**2,
            "gpu_memory_used_bytes": np.where(self.in_job, 7e10, 5e8),
            "nic_tx_throughput": 4e10 * sends,
            "nic_pfc_pause_rate": paused + 5 * rng.exponential(1.0, shape),
            "cpu_util": 0.15 + 0.1 * (active > 0.1) + self.cpu,
            "disk_write_throughput": 2e6 + 2e9 * self.write + 1e5 * rng.exponential(1.0, shape),
        }
        values = {}
        for name, mean in means.items():
            read = mean * (level[name] + noise[name])
            values[name] = np.where(self.there, np.maximum(read, 0.0), np.nan)
        return Run(preset, values, ended, took)

    def _iterations(self, slowest: Floats, going: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        """Ends of iterations and their durations, stalls included."""
        ended, took, now, began = list[float](), list[float](), 0.0, 0.0
        while now < self.preset.seconds:
            at = min(int(now // self.preset.step), len(slowest) - 1)
            if now >= self.ends:
                break
            if not going[at]:
                now += self.preset.step
                continue
            now += float(slowest[at]) * (1 + self.preset.jitter * abs(self.rng.standard_normal()))
            if now < min(self.preset.seconds, self.ends):
                ended.append(now)
                took.append(now - began)
            began = now
        return np.array(ended), np.array(took)


def rows_of(made: Run, start: datetime = EPOCH) -> list[Row]:
    """The run as `metric` rows: every reading of every node, and iteration times of the job without a node."""
    rows = []
    time = np.arange(0.0, made.preset.seconds, made.preset.step)
    shift = made.shift if len(made.shift) else np.zeros(made.preset.nodes)
    labels = [{"job": "llm-70b", "node": made.name(node)} for node in range(made.preset.nodes)]
    for name, values in made.values.items():
        for node, at in zip(*(found.tolist() for found in np.nonzero(np.isfinite(values))), strict=True):
            when = float(time[at] + shift[node])
            if 0 <= when < made.preset.seconds:
                value = float(f"{values[node, at]:.6g}")
                rows.append(
                    {"time": _stamp(start, when), "name": name, "labels": labels[node], "value": value}
                )
    if made.preset.paced:
        rows += [
            {
                "time": _stamp(start, when),
                "name": ITERATION,
                "labels": {"job": "llm-70b"},
                "value": round(took, 4),
            }
            for when, took in zip(made.ended.tolist(), made.took.tolist(), strict=True)
        ]
    return rows


def _stamp(start: datetime, seconds: float) -> str:
    return (start + timedelta(seconds=round(seconds, 3))).isoformat().replace("+00:00", "Z")


SCENE = Preset(nodes=16, step=20)
"""Scene of `manage.py simulate`: 40 minutes of 16 nodes."""
LENGTH = timedelta(minutes=10)
"""Length of a window: the last of them has the fault."""


def scenario(name: str, seed: int, kind: str | None, event: str = "") -> tuple[dict[str, list[Row]], Row]:
    """Rows by kind and the truth: a job of which one node has a fault from some moment of the last window on."""
    rng = np.random.default_rng(seed)
    last = SCENE.seconds - LENGTH.total_seconds()
    faults = draw_faults(SCENE, rng, kind, (last + 10, last + 120)) if kind else ()
    made = run(SCENE, rng, faults, event)
    end = _stamp(EPOCH, SCENE.seconds)
    truth = {
        "scenario": name,
        "seed": seed,
        "start": _stamp(EPOCH, 0),
        "end": end,
        "faults": [
            {
                "component": made.name(one.node),
                "kind": one.kind,
                "severity": round(one.severity, 3),
                "start": _stamp(EPOCH, one.start),
                "end": end,
            }
            for one in faults
        ],
        "benign": happened(event, _stamp(EPOCH, 0), end),
    }
    return {"metric": rows_of(made)}, truth
