"""Whether an incident that was resolved after the repair stays so, and one whose fault goes on is opened again.

    python -m tests.benchmarks.endings [--trials N] [--first SEED]

Links: NetBouncer's network (k = 8, 512 paths, 100 probes a path and minute), good links lose U(0, 1e-4). One loses
U(.02, .3) for 12 to 17 minutes; the incident is resolved 2 to 5 minutes after the repair, or while the fault goes on.
Windows of 15 minutes every 5.

Nodes: 60 of the benchmarks' simulator, measured every three hours, six runs each. One is U(.08, .3) worse, in one
metric or in those that a sick GPU spoils, for 20 to 30 hours; the incident is resolved half an hour to 2.5 hours after
the repair. Windows of a day after each round.

The rule of incidents is asked of each window that ends after the resolution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin import boolean, netbouncer, validator, voting
from analyzers.contract import Analyzer, Sums, Suspect, Window, check_params
from analyzers.simulators import node_benchmarks as nodes
from analyzers.simulators.deepview import EPOCH, FIRST_REPORTING_SEED
from analyzers.simulators.fabric import Fabric, build, fat_tree, healthy_loss, send
from analyzers.simulators.routes import gathered, path_table
from incidents.domain.incident.finding import Finding, OpenNew, ScheduleWindow, place
from incidents.domain.incident.state import Incident
from tests.benchmarks.scoring import spread
from tests.benchmarks.script import script

Row = dict[str, Any]
ANALYZERS = {
    one.name: one for one in (voting.ANALYZER, netbouncer.ANALYZER, boolean.ANALYZER, validator.ANALYZER)
}
NOISE = 1e-4
HALVES = 240
"""Half minutes of a link's story; the fault begins in the second half hour."""
DAY, ROUND, TAKES = 24 * 60, 180, 35
"""Minutes: a window of nodes, from one round to the next, and until a round is over."""


@dataclass(frozen=True)
class Job:
    analyzer: str
    seed: int
    goes_on: bool


@dataclass(frozen=True)
class Story:
    """Faulty component, and the minute in which its incident was resolved. `ends` are the minutes at which windows end,
    `most` how many of them after the resolution are looked at.
    """

    component: str
    resolved: float
    window: Callable[[int], Window]
    ends: range
    most: int


