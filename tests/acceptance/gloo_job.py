"""A real job: four processes on this machine that all-reduce over gloo, with a sleep in one of them.

    python -m tests.acceptance.gloo_job OUT slow|hang

Each rank writes what it recorded to `OUT/rank-N.ndjson`, rows of `collective`; where this build of torch has a flight
recorder for gloo, its dump goes to `OUT/rank-N.json`. Needs torch (a CPU build is enough).
"""

from __future__ import annotations

import importlib
import json
import multiprocessing
import sys
import time
from pathlib import Path
from typing import Any

RANKS, CULPRIT, STEPS, LATE_FROM = 4, 2, 45, 15
COMPUTE, SLEEP, WATCH = 0.02, 0.1, 3.0
"""Seconds that a step computes, that the culprit sleeps beside, and that the others stay in a hang until they dump."""


def train(rank: int, out: str, fault: str) -> None:
    torch: Any = importlib.import_module("torch")
    dist: Any = importlib.import_module("torch.distributed")
    store = dist.FileStore(f"{out}/store", RANKS)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=RANKS)
    rows: list[dict[str, Any]] = []
    gradient = torch.ones(1000)
    for step in range(STEPS):
        time.sleep(COMPUTE)
        if rank == CULPRIT and step >= LATE_FROM:
            time.sleep(SLEEP if fault == "slow" else 2 * WATCH)
            if fault == "hang":
                break
        row = launched(rank, step, gradient.numel() * 4)
        rows.append(row)
        work = dist.all_reduce(gradient, async_op=True)
        until = time.monotonic() + WATCH
        while not work.is_completed() and time.monotonic() < until:
            time.sleep(0.0002)
        if not work.is_completed():
            rows.append(row | {"time": time.time_ns()})
            break
        row |= {"end_ns": time.time_ns(), "state": "completed"}
    Path(out, f"rank-{rank}.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    recorder = getattr(torch._C._distributed_c10d, "_dump_fr_trace_json", None)
    if recorder is not None:
        dump = recorder(includeCollectives=True)
        Path(out, f"rank-{rank}.json").write_text(dump if isinstance(dump, str) else dump.decode())


def launched(rank: int, seq: int, size: int) -> dict[str, Any]:
    now = time.time_ns()
    return {
        "time": now,
        "job": "gloo",
        "communicator": "world",
        "seq": seq,
        "op": "all_reduce",
        "rank": rank,
        "bytes": size,
        "start_ns": now,
        "state": "started",
        "ranks": RANKS,
    }


def main(out: str, fault: str) -> None:
    context = multiprocessing.get_context("spawn")
    ranks = [context.Process(target=train, args=(rank, out, fault)) for rank in range(RANKS)]
    for one in ranks:
        one.start()
    try:
        for one in ranks:
            one.join(60)
    finally:
        for one in ranks:
            one.kill()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
