"""Bytes of the network cards of one training job, ten minutes, for the skeleton of `skeletonhunter`.

A job is a grid of replicas and pipeline stages over hosts of eight cards, tensor parallelism within a host. Its
iterations are those of a 1F1B pipeline: dependencies of forwards and backwards give the moments of sends, not a formula
for lags. A stage begins its gradients when its last backward is done in all replicas; gradients are sent at once, in
buckets during the last backward, or as a reduce-scatter with an all-gather at the next iteration (ZeRO). First and last
stages have embeddings: more bytes and more time. Sizes are those of models of 13 to 70 billion parameters.

Noise: log-normal times of each operation, rare hiccups, control traffic by a gamma of each card, reads of the data
loader on the first card; counters are polled by an agent a host, with a jitter, a phase and a clock of its own.
Experts (MoE) exchange tokens with all hosts of their stage at every layer, as evenly as routers balance them. Requests
to an inference service follow nobody's schedule.

With TP 4 both halves of a host are replicas of one stage, each with a pipeline and times of its own.

Truth: DP, PP and TP of dense jobs; of the others none can be stated (Liu et al., "SkeletonHunter", SIGCOMM 2025, name
mixtures of experts as a limit).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from tests.worlds import World

START = datetime(2026, 8, 3, 9, tzinfo=UTC)
LENGTH, CELL = 600.0, 0.1
CARDS = 8
RATE = 2.5e10
"""Bytes a second that a card sends."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Plan:
    """A case. `experts` is the log-normal spread of how evenly routers load them; negative: there are none."""

    says: str
    pp: int = 4
    dp: int = 4
    tp: int = 8
    micro: int = 8
    gradients: str = "at once"
    experts: float = -1.0
    shuffled: bool = True
    poll: float = 1.0
    clock: float = 0.02
    missing: float = 0.0
    checkpoints: bool = False
    requests: bool = False


PLANS = {
    "data_parallel": Plan("16 replicas of one host", pp=1, dp=16),
    "two_stages": Plan("two stages, eight replicas", pp=2, dp=8),
    "four_stages": Plan("four stages, four replicas"),
    "eight_stages": Plan("eight stages, four replicas", pp=8),
    "in_order": Plan("hosts numbered by rank", shuffled=False),
    "buckets": Plan("gradients are sent in buckets during the last backward", gradients="buckets"),
    "zero": Plan("reduce-scatter, and an all-gather at the next iteration", gradients="zero"),
    "many_micro_batches": Plan("32 micro-batches an iteration", micro=32),
    "fine": Plan("counters five times a second", poll=0.2),
    "fine_data_parallel": Plan("the same, 16 replicas of one host", pp=1, dp=16, poll=0.2),
    "fine_zero": Plan("the same, reduce-scatter and all-gather", gradients="zero", poll=0.2),
    "fine_experts": Plan("the same, experts spread by 15 %", experts=0.15, poll=0.2),
    "clocks": Plan("clocks of hosts off by up to half a second", clock=0.5),
    "missing": Plan("a twentieth of the rows lost", missing=0.05),
    "checkpoints": Plan("a checkpoint every 200 s, written by the first replica", checkpoints=True),
    "two_groups": Plan("TP 4: both halves of a host are replicas of one stage", pp=2, dp=16, tp=4),
    "fine_two_groups": Plan("the same, five times a second", pp=2, dp=16, tp=4, poll=0.2),
    "experts_uneven": Plan("experts over 16 hosts, loads spread by 30 %", pp=1, dp=16, experts=0.3),
    "experts_even": Plan("experts over 16 hosts, loads spread by 5 %", pp=1, dp=16, experts=0.05),
    "experts_in_stages": Plan("experts within each of four stages, spread by 15 %", experts=0.15),
    "inference": Plan("a service of 16 hosts", pp=1, dp=16, requests=True),
}
CASES = {name: plan.says for name, plan in PLANS.items()}


def degrees(case: str) -> tuple[int, int, int] | None:
    """DP, PP and TP of a dense job, None where nothing can be stated."""
    plan = PLANS[case]
    return None if plan.experts >= 0 or plan.requests else (plan.dp, plan.pp, plan.tp)


def make(seed: int, case: str) -> World:
    """The world of a case: one window, no faults. Raises KeyError for a case that is not in `CASES`."""
    plan = PLANS[case]
    rng = np.random.default_rng([seed, crc32(case.encode())])
    job = _Job(plan, rng)
    if plan.requests:
        job.serve()
    else:
        job.train()
    rows = job.rows()
    return World(case, seed, {"nic_traffic": rows}, timedelta(seconds=LENGTH), START)


