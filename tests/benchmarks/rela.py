"""Validation of changes: verdicts on its second generator, and what 10,000 traffic classes cost.

python -m tests.benchmarks.rela [--trials N] [--first SEED]

A world is judged right if exactly the classes that break the plan are violated. `any path differs` compares the paths
before and after, which is what one can do without a specification. No two of the 10,000 classes have the same
forwarding, so that none is judged together with another; half of them go through the router that is drained.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

from analyzers.builtin.stats.probability import wilson
from analyzers.rela import check, read_snapshot
from tests.benchmarks.growth import peak_memory
from tests.benchmarks.script import script
from tests.worlds.rela import CASES, FAULTS, make

FIRST_SEED, TRIALS = 7_000, 20
CLASSES = 10_000
SPECIFICATION = "zone others = s1 s2 s3 s4 s5 s6 s7\nany(. others .) on . s0 .\n"


def rows(trials: int, first: int) -> Iterator[dict[str, Any]]:
    totals = {True: [0, 0, 0], False: [0, 0, 0]}
    for fault in FAULTS:
        right = naive = count = 0
        for case in CASES:
            for seed in range(first, first + trials):
                world = make(seed, case, fault)
                before, after = read_snapshot("before", world.before), read_snapshot("after", world.after)
                found = check(before, after, world.specification)
                named = {name for one in found["violations"] for name in one["classes"]}
                right += named == world.broken and found["classes_violated"] == len(world.broken)
                moved = {name for name, one in before.classes.items() if one != after.classes[name]}
                naive += moved == world.broken
                count += 1
                total = totals[bool(world.broken)]
                total[0] += 1
                total[1] += found["verdict"] == "violated"
                total[2] += bool(moved)
        yield _share(f"rela: {fault}, classes exactly right", right, count, ">= 1")
        yield _share(f"rela: {fault}, any path differs", naive, count, None)
    faulty, fine = totals[True], totals[False]
    yield _share("rela: changes with a fault that are violated", faulty[1], faulty[0], ">= 1")
    yield _share("rela: changes without a fault that are violated", fine[1], fine[0], "<= 0")
    yield _share("any path differs: changes without a fault that differ", fine[2], fine[0], None)
    yield from _cost()


def _share(name: str, hits: int, count: int, bar: str | None) -> dict[str, Any]:
    low, high = wilson(hits, count)
    note = f"{hits} of {count} [{low:.3f}, {high:.3f}]"
    return {"name": name, "value": hits / count, "bar": bar, "interval": [low, high], "note": note}


def fabric(drained: bool, broken: int = 0) -> bytes:
    """Ten thousand pairs of 200 leaves over four spines of two fixed sets; the last `broken` keep the drained one."""
    classes = []
    for n in range(CLASSES):
        a, b = divmod(n, 100)
        spines = range(4) if n % 2 else range(4, 8)
        kept = not drained or n >= CLASSES - broken
        paths = [[f"l{a}", f"s{s}", f"m{b}"] for s in spines if s or kept]
        classes.append({"class": f"{a}-{b}", "paths": paths})
    return json.dumps({"locations": [f"s{n}" for n in range(8)], "classes": classes}).encode()


def _cost() -> Iterator[dict[str, Any]]:
    old, new = fabric(False), fabric(True, broken=10)

    def work() -> dict[str, Any]:
        return check(read_snapshot("old", old), read_snapshot("new", new), SPECIFICATION)

    began = time.process_time()
    found = work()
    took = time.process_time() - began
    note = f"{found['groups']:,} different, {found['classes_violated']} violated, {len(old) / 2**20:.1f} MB a snapshot"
    yield {
        "name": f"rela: {CLASSES:,} traffic classes, seconds",
        "value": round(took, 2),
        "bar": "<= 60",
        "note": note,
    }
    yield {
        "name": f"rela: {CLASSES:,} traffic classes, MB",
        "value": round(peak_memory(work), 1),
        "bar": "<= 500",
        "note": "",
    }


def main(trials: int = TRIALS, first: int = FIRST_SEED) -> list[dict[str, Any]]:
    return list(rows(trials, first))


if __name__ == "__main__":
    script(rows, TRIALS, FIRST_SEED)
