"""Accuracy of `metric_blame` on simulated applications and on recordings, beside BARO.

python -m tests.benchmarks.metric_blame [--trials N] [--first SEED] [--calibrate]

`PETSHOP_DIR` and `TRACES_DIR` add the recordings of `metric_blame_recorded`. Figures use seeds from
`FIRST_REPORTING_SEED` on; `--calibrate` prints the score table from others.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from analyzers.builtin.metric_blame import ANALYZER
from analyzers.builtin.metric_blame.analysis import evidence_of
from analyzers.builtin.metric_blame.blame import judge
from analyzers.builtin.metric_blame.change import changes
from analyzers.builtin.metric_blame.series import observe
from analyzers.contract import Window, check_params
from analyzers.simulators.services.application import (
    EVENTS,
    FAULTS,
    FIRST_REPORTING_SEED,
    Fault,
    Preset,
    Run,
    draw_fault,
    run,
    window_of,
)
from tests.benchmarks import metric_blame_recorded as recorded
from tests.benchmarks.metric_blame_rivals import BASELINES
from tests.benchmarks.scoring import spread
from tests.benchmarks.worlds import reliability

Row = dict[str, Any]

SIZES = (10, 16, 32)
PARAMS = check_params(ANALYZER, {})


@dataclass(frozen=True)
class Job:
    seed: int
    kind: str = ""
    event: str = ""
    calls: bool = True
    unseen: float = 0.0
    again: bool = False
    outage: bool = False
    """`again`: the service had the same fault for ten minutes an hour before; `outage`: all its requests fail."""


@dataclass
class Result:
    truth: str
    named: str
    status: str
    score: float
    beside: dict[str, bool] = field(default_factory=dict)


def world(job: Job) -> Run:
    rng = np.random.default_rng([job.seed, 77])
    preset = Preset(services=SIZES[job.seed % len(SIZES)], unseen=job.unseen)
    begins = preset.seconds - 600.0
    faults: tuple[Fault, ...] = ()
    if job.kind:
        faults = (draw_fault(preset, rng, job.kind, (begins + 10, begins + 180)),)
    if job.outage:
        faults = tuple(replace(one, severity=1.0) for one in faults)
    if job.again:
        faults = (*(replace(one, start=begins - 3600, end=begins - 3000) for one in faults), *faults)
    return run(preset, rng, faults, job.event)


def run_trial(job: Job) -> Result:
    made = world(job)
    window = window_of(made, calls=job.calls)
    truth = made.name(made.faults[-1].service) if job.kind else ""
    return _judged(window, truth)


def _judged(window: Window, truth: str) -> Result:
    verdict = ANALYZER.analyze(window, PARAMS)
    first = verdict.suspects[0] if verdict.suspects else None
    beside = {name: list(method(window)) == [truth] for name, method in BASELINES.items()}
    return Result(
        truth,
        first.component if first else "",
        verdict.status,
        (first.score or 0.0) if first else 0.0,
        beside,
    )


def cells_of(trials: int, first: int) -> dict[str, list[Job]]:
    seeds = range(first, first + trials)
    cells = {kind: [Job(seed, kind) for seed in seeds] for kind in FAULTS}
    cells |= {f"{kind}, no calls": [Job(seed, kind, calls=False) for seed in seeds] for kind in FAULTS}
    cells["a fifth unseen"] = [Job(seed, FAULTS[seed % len(FAULTS)], unseen=0.2) for seed in seeds]
    cells["a fault in the history"] = [Job(seed, FAULTS[seed % 6], "earlier_fault") for seed in seeds]
    cells |= {
        f"{kind}, an hour after the same": [Job(seed, kind, again=True) for seed in seeds] for kind in FAULTS
    }
    cells["outage"] = [Job(seed, "errors", outage=True) for seed in seeds]
    cells["outage, an hour after the same"] = [Job(seed, "errors", again=True, outage=True) for seed in seeds]
    cells["healthy"] = [Job(seed) for seed in seeds]
    return cells | {f"benign {event}": [Job(seed, event=event) for seed in seeds] for event in EVENTS}


def figures(trials: int, first: int = FIRST_REPORTING_SEED) -> Iterator[Row]:
    cells = cells_of(trials, first)
    results = iter(spread(run_trial, [job for found in cells.values() for job in found]))
    stated: list[tuple[float, bool]] = []
    for name, jobs in cells.items():
        found = [next(results) for _ in jobs]
        stated += [(one.score, one.named == one.truth) for one in found if one.named]
        if not jobs[0].kind:
            accused = sum(bool(one.named) for one in found)
            yield recorded.share(
                f"metric_blame: windows that name somebody, {name}", accused, len(found), "<= 0.05"
            )
            continue
        named = [one for one in found if one.named]
        right = sum(one.named == one.truth for one in found)
        yield recorded.share(f"metric_blame: {name}, precision", right, len(named))
        yield recorded.share(f"metric_blame: {name}, recall", right, len(found), note=_beside(found))
    yield from reliability("metric_blame, simulator", stated, of="metric_blame")


def _beside(found: Sequence[Result]) -> str:
    counts = Counter(name for one in found for name, right in one.beside.items() if right)
    return "; ".join(f"{name} {counts[name]} of {len(found)}" for name in BASELINES)


def calibration(trials: int) -> list[tuple[float, float]]:
    """Pairs of evidence in nats and the share that was right, made monotone; from tuning seeds."""
    kinds = (*FAULTS, *FAULTS, "")
    jobs = [
        Job(
            seed, kinds[seed % len(kinds)], ("", *EVENTS)[seed // 13 % 7], seed % 3 > 0, 0.2 * (seed % 5 == 0)
        )
        for seed in range(trials)
    ]
    pairs = [pair for pair in spread(_doubt, jobs) if pair is not None]
    pooled: list[list[float]] = []
    for low, high in pairwise([-9.0, -1.0, 0.0, 1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 99.0]):
        mine = [(at, hit) for at, hit in pairs if low <= at < high]
        if not mine:
            continue
        pooled.append([float(np.mean([at for at, _ in mine])), float(sum(hit for _, hit in mine)), len(mine)])
        while len(pooled) > 1 and pooled[-2][1] / pooled[-2][2] > pooled[-1][1] / pooled[-1][2]:
            _, more, of = pooled.pop()
            pooled[-1] = [pooled[-1][0], pooled[-1][1] + more, pooled[-1][2] + of]
    return [(round(at, 2), round((hits + 0.5) / (n + 1), 3)) for at, hits, n in pooled]


def _doubt(job: Job) -> tuple[float, bool] | None:
    """Evidence of the first candidate where callers fare worse, and whether it was at fault."""
    made = world(job)
    seen = observe(window_of(made, calls=job.calls), PARAMS)
    outcome = judge(seen, changes(seen, seen.columns(float(PARAMS["persist_seconds"])), 12))
    if outcome.symptom is None or outcome.symptom.external < float(PARAMS["min_evidence"]):
        return None
    most = max(max(one.external, one.internal) for one in outcome.components.values())
    truth = made.name(made.faults[-1].service) if job.kind else ""
    return evidence_of(outcome, most), outcome.candidates[0].component.name == truth


def speed() -> Row:
    """CPU milliseconds of a diagnosis of 63 services with eight series each and twelve windows of history."""
    rng = np.random.default_rng(FIRST_REPORTING_SEED)
    preset = Preset(services=63)
    fault = draw_fault(preset, rng, "delay", (preset.seconds - 590.0, preset.seconds - 500.0))
    window = window_of(run(preset, rng, (fault,)))
    took = []
    for _ in range(7):
        began = time.process_time()
        ANALYZER.analyze(window, PARAMS)
        took.append(time.process_time() - began)
    value = round(1000 * sorted(took)[3], 1)
    return {
        "name": "metric_blame: CPU of 504 series, median of 7",
        "value": value,
        "unit": "ms",
        "bar": "<= 100",
    }


def main(trials: int = 60, first: int = FIRST_REPORTING_SEED) -> list[Row]:
    return [*figures(trials, first), speed(), *recorded.rows()]


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

        for row in main(arguments.trials, arguments.first):
            print(line(row), flush=True)
