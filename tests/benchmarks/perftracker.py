"""Accuracy of `perftracker`: right worker and function named first, and healthy workers named.

python -m tests.benchmarks.perftracker [--trials N] [--first SEED] [--calibrate]

A trial is one profile of 1,024 workers in four stages. Figures use seeds from `FIRST_REPORTING_SEED` on, which nothing
was chosen on. Beside it stand the published rule, a robust z and a local outlier factor. Bars: EROICA's 97.5 %
diagnosed, and one false worker a healthy profile.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from analyzers.builtin.perftracker import ANALYZER
from analyzers.builtin.perftracker.differential import differ
from analyzers.builtin.perftracker.patterns import BETA, roles
from analyzers.builtin.stats.probability import wilson
from analyzers.contract import Window, check_params
from analyzers.simulators.profiles import (
    COMMON,
    EVENTS,
    FAULTS,
    FIRST_REPORTING_SEED,
    Preset,
    draw_faults,
    profile,
    window_of,
)
from tests.benchmarks.glance import counts, other, told
from tests.benchmarks.growth import measure_growth
from tests.benchmarks.scoring import Tally, monotone
from tests.benchmarks.script import script
from tests.benchmarks.worlds import is_right, reliability
from tests.worlds.perftracker import CASES, make

Row = dict[str, Any]

SPREADS = (0.03, 0.05, 0.1, 0.2)
BARRED = (0.03, 0.05)
AUTHORS = "97.5 % diagnosed, about 100,000 GPUs, 1.5 years (EROICA, production)"
TRIALS = 8
KINDS, TUNING_WORLDS = (*FAULTS, *COMMON), (3_002, 3_003, 3_004, 3_005)


@dataclass(frozen=True)
class Job:
    seed: int
    kind: str = ""
    event: str = ""
    spread: float = 0.05
    count: int = 1


@dataclass
class Result:
    tally: Tally
    top: bool
    stated: list[tuple[float, bool]]
    beside: dict[str, Tally]


def published(window: Window) -> list[str]:
    """The published rule with its constants."""
    verdict = ANALYZER.analyze(window, check_params(ANALYZER, {"method": "published"}))
    return [one.component for one in verdict.suspects if one.component.startswith("worker/")]


def robust_z(window: Window) -> list[str]:
    """More than 6 robust deviations off the role's median in a component of a function with 2 % of the path."""
    named = set()
    for role in roles(window.sums["profiles"]):
        middle = role.medians()[:, :, None]
        width = 1.4826 * np.nanmedian(np.abs(role.values - middle), axis=2)[:, :, None]
        off = np.nan_to_num(np.abs(role.values - middle) / np.maximum(width, 1e-6)).max(axis=0)
        off[np.nanmax(role.values[BETA], axis=1) < 0.02] = 0.0
        named |= {role.workers[at] for at in np.flatnonzero(off.max(axis=0) > 6).tolist()}
    return sorted(named)


def outlier_factor(window: Window) -> list[str]:
    """A local outlier factor above 1.5 over all patterns of a role (Breunig et al., 2000), 20 neighbours."""
    from sklearn.neighbors import LocalOutlierFactor

    named = set()
    for role in roles(window.sums["profiles"]):
        middle = np.maximum(role.medians()[:, :, None], 1e-6)
        table = np.nan_to_num(role.values / middle, nan=1.0).reshape(-1, len(role.workers)).T
        if len(table) < 2:
            continue
        factor = LocalOutlierFactor(n_neighbors=min(20, len(table) - 1)).fit(table)
        odd = -factor.negative_outlier_factor_ > 1.5
        named |= {role.workers[at] for at in np.flatnonzero(odd).tolist()}
    return sorted(named)


BASELINES: Mapping[str, Callable[[Window], list[str]]] = MappingProxyType(
    {"published": published, "robust z": robust_z, "local outlier factor": outlier_factor}
)


