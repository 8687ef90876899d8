"""Analyzers on worlds that share no code with the simulators they were tuned on (`tests.worlds`).

A benchmark part `worlds_NAME` calls `judge` for the cases of its module and gives `figures` and `reliability` of what
comes back. A suspect is right if it, or one that the data cannot tell from it, is at fault within the window or
acceptable in its place; a fault is found if a suspect says so. Baselines see the same windows.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import pairwise
from typing import Any

from analyzers.builtin.stats.probability import wilson
from analyzers.contract import Analyzer, ParamValue, Window
from analyzers.runner import judge as run_analyzer
from tests.benchmarks.glance import ENOUGH, counts, other, told
from tests.benchmarks.scoring import EDGES, Tally, by_bins, spread
from tests.worlds import Fault, World

Row = dict[str, Any]
Method = Callable[[Window], Sequence[str]]
"""A simpler method: the components that it blames in a window."""


@dataclass(frozen=True)
class Job:
    """One world: module of `tests.worlds`, case, seed; `analyzer` and `baselines` as `module:attribute`, the latter a
    mapping of names to methods."""

    world: str
    case: str
    seed: int
    analyzer: str
    baselines: str = ""
    params: tuple[tuple[str, ParamValue], ...] = ()


@dataclass
class Judged:
    """Results of worlds of one case: windows with a fault, windows without, the same of each baseline, and what was
    stated of each suspect with whether it was right."""

    faulty: Tally = field(default_factory=Tally)
    healthy: Tally = field(default_factory=Tally)
    baselines: dict[str, tuple[Tally, Tally]] = field(default_factory=dict)
    stated: list[tuple[float, bool]] = field(default_factory=list)
    unmet: dict[str, int] = field(default_factory=dict)
    """Windows in which an assumption did not hold, by its name."""

    def plus(self, more: Judged) -> Judged:
        joined = Judged(self.faulty.plus(more.faulty), self.healthy.plus(more.healthy))
        for name in {*self.baselines, *more.baselines}:
            one, two = (each.baselines.get(name, (Tally(), Tally())) for each in (self, more))
            joined.baselines[name] = (one[0].plus(two[0]), one[1].plus(two[1]))
        joined.stated = self.stated + more.stated
        joined.unmet = {
            name: self.unmet.get(name, 0) + more.unmet.get(name, 0) for name in {*self.unmet, *more.unmet}
        }
        return joined


def judge(jobs: Sequence[Job]) -> dict[str, Judged]:
    """By case, what came of all its worlds; over the cores that there are."""
    cases: dict[str, Judged] = {}
    for job, one in zip(jobs, spread(judge_one, jobs), strict=True):
        cases[job.case] = cases.get(job.case, Judged()).plus(one)
    return cases


def report(
    name: str,
    baselines: str,
    bars: Mapping[str, str],
    trials: int,
    first: int,
    *,
    worlds: Sequence[str] = (),
    stress: Collection[str] = (),
    beside: Sequence[tuple[float, bool]] = (),
) -> Iterator[Row]:
    """Figures and reliability of `analyzers.builtin.NAME` on `trials` worlds of every case of the modules `worlds` of
    `tests.worlds` (by default the one of that name), all held to `bars`. Suspects of the cases `stress` have a
    reliability of their own; `beside` are probabilities stated of suspects of the first generator, and whether each
    was right.
    """
    analyzer = f"analyzers.builtin.{name}:ANALYZER"
    usual, stressed = list(beside), list[tuple[float, bool]]()
    for module in worlds or (name,):
        cases = importlib.import_module(f"tests.worlds.{module}").CASES
        found = judge(
            [Job(module, case, first + n, analyzer, baselines) for case in cases for n in range(trials)]
        )
        yield from figures(name, found, bars, "" if module == name else module)
        for case, one in found.items():
            (stressed if case in stress else usual).extend(one.stated)
    yield from reliability(f"{name}, both generators" if beside else name, usual, of=name)
    yield from reliability(f"{name}, under stress", stressed, 0.1, of=name, stress=True)


def judge_one(job: Job) -> Judged:
    world: World = importlib.import_module(f"tests.worlds.{job.world}").make(job.seed, job.case)
    analyzer: Analyzer = _named(job.analyzer)
    baselines: Mapping[str, Method] = _named(job.baselines) if job.baselines else {}
    judged = Judged()
    for window in world.windows(analyzer):
        faults = world.faults_between(window.start, window.end)
        verdict = run_analyzer(analyzer, window, dict(job.params))
        groups = [{one["component"], *one["ambiguous_with"]} for one in verdict["suspects"]]
        tally = score(groups, faults, undecided=verdict["status"] == "inconclusive")
        judged.stated += [
            (one["score"], is_right(group, faults))
            for one, group in zip(verdict["suspects"], groups, strict=True)
            if one["score"] is not None
        ]
        for assumption in verdict["assumptions"]:
            if not assumption["holds"]:
                name = assumption["name"]
                judged.unmet[name] = judged.unmet.get(name, 0) + 1
        _count(judged, tally, faults)
        for name, method in baselines.items():
            said = score([{one} for one in method(window)], faults)
            with_fault, without = judged.baselines.get(name, (Tally(), Tally()))
            judged.baselines[name] = (
                (with_fault.plus(said), without) if faults else (with_fault, without.plus(said))
            )
    return judged


def _count(judged: Judged, tally: Tally, faults: Sequence[Fault]) -> None:
    if faults:
        judged.faulty = judged.faulty.plus(tally)
    else:
        judged.healthy = judged.healthy.plus(tally)


def score(groups: Sequence[set[str]], faults: Sequence[Fault], *, undecided: bool = False) -> Tally:
    """One window: groups of components that a verdict names, against what was at fault."""
    found = sum(any(is_right(group, [fault]) for group in groups) for fault in faults)
    wrong = sum(not is_right(group, faults) for group in groups)
    return replace(Tally(1, found, wrong, len(faults) - found, int(wrong > 0)), undecided=int(undecided))


def is_right(group: set[str], faults: Sequence[Fault]) -> bool:
    return any(group & {fault.component, *fault.acceptable} for fault in faults)


def figures(
    name: str, cases: Mapping[str, Judged], bars: Mapping[str, str], world: str = ""
) -> Iterator[Row]:
    """Rows of each case: recall, precision, false blames, with intervals, baselines beside them, and cells for the
    glance. `bars` are written such as `{"total_stop recall": ">= .98"}`: a case and one of `recall`, `precision`, `F1`,
    `false blames a window`. `world` is the module of a further generator."""
    label = f"{name}{f' ({world})' if world else ''}"
    generator = f"second generator ({world})" if world else "second generator"
    if any(bar.startswith(f"{ALL} ") for bar in bars):
        yield from _of_all(label, cases.values(), bars)
    for case, judged in cases.items():
        faulty, healthy = judged.faulty, judged.healthy
        cells: dict[str, Any] = counts(faulty) if faulty.windows else {}
        cells["beside"] = {one: other(pair[0]) for one, pair in judged.baselines.items() if faulty.windows}
        if faulty.windows:
            found, named = (
                (faulty.found, faulty.found + faulty.missed),
                (faulty.found, faulty.found + faulty.false),
            )
            yield _row(
                f"{label}: {case} recall", *found, bars.get(f"{case} recall"), _beside(judged, "recall")
            )
            yield _row(
                f"{label}: {case} precision",
                *named,
                bars.get(f"{case} precision"),
                _beside(judged, "precision"),
            )
            told_of = told(name, f"{generator}: {case}", **cells)
            yield {
                "name": f"{label}: {case} F1",
                "value": round(faulty.f1, 4),
                "bar": bars.get(f"{case} F1"),
                **told_of,
            }
        if healthy.windows:
            share = (healthy.accused, healthy.windows)
            bar = bars.get(f"{case} false blames a window")
            row = _row(f"{label}: {case} false blames a window", *share, bar, _beside(judged, "accused"))
            yield {**row, **told(name, healthy_second=list(share))}
        if judged.unmet:
            windows = faulty.windows + healthy.windows
            said = ", ".join(f"{one} in {count:,}" for one, count in sorted(judged.unmet.items()))
            yield {
                "name": f"{label}: {case} assumptions not met",
                "value": said,
                "note": f"of {windows:,} windows",
            }


ALL = "all cases"
"""Beginning of the names of bars on the sums over all cases."""


def _of_all(label: str, cases: Collection[Judged], bars: Mapping[str, str]) -> Iterator[Row]:
    every = reduce(Judged.plus, cases, Judged())
    faulty, healthy = every.faulty, every.healthy
    for what, hits, of in (
        ("recall", faulty.found, faulty.found + faulty.missed),
        ("precision", faulty.found, faulty.found + faulty.false),
        ("false blames a window", healthy.accused, healthy.windows),
    ):
        measured = "accused" if what.startswith("false") else what
        yield _row(f"{label}: {ALL} {what}", hits, of, bars.get(f"{ALL} {what}"), _beside(every, measured))


def _row(name: str, hits: int, of: int, bar: str | None, note: str) -> Row:
    low, high = wilson(hits, of) if of else (0.0, 1.0)
    value = round(hits / of, 4) if of else None
    if value is None:
        return {"name": name, "value": "nothing was named", "note": note}
    said = f"[{low:.3f}, {high:.3f}] of {of:,}"
    return {"name": name, "value": value, "bar": bar, "interval": [low, high], "note": f"{said}{note}"}


def share_of(name: str, hits: int, of: int, bar: str | None = None) -> Row:
    """A row of its own: a share with its interval."""
    return _row(name, hits, of, bar, "")


def _beside(judged: Judged, what: str) -> str:
    said = []
    for one, (faulty, healthy) in sorted(judged.baselines.items()):
        value = healthy.accused / max(1, healthy.windows) if what == "accused" else getattr(faulty, what)
        said.append(f"{one} {value:.3f}")
    return f"; beside it {', '.join(said)}" if said else ""


def reliability(
    name: str,
    stated: Sequence[tuple[float, bool]],
    within: float = 0.05,
    *,
    of: str = "",
    stress: bool = False,
    edges: Sequence[float] = EDGES,
) -> Iterator[Row]:
    """The reliability diagram: by bins of what was stated, the mean stated, the share that was true with its interval,
    and how much more was stated than true, whose bar is `within` in bins of 50 or more suspects. The first row carries
    the bins of `EDGES` for the table of the analyzer `of`, apart from others if they are of worlds under `stress`."""
    bins = by_bins(stated)
    cells: Row = {}
    if of:
        cells = told(of, stated_stress=bins) if stress else told(of, stated=bins)
    for low, high in pairwise(edges):
        pairs = [(one, right) for one, right in stated if low <= one < high or one == high == 1.0]
        if not pairs:
            continue
        mean, hits = sum(one for one, _ in pairs) / len(pairs), sum(right for _, right in pairs)
        least, most = wilson(hits, len(pairs))
        yield {
            "name": f"{name}: stated {low:g} to {high:g}, minus true",
            "value": round(mean - hits / len(pairs), 4),
            "bar": f"<= {within}" if len(pairs) >= ENOUGH else None,
            "interval": [mean - most, mean - least],
            "note": f"says {mean:.3f}, true {hits / len(pairs):.3f} [{least:.3f}, {most:.3f}] of {len(pairs):,}",
            **cells,
        }
        cells = {}


def _named(path: str) -> Any:
    module, _, attribute = path.partition(":")
    return getattr(importlib.import_module(module), attribute)


if __name__ == "__main__":
    world, analyzer, *asked = sys.argv[1:]
    every = importlib.import_module(f"tests.worlds.{world}").CASES
    chosen = [Job(world, case, seed, analyzer) for case in asked or every for seed in range(3)]
    result = judge(chosen)
    for row in (
        *figures(world, result, {}),
        *reliability(world, [x for one in result.values() for x in one.stated]),
    ):
        print(f"{row['name']:<60} {row.get('value')!s:>12} {row.get('note', '')}")