def link_story(job: Job) -> Story:
    rng = np.random.default_rng([job.seed, 78])
    fabric = build(fat_tree(8, 1), directed=False)
    begin = 30 + rng.uniform(0, 5)
    end = begin + rng.uniform(12, 17)
    resolved = end + rng.uniform(2, 5)
    routes, good = fabric.bounces(np.arange(fabric.hosts)), healthy_loss(fabric, rng, NOISE)
    bad, link = good.copy(), int(rng.integers(len(fabric.links)))
    bad[link] = rng.uniform(0.02, 0.3)
    sent = np.full(len(routes), 50)
    lost = []
    for half in range(HALVES):
        struck = begin <= half / 2 and (job.goes_on or half / 2 < end)
        lost.append(send(routes, sent, bad if struck else good, rng).lost)
    window = partial(link_window, fabric, np.array(lost))
    return Story(fabric.links[link], resolved, window, range(30, HALVES // 2, 5), 6)


def link_window(fabric: Fabric, all_lost: NDArray[np.int64], end: int) -> Window:
    """A quarter of an hour with the tables of all three analyzers; `all_lost[s, p]` of path p in half minute s."""
    paths, row = path_table(fabric.links, fabric.bounces(np.arange(fabric.hosts)))
    inside = all_lost[2 * (end - 15) : 2 * end]
    lost = np.array([np.bincount(row, half, minlength=len(paths)) for half in inside]).astype(np.int64).T
    sent = np.bincount(row, minlength=len(paths)).astype(np.int64) * 50
    at, half = np.nonzero(lost)
    layer = {"layer": ("underlay",) * len(paths)}
    whole, total = sent * len(inside), lost.sum(axis=1)
    values = {"sent": whole, "lost": total, "attempts": whole, "failures": total}
    keys: Row = {"hops": gathered(paths, at), "layer": ("underlay",) * len(at), "slice": half}
    some = lost[at, half]
    failing = {"flows": np.ones_like(some), "sent": sent[at], "lost": some, "failures": some}
    sums = {"paths": Sums({"hops": paths, **layer}, values, len(paths))}
    sums |= {name: Sums(keys, failing, len(at)) for name in ("failing", "over_time")}
    start, until = (EPOCH + timedelta(minutes=minute) for minute in (end - 15, end))
    return Window(start, until, "simulated", "probe", sums)


def node_story(job: Job) -> Story:
    rng = np.random.default_rng([job.seed, 79])
    fleet = nodes.build(nodes.Preset(nodes=60, runs=6), rng)
    begin = 2 * DAY + rng.uniform(0, ROUND)
    end = begin + rng.uniform(20, 30) * 60
    resolved = end + rng.uniform(30, 150)
    sick = nodes.draw_defects(fleet, rng, rng.uniform(0.08, 0.3), most=0)
    rounds = []
    for minute in range(0, 5 * DAY, ROUND):
        struck = begin <= minute and (job.goes_on or minute < end)
        measured = nodes.results(fleet, rng, sick if struck else ())
        rounds.append(nodes.samples_of(fleet, measured, EPOCH + timedelta(minutes=minute)))
    window = partial(node_window, rounds)
    return Story(fleet.name(sick[0].node), resolved, window, range(2 * DAY + TAKES, 5 * DAY, ROUND), 8)


def node_window(rounds: Sequence[Sums], end: int, history: int = validator.ANALYZER.history) -> Window:
    """A day of rounds, after the days before it."""
    start, until = (EPOCH + timedelta(minutes=minute) for minute in (end - DAY, end))
    sums = {"samples": nodes.joined(rounds[-(-(end - DAY) // ROUND) : end // ROUND + 1])}
    past = [
        node_window(rounds, end - days * DAY, 0) for days in range(1, history + 1) if end >= (days + 1) * DAY
    ]
    return Window(start, until, "simulated", "benchmark", sums, tuple(reversed(past)))


def run_trial(job: Job) -> int | None:
    """In which window after the resolution another incident opens: 0 if in none, None if there was no first one."""
    analyzer = ANALYZERS[job.analyzer]
    one = node_story(job) if analyzer is validator.ANALYZER else link_story(job)
    watched: list[ScheduleWindow] = []
    ticket: Incident | None = None
    after = 0
    for end in one.ends:
        seen = one.window(end)
        verdict = analyzer.analyze(seen, check_params(analyzer, {}))
        causes = tuple(frozenset((each.component, *each.ambiguous_with)) for each in verdict.suspects)
        if verdict.status != "inconclusive":
            watched.append(ScheduleWindow(seen.start, seen.end, causes))
        mine = [each for each in verdict.suspects if one.component in (each.component, *each.ambiguous_with)]
        if end <= one.resolved:
            ticket = ticket or (_resolved(mine[0], one.resolved) if mine else None)
            continue
        if ticket is None:
            return None
        after += 1
        for each in mine:
            if isinstance(place(_finding(analyzer, seen, each), [ticket], watched), OpenNew):
                return after
        if after == one.most:
            break
    return 0


def _resolved(suspect: Suspect, minute: float) -> Incident:
    return Incident(
        id="1", number=1, title="", description="", state="resolved", severity="error",
        component=suspect.component, ambiguous_with=suspect.ambiguous_with, region="simulated", team="", routing="",
        dedup_key="", labels={}, links=(), opened_at=EPOCH, opened_by="", team_since=EPOCH, counted_at=EPOCH,
        resolved_at=EPOCH + timedelta(minutes=minute),
    )  # fmt: skip


def _finding(analyzer: Analyzer, seen: Window, suspect: Suspect) -> Finding:
    return Finding(
        run="1", schedule="1", analyzer=analyzer.name, version=analyzer.version, params={}, region=seen.region,
        window_start=seen.start, window_end=seen.end, component=suspect.component,
        ambiguous_with=suspect.ambiguous_with, score=suspect.score, failure_rate=None, summary="", sure=suspect.sure,
        first_failure=suspect.first_failure, last_failure=suspect.last_failure, evidence=(),
    )  # fmt: skip


def figures(trials: int, first: int) -> Iterator[Row]:
    for name in ANALYZERS:
        for goes_on in (False, True):
            found = spread(run_trial, [Job(name, first + at, goes_on) for at in range(trials)])
            told = [one for one in found if one is not None]
            again = [one for one in told if one]
            late = sum(one > 1 for one in again)
            yield {
                "name": f"{name}: opened again {'while the fault goes on' if goes_on else 'after the repair'}",
                "value": round(len(again) / max(1, len(told)), 3),
                "unit": "",
                "bar": ">= 1" if goes_on else "<= 0.05",
                "note": f"{len(again)} of {len(told)} incidents, {late} later than with the first window",
            }


def main(trials: int = 50, first: int = FIRST_REPORTING_SEED) -> list[Row]:
    return list(figures(trials, first))


if __name__ == "__main__":
    script(figures, 50, FIRST_REPORTING_SEED)
