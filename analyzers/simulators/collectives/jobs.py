"""Training jobs with tensor, pipeline and data parallelism, iteration by iteration, and what can go wrong in them.

Ranks are blocked by what they wait for: a rank that stops never launches its next operation, so its peers do not leave
theirs, and so on (times without end are infinite). Each iteration computes micro-batches through the pipeline with an
all-reduce of each tensor group and sends between stages, then reduces gradients over the data-parallel groups (with
transfers between ranks: one ring, two rings, or all pairs) and a norm over all ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NODE = 8
"""Ranks of a node."""
NIC, NVLINK = 25e9, 200e9
"""Bytes a second of a rank, across nodes and within one."""
_LATENCY = 20e-6
_UNEVEN = 1.3
"""Time of a transfer on a connection that is always slow."""
_CONGESTED = 0.05
"""Share of transfers that meet congestion, which takes 1.5 to 3 times as long."""


@dataclass(frozen=True, slots=True)
class Job:
    """`rings` is how gradients travel: 1 ring, 2 rings, or 0 for all pairs. `experts` adds an all-to-all of uneven size
    to each iteration; `noise` is the spread of computing times, `scatter` of transfers. `uneven` is the share of the
    connections whose transfers always take 1.3 times as long (longer way, older cable)."""

    tensor: int = 1
    pipeline: int = 1
    data: int = 16
    rings: int = 2
    micro_batches: int = 2
    compute: float = 0.25
    gradient_bytes: float = 2e9
    noise: float = 0.02
    experts: bool = False
    scatter: float = 0.12
    uneven: float = 0.0

    @property
    def ranks(self) -> int:
        return self.tensor * self.pipeline * self.data

    @property
    def grid(self) -> Ints:
        """Ranks by stage, replica and place in the tensor group."""
        return np.arange(self.ranks).reshape(self.pipeline, self.data, self.tensor)


@dataclass(frozen=True, slots=True)
class Trouble:
    """Fault or event from `start` to `end` (seconds): `kind` of `FAULTS` or `EVENTS`, at `ranks`, so `strong`."""

    kind: str
    ranks: tuple[int, ...]
    start: float
    end: float = np.inf
    strength: float = 2.0
    peer: int = -1

    @property
    def component(self) -> str:
        rank = self.ranks[0]
        return {
            "slow_tx": f"rank_tx/{rank}",
            "slow_rx": f"rank_rx/{rank}",
            "slow_channel": f"channel/{rank}~{self.peer}",
            "stuck_tx": f"rank_tx/{rank}",
            "stuck_channel": f"channel/{rank}~{self.peer}",
        }.get(self.kind, f"rank/{rank}")


HANGS = ("hang", "stuck_tx", "stuck_channel", "mismatch")
SLOW = ("slow_tx", "slow_rx", "slow_nic", "slow_channel")
FAULTS = (*HANGS, *SLOW, "slow_compute", "slow_loader")
STALLS = ("checkpoint", "slow_read")


@dataclass(slots=True)
class Recorded:
    """Parts of operations as they were noted: columns by name, and the seconds that the record covers."""

    parts: list[dict[str, NDArray[np.generic]]] = field(default_factory=list)

    def columns(self) -> dict[str, NDArray[np.generic]]:
        return {name: np.concatenate([part[name] for part in self.parts]) for name in self.parts[0]}


def draw(job: Job, rng: np.random.Generator, kind: str, start: float) -> Trouble:
    """A fault of a kind at a random place that takes part in transfers."""
    rank = int(rng.integers(0, job.ranks))
    place = np.argwhere(job.grid == rank)[0]
    group = job.grid[place[0], :, place[2]]
    at = int(place[1])
    step = 1 if job.rings == 1 or rng.random() < 0.5 else -1
    if job.rings == 0:
        step = int(rng.integers(1, max(2, len(group))))
    peer = int(group[(at + step) % len(group)])
    strength = float(rng.uniform(1.5, 3.0)) if kind in SLOW else float(rng.uniform(1.15, 1.6))
    return Trouble(kind, (rank,), start, strength=strength, peer=peer)


class Simulation:
    """A job from second 0 until `seconds`; `recorded` holds what was noted by the true clock."""

    def __init__(self, job: Job, rng: np.random.Generator, troubles: Sequence[Trouble] = ()) -> None:
        self.job, self.rng, self.troubles = job, rng, tuple(troubles)
        self.recorded = Recorded()
        self.clock: Floats = np.zeros(job.ranks)
        self.seq: dict[str, int] = {}
        self.suffix = ""
        self.hot = rng.permutation(job.data)
        self.pace: Floats = np.ones((job.ranks, job.ranks))
        if job.uneven:
            self.pace[rng.random(self.pace.shape) < job.uneven] = _UNEVEN

    def run(self, seconds: float) -> Recorded:
        """Iterations until the slowest rank is past the end, or all wait for ever."""
        resize = [one for one in self.troubles if one.kind == "resize"]
        while np.isfinite(self.clock).any() and self.clock[np.isfinite(self.clock)].min() < seconds:
            if resize and self.clock.min() >= resize[0].start and not self.suffix:
                self._resize(resize[0])
            self._stall()
            if self._is_on("evaluation"):
                self._evaluate()
                continue
            self._iterate()
        return self.recorded

    def _resize(self, event: Trouble) -> None:
        """Two replicas leave; the others go on after a restart, in new communicators."""
        self.job = replace(self.job, data=max(2, self.job.data - 2))
        self.clock = np.full(self.job.ranks, self.clock.max() + event.strength)
        self.suffix = "-2"

    def _is_on(self, kind: str) -> bool:
        now = self.clock.min()
        return any(one.kind == kind and one.start <= now < one.end for one in self.troubles)

    def _stall(self) -> None:
        for one in self.troubles:
            if one.kind in STALLS and (mine := self._starting(one)).any():
                pause = self.rng.uniform(0.8, 1.0, len(mine)) * one.strength
                self.clock = np.where(mine, self.clock + pause, self.clock)
                self.troubles = tuple(other for other in self.troubles if other is not one)

    def _starting(self, one: Trouble) -> NDArray[np.bool_]:
        mine = np.zeros(self.job.ranks, dtype=np.bool_)
        mine[list(one.ranks) if one.ranks else slice(None)] = True
        return mine & (self.clock >= one.start)

    def _iterate(self) -> None:
        job, grid = self.job, self.job.grid
        load = np.zeros(job.ranks)
        for one in self.troubles:
            if one.kind == "slow_loader":
                struck = np.isin(np.arange(job.ranks), one.ranks) & (self.clock >= one.start)
                load = load + struck * (one.strength - 1) * job.compute * job.micro_batches * 3
        self._work(np.arange(job.ranks), load)
        for batch in range(job.micro_batches):
            for stage in range(job.pipeline):
                self._step(grid, stage, stage + 1, job.compute, f"f{batch}")
        for batch in range(job.micro_batches):
            for stage in reversed(range(job.pipeline)):
                self._step(grid, stage, stage - 1, 2 * job.compute, f"b{batch}")
        for stage in range(job.pipeline):
            for place in range(job.tensor):
                if job.experts:
                    self._all_to_all(grid[stage, :, place], f"ep-{stage}-{place}")
                self._reduce(grid[stage, :, place], f"dp-{stage}-{place}")
        if job.tensor * job.pipeline > 1:
            self._collective(np.arange(job.ranks), "world", "all_reduce", 8.0, 50e-6)

    def _evaluate(self) -> None:
        """Ranks compute shards of different size, and collect a figure now and then."""
        self._work(np.arange(self.job.ranks), self.rng.uniform(0.5, 3.0, self.job.ranks))
        self._collective(np.arange(self.job.ranks), "world", "all_gather", 4096.0, 1e-4)

    def _step(self, grid: Ints, stage: int, other: int, compute: float, _name: str) -> None:
        """A stage computes a micro-batch, agrees on it within each tensor group, and sends it on."""
        job = self.job
        mine = grid[stage]
        self._work(mine.ravel(), np.full(mine.size, compute / job.pipeline * 1.0))
        if job.tensor > 1:
            for replica in range(job.data):
                self._collective(mine[replica], f"tp-{stage}-{replica}", "all_reduce", 64e6, 64e6 / NVLINK)
        if 0 <= other < job.pipeline:
            self._send(mine.ravel(), grid[other].ravel())

    def _work(self, ranks: Ints, seconds: Floats) -> None:
        scale = self.rng.lognormal(0, self.job.noise, len(ranks))
        for one in self.troubles:
            struck = (
                np.isin(ranks, one.ranks) & (self.clock[ranks] >= one.start) & (self.clock[ranks] < one.end)
            )
            if one.kind == "slow_compute":
                scale = np.where(struck, scale * one.strength, scale)
            if one.kind == "time_shared":
                on = (self.clock[ranks] - one.start) % 9.0 < 3.5
                scale = np.where(struck & on, scale * one.strength, scale)
        done = self.clock[ranks] + seconds * scale
        for one in self.troubles:
            if one.kind == "hang":
                done = np.where(np.isin(ranks, one.ranks) & (done >= one.start), np.inf, done)
        self.clock[ranks] = done

    def _next(self, name: str) -> int:
        self.seq[name] = self.seq.get(name, -1) + 1
        return self.seq[name]

    def _collective(
        self, members: Ints, name: str, op: str, size: float, lasts: float, sizes: Floats | None = None
    ) -> tuple[str, int, float]:
        """All enter, all leave together `lasts` seconds after the last has entered."""
        name += self.suffix
        seq, entered = self._next(name), self.clock[members].copy()
        begin = float(entered.max())
        ops = np.full(len(members), op, dtype=object)
        for one in self.troubles:
            if one.kind == "mismatch" and begin >= one.start and name.startswith("dp"):
                odd = np.isin(members, one.ranks)
                ops[odd] = "all_gather"
                lasts = np.inf if odd.any() else lasts
        left = begin + lasts * self.rng.uniform(1.0, 1.02) + self.rng.uniform(0, 2e-5, len(members))
        given = np.full(len(members), size) if sizes is None else sizes
        self._note(
            name,
            seq,
            ops,
            members,
            np.full(len(members), -1),
            np.full(len(members), -1),
            given,
            entered,
            left,
        )
        self.clock[members] = left
        return name, seq, begin

    def _reduce(self, members: Ints, group: str) -> None:
        """Gradients of a data-parallel group, with the transfers between its ranks."""
        count = len(members)
        if count < 2:
            return
        places = np.arange(count)
        steps = range(1, count) if self.job.rings == 0 else (1,) if self.job.rings == 1 else (1, count - 1)
        pairs = sorted(
            {(int(members[at]), int(members[(at + step) % count])) for step in steps for at in places}
        )
        src, dst = np.array(pairs).T
        size = np.full(
            len(src), self.job.gradient_bytes / len(steps) / max(1, self.job.tensor * self.job.pipeline)
        )
        self._with_transfers(members, group, "all_reduce", src, dst, size)

    def _all_to_all(self, members: Ints, group: str) -> None:
        """Tokens to experts, some of which are chosen more than others; the choice drifts."""
        count = len(members)
        weight = 1.0 + (self.hot[:count] < max(1, count // 8)) * 1.5
        weight = weight * self.rng.lognormal(0, 0.1, count)
        src, dst = (one.ravel() for one in np.meshgrid(members, members, indexing="ij"))
        apart = src != dst
        src, dst = src[apart], dst[apart]
        size = 4e6 * weight[np.searchsorted(members, dst)]
        self._with_transfers(members, group, "all_to_all", src, dst, size)
        # The ranks of chosen experts compute longer.
        self._work(members, 0.15 * self.job.compute * weight)

    def _with_transfers(self, members: Ints, group: str, op: str, src: Ints, dst: Ints, size: Floats) -> None:
        begin = float(self.clock[members].max())
        lasts = self._durations(src, dst, size, begin)
        received = np.zeros(len(members))
        np.add.at(received, np.searchsorted(members, dst), size)
        lasting = float(lasts.max()) if len(lasts) else 0.0
        name, seq, begin = self._collective(
            members, group, op, float(size.sum()), lasting, received if op == "all_to_all" else None
        )
        if np.isfinite(begin):
            ops = np.full(len(src), op, dtype=object)
            start = begin + self.rng.uniform(0, 1e-4, len(src))
            self._note(name, seq, ops, src, src, dst, size, start, start + lasts)

    def _durations(self, src: Ints, dst: Ints, size: Floats, now: float) -> Floats:
        """Seconds that transfers take that begin together: the busier end of each shares its bandwidth."""
        same = src // NODE == dst // NODE
        into = np.bincount(dst, size)[dst] / np.bincount(dst)[dst]
        out = np.bincount(src, size)[src] / np.bincount(src)[src]
        lasts = _LATENCY + np.maximum(into, out) / np.where(same, NVLINK, NIC)
        lasts = lasts * self.rng.lognormal(0, self.job.scatter, len(src)) * self.pace[src, dst]
        congested = ~same & (self.rng.random(len(src)) < _CONGESTED)
        lasts = np.where(congested, lasts * self.rng.uniform(1.5, 3.0, len(src)), lasts)
        for one in self.troubles:
            if not one.start <= now < one.end or one.kind not in (*SLOW, "stuck_tx", "stuck_channel"):
                continue
            by, to = np.isin(src, one.ranks), np.isin(dst, one.ranks)
            struck = {
                "slow_tx": by,
                "slow_rx": to,
                "slow_nic": by | to,
                "stuck_tx": by,
            }.get(one.kind, by & (dst == one.peer))
            lasts = np.where(struck, np.inf if one.kind.startswith("stuck") else lasts * one.strength, lasts)
        return lasts

    def _send(self, src: Ints, dst: Ints) -> None:
        """Each rank of a stage to the same place of another: the sender goes on, the receiver waits."""
        size = 32e6
        for one, other in zip(src.tolist(), dst.tolist(), strict=True):
            name = f"pp-{min(one, other)}-{max(one, other)}{self.suffix}"
            sent, ready = self.clock[one], self.clock[other]
            lasts = size / NIC * float(self.rng.lognormal(0, 0.1))
            end = max(sent, ready) + lasts
            seq = self._next(name)
            both = np.array([one, other])
            self._note(
                name,
                seq,
                np.array(["send", "recv"], dtype=object),
                both,
                np.array([one, one]),
                np.array([other, other]),
                np.full(2, size),
                np.array([sent, ready]),
                np.full(2, end),
            )
            self.clock[one] = sent if np.isfinite(end) else np.inf
            self.clock[other] = end

    def _note(
        self,
        name: str,
        seq: int,
        op: NDArray[np.object_],
        rank: Ints,
        src: Ints,
        dst: Ints,
        size: Floats,
        start: Floats,
        end: Floats,
    ) -> None:
        launched = np.isfinite(start)
        self.recorded.parts.append(
            {
                "communicator": np.full(int(launched.sum()), name, dtype=object),
                "seq": np.full(int(launched.sum()), seq),
                "op": op[launched],
                "rank": rank[launched],
                "src": src[launched],
                "dst": dst[launched],
                "bytes": size[launched],
                "start": start[launched],
                "end": end[launched],
            }
        )
