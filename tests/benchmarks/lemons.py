"""Lemon scores on simulated fleets of 128 nodes: recall, false discoveries, and false lemons in healthy fleets.

python -m tests.benchmarks.lemons [--trials N]

The share of false lemons is the mean over fleets of false / named (0 where none was named), which Benjamini and
Hochberg's rule bounds; its interval is that of a mean. `three times the mean` names nodes with 3 failed
attempts or more and three times the fleet's share of failed attempts; `three sigma` those three standard
deviations above it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from analyzers.builtin.stats.probability import wilson
from incidents.domain.lemons.attempts import Attempts
from incidents.domain.lemons.score import Counted, Source, score_fleet
from tests.benchmarks.scoring import spread
from tests.benchmarks.script import script
from tests.worlds.lemons import BATCHES, PLANS, World, make

Row = dict[str, Any]
FIRST_SEED = 1000
METHODS = ("scored", "three times the mean", "three sigma")


@dataclass(frozen=True, slots=True)
class Job:
    plan: str
    seed: int


@dataclass(frozen=True, slots=True)
class Result:
    """By method: right and wrong parts. `group` is 1 if the bad batch was named, `false_groups` counts others."""

    parts: dict[str, tuple[int, int]]
    group: int
    false_groups: int
    lemons: int


def run_trial(job: Job) -> Result:
    world = make(job.seed, job.plan)
    width = len(world.hours)
    names = [f"node/{n}" for n in range(width)]
    attempts = Attempts(world.indptr, world.nodes, np.ones(len(world.failed)), world.failed, width)
    labels = {f"batch {b}": [names[n] for n in np.flatnonzero(world.batches == b)] for b in range(BATCHES)}
    sources: dict[str, Source] = {"job_attempt": attempts, "incident": Counted(world.incidents, world.hours)}
    fleet = score_fleet("node", names, sources, labels)
    named = {int(one.name.partition("/")[2]) for one in fleet.parts if one.lemon}
    groups = [one.name for one in fleet.groups if one.lemon]
    true = world.lemons | (
        set(np.flatnonzero(world.batches == world.batch)) if world.batch is not None else set()
    )
    found = {METHODS[0]: named} | _rivals(world)
    return Result(
        {name: (len(one & true), len(one - true)) for name, one in found.items()},
        int(f"batch {world.batch}" in groups),
        sum(one != f"batch {world.batch}" for one in groups),
        len(world.lemons),
    )


def _rivals(world: World) -> dict[str, set[int]]:
    width = len(world.hours)
    rows = np.repeat(np.arange(len(world.failed)), np.diff(world.indptr))
    failed = np.bincount(world.nodes, world.failed[rows], minlength=width)
    share = failed / np.maximum(np.bincount(world.nodes, minlength=width), 1)
    enough = failed >= 3
    return {
        METHODS[1]: set(np.flatnonzero(enough & (share > 3 * share.mean())).tolist()),
        METHODS[2]: set(np.flatnonzero(enough & (share > share.mean() + 3 * share.std())).tolist()),
    }


def figures(trials: int, first: int) -> Iterator[Row]:
    for plan in PLANS:
        found = spread(run_trial, [Job(plan, first + n) for n in range(trials)])
        for method in METHODS:
            yield from _of(plan, method, found)
        if plan == "bad batch":
            yield _share(f"{plan}: batch named", sum(one.group for one in found), len(found), ">= 0.8")
        false = sum(one.false_groups > 0 for one in found)
        yield _share(f"{plan}: fleets with a false batch", false, len(found), "<= 0.1")


def _of(plan: str, method: str, found: list[Result]) -> Iterator[Row]:
    own = method == METHODS[0]
    pairs = [one.parts[method] for one in found]
    wrong = np.asarray([wrong / max(1, right + wrong) for right, wrong in pairs])
    if plan == "healthy":
        yield _share(
            f"{plan}: fleets with a false lemon, {method}",
            int((wrong > 0).sum()),
            len(found),
            "<= 0.1" if own else "",
        )
        return
    error = 1.96 * float(wrong.std()) / len(wrong) ** 0.5
    yield {
        "name": f"{plan}: false discoveries, {method}",
        "value": round(float(wrong.mean()), 3),
        "interval": [round(max(0.0, wrong.mean() - error), 3), round(min(1.0, wrong.mean() + error), 3)],
        "unit": "",
        "bar": "<= 0.1" if own else "",
        "note": f"{sum(w for _, w in pairs)} of {sum(r + w for r, w in pairs)} named, {len(found)} fleets",
    }
    if lemons := sum(one.lemons for one in found):
        yield _share(f"{plan}: recall, {method}", sum(right for right, _ in pairs), lemons, "")


def _share(name: str, hits: int, trials: int, bar: str) -> Row:
    low, high = wilson(hits, trials)
    return {
        "name": name,
        "value": round(hits / trials, 3),
        "interval": [round(low, 3), round(high, 3)],
        "unit": "",
        "bar": bar,
        "note": f"{hits} of {trials}",
    }


def main(trials: int = 40, first: int = FIRST_SEED) -> list[Row]:
    return list(figures(trials, first))


if __name__ == "__main__":
    script(figures, 40, FIRST_SEED)
