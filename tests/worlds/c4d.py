"""Records of collective operations of training jobs, two minutes a window, for `c4d`.

A job of tensor, pipeline and data parallel ranks runs its operations in program order, every rank on its own clock:
all-reduce in a node (`tp`), send and receive between stages (`pp`), ring all-reduce over replicas (`dp`), all-to-all
of experts (`ep`), one all-reduce of all (`world`). An operation begins on a rank when the rank gets there and ends when
the last has come and the bytes are through, so that everybody who waits looks slow and the late one does not. Records
are those of C4D (Dong et al., HPCA 2025: operations, and transfers between two ranks with bytes) in the shape of
PyTorch's flight recorder: started or completed; a rank that never launched has no row; what is stuck is told again
every 30 s; sequence numbers begin anew after a restart.

Noise: log-normal compute and transfers (sigma .04 and .25), congestion on 6 % of the transfers (half of them more than
twice as long), links of three speeds, pairs that share a link all along (1.15 to 1.25 times), stages of unequal work.
Rows are lost at random and by rank and 20 s; clocks of nodes may be off by seconds.

Truth: a suspect is `rank/N` (it never came, or came late), `rank_tx/N`, `rank_rx/N` or `channel/I~J`; where a single
ring, or a stuck transfer, cannot tell these apart, all are acceptable. Slow transfers take at least 1.3 times as long,
late ranks compute at least 1.05 times as long as the others of their node, in most of each window.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from tests.worlds import Fault, World

START = datetime(2026, 4, 13, 20, tzinfo=UTC)
EPOCH = round(START.timestamp())
WINDOW = 120
EVERY = timedelta(seconds=WINDOW)
HISTORY, JUDGED = 4, 4
LENGTH = (HISTORY + JUDGED) * WINDOW
POLL = 30
HANGS = ("never_launched", "crashed", "mismatch", "stuck_channel", "stuck_tx")
"""Faults that stop the job; the others slow it."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Plan:
    """A case. `shape` is tensor, pipeline and data parallel degree; `experts` adds an all-to-all over the replicas."""

    says: str
    shape: tuple[int, int, int] = (4, 2, 4)
    faults: tuple[str, ...] = ()
    depth: tuple[float, float] = (1.7, 4.0)
    begins: int | None = None
    lasts: int = 2
    history: int = 0
    benign: str = ""
    experts: bool = False
    rings: int = 2
    missing: float = 0.0
    silent: int = 0
    skew: float = 0.0
    collisions: int = 0
    beside: bool = False


