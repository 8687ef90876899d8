"""Error rates of the proof of repair, and the number of rows that it takes.

python -m tests.benchmarks.repair [--trials N]

Each trial draws the rows of a part before the hand-over, of its fleet, and since the return, then asks for the verdict
after `LONGEST` rows; nothing of it was tuned on. The part is either repaired (it fails as its fleet does) or not (it
fails as before). Worlds:

* `jobs`: independent jobs; the fleet fails 1 %, the faulty part 30 %.
* `weak fault`: the faulty part fails 5 %.
* `half repaired`: the faulty part has half of its fault left: the worst case of the test.
* `paths`: rows of 50 attempts with beta-binomial failures (correlation .05 inside a row).
* `bursts`: the fault comes and goes: one tenth of the time, in spells of 20 rows, it fails 80 %.
* `outages`: in one hour of ten a third of all attempts of the fleet, and of the part, fail.
* `unlike fleet`: the part's own healthy rate is lognormal around the fleet's (factor 1.5).
* `unseen`: no row before the hand-over shows the fault; the faulty part fails 30 %.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.runs.scoring import Share
from incidents.domain.remediation.proof import (
    FALSE_NOT_REPAIRED,
    FALSE_REPAIRED,
    Counts,
    Row,
    Source,
    judge,
    unrepaired_rate,
)
from tests.benchmarks.scoring import spread

RETURN = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
STEP = timedelta(minutes=2)
BEFORE, LONGEST, FLEET = 120, 2000, 20_000
FIRST_SEED = 900_000


@dataclass(frozen=True)
class World:
    name: str
    faulty: float = 0.3
    attempts: int = 1
    correlation: float = 0.0
    bursts: bool = False
    outages: bool = False
    half: bool = False
    unlike: bool = False
    unseen: bool = False
    before: int = BEFORE
    """Rows before the hand-over."""
    assumption: str = ""
    """Reason why the promised error does not hold here; empty where it must."""


HEALTHY = 0.01
WORLDS = (
    World("jobs"),
    World("weak fault", faulty=0.05),
    World("half repaired", half=True),
    World("paths", faulty=0.1, attempts=50, correlation=0.05, assumption="attempts of a row are correlated"),
    World("bursts", faulty=0.8, bursts=True, assumption="failures come in spells"),
    World("bursts, long history", faulty=0.8, bursts=True, before=1500, assumption="failures come in spells"),
    World("outages", outages=True),
    World("unlike fleet", unlike=True, assumption="the part is not like its fleet"),
    World("unseen", unseen=True),
)


def _failures(
    world: World, rng: np.random.Generator, rates: NDArray[np.float64], attempts: int
) -> NDArray[np.int64]:
    if world.correlation:
        size = 1 / world.correlation - 1
        rates = rng.beta(np.maximum(rates * size, 1e-9), (1 - rates) * size)
    return rng.binomial(attempts, rates)


def _spells(rng: np.random.Generator, count: int) -> NDArray[np.bool_]:
    """Whether the fault is there: spells of 20 rows on average, a tenth of the time."""
    there = np.zeros(count, bool)
    now = rng.random() < 0.1
    for place in range(count):
        there[place] = now
        now = rng.random() >= 1 / 20 if now else rng.random() < 1 / 180
    return there


def _rows(
    world: World, rng: np.random.Generator, start: datetime, count: int, rate: float, is_faulty: bool
) -> list[Row]:
    rates = np.full(count, rate)
    if is_faulty and world.bursts:
        rates = np.where(_spells(rng, count), rate, HEALTHY)
    if world.outages:
        rates = np.where(_outage_hours(start, count), np.maximum(rates, 0.33), rates)
    found = _failures(world, rng, rates, world.attempts)
    return [Row(start + STEP * i, world.attempts, int(n)) for i, n in enumerate(found)]


def _outage_hours(start: datetime, count: int) -> NDArray[np.bool_]:
    hours = np.array([int((start + STEP * i).timestamp() // 3600) for i in range(count)])
    return np.asarray(hours % 10 == 0)


def trial(world: World, job: tuple[int, bool]) -> tuple[str, int]:
    """The verdict and the rows that it took, of a part that is repaired or not."""
    seed, repaired = job
    rng = np.random.default_rng(seed)
    start = RETURN - STEP * world.before
    faulty = HEALTHY if world.unseen else world.faulty
    before = _rows(world, rng, start, world.before, faulty, is_faulty=not world.unseen)
    fleet = Counts(FLEET, int(rng.binomial(FLEET, HEALTHY)))
    hours = {}
    if world.outages:
        for i in range(LONGEST // 30 + 1):
            at = RETURN + timedelta(hours=i)
            rate = 0.33 if int(at.timestamp() // 3600) % 10 == 0 else HEALTHY
            hours[at] = Counts(400, int(rng.binomial(400, rate)))
    healthy = HEALTHY * float(rng.lognormal(0, np.log(1.5))) if world.unlike else HEALTHY
    rate = healthy if repaired else world.faulty
    if world.half and not repaired:
        rate = unrepaired_rate(Source("job_attempt", before, (), fleet))
    after = _rows(world, rng, RETURN, LONGEST, rate, is_faulty=not repaired)
    proof = judge([Source("job_attempt", before, after, fleet, hours)], RETURN)
    return proof["verdict"], proof["rows"]


def main(trials: int = 1000) -> list[dict[str, Any]]:
    return [row for world in WORLDS for row in figures(world, trials)]


def figures(world: World, trials: int) -> Iterator[dict[str, Any]]:
    cases = ((False, "repaired", FALSE_REPAIRED), (True, "not_repaired", FALSE_NOT_REPAIRED))
    for repaired, wrong, promised in cases:
        first = FIRST_SEED + (trials if repaired else 0)
        found = spread(partial(trial, world), [(first + i, repaired) for i in range(trials)])
        share = Share(sum(verdict == wrong for verdict, _ in found), trials)
        low, high = share.interval
        unknown = sum(verdict == "unknown" for verdict, _ in found)
        right = sorted(rows for verdict, rows in found if verdict not in (wrong, "unknown"))
        took = (
            f"median {right[len(right) // 2]} rows, 90 % in {right[len(right) * 9 // 10]}"
            if right
            else "none right"
        )
        note = f"[{low:.4f}, {high:.4f}] of {trials}; {took}; {unknown} undecided"
        # The bound is of the probability: a share of trials may exceed it by chance.
        bar = f"<= {promised + 2.6 * (promised * (1 - promised) / trials) ** 0.5:.4f}"
        yield {
            "name": f"{world.name}: falsely {wrong.replace('_', ' ')}",
            "value": round(share.value or 0.0, 4),
            "unit": "",
            "bar": None if world.assumption else bar,
            "note": note + (f"; {world.assumption}" if world.assumption else ""),
        }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=1000)
    for figure in main(parser.parse_args().trials):
        print(f"{figure['name']:<44} {figure['value']:>8} {figure['bar'] or '':<12} {figure['note']}")
