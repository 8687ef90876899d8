"""Shares of right answers and of false alarms of Deepview on simulated regions of 159 components.

python -m tests.benchmarks.accuracy [--trials N] [--days D] [--calibrate]

Every trial is a fresh region (preset M: 2 data centres, 16 compute clusters, 128 ToRs, 12 storage clusters,
1,536 paths of which a fifth carry nothing) with twelve healthy hours of history. Figures use seeds from
`FIRST_REPORTING_SEED` on, which nothing was tuned on; `--calibrate` prints the score table from tuning seeds.
A component counts as found only if it is named itself: one that is only in an ambiguity set is a miss.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from analyzers.builtin.deepview import ANALYZER
from analyzers.builtin.stats.probability import wilson
from analyzers.contract import Params, Verdict, Window, check_params
from analyzers.simulators.deepview import (
    CLUMPED,
    FIRST_REPORTING_SEED,
    INDEPENDENT,
    NONE,
    Failures,
    background,
    draw_faults,
    strike,
    window,
    with_history,
)
from analyzers.simulators.fleet import Fleet, M, build
from tests.benchmarks.glance import harmonic, told
from tests.benchmarks.scoring import monotone, spread
from tests.benchmarks.worlds import reliability

Row = dict[str, Any]

BACKGROUNDS = {"independent": INDEPENDENT, "clumped": CLUMPED}
BARS = {"stop": 0.98, "gray": 0.95, "multi": 0.95, "faint": 0.78}
KINDS = ("stop", "gray", "faint", "multi", "pair", "ramp", "flapping")
OURS = "binomial"
AUTHORS = {"lasso z_mean": "lasso, as published"}
"""Labels of the methods that the authors describe, and what they are called."""
PUBLISHED = "100 faults found in a month, 70 of them with an incident; in under 10 min (production)"
FAULTS = {
    "stop": "stop",
    "gray": "gray (1 to 10 %)",
    "multi": "two to four at once",
    "faint": "faint (.2 to 1 %)",
    "pair": "a ToR with its cluster",
}
HISTORY_MINUTES = 720.0
EVERY = 5.0
HOLD = 12  # runs after which a component that is no longer suspected would open a new incident


@dataclass(frozen=True)
class Job:
    """One trial: `kind` is a fault type or `healthy`."""

    seed: int
    kind: str
    background: str
    params: tuple[tuple[str, Any], ...] = ()
    hosts: bool = True
    history: int = 12


@dataclass
class Count:
    """Found, wrongly named and missed components, over windows."""

    trials: int = 0
    found: int = 0
    false: int = 0
    missed: int = 0
    exact: int = 0
    accused: int = 0
    entries: int = 0
    undecided: int = 0
    stated: list[tuple[float, bool]] = field(default_factory=list)

    def add(self, truth: set[str], verdict: Verdict) -> None:
        named = {suspect.component for suspect in verdict.suspects}
        wider = named.union(*(suspect.ambiguous_with for suspect in verdict.suspects))
        self.trials += 1
        self.found += len(named & truth)
        self.false += len(named - truth)
        self.missed += len(truth - named)
        self.exact += named == truth
        self.accused += bool(named - truth)
        self.entries += len(wider & truth)
        self.undecided += verdict.status == "inconclusive"
        for one in verdict.suspects:
            if one.score is not None:
                self.stated.append((one.score, bool({one.component, *one.ambiguous_with} & truth)))

    @property
    def precision(self) -> list[int]:
        return [self.found, self.found + self.false]

    @property
    def recall(self) -> list[int]:
        return [self.found, self.found + self.missed]

    @property
    def f1(self) -> float:
        return 2 * self.found / max(1, 2 * self.found + self.false + self.missed)


@dataclass
class Day:
    """Counts of one simulated day of runs every five minutes."""

    at_once: int = 0
    with_rule: int = 0
    blamed_runs: int = 0


def complete(params: Iterable[tuple[str, Any]]) -> Params:
    return check_params(ANALYZER, dict(params))


def run_trial(job: Job) -> tuple[set[str], Verdict]:
    """The truth and the verdict of one window of one hour after twelve hours of history."""
    rng = np.random.default_rng([job.seed, len(job.kind)])
    fleet = build(M, rng)
    healthy = background(fleet, rng, BACKGROUNDS[job.background], 0, HISTORY_MINUTES + 60)
    struck, truth = NONE, set[str]()
    if job.kind != "healthy":
        faults = draw_faults(fleet, rng, job.kind, HISTORY_MINUTES, HISTORY_MINUTES + 60)
        struck = NONE.plus(*(strike(fleet, rng, fault) for fault in faults))
        truth = {fault.component for fault in faults}
    failures, end = healthy.plus(struck), HISTORY_MINUTES + 60
    seen = with_history(fleet, failures, end, past=job.history, hosts=job.hosts)
    return truth, ANALYZER.analyze(seen, complete(job.params))


def run_day(job: Job) -> Day:
    """A healthy day: incidents opened at the first blame, and by "sure at once, weaker after two of three"."""
    rng = np.random.default_rng([job.seed, 24])
    fleet = build(M, rng)
    failures = background(fleet, rng, BACKGROUNDS[job.background], 0, HISTORY_MINUTES + 60 + 1440)
    day, params = Day(), complete(job.params)
    tickets = {"at_once": Tickets(False), "with_rule": Tickets(True)}
    for run, seen in enumerate(sliding(fleet, failures, int(1440 / EVERY), job.hosts)):
        verdict = ANALYZER.analyze(seen, params)
        day.blamed_runs += bool(verdict.suspects)
        for one in tickets.values():
            one.see(run, verdict)
    day.at_once, day.with_rule = tickets["at_once"].opened, tickets["with_rule"].opened
    return day


def sliding(fleet: Fleet, failures: Failures, runs: int, hosts: bool = True) -> Iterable[Window]:
    """Windows of an hour every five minutes with twelve hours of history; the first ends after thirteen
    hours.
    """
    steps = int(HISTORY_MINUTES / EVERY)
    cut = [
        window(fleet, failures, step * EVERY, step * EVERY + 60, hosts=hosts) for step in range(steps + runs)
    ]
    back = int(60 / EVERY)
    for step in range(steps, steps + runs):
        yield replace(cut[step], history=tuple(cut[step - back * n] for n in range(12, 0, -1)))


class Tickets:
    """Counts incidents as incidents would open them, one per component as long as it stays blamed."""

    def __init__(self, rule: bool) -> None:
        self.rule = rule
        self.opened = 0
        self.first: dict[str, int] = {}
        self._recent: list[set[str]] = []
        self._open: dict[str, int] = {}

    def see(self, run: int, verdict: Verdict) -> None:
        named = {suspect.component: suspect.sure for suspect in verdict.suspects}
        self._recent = [*self._recent[-2:], set(named)]
        for component, sure in named.items():
            twice = sum(component in seen for seen in self._recent) >= 2
            if component in self._open or not self.rule or sure or twice:
                if component not in self._open:
                    self.opened += 1
                    self.first.setdefault(component, run)
                self._open[component] = run
        self._open = {name: last for name, last in self._open.items() if run - last < HOLD}


def run_detection(job: Job) -> tuple[float, float]:
    """Minutes from onset to the incident, at the first blame and with the rule; infinity if not within two
    hours.
    """
    rng = np.random.default_rng([job.seed, 7])
    fleet = build(M, rng)
    onset = HISTORY_MINUTES + 60 + float(rng.uniform(0, EVERY))
    healthy = background(fleet, rng, BACKGROUNDS[job.background], 0, onset + 130)
    fault = draw_faults(fleet, rng, job.kind, onset, onset + 120)[0]
    failures = healthy.plus(strike(fleet, rng, fault))
    tickets, params = {False: Tickets(False), True: Tickets(True)}, complete(job.params)
    for run, seen in enumerate(sliding(fleet, failures, int(125 / EVERY))):
        verdict = ANALYZER.analyze(seen, params)
        for one in tickets.values():
            one.see(run, verdict)
        if all(fault.component in one.first for one in tickets.values()):
            break
    first, ruled = (
        HISTORY_MINUTES + 60 + one.first[fault.component] * EVERY - onset
        if fault.component in one.first
        else math.inf
        for one in (tickets[False], tickets[True])
    )
    return first, ruled


def accuracy(kind: str, trials: int, first: int, **more: Any) -> Count:
    """Half of the trials with each background."""
    names = list(BACKGROUNDS)
    jobs = [Job(first + n, kind, names[n % 2], **more) for n in range(trials)]
    total = Count()
    for truth, verdict in spread(run_trial, jobs):
        total.add(truth, verdict)
    return total


def row_of(kind: str, count: Count, label: str, bar: str | None) -> Row:
    low, high = wilson(count.found, count.found + count.missed)
    named = count.found + count.false
    p_low, p_high = wilson(count.found, named)
    precision = count.found / max(1, named)
    note = (
        f"recall {count.found / max(1, count.found + count.missed):.3f} [{low:.3f}, {high:.3f}], precision "
        f"{precision:.3f} [{p_low:.3f}, {p_high:.3f}], exact set {count.exact / count.trials:.3f}, "
        f"{count.trials} trials"
    )
    row = {"name": f"{label} F1, {kind}", "value": round(count.f1, 4), "unit": "", "bar": bar, "note": note}
    row["interval"] = [harmonic(low, p_low), harmonic(high, p_high)]
    fault, seen = FAULTS.get(kind, kind), [count.undecided, count.trials]
    if label == OURS:
        return row | told("deepview", fault, precision=count.precision, recall=count.recall, undecided=seen)
    if label in AUTHORS:
        return row | told("deepview", fault, beside={AUTHORS[label]: [*count.precision, *count.recall]})
    return row


def healthy(background_name: str, trials: int, **more: Any) -> Count:
    jobs = [Job(FIRST_REPORTING_SEED + n, "healthy", background_name, **more) for n in range(trials)]
    total = Count()
    for truth, verdict in spread(run_trial, jobs):
        total.add(truth, verdict)
    return total


def healthy_row(background_name: str, total: Count, label: str, bar: str | None) -> Row:
    low, high = wilson(total.accused, total.trials)
    return {
        "name": f"{label} false blames per healthy window, {background_name}",
        "value": round(total.false / total.trials, 4),
        "unit": "",
        "bar": bar,
        "interval": [low, high],
        "note": f"windows that accuse anyone [{low:.4f}, {high:.4f}], {total.trials} windows",
    } | (told("deepview", **_calm(total)) if label == OURS else {})


def _calm(total: Count) -> Row:
    accused, undecided = ([hits, total.trials] for hits in (total.accused, total.undecided))
    return {"healthy": accused, "healthy_undecided": undecided}


def day_row(background_name: str, days: int, label: str, bar: str | None, **more: Any) -> Row:
    jobs = [Job(FIRST_REPORTING_SEED + n, "healthy", background_name, **more) for n in range(days)]
    seen: list[Day] = spread(run_day, jobs)
    at_once, ruled = sum(day.at_once for day in seen), sum(day.with_rule for day in seen)
    upper = (ruled + 1.92 + 1.96 * math.sqrt(ruled + 0.96)) / days
    note = f"{ruled} in {days} days (95 % bound {upper:.2f}); {at_once / days:.3f} if each blame opened one"
    return {
        "name": f"{label} false incidents per healthy day, {background_name}",
        "value": round(ruled / days, 4),
        "unit": "per day",
        "bar": bar,
        "interval": [0.0, upper],
        "note": note,
    }


def detection_row(kind: str, trials: int) -> Row:
    jobs = [Job(FIRST_REPORTING_SEED + n, kind, "clumped") for n in range(trials)]
    times = np.array(spread(run_detection, jobs))
    first, ruled = times[:, 0], times[:, 1]
    both = np.isfinite(first) & np.isfinite(ruled)
    cost = float(np.mean(ruled[both] - first[both])) if both.any() else math.inf
    p50, p95 = (float(np.quantile(ruled, q, method="higher")) for q in (0.5, 0.95))
    return {
        "name": f"binomial minutes from onset to incident, {kind}, median",
        "value": round(p50, 1),
        "unit": "min",
        "bar": "<= 10" if kind == "stop" else None,
        "note": f"95 % {p95:.1f}; the rule costs {cost:.2f} min on average and delays "
        f"{np.mean(ruled > first):.0%} of incidents; found within two hours {np.mean(np.isfinite(ruled)):.0%}, "
        f"{trials} trials",
    } | told("deepview", FAULTS[kind], time=f"{p50:.1f} min to the incident", published=PUBLISHED)


def calibration(trials: int) -> list[tuple[float, float]]:
    """Pairs of surplus evidence and the share truly at fault, made monotone; from tuning seeds."""
    lowered = (("margin", -3.0),)
    kinds = ("healthy", "faint", "healthy", "gray", "healthy", "faint", "healthy", "multi")
    names = list(BACKGROUNDS)
    jobs = [Job(n, kinds[n % 8], names[n // 8 % 2], lowered) for n in range(trials)]
    pairs: list[tuple[float, bool]] = []
    for truth, verdict in spread(run_trial, jobs):
        blamed = [one for one in verdict.evidence if one.title == "Blamed"]
        for row in blamed[0].rows if blamed else ():
            entry = {str(row[0]), *str(row[11]).split(", ")}
            needed = float(row[8]) + 3.0  # at margin 0
            pairs.append((float(row[7]) - needed, bool(entry & truth)))
    return monotone(pairs)


def main(trials: int = 1000, days: int = 60) -> list[Row]:
    return list(figures(trials, days))


def figures(trials: int, days: int) -> Iterator[Row]:
    """The rows one by one; kinds without a bar and methods beside the default get fewer trials."""
    few, stated = max(20, trials // 8), list[tuple[float, bool]]()
    for kind in KINDS:
        enough, bar = (trials, f">= {BARS[kind]}") if kind in BARS else (few, None)
        count = accuracy(kind, enough, FIRST_REPORTING_SEED)
        stated += count.stated
        yield row_of(kind, count, OURS, bar)
    for name in BACKGROUNDS:
        calm = healthy(name, trials)
        stated += calm.stated
        yield healthy_row(name, calm, OURS, "<= 0.05")
        yield day_row(name, days, OURS, "<= 0.2")
    yield from reliability("deepview, simulator", stated, of="deepview")
    for kind in ("stop", "gray"):
        yield detection_row(kind, max(20, trials // 10))
    others: dict[str, dict[str, Any]] = {
        "lasso z_mean": {"params": (("method", "lasso"),)},
        "lasso refit": {"params": (("method", "lasso"), ("test", "refit"))},
        "binomial, no history": {"history": 0},
        "binomial, hosts unknown": {"hosts": False},
    }
    for label, more in others.items():
        for kind in BARS:
            yield row_of(kind, accuracy(kind, few, FIRST_REPORTING_SEED, **more), label, None)
        for name in BACKGROUNDS:
            yield healthy_row(name, healthy(name, few, **more), label, None)
    yield day_row("clumped", max(2, days // 10), "lasso z_mean", None, params=(("method", "lasso"),))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--days", type=int, default=60)
    parser.add_argument("--calibrate", action="store_true")
    arguments = parser.parse_args()
    if arguments.calibrate:
        for pair in calibration(arguments.trials):
            print(pair)
    else:
        from tests.benchmarks.__main__ import line

        for row in figures(arguments.trials, arguments.days):
            print(line(row), flush=True)