def run_trial(job: Job) -> Result:
    rng = np.random.default_rng([job.seed, 23])
    preset = Preset(spread=job.spread)
    faults = draw_faults(preset, rng, job.kind, job.count) if job.kind else ()
    made = profile(preset, rng, faults, job.event)
    window = window_of(made)
    truth = {"job/llm-70b" if one.kind in COMMON else made.name(one.worker) for one in faults}
    verdict = ANALYZER.analyze(window, check_params(ANALYZER, {}))
    named = [one.component for one in verdict.suspects]
    function = {**FAULTS, **COMMON}.get(job.kind, "")
    top = bool(named) and named[0] in truth and verdict.suspects[0].indicator.startswith(f"{function} ")
    stated = [(one.score, one.component in truth) for one in verdict.suspects if one.score is not None]
    beside = {name: _tally(truth, set(method(window))) for name, method in BASELINES.items()}
    tally = replace(_tally(truth, set(named)), undecided=int(verdict.status == "inconclusive"))
    return Result(tally, top, stated, beside)


def _tally(truth: set[str], named: set[str]) -> Tally:
    wrong = len(named - truth)
    return Tally(1, len(named & truth), wrong, len(truth - named), int(wrong > 0))


def figures(trials: int, first: int = FIRST_REPORTING_SEED) -> Iterator[Row]:
    stated = list[tuple[float, bool]]()
    seeds = range(first, first + trials)
    for spread in SPREADS:
        all_of_them = list[Result]()
        for kind in (*FAULTS, *COMMON):
            found = [run_trial(Job(seed, kind, spread=spread)) for seed in seeds]
            all_of_them += found
            stated += [pair for one in found for pair in one.stated]
            yield from _found(f"{kind}, workers differ by {100 * spread:g} %", found)
        hits = sum(one.top for one in all_of_them)
        bar = ">= 0.975" if spread in BARRED else None
        label = f"perftracker: culprit function and worker first, workers differ by {100 * spread:g} %"
        yield _share(label, hits, len(all_of_them), bar)
        yield _silent(
            f"workers differ by {100 * spread:g} %", [run_trial(Job(seed, spread=spread)) for seed in seeds]
        )
    two = [run_trial(Job(seed, [*FAULTS][seed % len(FAULTS)], count=2)) for seed in seeds]
    yield from _found("two workers at once", two)
    missing = [run_trial(Job(seed, [*FAULTS][seed % len(FAULTS)], "missing_rows")) for seed in seeds]
    yield from _found("a fifth of the rows missing", missing)
    for event in EVENTS:
        yield _silent(f"benign {event}", [run_trial(Job(seed, event=event)) for seed in seeds])
    yield from reliability("perftracker, simulator", stated, of="perftracker")
    yield from growth_rows()


def _summed(tallies: list[Tally]) -> Tally:
    total = Tally()
    for one in tallies:
        total = total.plus(one)
    return total


def _found(name: str, found: list[Result]) -> Iterator[Row]:
    total = _summed([one.tally for one in found])
    beside = {method: _summed([one.beside[method] for one in found]) for method in BASELINES}
    note = "; ".join(f"{method} {one.found} right, {one.false} wrong" for method, one in beside.items())
    cells: dict[str, Any] = counts(total)
    cells["beside"] = {method: other(one) for method, one in beside.items()}
    shown = told("perftracker", name, published=AUTHORS, **cells)
    yield {
        **_share(f"perftracker: {name}, precision", total.found, total.found + total.false, None, note),
        **shown,
    }
    yield _share(f"perftracker: {name}, recall", total.found, total.found + total.missed, None, note)