MESH = (1, 1, 12)
PLANS = {
    "healthy": Plan("32 ranks: 4 tensor, 2 pipeline, 4 data parallel"),
    "healthy_64": Plan("64 ranks", (8, 2, 4)),
    "healthy_ring": Plan("16 ranks in one ring", (1, 1, 16), rings=1),
    "healthy_mesh": Plan("12 ranks all to all", MESH, experts=True),
    "healthy_pair": Plan("two ranks", (1, 1, 2)),
    "healthy_beside": Plan("two jobs with the same rank numbers", beside=True),
    "healthy_missing": Plan("a fifth of the rows lost, one rank sends none", missing=0.2, silent=1),
    "healthy_mesh_missing": Plan("all to all, a fifth of the rows lost", MESH, experts=True, missing=0.2),
    "healthy_skew": Plan("clocks of nodes off by up to 3 s", skew=3.0),
    "healthy_collisions": Plan("pairs that share a link", MESH, experts=True, collisions=4),
    "healthy_after_faults": Plan("two faults of other ranks in the history", history=2),
    "checkpoints": Plan("stalls of 20 to 70 s while the first rank writes", benign="checkpoints"),
    "evaluation": Plan("phases without gradients: fewer operations", benign="evaluation"),
    "elastic_resize": Plan("a replica leaves, ranks are numbered anew", benign="resize"),
    "time_shared": Plan("another job takes turns on the same GPUs", benign="shared"),
    "storage_slow": Plan("slow reads hold up another rank every time", benign="storage"),
    "moe_imbalance": Plan("messages and work differ by rank and step", MESH, experts=True, benign="moe"),
    "planned_reboot": Plan("the job stops for a minute and begins anew", benign="reboot"),
    "job_ends": Plan("the job is over in the middle of a window", benign="ends"),
    "never_launched": Plan("a rank hangs before a collective", faults=("never_launched",)),
    "never_launched_mesh": Plan("the same, all to all", MESH, faults=("never_launched",), experts=True),
    "never_launched_missing": Plan("a fifth of the rows lost", faults=("never_launched",), missing=0.2),
    "crashed": Plan("a process is gone", faults=("crashed",)),
    "mismatch": Plan("a rank calls another operation", faults=("mismatch",)),
    "stuck_channel": Plan("a transfer between stages never ends", faults=("stuck_channel",)),
    "stuck_tx": Plan(
        "nothing that a rank sends arrives, all to all", MESH, faults=("stuck_tx",), experts=True
    ),
    "late": Plan("a rank comes late", faults=("late",)),
    "late_faint": Plan("a rank computes 1.05 to 1.1 times as long", faults=("late",), depth=(1.05, 1.1)),
    "late_ring": Plan("a rank of 16 in a ring comes late", (1, 1, 16), faults=("late",), rings=1),
    "late_node": Plan("all ranks of a node come late", faults=("late_node",)),
    "late_skew": Plan("a rank comes late, clocks are off by up to 3 s", faults=("late",), skew=3.0),
    "late_missing": Plan("a rank comes late, a fifth of the rows lost", faults=("late",), missing=0.2),
    "slow_channel": Plan("one connection, all to all", MESH, faults=("slow_channel",), experts=True),
    "slow_tx": Plan("what a rank sends, all to all", MESH, faults=("slow_tx",), experts=True),
    "slow_rx": Plan("what a rank receives, all to all", MESH, faults=("slow_rx",), experts=True),
    "slow_rank": Plan("all transfers of a rank, all to all", MESH, faults=("slow_rank",), experts=True),
    "slow_tx_faint": Plan(
        "sends 1.3 to 1.45 times as long", MESH, faults=("slow_tx",), depth=(1.3, 1.45), experts=True
    ),
    "slow_tx_missing": Plan(
        "a fifth of the rows lost", MESH, faults=("slow_tx",), experts=True, missing=0.2, collisions=2
    ),
    "slow_two_rings": Plan("a sender in rings of both directions", (1, 1, 16), faults=("slow_tx",)),
    "slow_one_ring": Plan("a connection of one ring", (1, 1, 16), faults=("slow_channel",), rings=1),
    "two_slow": Plan("a slow sender and a slow receiver", MESH, faults=("slow_tx", "slow_rx"), experts=True),
    "late_and_slow": Plan(
        "a late rank and a slow connection", MESH, faults=("late", "slow_channel"), experts=True
    ),
    "after_faults": Plan("a late rank after two other faults", faults=("late",), history=2),
    "always": Plan("a rank is late from the first row on", faults=("late",), begins=0, lasts=8),
    "lasting": Plan(
        "slow from the third window on", MESH, faults=("slow_tx",), begins=2, lasts=6, experts=True
    ),
    "checkpointed": Plan(
        "a rank hangs between checkpoints", faults=("never_launched",), benign="checkpoints"
    ),
    "moe_slow": Plan("a slow receiver among experts", MESH, faults=("slow_rx",), experts=True, benign="moe"),
}
CASES = {name: plan.says for name, plan in PLANS.items()}


@dataclass
class Planted:
    kind: str
    rank: int
    peer: int
    begin: float
    end: float
    depth: float


@dataclass
class Job:
    """A run of a job: who is where, what is broken, the rows so far. `ready` is infinite for ranks that are stuck."""

    plan: Plan
    rng: np.random.Generator
    name: str
    shape: tuple[int, int, int]
    usual: float
    stage: Floats
    speed: Floats
    links: Floats
    planted: list[Planted]
    offset: Floats
    ready: Floats = field(default_factory=lambda: np.empty(0))
    seqs: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    rows: list[dict[str, Any]] = field(default_factory=list)
    stuck: list[dict[str, Any]] = field(default_factory=list)

    @property
    def ranks(self) -> int:
        tensor, pipeline, data = self.shape
        return tensor * pipeline * data

    def node(self, rank: int) -> int:
        return rank // max(self.shape[0], 1)

    def active(self, now: float, *kinds: str) -> list[Planted]:
        return [one for one in self.planted if one.begin <= now < one.end and one.kind in kinds]


