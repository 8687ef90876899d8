"""Throughput of the network cards of training jobs: dense 3D-parallel jobs (1F1B pipelines), mixtures of experts.

Every host has `rails` GPUs with a network card each; tensor parallelism stays inside the host (NVLink). A stage sends
activations to the next and gradients to the one before; when its last gradient of an iteration is done, all its
replicas reduce gradients in one burst. A mixture of experts exchanges tokens among all cards at every micro-batch, with
shares that the router draws. Durations of replicas and iterations jitter; counters are sampled, some samples are lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.simulators.deepview import EPOCH
from analyzers.simulators.region import Row, stamp

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

GBPS = 125e6
"""Bytes a second of one gigabit a second."""


@dataclass(frozen=True, slots=True)
class Job:
    """`tp * pp * dp` GPUs; `forward` is the seconds of one micro-batch in one stage, the backward pass takes twice as
    long. `uneven` is the spread (sigma of the logarithm) of what experts get; 0 is a dense job. A host of more than
    one tensor-parallel group holds neighbouring stages of a replica, or replicas of a stage if they are `beside` each
    other.
    """

    tp: int = 8
    pp: int = 4
    dp: int = 8
    rails: int = 8
    micro: int = 8
    forward: float = 0.2
    reduce: float = 1.0
    sample: float = 0.1
    seconds: float = 600.0
    noise: float = 0.03
    jitter: float = 0.02
    uneven: float = 0.0
    beside: bool = False

    @property
    def hosts(self) -> int:
        return self.tp * self.pp * self.dp // self.rails


@dataclass(frozen=True, eq=False)
class Traffic:
    """Bytes by card and sample, shape (hosts, rails, samples), and where each card is: replica and stage, shape (hosts,
    rails). Hosts are numbered as launchers do: replicas of a stage one after the other."""

    job: Job
    tx: Floats
    rx: Floats
    replica: Ints
    stage: Ints
    names: list[str] = field(default_factory=list)


def schedule(pp: int, micro: int, forward: float) -> tuple[Floats, Floats]:
    """Ends of the forward and the backward pass of each micro-batch in each stage (1F1B), shape (stages, micro)."""
    ends = np.zeros((2, pp, micro))
    orders = []
    for stage in range(pp):
        warm = min(pp - stage, micro)
        order = [(0, one) for one in range(warm)]
        for one in range(micro):
            order.append((1, one))
            if warm + one < micro:
                order.append((0, warm + one))
        orders.append(order)
    at, free = [0] * pp, np.zeros(pp)
    done = np.zeros((2, pp, micro), dtype=bool)
    while any(at[stage] < len(orders[stage]) for stage in range(pp)):
        for stage in range(pp):
            while at[stage] < len(orders[stage]):
                way, one = orders[stage][at[stage]]
                before = stage - 1 if way == 0 else stage + 1
                ready = 0.0
                if 0 <= before < pp:
                    if not done[way, before, one]:
                        break
                    ready = ends[way, before, one]
                ends[way, stage, one] = max(free[stage], ready) + forward * (1 + way)
                free[stage] = ends[way, stage, one]
                done[way, stage, one] = True
                at[stage] += 1
    return ends[0], ends[1]


def draw(job: Job, rng: np.random.Generator) -> Traffic:
    """The traffic of a job."""
    samples = round(job.seconds / job.sample)
    shape = job.hosts, job.rails, samples
    tx, rx = np.zeros(shape), np.zeros(shape)
    stage, replica = _places(job)
    groups = [[np.nonzero((stage == s) & (replica == r)) for r in range(job.dp)] for s in range(job.pp)]
    forward, backward = schedule(job.pp, job.micro, job.forward)
    start = -float(rng.uniform(0, 5))
    while start < job.seconds:
        pace = 1 + job.jitter * rng.standard_normal()
        last = np.zeros(job.pp)
        for r in range(job.dp):
            own = pace * (1 + 0.5 * job.jitter * rng.standard_normal())
            for s in range(job.pp):
                shake = 0.15 * job.forward * rng.random((2, job.micro))
                if s + 1 < job.pp:
                    for at in (start + own * forward[s] + shake[0]).tolist():
                        _burst(job, tx, groups[s][r], at, 0.25 * job.forward, 60 * GBPS)
                        _burst(job, rx, groups[s + 1][r], at, 0.25 * job.forward, 60 * GBPS)
                if s:
                    for at in (start + own * backward[s] + shake[1]).tolist():
                        _burst(job, tx, groups[s][r], at, 0.25 * job.forward, 60 * GBPS)
                        _burst(job, rx, groups[s - 1][r], at, 0.25 * job.forward, 60 * GBPS)
                last[s] = max(last[s], start + own * backward[s, -1])
        for s in range(job.pp):
            if job.dp > 1:
                where = np.nonzero(stage == s)
                for counter in (tx, rx):
                    _burst(job, counter, where, last[s], job.reduce, 180 * GBPS)
        if job.uneven:
            _exchange(job, rng, tx, rx, start, float(last.max()))
        start = float(last.max()) + job.reduce + 0.3 * (1 + job.jitter * rng.standard_normal())
    for counter in (tx, rx):
        counter *= 1 + job.noise * rng.standard_normal(shape)
        counter += rng.exponential(0.01 * 180 * GBPS * job.sample, shape)
    return Traffic(job, np.maximum(tx, 0.0), np.maximum(rx, 0.0), replica, stage)


def _places(job: Job) -> tuple[Ints, Ints]:
    """The stage and the replica of each card."""
    inside = job.rails // job.tp
    host, rail = np.divmod(np.arange(job.hosts * job.rails), job.rails)
    if job.beside:
        stage, column = np.divmod(host, job.dp // inside)
        replica = column * inside + rail // job.tp
        return stage.reshape(job.hosts, job.rails), replica.reshape(job.hosts, job.rails)
    block, replica = np.divmod(host, job.dp)
    stage = block * inside + rail // job.tp
    return stage.reshape(job.hosts, job.rails), replica.reshape(job.hosts, job.rails)


def _burst(job: Job, counter: Floats, where: Any, start: float, length: float, rate: float) -> None:
    """Add a burst of bytes to the samples that it overlaps."""
    first, last = int(start // job.sample), int((start + length) // job.sample)
    for at in range(max(first, 0), min(last, counter.shape[2] - 1) + 1):
        inside = min(start + length, (at + 1) * job.sample) - max(start, at * job.sample)
        counter[(*where, at)] += rate * max(inside, 0.0)


def _exchange(job: Job, rng: np.random.Generator, tx: Floats, rx: Floats, start: float, end: float) -> None:
    """All-to-all bursts of experts, with shares that change by and by."""
    size = tx.shape[:2]
    share = np.exp(job.uneven * rng.standard_normal(size))
    for at in np.arange(start, end, job.forward).tolist():
        shares = share * np.exp(0.5 * job.uneven * rng.standard_normal(size))
        first = int(at // job.sample)
        for one in range(
            max(first, 0), min(first + max(1, round(0.5 * job.forward / job.sample)), tx.shape[2])
        ):
            tx[:, :, one] += 90 * GBPS * job.sample * shares
            rx[:, :, one] += 90 * GBPS * job.sample * rng.permutation(shares.ravel()).reshape(size)


def traffic_rows(
    traffic: Traffic, rng: np.random.Generator, name: str = "j0", missing: float = 0.01
) -> list[Row]:
    """`nic_traffic` rows of a job."""
    job, rows = traffic.job, []
    for host in range(job.hosts):
        for rail in range(job.rails):
            retained = np.flatnonzero(rng.random(traffic.tx.shape[2]) >= missing)
            for at in retained.tolist():
                rows.append(
                    {
                        "time": stamp(EPOCH, (at + 0.5) * job.sample / 60),
                        "job": name,
                        "host": f"host/h{host}",
                        "nic": f"nic/h{host}-{rail}",
                        "rail": rail,
                        "tx_bytes": round(float(traffic.tx[host, rail, at])),
                        "rx_bytes": round(float(traffic.rx[host, rail, at])),
                    }
                )
    return rows
