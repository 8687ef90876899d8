"""Accuracy of `straggler` on simulated training jobs: right nodes named, and healthy ones.

python -m tests.benchmarks.straggler [--trials N] [--first SEED] [--calibrate]

A trial is one window of ten minutes with three before it, of a fresh job of 16, 64 or 128 nodes; a fault begins within
the first three minutes of the window. Figures use seeds from `FIRST_REPORTING_SEED` on, which nothing was chosen on;
`--calibrate` prints the score table from others. Bars: Minder's F1 and precision, GREYHOUND's share of fail-slows.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from analyzers.builtin.stats.probability import wilson
from analyzers.builtin.straggler import ANALYZER
from analyzers.builtin.straggler.findings import judge as judge_findings
from analyzers.builtin.straggler.series import observe
from analyzers.contract import Window, check_params
from analyzers.simulators.training import (
    EVENTS,
    FAULTS,
    FIRST_REPORTING_SEED,
    STOPS,
    Preset,
    Run,
    draw_faults,
    run,
)
from analyzers.simulators.training_windows import window_of
from tests.benchmarks.glance import counts, other, told
from tests.benchmarks.growth import measure_growth
from tests.benchmarks.scoring import Tally, monotone, spread
from tests.benchmarks.straggler_rivals import BASELINES
from tests.benchmarks.worlds import reliability

Row = dict[str, Any]

SIZES = (16, 64, 128)
USUAL = Preset(step=10)
AUTHORS = "precision .904, F1 .893 (Minder, a year of production); > .99 of fail-slows (GREYHOUND)"
SLOW = tuple(kind for kind in FAULTS if kind not in STOPS)
IN_BURSTS = ("throttle", "slow_nic")
"""Faults that come and go by themselves: a GPU that is too hot, a link that flaps."""


@dataclass(frozen=True)
class Job:
    """`count` faults of one kind, beside one benign event; without iteration times if not `paced`; an earlier fault of
    another node, in the history, if `before`; for 40 to 60 % of every 60 to 200 s only if `bursts`."""

    seed: int
    kind: str = ""
    event: str = ""
    count: int = 1
    paced: bool = True
    before: bool = False
    bursts: bool = False


@dataclass
class Result:
    tally: Tally
    slower: bool
    stated: list[tuple[float, bool]]
    beside: dict[str, Tally] = field(default_factory=dict)


def world(job: Job) -> Run:
    rng = np.random.default_rng([job.seed, 19])
    preset = replace(USUAL, nodes=SIZES[job.seed % len(SIZES)], paced=job.paced)
    begins = preset.seconds - 600.0
    faults = draw_faults(preset, rng, job.kind, (begins + 10, begins + 180), job.count) if job.kind else ()
    if job.bursts:
        period, on = float(rng.uniform(60, 200)), float(rng.uniform(0.4, 0.6))
        faults = tuple(replace(one, period=period, on=on) for one in faults)
    if job.before:
        (earlier,) = draw_faults(preset, rng, "throttle", (0.0, 300.0))
        if earlier.node not in {one.node for one in faults}:
            faults = (replace(earlier, end=begins - 120), *faults)
    return run(preset, rng, faults, job.event)


def run_trial(job: Job) -> Result:
    made = world(job)
    window = window_of(made)
    begins = made.preset.seconds - 600.0
    truth = {made.name(one.node) for one in made.faults if one.end > begins}
    verdict = ANALYZER.analyze(window, check_params(ANALYZER, {}))
    named = {one.component for one in verdict.suspects}
    stated = [(one.score, one.component in truth) for one in verdict.suspects if one.score is not None]
    beside = {name: _tally(truth, set(method(window))) for name, method in BASELINES.items()}
    tally = _tally(truth, named, undecided=verdict.status == "inconclusive")
    return Result(tally, bool(verdict.measures["slower_jobs"]) or bool(named), stated, beside)


def _tally(truth: set[str], named: set[str], *, undecided: bool = False) -> Tally:
    wrong = len(named - truth)
    tally = Tally(1, len(named & truth), wrong, len(truth - named), int(wrong > 0))
    return replace(tally, undecided=int(undecided))


def cells_of(trials: int, first: int) -> dict[str, list[Job]]:
    seeds = range(first, first + trials)
    cells = {kind: [Job(seed, kind) for seed in seeds] for kind in FAULTS}
    cells["two at once"] = [Job(seed, FAULTS[seed % 4], count=2) for seed in seeds]
    cells["a fault in bursts"] = [Job(seed, IN_BURSTS[seed % 2], bursts=True) for seed in seeds]
    cells["a fault in the history"] = [Job(seed, FAULTS[seed % 4], before=True) for seed in seeds]
    cells["a fifth of the rows missing"] = [Job(seed, FAULTS[seed % 4], "missing_rows") for seed in seeds]
    cells["clocks off by seconds"] = [Job(seed, FAULTS[seed % 4], "clock_step") for seed in seeds]
    cells["no iteration times"] = [Job(seed, FAULTS[seed % 4], paced=False) for seed in seeds]
    cells["healthy"] = [Job(seed) for seed in seeds]
    for event in EVENTS:
        cells[f"benign {event}"] = [Job(seed, event=event) for seed in seeds]
    cells["benign, no iteration times"] = [
        Job(seed, event=EVENTS[seed % len(EVENTS)], paced=False) for seed in seeds
    ]
    return cells


def figures(trials: int, first: int = FIRST_REPORTING_SEED) -> Iterator[Row]:
    cells = cells_of(trials, first)
    jobs = [job for found in cells.values() for job in found]
    results = iter(spread(run_trial, jobs))
    by_cell = {name: [next(results) for _ in found] for name, found in cells.items()}
    stated = list[tuple[float, bool]]()
    every = Tally()
    for name, found in by_cell.items():
        total = _summed([one.tally for one in found])
        beside = {method: _summed([one.beside[method] for one in found]) for method in BASELINES}
        stated += [pair for one in found for pair in one.stated]
        if name == "healthy" or name.startswith("benign"):
            yield _silent(name, total, beside)
            continue
        every = every.plus(total)
        yield from _found(name, total, beside)
    yield from _found("all faults", every, {}, bar=True)
    slow = [one for kind in SLOW for one in by_cell[kind]]
    seen = sum(one.slower for one in slow)
    yield _share("fail-slows found (the job or the node)", seen, len(slow), "> 0.99")
    yield from reliability("straggler, simulator", stated, of="straggler")
    yield from growth_rows()


def _summed(tallies: list[Tally]) -> Tally:
    total = Tally()
    for one in tallies:
        total = total.plus(one)
    return total


def _found(name: str, total: Tally, beside: dict[str, Tally], *, bar: bool = False) -> Iterator[Row]:
    note = "; ".join(
        f"{method} {_ratio(one.found, one.found + one.false)} / {_ratio(one.found, one.found + one.missed)}"
        for method, one in beside.items()
    )
    named, there = total.found + total.false, total.found + total.missed
    cells: dict[str, Any] = counts(total)
    cells["beside"] = {method: other(one) for method, one in beside.items()}
    shown = {} if bar else told("straggler", name, published=AUTHORS, **cells)
    yield {
        **_share(f"straggler: {name}, precision", total.found, named, ">= 0.904" if bar else None, note),
        **shown,
    }
    yield _share(f"straggler: {name}, recall", total.found, there, None, note)
    yield {"name": f"straggler: {name}, F1", "value": round(total.f1, 4), "bar": ">= 0.893" if bar else None}


def _silent(name: str, total: Tally, beside: dict[str, Tally]) -> Row:
    note = "; ".join(f"{method} {one.accused} of {one.windows}" for method, one in beside.items())
    share = (total.accused, total.windows)
    row = _share(f"straggler: windows that name a healthy node, {name}", *share, "<= 0.05", note)
    row["note"] += f"; inconclusive {total.undecided} of {total.windows}"
    if name == "healthy":
        return {
            **row,
            **told("straggler", healthy=list(share), healthy_undecided=[total.undecided, total.windows]),
        }
    return {**row, **told("straggler", benign=list(share))}


def _share(name: str, hits: int, of: int, bar: str | None, note: str = "") -> Row:
    low, high = wilson(hits, of)
    said = f"[{low:.3f}, {high:.3f}], {hits} of {of}" + (f"; {note}" if note else "")
    value = round(hits / of, 4) if of else 0.0
    return {"name": name, "value": value, "unit": "", "bar": bar, "interval": [low, high], "note": said}


def _ratio(hits: int, of: int) -> str:
    return f"{hits / of:.3f}" if of else "-"


def calibration(trials: int) -> list[tuple[float, float]]:
    """Pairs of evidence in nats and the share truly at fault, made monotone; from tuning seeds."""
    jobs = []
    for seed in range(trials):
        kind = (*FAULTS, *[""] * len(FAULTS))[seed % (2 * len(FAULTS))]
        event = ("", *EVENTS)[seed // 5 % (1 + len(EVENTS))]
        jobs.append(Job(seed, kind, event if not kind or seed % 3 == 0 else "", 1 + seed % 2, seed % 4 > 0))
    pairs = [pair for found in spread(_doubts, jobs) for pair in found]
    return monotone(pairs, (-9.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 13.0, 18.0, math.inf))


def _doubts(job: Job) -> list[tuple[float, bool]]:
    """Evidence of each node under a lowered bar, and whether it was at fault."""
    made = world(job)
    params = check_params(ANALYZER, {})
    outcome = judge_findings(observe(window_of(made), params), params, named=0.0)
    truth = {made.name(one.node) for one in made.faults if one.end > made.preset.seconds - 600}
    return [(one.evidence, one.node in truth) for one in outcome.named]


def growth_rows() -> Iterator[Row]:
    """Seconds and memory over jobs of more and more nodes."""
    sizes = (256, 1024, 4096)

    def window_of_size(nodes: int) -> Window:
        rng = np.random.default_rng(FIRST_REPORTING_SEED)
        preset = replace(USUAL, nodes=nodes, seconds=1200)
        return window_of(run(preset, rng, draw_faults(preset, rng, "throttle", (660, 700))), past=1)

    cost = measure_growth(ANALYZER, window_of_size, sizes)
    cells = told(
        "straggler",
        seconds=f"{cost.seconds:.2f} ({sizes[-1]:,} nodes, 8 metrics, 20 minutes)",
        memory=f"{cost.peak:.0f} MB (the same)",
        growth=f"{cost.exponent:.2f} (nodes)",
    )
    yield {
        "name": f"straggler: seconds for {sizes[-1]:,} nodes, 8 metrics, 20 minutes",
        "value": round(cost.seconds, 2),
        "unit": "s",
        "bar": None,
        "note": f"peak {cost.peak:.0f} MB",
    }
    yield {
        "name": "straggler: growth of time with nodes, exponent",
        "value": round(cost.exponent, 3),
        "bar": "<= 1.2",
        **cells,
    }


def main(trials: int = 60) -> list[Row]:
    return list(figures(trials))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--first", type=int, default=FIRST_REPORTING_SEED, help="first seed")
    parser.add_argument("--calibrate", action="store_true")
    arguments = parser.parse_args()
    if arguments.calibrate:
        for pair in calibration(arguments.trials):
            print(pair)
    else:
        from tests.benchmarks.__main__ import line

        for row in figures(arguments.trials, arguments.first):
            print(line(row), flush=True)