class _Job:
    """Bytes sent and received by (host, card, cell of `CELL` seconds). A host has one stage and, with TP 4, two
    replicas: its groups."""

    def __init__(self, plan: Plan, rng: np.random.Generator) -> None:
        self.plan, self.rng = plan, rng
        self.groups = CARDS // plan.tp
        self.columns = plan.dp // self.groups
        self.hosts = plan.pp * self.columns
        self.cells = int(LENGTH / CELL)
        self.sent = np.zeros((self.hosts, CARDS, self.cells))
        self.received = np.zeros((self.hosts, CARDS, self.cells))
        ends = np.zeros(plan.pp)
        ends[0] += rng.uniform(0.02, 0.08)
        ends[-1] += rng.uniform(0.05, 0.15)
        self.forward = float(rng.uniform(0.12, 0.35)) * (1 + ends)
        """Seconds of a forward by stage."""
        self.activations = float(rng.uniform(1.5e8, 6e8)) / plan.tp
        self.popular = rng.standard_normal((self.hosts, CARDS))
        """Experts that get more tokens than others keep that for hours."""
        self.gradients = float(rng.uniform(4e9, 1e10)) * (1 + ends) * 8 / plan.tp

    def host(self, stage: int, column: int) -> int:
        return stage * self.columns + column

    def add(self, into: Floats, host: int, start: float, took: float, size: float | Floats) -> None:
        """Spread bytes of all cards of a host evenly over some seconds."""
        first, last = int(start / CELL), int((start + took) / CELL)
        if last >= self.cells or first < 0:
            return
        inside = np.arange(first, last + 1)
        share = np.minimum((inside + 1) * CELL, start + took) - np.maximum(inside * CELL, start)
        share = share / max(share.sum(), 1e-9) if took > 0 else np.eye(1, len(inside))[0]
        into[host, :, first : last + 1] += np.outer(np.broadcast_to(size, CARDS), share)

    def train(self) -> None:
        now, number, due = float(self.rng.uniform(0, 3)), 0, 200.0
        while now < LENGTH:
            now = self.iterate(now, number)
            if self.plan.checkpoints and now > due:
                for stage in range(self.plan.pp):
                    self.add(self.sent, self.host(stage, 0), now, 12.0, 2e10 * np.eye(1, CARDS)[0])
                now, due = now + float(self.rng.uniform(12, 20)), due + 200.0
            number += 1

    def iterate(self, begin: float, number: int) -> float:
        """One iteration from a moment on; returns when the next begins."""
        plan, rng = self.plan, self.rng
        if plan.gradients == "zero" and number:
            for host in range(self.hosts):
                self.collective(host, begin, 0.5)
            begin += max(self.seconds(stage, 0.5) for stage in range(plan.pp))
        done, last = np.zeros((2, plan.pp, self.columns, self.groups))
        for column in range(self.columns):
            if number % 4 == 0:
                reads = 3e8 * np.eye(1, CARDS)[0]
                self.add(self.received, self.host(0, column), begin, 0.6, reads)
            for group in range(self.groups):
                slow = np.exp(0.02 * rng.standard_normal((plan.pp, 2 * plan.micro)))
                slow *= 1 + (rng.random(slow.shape) < 0.002) * rng.exponential(0.5, slow.shape)
                done[:, column, group], last[:, column, group] = self.pipeline(begin, column, group, slow)
        end = begin
        for stage in range(plan.pp):
            ready = float(done[stage].max())
            for column in range(self.columns):
                host, share = self.host(stage, column), 0.5 if plan.gradients == "zero" else 1.0
                if plan.gradients == "buckets":
                    took = ready - float(last[stage].max())
                    self.collective(host, ready - took, 1.0, took)
                else:
                    self.collective(host, ready, share)
            end = max(end, ready + (self.seconds(stage, 1.0) if plan.gradients != "buckets" else 0.05))
        return end + float(rng.uniform(0.15, 0.2))

    def seconds(self, stage: int, share: float) -> float:
        return share * 2 * (1 - 1 / self.plan.dp) * float(self.gradients[stage]) / RATE

    def collective(self, host: int, start: float, share: float, took: float | None = None) -> None:
        """A ring over the replicas of a stage: as many bytes in as out."""
        stage = host // self.columns
        took = self.seconds(stage, share) if took is None else took
        size = share * 2 * (1 - 1 / self.plan.dp) * float(self.gradients[stage])
        self.add(self.sent, host, start, took, size)
        self.add(self.received, host, start, took, size)

    def pipeline(self, begin: float, column: int, group: int, slow: Floats) -> tuple[Floats, Floats]:
        """Times at which each stage ends and begins its last backward; sends on the way are noted."""
        pp, micro = self.plan.pp, self.plan.micro
        order = [_one_f_one_b(stage, pp, micro) for stage in range(pp)]
        free, place = np.full(pp, begin), [0] * pp
        over: dict[tuple[str, int, int], float] = {}
        began = np.zeros(pp)
        while any(place[stage] < len(order[stage]) for stage in range(pp)):
            for stage in range(pp):
                while place[stage] < len(order[stage]):
                    kind, batch = order[stage][place[stage]]
                    before = stage - 1 if kind == "f" else stage + 1
                    needs = (kind, before, batch) if 0 <= before < pp else ("f", stage, batch)
                    if kind == "f" and stage == 0:
                        ready = begin
                    elif needs in over:
                        ready = over[needs]
                    else:
                        break
                    begin_at = max(float(free[stage]), ready)
                    took = float(self.forward[stage] * (1 if kind == "f" else 2) * slow[stage, place[stage]])
                    free[stage] = began[stage] = begin_at
                    free[stage] += took
                    over[kind, stage, batch] = float(free[stage])
                    place[stage] += 1
                    self.operate(kind, stage, column, group, begin_at, took)
        return free, began

    def operate(self, kind: str, stage: int, column: int, group: int, start: float, took: float) -> None:
        """Bytes that an operation sends: activations or their gradients to the neighbour, tokens to other experts."""
        target, host = stage + (1 if kind == "f" else -1), self.host(stage, column)
        if 0 <= target < self.plan.pp:
            moved = self.activations / RATE
            size = self.activations * (np.arange(CARDS) // self.plan.tp == group)
            self.add(self.sent, host, start + took, moved, size)
            self.add(self.received, self.host(target, column), start + took, moved, size)
        if self.plan.experts >= 0:
            now = 0.8 * self.popular[host] + 0.6 * self.rng.standard_normal(CARDS)
            load = np.exp(self.plan.experts * now)
            size = 8 * self.activations * (1 if kind == "f" else 2)
            self.add(self.sent, host, start, took, size)
            self.add(self.received, host, start, took, size * load)

    def serve(self) -> None:
        """Requests of gamma sizes at hosts by chance, busier by the minute."""
        rng = self.rng
        busy = np.repeat(np.exp(0.4 * rng.standard_normal(int(LENGTH / 60))), int(60 / CELL))
        for host in range(self.hosts):
            calls = rng.poisson(0.6 * busy)
            size = calls * rng.gamma(1.5, 4e7, (CARDS, self.cells))
            self.sent[host] += size
            self.received[host] += 0.3 * size

    def rows(self) -> list[dict[str, Any]]:
        """Rows that the agent of each host reads off the counters."""
        plan, rng = self.plan, self.rng
        names = rng.permutation(self.hosts) if plan.shuffled else np.arange(self.hosts)
        quiet = rng.gamma(2.0, 2e4, (self.hosts, CARDS, 1)) * CELL
        edges = np.arange(self.cells + 1) * CELL
        rows: list[dict[str, Any]] = []
        for host in range(self.hosts):
            polls = np.arange(rng.uniform(0, plan.poll), LENGTH, plan.poll)
            polls = np.clip(polls + 0.03 * plan.poll * rng.standard_normal(len(polls)), 0, LENGTH - 1e-3)
            off = float(rng.uniform(-plan.clock, plan.clock))
            kept = rng.random(len(polls)) >= plan.missing
            name = f"h{names[host]:03d}"
            for card in range(CARDS):
                read = [
                    np.diff(
                        np.interp(
                            polls, edges, np.append(0.0, np.cumsum(counter[host, card] + quiet[host, card]))
                        )
                    )
                    for counter in (self.sent, self.received)
                ]
                sent, received = (np.round(one).tolist() for one in read)
                for at in np.flatnonzero(kept[1:]).tolist():
                    second = min(max(float(polls[at + 1]) + off, 0.0), LENGTH - 1e-3)
                    rows.append(
                        {
                            "time": round(START.timestamp()) * 10**9 + round(second * 1e9),
                            "job": "pretrain",
                            "host": f"host/{name}",
                            "nic": f"nic/{name}-{card}",
                            "rail": card,
                            "tx_bytes": sent[at],
                            "rx_bytes": received[at],
                        }
                    )
        rows.sort(key=lambda row: (row["time"], row["nic"]))
        return rows


def _one_f_one_b(stage: int, stages: int, micro: int) -> list[tuple[str, int]]:
    """The order of forwards and backwards of a stage: as many forwards ahead as there are stages behind it."""
    ahead = min(stages - 1 - stage, micro)
    order = [("f", one) for one in range(ahead)]
    for one in range(micro - ahead):
        order += [("f", ahead + one), ("b", one)]
    return order + [("b", one) for one in range(micro - ahead, micro)]