def make(seed: int, case: str) -> World:
    """The world of a case. Raises KeyError for a case that is not in `CASES`."""
    plan = PLANS[case]
    rng = np.random.default_rng([seed, crc32(case.encode())])
    job = _job(plan, rng, "pretrain-a", plan.shape)
    job.planted = _planned(plan, rng, job)
    faults = tuple(_fault(plan, job, one) for one in job.planted)
    notes = tuple(f"{one.kind} of rank {one.rank}: {one.depth:.2f} times as long" for one in job.planted)
    rows = _run(job)
    if plan.beside:
        rows += _run(_job(plan, rng, "finetune-b", (2, 1, 4)))
    rows = _lost(plan, rng, rows, job.ranks)
    rows.sort(key=lambda row: (row["time"], row["communicator"], row["seq"], row["rank"], row.get("dst", -1)))
    return World(case, seed, {"collective": rows}, EVERY, START + HISTORY * EVERY, faults, notes)


def _job(plan: Plan, rng: np.random.Generator, name: str, shape: tuple[int, int, int]) -> Job:
    tensor, pipeline, data = shape
    ranks = tensor * pipeline * data
    stage = np.repeat(1 + 0.06 * rng.standard_normal(pipeline), ranks // pipeline)
    links = np.where(rng.random((ranks, ranks)) < 0.3, 1.3, 1.0)
    links *= np.exp(0.04 * rng.standard_normal((ranks, ranks)))
    pairs = [(i, j) for i in range(ranks) for j in range(ranks) if i != j]
    for at in rng.choice(len(pairs), min(plan.collisions, len(pairs)), replace=False):
        links[pairs[int(at)]] *= rng.uniform(1.15, 1.25)
    speed = np.exp(0.008 * rng.standard_normal(ranks))
    offset = rng.uniform(-plan.skew, plan.skew, ranks // max(tensor, 1)).repeat(max(tensor, 1))
    return Job(plan, rng, name, shape, float(rng.uniform(2.5, 5.5)), stage, speed, links, [], offset)


def _planned(plan: Plan, rng: np.random.Generator, job: Job) -> list[Planted]:
    order = [int(rank) for rank in rng.permutation(job.ranks - plan.silent)]
    kinds = [(str(rng.choice(("late", "never_launched"))), 2 * n, 1) for n in range(plan.history)]
    for kind in plan.faults:
        lasts = plan.lasts
        first = plan.begins if plan.begins is not None else HISTORY + int(rng.integers(0, JUDGED - lasts + 1))
        kinds.append((kind, first, lasts))
    planted = []
    for kind, first, lasts in kinds:
        rank = order.pop()
        if kind == "late_node":
            rank -= rank % job.shape[0]
        begin = 0.0 if plan.begins == 0 else first * WINDOW + float(rng.uniform(5, 30))
        end = (first + lasts) * WINDOW - float(rng.uniform(3, 12))
        if first + lasts == HISTORY + JUDGED:
            end = float(LENGTH)
        low, high = (1.25, 1.7) if kind.startswith("late") and plan.depth[0] > 1.6 else plan.depth
        planted.append(
            Planted(kind, rank, _peer(plan, rng, job, kind, rank), begin, end, float(rng.uniform(low, high)))
        )
    return planted


def _peer(plan: Plan, rng: np.random.Generator, job: Job, kind: str, rank: int) -> int:
    """The other end of a connection of that rank."""
    tensor, pipeline, _ = job.shape
    replica = tensor * pipeline
    if kind == "stuck_channel":
        # The first stage sends to the second in the same place of the same replica.
        return rank + tensor if rank % replica < tensor else rank - tensor
    if plan.experts:
        return int(rng.choice([one for one in range(job.ranks) if one != rank]))
    return (rank + replica) % job.ranks


def _fault(plan: Plan, job: Job, one: Planted) -> Fault:
    rank, peer = f"rank/{one.rank}", f"rank/{one.peer}"
    source, target = one.rank, one.peer
    if one.kind == "stuck_channel" and source > target:
        source, target = target, source
    channel = f"channel/{source}~{target}"
    any_end = (f"rank_tx/{source}", f"rank_rx/{target}", rank, peer)
    component, acceptable = rank, tuple[str, ...]()
    if one.kind == "late_node":
        others = range(one.rank + 1, one.rank + job.shape[0])
        acceptable = (*(f"rank/{other}" for other in others), f"node/gpu-{job.node(one.rank)}")
    elif one.kind == "stuck_channel" or (one.kind == "slow_channel" and plan.rings == 1 and not plan.experts):
        component, acceptable = channel, any_end
    elif one.kind == "slow_channel":
        component = channel
    elif one.kind in ("slow_tx", "stuck_tx"):
        component = f"rank_tx/{one.rank}"
        acceptable = (rank,) if one.kind == "stuck_tx" else ()
    elif one.kind == "slow_rx":
        component = f"rank_rx/{one.rank}"
    return Fault(component, one.kind, _when(one.begin), _when(one.end), acceptable)


def _run(job: Job) -> list[dict[str, Any]]:
    """All rows of a job, iteration by iteration, with its pauses and restarts."""
    plan, rng = job.plan, job.rng
    pauses = _pauses(plan, rng)
    now = float(rng.uniform(0, job.usual))
    while now < LENGTH:
        job.ready = np.full(job.ranks, now)
        if pauses and now >= pauses[0][0]:
            begin, length, then = pauses.pop(0)
            now = begin + length
            if then == "ends":
                break
            if then:
                job.seqs.clear()
            if then in ("smaller", "larger"):
                _resize(job, -1 if then == "smaller" else 1)
            continue
        _iteration(job, now)
        free = job.ready[np.isfinite(job.ready)]
        if len(free) == job.ranks:
            now = float(job.ready.max()) + 0.02
            continue
        hangs = [one for one in job.planted if one.kind in HANGS and one.begin <= now + 4 * job.usual]
        end = max(one.end for one in hangs)
        for poll in np.arange(now + POLL, min(end, LENGTH), POLL).tolist():
            job.rows += [{**row, "time": row["time"] + round((poll - now) * 1e9)} for row in job.stuck]
        job.stuck.clear()
        job.seqs.clear()
        now = end + float(rng.uniform(6, 15))
    return job.rows


def _pauses(plan: Plan, rng: np.random.Generator) -> list[tuple[float, float, str]]:
    """Pauses of the job: when, for how long, and whether it begins anew."""
    middle = (HISTORY + 1) * WINDOW + float(rng.uniform(0, 100))
    if plan.benign == "checkpoints":
        starts = np.arange(float(rng.uniform(20, 100)), LENGTH - 80, 155.0)
        return [(float(at), float(rng.uniform(20, 70)), "") for at in starts]
    if plan.benign == "resize":
        return [(middle, 35.0, "smaller"), (middle + 200, 35.0, "larger")]
    if plan.benign == "reboot":
        return [(middle, float(rng.uniform(50, 90)), "anew")]
    return [(middle + WINDOW, 0.0, "ends")] if plan.benign == "ends" else []


def _resize(job: Job, by: int) -> None:
    tensor, pipeline, data = job.shape
    job.shape = (tensor, pipeline, data + by)


def _iteration(job: Job, now: float) -> None:
    """One step of all ranks in program order: every operation moves `ready` of its members."""
    plan = job.plan
    tensor, pipeline, data = job.shape
    grid = np.arange(job.ranks).reshape(data, pipeline, tensor)
    evaluates = plan.benign == "evaluation" and int(now) % 230 < 90
    for part in range(2):
        _compute(job, now, part)
        if tensor > 1:
            for replica in range(data):
                for stage in range(pipeline):
                    _collective(
                        job, f"tp_{replica}_{stage}", "all_reduce", grid[replica, stage], 3.4e7, 0.004
                    )
        for stage in range(pipeline - 1):
            for replica in range(data):
                for source, target in zip(grid[replica, stage], grid[replica, stage + 1], strict=True):
                    _transfer(job, f"pp_{replica}", int(source), int(target), 6.7e7)
        if plan.experts:
            _all_to_all(job, grid[:, 0, 0])
    if data > 1 and not evaluates:
        for stage in range(pipeline):
            for place in range(tensor):
                _ring(job, f"dp_{stage}_{place}", grid[:, stage, place])
    if job.ranks > data or evaluates:
        _collective(job, "world", "all_reduce", grid.ravel(), 4.0, 0.003)


def _compute(job: Job, now: float, part: int) -> None:
    plan, rng = job.plan, job.rng
    took = 0.4 * job.usual * job.stage[: job.ranks] * job.speed[: job.ranks]
    took = took * np.exp(0.04 * rng.standard_normal(job.ranks))
    for one in job.active(now, "late"):
        took[one.rank] *= one.depth
    for one in job.active(now, "late_node"):
        took[one.rank : one.rank + job.shape[0]] *= one.depth
    if plan.benign == "shared":
        took *= 1 + 0.5 * (int(now) % 90 < 45)
    elif plan.benign == "storage" and part == 0 and now > (HISTORY + 1) * WINDOW:
        took[int(rng.integers(job.ranks))] += float(rng.uniform(0.2, 1.0)) * job.usual
    elif plan.benign == "moe":
        took *= np.exp(0.12 * rng.standard_normal(job.ranks))
    elif plan.benign == "checkpoints" and int(now) % 155 < 6:
        took[0] *= 1.8
    job.ready = job.ready + took
    for one in job.active(now, "never_launched", "crashed"):
        if one.kind == "crashed" or part == 1:
            job.ready[one.rank] = np.inf


def _collective(job: Job, group: str, op: str, members: NDArray[np.int64], size: float, wire: float) -> bool:
    """Rows of an operation; whether it completed. Members that are stuck elsewhere never launch it."""
    launched = np.isfinite(job.ready[members])
    if not launched.any():
        return False
    job.seqs[group] += 1
    wrong = [
        one
        for one in job.active(float(job.ready[members][launched].min()), "mismatch")
        if one.rank in members
    ]
    if launched.all() and not wrong:
        end = float(job.ready[members].max()) + wire * float(np.exp(0.2 * job.rng.standard_normal()))
        for rank in members.tolist():
            _tell(job, group, op, rank, size, float(job.ready[rank]), end, len(members))
        job.ready[members] = end
        return True
    for rank in members[launched].tolist():
        odd = any(one.rank == rank for one in wrong)
        _tell(
            job,
            group,
            "broadcast" if odd else op,
            rank,
            size * (0.5 if odd else 1),
            float(job.ready[rank]),
            0.0,
            len(members),
        )
    job.ready[members] = np.inf
    return False


def _ring(job: Job, group: str, members: NDArray[np.int64]) -> None:
    """An all-reduce over rings, with a transfer row of each connection; the slowest connection sets the pace."""
    size = 2.7e8
    starts = job.ready[members].copy()
    pairs = [(int(a), int(b)) for a, b in zip(members, np.roll(members, -1), strict=True)]
    pairs += [(b, a) for a, b in pairs] if job.plan.rings == 2 and len(members) > 2 else []
    took = {pair: _delay(job, *pair, size, float(starts.max())) for pair in pairs}
    slowest = max(took.values())
    if not _collective(job, group, "all_reduce", members, size, slowest):
        return
    begin = float(starts.max())
    for (source, target), delay in took.items():
        # A connection next to a slow one waits for some of what is missing.
        delay += 0.1 * (slowest - delay) * float(job.rng.uniform(0, 1))
        _tell(job, group, "all_reduce", source, size, begin, begin + delay, len(members), (source, target))


def _all_to_all(job: Job, members: NDArray[np.int64]) -> None:
    """An all-to-all made of transfers; nobody goes on before all of its own are through."""
    begin = job.ready[members].copy()
    if not np.isfinite(begin).all():
        _collective(job, "ep", "all_to_all", members, 1e8, 0.0)
        return
    now, rng = float(begin.max()), job.rng
    stuck = {one.rank for one in job.active(now, "stuck_tx")}
    last = now
    job.seqs["ep"] += 1
    for source in members.tolist():
        for target in members.tolist():
            if source == target:
                continue
            size = 1.2e8 * (float(np.exp(0.7 * rng.standard_normal())) if job.plan.benign == "moe" else 1.0)
            start = max(float(job.ready[source]), float(job.ready[target])) + float(rng.exponential(0.001))
            end = 0.0 if source in stuck else start + _delay(job, source, target, size, now)
            last = max(last, end)
            _tell(job, "ep", "all_to_all", source, size, start, end, len(members), (source, target))
    for rank in members.tolist():
        _tell(
            job, "ep", "all_to_all", rank, 1e8, float(job.ready[rank]), 0.0 if stuck else last, len(members)
        )
    job.ready[members] = np.inf if stuck else last


def _transfer(job: Job, group: str, source: int, target: int, size: float) -> None:
    """A send and its receive between two stages; each is a row of its own rank."""
    starts = job.ready[[source, target]]
    if not np.isfinite(starts).any():
        return
    job.seqs[group] += 1
    now = float(starts[np.isfinite(starts)].max())
    holds = [one for one in job.active(now, "stuck_channel") if {one.rank, one.peer} == {source, target}]
    through = bool(np.isfinite(starts).all()) and not holds
    end = float(starts.max()) + _delay(job, source, target, size, now) if through else 0.0
    for rank, op in ((source, "send"), (target, "recv")):
        if np.isfinite(job.ready[rank]):
            _tell(job, group, op, rank, size, float(job.ready[rank]), end, 0, (source, target))
    job.ready[[source, target]] = end if through else np.inf


def _delay(job: Job, source: int, target: int, size: float, now: float) -> float:
    """Seconds that a message takes at 20 GB/s, or 180 within a node."""
    rate = 1.8e11 if job.node(source) == job.node(target) else 2e10
    took = size / rate * float(job.links[source, target] * np.exp(0.25 * job.rng.standard_normal()))
    if job.rng.random() < 0.06:
        took *= 1.3 + float(job.rng.exponential(1.1))
    for one in job.active(now, "slow_tx", "slow_rx", "slow_rank", "slow_channel"):
        out, into = source == one.rank, target == one.rank
        hit = {"slow_tx": out, "slow_rx": into, "slow_rank": out or into}
        took *= one.depth if hit.get(one.kind, out and target == one.peer) else 1.0
    return took


def _tell(
    job: Job,
    group: str,
    op: str,
    rank: int,
    size: float,
    start: float,
    end: float,
    ranks: int,
    pair: tuple[int, int] | None = None,
) -> None:
    """Adds a row; an operation without an end is stuck, and is told again later."""
    shift = float(job.offset[rank])
    row: dict[str, Any] = {
        "time": EPOCH * 10**9 + round((start + shift) * 1e6) * 1_000,
        "job": job.name,
        "communicator": group,
        "seq": job.seqs[group],
        "op": op,
        "rank": rank,
        "bytes": round(size),
        "start_ns": EPOCH * 10**9 + round((start + shift) * 1e6) * 1_000,
        "state": "completed" if end else "started",
        "ranks": ranks,
        "node": f"node/gpu-{job.node(rank)}",
    }
    if end:
        row["end_ns"] = EPOCH * 10**9 + round((end + shift) * 1e6) * 1_000
    else:
        job.stuck.append(row)
    if pair:
        row["src"], row["dst"] = pair
    job.rows.append(row)


def _lost(
    plan: Plan, rng: np.random.Generator, rows: list[dict[str, Any]], ranks: int
) -> list[dict[str, Any]]:
    """The rows without those that were lost: one by one, by rank and 20 s, and of silent ranks."""
    quiet = set(range(ranks - plan.silent, ranks))
    gone = rng.random((ranks, LENGTH // 20 + 2)) < plan.missing / 2
    kept = []
    for row in rows:
        at = min(max(row["time"] // 10**9 - EPOCH, 0), LENGTH) // 20
        lost = plan.missing and (gone[row["rank"], at] or rng.random() < plan.missing / 2)
        if row["rank"] not in quiet and not lost and row["time"] < (EPOCH + LENGTH) * 10**9:
            kept.append(row)
    return kept


def _when(second: float) -> datetime:
    return START + timedelta(seconds=round(second, 3))
