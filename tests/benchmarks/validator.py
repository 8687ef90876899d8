"""Accuracy of the validator on simulated fleets of GPU nodes: defects found, and healthy nodes blamed.

python -m tests.benchmarks.validator [--fleets N] [--calibrate]

Every trial is a fresh fleet of 200 nodes with six benchmarks of 30 runs. Precision and recall count nodes. Figures use
seeds from `FIRST_REPORTING_SEED` on, which nothing was chosen on; `--calibrate` prints the score table from others.
Beside it stand what is commonly done: a fixed threshold against the fleet's mean (the published baseline generation
of SuperBench), the interquartile range, and the local outlier factor.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.stats.probability import wilson
from analyzers.builtin.validator import ANALYZER
from analyzers.builtin.validator.analysis import validate
from analyzers.builtin.validator.analyzer import HISTORY
from analyzers.builtin.validator.calibration import against_chance
from analyzers.contract import Window, check_params
from analyzers.simulators.node_benchmarks import (
    BENIGN,
    FIRST_REPORTING_SEED,
    Fleet,
    Preset,
    build,
    draw_defects,
    results,
    window,
)
from tests.benchmarks.glance import told
from tests.benchmarks.growth import peak_memory
from tests.benchmarks.scoring import spread, windows_row, windows_until
from tests.benchmarks.validator_rivals import BASELINES
from tests.benchmarks.worlds import reliability

Row = dict[str, Any]
Floats = NDArray[np.float64]

USUAL = Preset()
SEVERITIES = (0.02, 0.03, 0.05, 0.2)
WORLDS = {
    "spread .5 %": USUAL,
    "spread 1 %": Preset(spread=0.01),
    "spread 2 %": Preset(spread=0.02),
    "spread .5 %, heavy tails": Preset(spread=0.005, tails=True),
    "spread 1 %, heavy tails": Preset(spread=0.01, tails=True),
}
AUTHORS = "no accuracy; 10.36 % of their nodes defective (production)"


@dataclass(frozen=True)
class Job:
    """One fleet: `severity` 0 is a healthy one; `benign` happens beside it. All nodes were measured on `past` days
    before, on which the defects were not there yet, or were if `old`. So many nodes are `better`, by 8 % in every
    metric.
    """

    seed: int
    preset: Preset = USUAL
    severity: float = 0.0
    often: float = 1.0
    benign: str = ""
    params: tuple[tuple[str, Any], ...] = ()
    method: str = "validator"
    past: int = 0
    old: bool = False
    better: int = 0


@dataclass
class Count:
    """Nodes found, wrongly blamed and missed; fleets in which anyone was wrongly blamed or no answer was given."""

    fleets: int = 0
    found: int = 0
    false: int = 0
    missed: int = 0
    accused: int = 0
    undecided: int = 0
    stated: list[tuple[float, bool]] = field(default_factory=list)

    def add(
        self, truth: set[str], named: set[str], undecided: bool, stated: Sequence[tuple[float, bool]]
    ) -> None:
        self.fleets += 1
        self.found += len(named & truth)
        self.false += len(named - truth)
        self.missed += len(truth - named)
        self.accused += bool(named - truth)
        self.undecided += undecided
        self.stated += stated

    @property
    def recall(self) -> float:
        return self.found / max(1, self.found + self.missed)

    @property
    def precision(self) -> float:
        return self.found / max(1, self.found + self.false)


def run_trial(job: Job) -> tuple[set[str], set[str], bool, list[tuple[float, bool]]]:
    """The truth, who was named, whether the answer was `inconclusive`, and what was stated of each suspect with whether
    it was right."""
    fleet, truth, measured, before = _world(job)
    if job.method != "validator":
        return truth, {fleet.name(node) for node in BASELINES[job.method](fleet, measured)}, False, []
    past = [window(fleet, one, day) for day, one in enumerate(before)]
    seen = window(fleet, measured, job.past, past)
    verdict = ANALYZER.analyze(seen, check_params(ANALYZER, dict(job.params)))
    named = {name for one in verdict.suspects for name in (one.component, *one.ambiguous_with)}
    stated = [
        (one.score, bool({one.component, *one.ambiguous_with} & truth))
        for one in verdict.suspects
        if one.score is not None
    ]
    return truth, named, verdict.status == "inconclusive", stated


def until_ticket(job: Job) -> list[int | None]:
    """For each node that becomes slow on a day the windows of a day until an incident, each judged by the
    three before.
    """
    rng = np.random.default_rng([job.seed, 32])
    fleet = build(job.preset, rng)
    defects = draw_defects(fleet, rng, job.severity)
    days: list[Window] = []
    seen: dict[int, list[tuple[bool, bool]]] = {one.node: [] for one in defects}
    for day in range(2 * HISTORY):
        slow = defects if day >= HISTORY else ()
        past = [replace(one, history=()) for one in days[-HISTORY:]]
        days.append(window(fleet, results(fleet, rng, slow), day, past))
        if day >= HISTORY:
            verdict = ANALYZER.analyze(days[-1], check_params(ANALYZER, {}))
            named = {
                name: one.sure for one in verdict.suspects for name in (one.component, *one.ambiguous_with)
            }
            for node, found in seen.items():
                found.append((fleet.name(node) in named, named.get(fleet.name(node), False)))
    return [windows_until(found) for found in seen.values()]


def ticket_rows(fleets: int, first: int) -> Iterator[Row]:
    for name in BARRED:
        if not name.endswith(AGAIN):
            continue
        world = name.removesuffix(AGAIN)
        jobs = jobs_of(fleets, first, severity=0.1, preset=WORLDS[world])
        taken = [one for found in spread(until_ticket, jobs) for one in found]
        row = windows_row(f"-10 %, {world}: days until an incident", taken, "days")
        yield row | told("validator", f"-10 %, {name}", time=f"{row['value']} day")


def _world(job: Job) -> tuple[Fleet, set[str], Floats, list[Floats]]:
    """A fleet, its defective nodes, what is measured of it, and what was on the days before."""
    rng = np.random.default_rng([job.seed, 31])
    fleet = build(job.preset, rng)
    defects = draw_defects(fleet, rng, job.severity, job.often) if job.severity else ()
    sick = {one.node for one in defects}
    healthy = [node for node in range(job.preset.nodes) if node not in sick]
    fleet.level[healthy[: job.better]] *= 1.08
    measured = results(fleet, rng, defects, job.benign)
    seen = [one for one in defects if not np.isnan(measured[one.node, list(one.metrics)]).all()]
    before = [results(fleet, rng, defects if job.old else ()) for _ in range(job.past)]
    return fleet, {fleet.name(one.node) for one in seen}, measured, before


def counted(cells: dict[str, list[Job]]) -> dict[str, Count]:
    """The counts of every cell, all of them in one go."""
    outcomes = iter(spread(run_trial, [job for jobs in cells.values() for job in jobs]))
    totals = {}
    for label, jobs in cells.items():
        totals[label] = Count()
        for _ in jobs:
            totals[label].add(*next(outcomes))
    return totals


def jobs_of(fleets: int, first: int = FIRST_REPORTING_SEED, **more: Any) -> list[Job]:
    return [Job(first + n, **more) for n in range(fleets)]


def found_rows(label: str, total: Count, bar: str | None) -> list[Row]:
    f1 = 2 * total.found / max(1, 2 * total.found + total.false + total.missed)
    more = {"recall": f", F1 {f1:.3f}, inconclusive {total.undecided / total.fleets:.3f} of fleets"}
    rows = []
    for name, hits, of in (
        ("precision", total.found, total.found + total.false),
        ("recall", total.found, total.found + total.missed),
    ):
        low, high = wilson(hits, of)
        note = f"[{low:.3f}, {high:.3f}], {of} nodes, {total.fleets} fleets{more.get(name, '')}"
        value = round(hits / of, 4) if of else 0.0
        row = {"name": f"{label}, {name}", "value": value, "unit": "", "bar": bar, "note": note}
        rows.append(row | {"interval": [low, high]})
    pairs = [total.found, total.found + total.false], [total.found, total.found + total.missed]
    method, _, fault = label.partition(", ")
    if method in BASELINES:
        fault = f"-10 %, {fault.partition(', ')[2] or 'spread .5 %'}"
        rows[0] |= told(
            "validator", fault, beside={f"{method} ({total.fleets} fleets)": [*pairs[0], *pairs[1]]}
        )
    elif method == "-10 %" and fault.removesuffix(AGAIN) in WORLDS:
        undecided = [total.undecided, total.fleets]
        rows[0] |= told(
            "validator", label, precision=pairs[0], recall=pairs[1], undecided=undecided, published=AUTHORS
        )
    return rows


def healthy_row(label: str, total: Count, bar: str | None) -> Row:
    low, high = wilson(total.accused, total.fleets)
    return {
        "name": f"fleets that blame a healthy node: {label}",
        "value": round(total.accused / total.fleets, 4),
        "unit": "",
        "bar": bar,
        "interval": [low, high],
        "note": f"[{low:.4f}, {high:.4f}], {total.fleets} fleets, {total.false} nodes blamed, inconclusive "
        f"{total.undecided / total.fleets:.3f}",
        **_calm(label, total),
    }


def _calm(label: str, total: Count) -> Row:
    """All healthy fleets together that nothing else happens beside."""
    if label.removeprefix("healthy, ").removesuffix(AGAIN) not in WORLDS:
        return {}
    accused, undecided = ([hits, total.fleets] for hits in (total.accused, total.undecided))
    return told("validator", healthy=accused, healthy_undecided=undecided)


def calibration(fleets: int) -> list[tuple[float, float]]:
    """Pairs of evidence against chance, in nats, and the share truly defective, made monotone; from tuning seeds."""
    lowered = (("spreads", 2.0), ("similarity", 0.98), ("most_false", 1.0))
    jobs = []
    for n in range(fleets):
        preset = list(WORLDS.values())[n % len(WORLDS)]
        severity = (0.0, 0.03, 0.05, 0.1, 0.2)[n // len(WORLDS) % 5]
        events = [event for event in BENIGN if event != "hot_aisle"]  # those nodes are slower
        benign = events[n // 7 % len(events)] if n % 3 == 0 and n % 7 < LARGE else ""
        size = (200, 200, 60, 24, 12, 6, 3)[n % 7]
        preset = replace(preset, nodes=size, runs=(30, 8, 1)[n // 3 % 3])
        better = (0, 1, size // 20)[n // 2 % 3]
        jobs.append(Job(n, preset, severity, benign=benign, params=lowered, better=better))
    pairs = [pair for found in spread(_doubts, jobs) for pair in found]
    edges = np.array([-9, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4.5, 6, 9, 99], dtype=np.float64)
    pooled: list[list[float]] = []
    for low, high in pairwise(edges.tolist()):
        hits = [hit for at, hit in pairs if low <= at < high]
        if not hits:
            continue
        middle = (low + high) / 2 if high < 9 else low
        pooled.append([middle, float(sum(hits)), float(len(hits))])
        while len(pooled) > 1 and pooled[-2][1] / pooled[-2][2] > pooled[-1][1] / pooled[-1][2]:
            _, more, trials = pooled.pop()
            pooled[-1] = [pooled[-1][0], pooled[-1][1] + more, pooled[-1][2] + trials]
    return [(round(at, 2), min(0.999, round((hits + 0.5) / (n + 1), 3))) for at, hits, n in pooled]


def _doubts(job: Job) -> list[tuple[float, bool]]:
    """For each node that was blamed under a lowered bar: how much spoke against chance, and whether rightly."""
    fleet, truth, measured, _ = _world(job)
    outcome = validate(window(fleet, measured), check_params(ANALYZER, dict(job.params)))
    return [(against_chance(charge.by_chance), charge.node in truth) for charge in outcome.charges]


def growth_rows() -> list[Row]:
    """Seconds and memory over fleets of more and more nodes; the exponent between the largest two doublings."""
    took, sizes = [], (500, 2_000, 8_000)
    params = check_params(ANALYZER, {})
    for nodes in sizes:
        rng = np.random.default_rng(FIRST_REPORTING_SEED)
        fleet = build(Preset(nodes=nodes, runs=10), rng)
        seen = window(fleet, results(fleet, rng, draw_defects(fleet, rng, 0.1, most=0.02)))
        best = math.inf
        for _ in range(3):
            began = time.process_time()
            ANALYZER.analyze(seen, params)
            best = min(best, time.process_time() - began)
        took.append(best)
    peak = peak_memory(ANALYZER.analyze, seen, params)
    exponent = math.log(took[-1] / took[0]) / math.log(sizes[-1] / sizes[0])
    values = sizes[-1] * 60
    shown = told(
        "validator",
        seconds=f"{took[-1]:.2f} ({sizes[-1]:,} nodes)",
        memory=f"{peak:.0f} MB (the same)",
        growth=f"{exponent:.2f} (nodes)",
    )
    return [
        {
            "name": f"seconds for {sizes[-1]:,} nodes, {values:,} values",
            "value": round(took[-1], 3),
            "unit": "s",
            "bar": None,
            "note": f"peak {peak:.0f} MB",
        },
        {
            "name": "growth of time with nodes, exponent",
            "value": round(exponent, 3),
            "unit": "",
            "bar": "<= 1.2",
            "note": ", ".join(f"{n:,}: {s:.3f} s" for n, s in zip(sizes, took, strict=True)),
            **shown,
        },
    ]


def main(fleets: int = 120) -> list[Row]:
    return list(figures(fleets))


def cells_of(fleets: int, first: int = FIRST_REPORTING_SEED) -> dict[str, list[Job]]:
    """Jobs by name of the cell: names that begin with `-` or a method hold defects, the others are healthy fleets."""
    few = max(10, fleets // 6)
    cells: dict[str, list[Job]] = {}
    for name, preset in WORLDS.items():
        for again, past in (("", 0), (AGAIN, 1)):
            cells[f"healthy, {name}{again}"] = jobs_of(fleets, first, preset=preset, past=past)
            cells[f"-10 %, {name}{again}"] = jobs_of(fleets, first, severity=0.1, preset=preset, past=past)
        for severity in SEVERITIES:
            cells[f"-{100 * severity:g} %, {name}"] = jobs_of(few, first, severity=severity, preset=preset)
    for name in TAILED:
        more: dict[str, Any] = {"preset": WORLDS[name], "severity": 0.1}
        cells[f"-10 % for long, {name}{AGAIN}"] = jobs_of(few, first, past=1, old=True, **more)
    for often in (0.2, 0.5):
        cells[f"-30 % in {100 * often:g} % of the runs"] = jobs_of(few, first, severity=0.3, often=often)
    for nodes in SMALL:
        more = {"preset": Preset(nodes=nodes, spread=0.01)}
        cells[f"healthy, {nodes} nodes"] = jobs_of(few, first, **more)
        cells[f"-10 %, {nodes} nodes"] = jobs_of(few, first, severity=0.1, **more)
    for better in (1, 10):
        for name in ("spread .5 %", "spread 1 %"):
            more = {"better": better, "preset": WORLDS[name]}
            cells[f"healthy, {better} better, {name}"] = jobs_of(few, first, **more)
            for severity in (0.06, 0.1):
                label = f"-{100 * severity:g} %, {better} better, {name}"
                cells[label] = jobs_of(few, first, severity=severity, **more)
    one_value = {"preset": Preset(runs=1)}
    cells["healthy, one value"] = jobs_of(few, first, **one_value)
    cells["-10 %, one value"] = jobs_of(few, first, severity=0.1, **one_value)
    for event in BENIGN:
        cells[f"healthy, beside {event}"] = jobs_of(few, first, benign=event)
        cells[f"-10 %, beside {event}"] = jobs_of(few, first, severity=0.1, benign=event)
    for severity in (0.03, 0.05):
        sharper = (("similarity", 0.98),)
        cells[f"-{100 * severity:g} %, similarity .98"] = jobs_of(
            few, first, severity=severity, params=sharper
        )
    for method in BASELINES:
        cells[f"{method}, -10 %"] = jobs_of(few, first, severity=0.1, method=method)
        for name in [*WORLDS][1:]:
            more = {"severity": 0.1, "preset": WORLDS[name], "method": method}
            cells[f"{method}, -10 %, {name}"] = jobs_of(few, first, **more)
        for name in ("spread .5 %", "spread 2 %"):
            cells[f"{method}, healthy, {name}"] = jobs_of(few, first, method=method, preset=WORLDS[name])
    return cells


LARGE = 3
"""Of the sizes that scores are made from, those in which half of a fleet is more than a node."""
AGAIN = ", measured before"
SMALL = (3, 5, 8, 16)
TAILED = ("spread .5 %, heavy tails", "spread 1 %, heavy tails")
BARRED = ("spread .5 %", "spread 1 %", *(f"{name}{AGAIN}" for name in ("spread .5 %", "spread 1 %", *TAILED)))
"""Cells in which nodes of -10 % have to be found; healthy fleets accuse nobody anywhere."""


def figures(fleets: int, first: int = FIRST_REPORTING_SEED) -> Iterator[Row]:
    stated = list[tuple[float, bool]]()
    for label, total in counted(cells_of(fleets, first)).items():
        stated += total.stated if "similarity" not in label else ()
        if "healthy" in label:
            yield healthy_row(label, total, None if label.startswith(tuple(BASELINES)) else "<= 0.05")
        else:
            barred = label.startswith("-10 %, ") and label.removeprefix("-10 %, ") in BARRED
            yield from found_rows(label, total, ">= 0.97" if barred else None)
    yield from reliability("validator, simulator", stated, of="validator")
    yield from ticket_rows(max(10, fleets // 6), first)
    yield from growth_rows()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--fleets", type=int, default=120)
    parser.add_argument("--first", type=int, default=FIRST_REPORTING_SEED, help="first seed")
    parser.add_argument("--calibrate", action="store_true")
    arguments = parser.parse_args()
    if arguments.calibrate:
        for pair in calibration(arguments.fleets):
            print(pair)
    else:
        from tests.benchmarks.__main__ import line

        for row in figures(arguments.fleets, arguments.first):
            print(line(row), flush=True)
