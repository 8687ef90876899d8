"""Iteration times of training jobs and metrics of their nodes, ten minutes a window, for `straggler`.

Jobs are synchronous: an iteration ends when the slowest node has computed and the slowest connection has carried its
part, so that every node of a job reports nearly the same iteration time and only metrics of the nodes tell them apart
(Wu et al., "Greyhound", USENIX ATC 2025). Shapes: data parallel, pipelines whose stages load nodes differently, mixture
of experts; 4 to 64 nodes; one or two jobs; spare nodes that run nothing. Metric names are those of DCGM's exporter
and of recording rules over node_exporter and the NIC's counters, as averages over a node's eight GPUs; samples of 2
to 30 s.

Faults follow the tables of Minder (Deng et al., NSDI 2025: PCIe downgrades and NIC faults show in PFC packets, dropped
GPUs in duty cycle, contention in CPU usage, an unreachable machine in nothing at all) and of Greyhound (throttled GPUs,
CPU contention, congestion; minutes to hours, 8 % to threefold). GPUs that wait in a collective still count as busy.

Noise: a level of each node that stays (log-normal), AR(1), Student t errors, gamma-mixed pause frames with bursts that
mean nothing; log-normal iterations with rare hiccups. Rows are lost at random or a minute of a node at a time; clocks
may be off by seconds. Temperatures follow power, and iteration times are reported by one rank a node.

Truth: a fault makes an iteration at least `SLOWER` of what it was (`slow`) or stops the job (`stopped`, `hung`), for
most of each window that it touches.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from tests.worlds import Fault, World

START = datetime(2026, 5, 4, 6, tzinfo=UTC)
WINDOW = 600
EVERY = timedelta(seconds=WINDOW)
HISTORY, JUDGED = 6, 5
LENGTH = (HISTORY + JUDGED) * WINDOW
SLOWER = 1.06

ITERATION = "train_iteration_seconds"
UTIL, CLOCK = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_SM_CLOCK"
POWER, HEAT = "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_GPU_TEMP"
TENSOR = "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"
CPU, PAUSES, NETWORK = (
    "node_cpu_usage_percent",
    "nic_pfc_tx_packets_per_second",
    "nic_rdma_tx_bytes_per_second",
)
DIGITS = {UTIL: 1, CLOCK: 0, POWER: 1, HEAT: 0, TENSOR: 4, CPU: 1, PAUSES: 1, NETWORK: 0}
SIGNS = {
    "throttled": CLOCK,
    "cpu_contention": CPU,
    "nic_degraded": PAUSES,
    "pcie_downgraded": PAUSES,
    "loader_slow": UTIL,
    "hung": UTIL,
    "stopped": "",
}
"""The metric in which each fault shows most; a stopped node sends nothing."""

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Plan:
    """A case. `jobs` are numbers of nodes; `faults` as kind and job; `depth` the factor of the slowed part."""

    says: str
    jobs: tuple[int, ...] = (16,)
    shape: str = "dense"
    faults: tuple[tuple[str, int], ...] = ()
    depth: tuple[float, float] = (1.4, 2.2)
    lasts: int = 2
    begins: int | None = None
    history: int = 0
    benign: str = ""
    spares: int = 0
    missing: float = 0.0
    silent: int = 0
    skew: float = 0.0
    step: int = 10
    spread: float = 0.015
    flapping: bool = False


def _one(kind: str, job: int = 0) -> tuple[tuple[str, int], ...]:
    return ((kind, job),)


PLANS = {
    "healthy": Plan("a dense job of 16 nodes"),
    "healthy_64": Plan("a dense job of 64 nodes", (64,), step=30),
    "healthy_4": Plan("a dense job of 4 nodes", (4,), step=30),
    "healthy_stages": Plan("a pipeline of four stages with different loads", shape="stages"),
    "healthy_spread": Plan("nodes that differ by 4 %", spread=0.04),
    "healthy_two_jobs": Plan("two jobs of unequal size", (12, 20)),
    "healthy_spares": Plan("four idle nodes beside the job", spares=4),
    "healthy_missing": Plan("a fifth of the rows lost, two nodes without metrics", missing=0.2, silent=2),
    "healthy_skew": Plan("clocks off by up to 8 s", skew=8.0),
    "healthy_after_faults": Plan("half of the windows before had a fault each, of other nodes", history=3),
    "checkpoints": Plan(
        "a checkpoint stalls all nodes 20 to 60 s; the first node writes", benign="checkpoints"
    ),
    "evaluation": Plan("evaluation phases of some minutes with other iterations", benign="evaluation"),
    "elastic_resize": Plan("a quarter of the nodes leaves, iterations grow, they return", benign="resize"),
    "time_shared": Plan("another job takes turns on the same GPUs", benign="shared"),
    "storage_slow": Plan("a slow storage read starves every node for minutes", benign="storage"),
    "moe_imbalance": Plan("experts load the nodes unevenly, and others every minute", shape="moe"),
    "planned_reboot": Plan("a node is drained and rebooted; training goes on without it", benign="reboot"),
    "workload_change": Plan("sequences 1.7 times as long from one moment on", benign="longer"),
    "backup": Plan("a backup takes half of a node's CPUs and delays nobody", benign="backup"),
    "hot_aisle": Plan("half of the nodes clocks 2 % lower in a warm hour", benign="warm"),
    "throttled": Plan("GPUs of one node are throttled", faults=_one("throttled")),
    "throttled_faint": Plan("throttled by 9 to 13 %", faults=_one("throttled"), depth=(1.09, 1.13)),
    "cpu_contention": Plan("a runaway process takes the CPUs of a node", faults=_one("cpu_contention")),
    "nic_degraded": Plan("a NIC retransmits and pauses its peers", faults=_one("nic_degraded")),
    "pcie_downgraded": Plan("a PCIe link at a quarter of its lanes", faults=_one("pcie_downgraded")),
    "loader_slow": Plan("the local disk of a node starves its GPUs", faults=_one("loader_slow")),
    "hung": Plan("a node hangs, the others spin in a collective", faults=_one("hung")),
    "stopped": Plan("a node is gone, the job stops", faults=_one("stopped")),
    "two_at_once": Plan(
        "a throttled node and a degraded NIC in one job", faults=(("throttled", 0), ("nic_degraded", 0))
    ),
    "two_jobs": Plan(
        "each of two jobs has a fault", (12, 20), faults=(("throttled", 0), ("cpu_contention", 1))
    ),
    "always": Plan("throttled from the first row on", faults=_one("throttled"), begins=0, lasts=11),
    "lasting": Plan("throttled from the fourth window on", faults=_one("throttled"), begins=3, lasts=8),
    "after_faults": Plan("a fault after three others in the history", faults=_one("throttled"), history=3),
    "flapping": Plan("throttled for 40 s of every 80 s", faults=_one("throttled"), flapping=True),
    "missing": Plan(
        "a fifth of the rows lost, two nodes silent", faults=_one("nic_degraded"), missing=0.2, silent=2
    ),
    "skewed": Plan("clocks off by up to 8 s", faults=_one("cpu_contention"), skew=8.0),
    "stages": Plan("a throttled node in a pipeline", shape="stages", faults=_one("throttled")),
    "moe": Plan("a throttled node under uneven experts", shape="moe", faults=_one("throttled")),
    "shared": Plan("a throttled node in a time-shared job", faults=_one("throttled"), benign="shared"),
    "checkpointed": Plan("a slow NIC between checkpoints", faults=_one("nic_degraded"), benign="checkpoints"),
    "large": Plan("a throttled node of 64", (64,), faults=_one("throttled"), step=30),
    "small": Plan("a throttled node of 4", (4,), faults=_one("throttled"), step=30),
    "seconds": Plan("samples of every 2 s, 8 nodes", (8,), faults=_one("pcie_downgraded"), step=2),
}
CASES = {name: plan.says for name, plan in PLANS.items()}


@dataclass
class Job:
    """A job on a grid of seconds, shape (second, node): how much longer than usual compute takes because of `experts`,
    of a lower `clock` and of a busy `host`; how much longer `network` and `loading` take. `parts` are the shares of
    compute, network and input in a usual iteration; `work` is how much there is to do, `idle` a stall of the job."""

    name: str
    nodes: list[str]
    usual: float
    parts: tuple[float, float, float]
    level: Floats
    load: Floats
    experts: Floats
    clock: Floats
    host: Floats
    network: Floats
    loading: Floats
    cpu: Floats
    away: Flags
    hung: Flags
    halted: Flags
    work: Floats
    idle: Floats
    iterations: list[tuple[float, float]] = field(default_factory=list)
    took: Floats = field(default_factory=lambda: np.empty(0))


def make(seed: int, case: str) -> World:
    """The world of a case. Raises KeyError for a case that is not in `CASES`."""
    plan = PLANS[case]
    rng = np.random.default_rng([seed, crc32(case.encode())])
    jobs = [_job(plan, rng, number, nodes) for number, nodes in enumerate(plan.jobs)]
    faults, notes = _faults(plan, rng, jobs)
    for job in jobs:
        _benign(plan, rng, job)
        _train(rng, job)
    rows = [row for job in jobs for row in _rows(plan, rng, job)]
    if plan.spares:
        rows += _rows(plan, rng, _spares(plan, rng))
    rows.sort(key=lambda row: (row["time"], row["name"], row["labels"]["node"]))
    judged = START + HISTORY * EVERY
    return World(case, seed, {"metric": rows}, EVERY, judged, tuple(faults), tuple(notes))


def _job(plan: Plan, rng: np.random.Generator, number: int, nodes: int) -> Job:
    names = [f"gpu-{'abcd'[number]}{i // 8:02d}-{i % 8}" for i in range(nodes)]
    shape = (LENGTH, nodes)
    usual = float(np.exp(rng.uniform(np.log(2.5), np.log(9))))
    sharing = rng.dirichlet((14, 5, 1.2))
    load = np.ones(nodes)
    if plan.shape == "stages":
        load = np.repeat(1 + 0.12 * rng.standard_normal(4), -(-nodes // 4))[:nodes]
    experts = np.ones(shape)
    if plan.shape == "moe":
        experts *= np.exp(_wander(rng, LENGTH, nodes, 60, 0.1))
    level = np.exp(plan.spread * rng.standard_normal(nodes))
    return Job(
        name=f"pretrain-{number}",
        nodes=names,
        usual=usual,
        parts=(float(sharing[0]), float(sharing[1]), float(sharing[2])),
        level=level,
        load=load,
        experts=experts,
        clock=np.ones(shape),
        host=np.ones(shape),
        network=np.ones(shape),
        loading=np.ones(shape),
        cpu=np.zeros(shape),
        away=np.zeros(shape, dtype=bool),
        hung=np.zeros(shape, dtype=bool),
        halted=np.zeros(LENGTH, dtype=bool),
        work=np.ones(LENGTH),
        idle=np.zeros(LENGTH),
    )


def _wander(rng: np.random.Generator, length: int, nodes: int, tau: float, width: float) -> Floats:
    """AR(1) of shape (length, nodes) with that time constant and standard deviation."""
    keep = float(np.exp(-1 / tau))
    steps = width * np.sqrt(1 - keep**2) * rng.standard_normal((length, nodes))
    out = np.empty((length, nodes))
    now = width * rng.standard_normal(nodes)
    for second in range(length):
        now = keep * now + steps[second]
        out[second] = now
    return out


def _faults(plan: Plan, rng: np.random.Generator, jobs: list[Job]) -> tuple[list[Fault], list[str]]:
    faults, notes = [], []
    order = [list(rng.permutation(len(job.nodes) - plan.silent)) for job in jobs]
    kinds = ("cpu_contention", "nic_degraded", "loader_slow", "throttled")
    planned = [(str(rng.choice(kinds)), 0, 2 * n, 1) for n in range(plan.history)]
    for kind, number in plan.faults:
        first = (
            plan.begins
            if plan.begins is not None
            else HISTORY + int(rng.integers(0, JUDGED - plan.lasts + 1))
        )
        planned.append((kind, number, first, plan.lasts))
    for kind, number, window, lasts in planned:
        job, node = jobs[number], int(order[number].pop())
        begin = 0 if window == 0 and lasts > 1 else window * WINDOW + int(rng.integers(10, 150))
        end = (window + lasts) * WINDOW - int(rng.integers(10, 150))
        if window + lasts == HISTORY + JUDGED:
            end = LENGTH
        slowdown = _strike(plan, rng, job, kind, node, begin, end)
        name = f"node/{job.nodes[node]}"
        faults.append(Fault(name, kind, _when(begin), _when(end)))
        notes.append(f"{name} {kind}: iterations take {slowdown:.2f} times as long")
    return faults, notes


def _strike(
    plan: Plan, rng: np.random.Generator, job: Job, kind: str, node: int, begin: int, end: int
) -> float:
    """Slows or stops a node; returns the ratio of iteration times, infinite where the job stops."""
    span = np.arange(begin, end)
    if plan.flapping:
        span = span[span % 80 < 40]
    if kind == "hung":
        job.hung[span, node] = True
        job.halted[span] = True
        return float("inf")
    if kind == "stopped":
        job.away[span, node] = True
        job.halted[span] = True
        return float("inf")
    depth = float(rng.uniform(*plan.depth))
    slowest = float(job.level.max() / job.level[node])
    compute, network, loading = job.parts
    if kind in ("throttled", "cpu_contention"):
        # At least `SLOWER` beyond the slowest healthy node, whatever the shares of the parts are.
        depth = max(depth, slowest * (1 + (SLOWER - 1) / compute))
        if kind == "cpu_contention":
            job.host[span, node] *= depth
            job.cpu[span, node] += rng.uniform(25, 55)
        else:
            job.clock[span, node] *= depth
        return 1 + compute * (depth / slowest - 1)
    if kind == "loader_slow":
        depth = 1 + (max(depth, SLOWER) - 1 + 0.05) / loading
        job.loading[span, node] *= depth
        return 1 + loading * (depth - 1)
    depth = max(2 * depth - 1, 1 + (SLOWER - 1) / network)
    job.network[span, node] *= depth
    return 1 + network * (depth - 1)


def _benign(plan: Plan, rng: np.random.Generator, job: Job) -> None:
    """Events that may happen to a job while nothing is broken."""
    nodes, second = len(job.nodes), np.arange(LENGTH)
    if plan.benign == "checkpoints":
        for begin in range(int(rng.integers(60, 900)), LENGTH - 90, int(rng.integers(700, 1500))):
            span = slice(begin, begin + int(rng.integers(20, 60)))
            job.idle[span] = 1
            job.cpu[span] += 8
            job.cpu[span, 0] += 35
    elif plan.benign == "evaluation":
        for begin in range(int(rng.integers(100, 1500)), LENGTH - 400, int(rng.integers(1500, 2400))):
            job.work[begin : begin + int(rng.integers(150, 400))] *= 0.45
    elif plan.benign == "resize":
        begin = (HISTORY + 1) * WINDOW + int(rng.integers(0, 500))
        span, gone = slice(begin, begin + int(rng.integers(700, 1500))), nodes // 4
        job.away[span, rng.choice(nodes, gone, replace=False)] = True
        job.work[span] *= nodes / (nodes - gone)
        job.idle[begin : begin + 45] = 1
    elif plan.benign == "shared":
        period = int(rng.integers(70, 130))
        job.work *= 1 + rng.uniform(0.3, 0.6) * (second % period < period * 0.5)
    elif plan.benign == "storage":
        begin = (HISTORY + 1) * WINDOW + int(rng.integers(0, 900))
        job.loading[begin : begin + int(rng.integers(120, 260))] *= 1 + rng.uniform(0.6, 1.5) / job.parts[2]
    elif plan.benign == "reboot":
        begin = (HISTORY + 1) * WINDOW + int(rng.integers(0, 900))
        job.away[begin : begin + int(rng.integers(300, 600)), int(rng.integers(nodes))] = True
        job.idle[begin : begin + 40] = 1
    elif plan.benign == "longer":
        job.work[(HISTORY + 1) * WINDOW + int(rng.integers(0, 1200)) :] *= 1.7
    elif plan.benign == "backup":
        begin = (HISTORY + 1) * WINDOW + int(rng.integers(0, 900))
        job.cpu[begin : begin + int(rng.integers(400, 900)), int(rng.integers(nodes))] += 40
    elif plan.benign == "warm":
        begin = HISTORY * WINDOW + int(rng.integers(0, 600))
        job.clock[begin : begin + 1500, : nodes // 2] *= 1.02


def _train(rng: np.random.Generator, job: Job) -> None:
    """Runs the iterations and keeps for every second how long the current one takes (0: none runs)."""
    compute, network, loading = job.parts
    job.took = np.zeros(LENGTH)
    now = float(rng.uniform(0, job.usual))
    while now < LENGTH:
        at = int(now)
        if job.halted[at] or job.idle[at]:
            stop = at + 1
            while stop < LENGTH and (job.halted[stop] or job.idle[stop]):
                stop += 1
            now = stop + float(rng.uniform(0, 2))
            continue
        here = ~job.away[at]
        slowed = job.experts[at, here] * job.clock[at, here] * job.host[at, here]
        nodes = loading * job.loading[at, here] + compute * job.level[here] * slowed
        slowest = float(nodes.max()) + network * float(job.network[at, here].max())
        took = job.usual * job.work[at] * slowest * float(np.exp(0.015 * rng.standard_normal()))
        took *= 1 + float(rng.exponential(0.4)) * (rng.random() < 0.01)
        job.took[at : int(now + took) + 1] = took
        now += took
        if now < LENGTH:
            job.iterations.append((now, took))


def _spares(plan: Plan, rng: np.random.Generator) -> Job:
    spares = _job(Plan("idle"), rng, 3, plan.spares)
    spares.name, spares.idle = "", np.ones(LENGTH)
    spares.took = np.zeros(LENGTH)
    return spares


def _rows(plan: Plan, rng: np.random.Generator, job: Job) -> list[dict[str, Any]]:
    offset = rng.uniform(-plan.skew, plan.skew, len(job.nodes)) if plan.skew else np.zeros(len(job.nodes))
    labels = [{"node": name, **({"job": job.name} if job.name else {})} for name in job.nodes]
    lost = rng.random((LENGTH // 60 + 1, len(job.nodes))) < plan.missing / 2
    rows: list[dict[str, Any]] = []

    def tell(name: str, second: float, node: int, value: float) -> None:
        if not lost[int(second) // 60, node] and (not plan.missing or rng.random() >= plan.missing / 2):
            at = round((second + float(offset[node])) * 1e6) * 1_000 + round(START.timestamp()) * 10**9
            rows.append({"time": at, "name": name, "labels": labels[node], "value": value})

    for end, took in job.iterations:
        for node in np.flatnonzero(~job.away[int(end)]).tolist():
            tell(ITERATION, end, node, round(took * (1 + 0.002 * float(rng.standard_normal())), 4))
    phase = rng.uniform(0, plan.step, len(job.nodes))
    seconds = np.arange(0, LENGTH, plan.step)
    loud = len(job.nodes) - plan.silent
    for name, values in _metrics(plan, rng, job, seconds).items():
        told = np.round(values, DIGITS[name]).tolist()
        away = job.away[seconds]
        for at, second in enumerate(seconds.tolist()):
            for node in range(loud):
                if not away[at, node]:
                    tell(name, min(second + float(phase[node]), LENGTH - 1e-3), node, told[at][node])
    return rows


def _metrics(plan: Plan, rng: np.random.Generator, job: Job, seconds: NDArray[np.int64]) -> dict[str, Floats]:
    """Values of shape (sample, node)."""
    size, step = (len(seconds), len(job.nodes)), plan.step
    compute, _, loading = job.parts
    took = job.took[seconds][:, None]
    runs = took > 0
    whole = np.where(runs, took, 1.0)
    work = (job.usual * job.work[seconds])[:, None]
    hung, stuck = job.hung[seconds], (job.halted[seconds] & ~(job.idle[seconds] > 0))[:, None]

    def drift(width: float) -> Floats:
        return _wander(rng, size[0], size[1], 120 / step, width) + width * rng.standard_t(4, size) / 2

    throttle = job.clock[seconds]
    active = np.where(runs, work * compute * job.load * job.experts[seconds] * throttle / whole, 0.0)
    waits = np.where(runs, work * loading * job.loading[seconds] / whole, 1.0)
    waits = np.where(stuck, 0.0, waits)
    util = np.where(hung, 0.0, 99.0 - 88 * np.clip(waits - 0.06, 0, 1)) + rng.normal(0, 0.8, size)
    clock = 1755 / throttle * (1 + 0.3 * (1 / job.level - 1)) * (1 + drift(0.004))
    power = 110 + 500 * active * job.level / throttle**2 + 60 * (util > 50) + 12 * drift(1.0)
    power = np.where(hung, 95.0, power)
    heat = 30 + 0.065 * _smoothed(power) + 2 * (job.level - 1) / max(plan.spread, 1e-3) + drift(0.5)
    cpu = 18 + 6 * job.load + job.cpu[seconds] + 2.5 * drift(1.0) + 10 * (waits > 0.3)
    tensor = np.clip(0.62 * active * (1 + drift(0.02)), 0, 1)
    pause = rng.gamma(0.6, 12.0, size) * (1 + 15 * (rng.random(size) < 0.004))
    # A NIC that takes data slowly tells its peers to wait; a merely loaded one does so now and then.
    pause += np.where(job.network[seconds] > 1.0, rng.gamma(3.0, 120.0, size) * runs, 0.0)
    sent = np.where(runs, 6.2e10 * (2 - job.load) * job.parts[1] * work / whole, 0.0) * (1 + drift(0.03))
    return {
        UTIL: np.clip(util, 0, 100),
        CLOCK: clock,
        POWER: np.maximum(power, 60),
        HEAT: heat,
        TENSOR: tensor,
        CPU: np.clip(cpu, 1, 100),
        PAUSES: pause,
        NETWORK: np.maximum(sent, 0),
    }


def _smoothed(power: Floats) -> Floats:
    out = power.copy()
    for at in range(1, len(out)):
        out[at] = 0.8 * out[at - 1] + 0.2 * power[at]
    return out


def _when(second: float) -> datetime:
    return START + timedelta(seconds=second)