def _silent(name: str, found: list[Result]) -> Row:
    total = _summed([one.tally for one in found])
    false = total.false / max(1, total.windows)
    beside = "; ".join(
        f"{method} {_summed([one.beside[method] for one in found]).false / max(1, total.windows):.1f}"
        for method in BASELINES
    )
    low, high = wilson(total.accused, total.windows)
    share = [total.accused, total.windows]
    benign = name.startswith("benign")
    cells = told("perftracker", benign=share) if benign else told("perftracker", healthy=share)
    return {
        "name": f"perftracker: false workers a profile of 1,024, {name}",
        "value": round(false, 3),
        "unit": "",
        "bar": "<= 1",
        "note": f"profiles that name anyone {total.accused} of {total.windows} [{low:.3f}, {high:.3f}], inconclusive "
        f"{total.undecided}; {beside}",
        **cells,
    }


def _share(name: str, hits: int, of: int, bar: str | None, note: str = "") -> Row:
    low, high = wilson(hits, of)
    said = f"[{low:.3f}, {high:.3f}], {hits} of {of}" + (f"; {note}" if note else "")
    value = round(hits / of, 4) if of else 0.0
    return {"name": name, "value": value, "unit": "", "bar": bar, "interval": [low, high], "note": said}


def growth_rows() -> Iterator[Row]:
    """Seconds and memory of profiles of 200 functions on more and more workers."""

    def window_of_size(workers: int) -> Window:
        rng = np.random.default_rng(FIRST_REPORTING_SEED)
        preset = Preset(workers=workers, minor=188)
        return window_of(profile(preset, rng, draw_faults(preset, rng, "slow_nic")))

    cost = measure_growth(ANALYZER, window_of_size, (1_000, 10_000))
    cells = told(
        "perftracker",
        seconds=f"{cost.seconds:.1f} (10,000 workers, 200 functions)",
        memory=f"{cost.peak:.0f} MB (the same)",
        growth=f"{cost.exponent:.2f} (workers)",
    )
    yield {
        "name": "perftracker: seconds for 10,000 workers and 200 functions",
        "value": round(cost.seconds, 2),
        "unit": "s",
        "bar": None,
        "note": f"peak {cost.peak:.0f} MB; growth exponent {cost.exponent:.2f}",
        **cells,
    }


def calibration(trials: int) -> list[tuple[float, float]]:
    """Pairs of evidence in nats and the share truly at fault, made monotone: from tuning seeds of the simulator, the
    bar lowered, and from four seeds of each case of the second generator that no figure is reported on."""
    jobs = [
        Job(seed, KINDS[seed % len(KINDS)] if seed % 3 else "", spread=SPREADS[seed % len(SPREADS)])
        for seed in range(trials)
    ]
    worlds = [(seed, case) for seed in TUNING_WORLDS for case in CASES]
    pairs = [*map(_doubts, jobs), *(_doubts_of_world(*one) for one in worlds)]
    return monotone([pair for found in pairs for pair in found], (0.0, 4.0, 6.0, 8.0, 11.0, 16.0, math.inf))


def _doubts(job: Job) -> list[tuple[float, bool]]:
    """Evidence of each worker under a lowered bar, and whether it was at fault."""
    rng, preset = np.random.default_rng([job.seed, 23]), Preset(spread=job.spread)
    faults = draw_faults(preset, rng, job.kind, job.count) if job.kind else ()
    made = profile(preset, rng, faults, job.event)
    truth = {made.name(one.worker) for one in faults}
    found = differ(roles(window_of(made).sums["profiles"]), check_params(ANALYZER, {}), named=1.0)
    return [(one.nats, one.component in truth) for one in found.apart]


def _doubts_of_world(seed: int, case: str) -> list[tuple[float, bool]]:
    world, pairs = make(seed, case), list[tuple[float, bool]]()
    for window in world.windows(ANALYZER):
        faults = world.faults_between(window.start, window.end)
        found = differ(roles(window.sums["profiles"]), check_params(ANALYZER, {}), named=1.0)
        pairs += [(one.nats, is_right({one.component}, faults)) for one in found.apart]
    return pairs


def main(trials: int = TRIALS) -> list[Row]:
    return list(figures(trials))


if __name__ == "__main__":
    script(figures, TRIALS, FIRST_REPORTING_SEED, calibration)
