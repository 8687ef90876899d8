"""Worth of several analyzers on one incident: top-1 alone and fused, and whether the fused number keeps its word.

python -m tests.benchmarks.fusion [--trials N] [--tune]

A trial is a window in which one component is at fault (faint or gray), or none, in half of the windows. Two analyzers
look at it, and what they blame is fused by the rule of incidents (`incidents.domain.incident.state.fused`).

* `separate`: Deepview on the failures of two groups of units over the same paths, with backgrounds of their own: all
  that they share is the fault.
* `shared`: Deepview on the same failures, of which each of two collectors lost 5 % of the rows: they share nearly all,
  errors too.
* `probes`: voting on half of a fabric's flows, Deepview on the outcomes of the other half.
* `methods`: voting and NetBouncer (smallest loss of interest 5e-4) on the very same flows.
* `halves`: the same two, each on half of the flows.

For calibration the bar is lowered by 3 nats, so that doubtful suspects are seen too. A lone blame, of which the other
analyzer saw nothing, is lowered by what its dissent is worth on the first half of the windows, and judged on the
second. `--tune` prints Brier scores over
the discount from tuning seeds; the figures use seeds from `FIRST_REPORTING_SEED` on.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from analyzers.builtin.deepview import ANALYZER as DEEPVIEW
from analyzers.builtin.deepview.analyzer import SLICE
from analyzers.builtin.netbouncer import ANALYZER as NETBOUNCER
from analyzers.builtin.voting import ANALYZER as VOTING
from analyzers.contract import Analyzer, Sums, Verdict, Window, check_params
from analyzers.runs.scoring import Share
from analyzers.simulators import voting as flows
from analyzers.simulators.deepview import (
    CLUMPED,
    EPOCH,
    FIRST_REPORTING_SEED,
    Failures,
    background,
    draw_faults,
    strike,
    with_history,
)
from analyzers.simulators.fabric import Losses, Shape, healthy_loss, send
from analyzers.simulators.fabric import build as build_fabric
from analyzers.simulators.fleet import M, build
from analyzers.simulators.routes import gathered, path_table
from incidents.domain.incident import state
from incidents.domain.incident.dissent import DisputedBlame, weights
from tests.benchmarks.glance import ENOUGH, told
from tests.benchmarks.scoring import spread

Row = dict[str, Any]
WORLDS = ("separate", "shared", "probes", "methods", "halves")
NAMES = {
    "separate": ("first units", "second units"),
    "shared": ("first collector", "second collector"),
    "probes": ("voting", "deepview"),
    "methods": ("voting", "netbouncer"),
    "halves": ("voting", "netbouncer"),
}
GIVEN = {"netbouncer": {"min_loss": 5e-4}}
LOWERED = {"netbouncer": {"alpha": 2.6e-3}}
"""Parameters that lower the bar by 3 nats where there is no `margin`."""
KINDS = ("faint", "healthy", "gray", "healthy")
DISCOUNTS = (0.0, 0.25, 0.5, 0.75, 1.0)
END = 780.0
MISSING = 0.05
DOUBTFUL = 0.97
SMALL = Shape(pods=2, tors=6, t1s=4, t2s=4, hosts=8)
LOAD = flows.Load(flows=40)


@dataclass(frozen=True)
class Job:
    """One trial: `lowered` lets doubtful suspects through."""

    seed: int
    world: str
    kind: str
    lowered: bool


@dataclass(frozen=True)
class Said:
    """A suspect: its names, its score, whether what is at fault is among them."""

    names: frozenset[str]
    component: str
    score: float | None
    right: bool


Trial = tuple[set[str], tuple[list[Said], list[Said]]]


def run_trial(job: Job) -> Trial:
    """Components at fault, and those that each of the two analyzers blames, best first."""
    rng = np.random.default_rng([job.seed, WORLDS.index(job.world), len(job.kind)])
    if job.world == "probes":
        truth, windows = _fabric(rng, job.kind)
        verdicts = (_judge(VOTING, windows[0], job.lowered), _judge(DEEPVIEW, windows[1], job.lowered))
    elif job.world in ("methods", "halves"):
        truth, cuts = _cuts(rng, job.kind)
        other = cuts[0] if job.world == "methods" else cuts[1]
        verdicts = (_judge(VOTING, cuts[0], job.lowered), _judge(NETBOUNCER, other, job.lowered))
    else:
        truth, windows = _fleet(rng, job.world, job.kind)
        verdicts = (_judge(DEEPVIEW, windows[0], job.lowered), _judge(DEEPVIEW, windows[1], job.lowered))
    first, second = (_said(verdict, truth) for verdict in verdicts)
    return truth, (first, second)


def _judge(analyzer: Analyzer, window: Window, lowered: bool) -> Verdict:
    has_margin = any(one.name == "margin" for one in analyzer.params)
    down = {"margin": -3.0} if has_margin else LOWERED.get(analyzer.name, {})
    given = {**GIVEN.get(analyzer.name, {}), **(down if lowered else {})}
    return analyzer.analyze(window, check_params(analyzer, given))


def _said(verdict: Verdict, truth: set[str]) -> list[Said]:
    said = []
    for one in verdict.suspects:
        names = frozenset((one.component, *one.ambiguous_with))
        said.append(Said(names, one.component, one.score, bool(names & truth)))
    return said


def _fleet(rng: np.random.Generator, world: str, kind: str) -> tuple[set[str], tuple[Window, Window]]:
    fleet = build(M, rng)
    faults = [] if kind == "healthy" else draw_faults(fleet, rng, kind, END - 60, END)

    def failing() -> Failures:
        healthy = background(fleet, rng, CLUMPED, 0, END)
        return healthy.plus(*(strike(fleet, rng, fault) for fault in faults))

    one = failing()
    seen = (one, failing()) if world == "separate" else (_collected(one, rng), _collected(one, rng))
    windows = (with_history(fleet, seen[0], END), with_history(fleet, seen[1], END))
    return {fault.component for fault in faults}, windows


def _collected(failures: Failures, rng: np.random.Generator) -> Failures:
    kept = rng.random(len(failures.unit)) >= MISSING
    return Failures(failures.minute[kept], failures.unit[kept])


def _fabric(rng: np.random.Generator, kind: str) -> tuple[set[str], tuple[Window, Window]]:
    """Flows for voting, and as many again for Deepview."""
    truth, sent = _traffic(rng, kind)
    (first, _), (_, outcomes) = sent
    return truth, (first, outcomes)


def _cuts(rng: np.random.Generator, kind: str) -> tuple[set[str], tuple[Window, Window]]:
    truth, ((first, _), (second, _)) = _traffic(rng, kind)
    return truth, (first, second)


def _traffic(
    rng: np.random.Generator, kind: str
) -> tuple[set[str], tuple[tuple[Window, Window], tuple[Window, Window]]]:
    """Twice the same load, as probes and as outcomes: a link between switches loses 0.05 to 0.3 % (faint) or 0.3 to 3 %
    (gray) of what passes it.
    """
    fabric = build_fabric(SMALL)
    bounds = {"faint": (5e-4, 3e-3), "gray": (3e-3, 3e-2), "healthy": (0.0, 0.0)}[kind]
    fault = flows.draw_fault(fabric, rng, 1, *bounds) if kind != "healthy" else flows.Fault()
    truth: set[str] = set()
    sent: list[tuple[Window, Window]] = []
    for _ in range(2):
        traffic = flows.draw_traffic(fabric, rng, LOAD)
        loss = healthy_loss(fabric, rng, 1e-5)
        loss[fault.links] = fault.rates
        losses = send(traffic.routes, traffic.sent, loss, rng)
        seen = flows.cut(traffic, losses, fault)
        truth = set(seen.bad)
        sent.append((seen.window, _outcomes(traffic, losses)))
    return truth, (sent[0], sent[1])


def _outcomes(traffic: flows.Traffic, losses: Losses) -> Window:
    """The flows as Deepview's `path_outcome` input has them: packets tried and lost on each path."""
    paths, row = path_table(traffic.fabric.links, traffic.routes)
    attempts = np.bincount(row, traffic.sent, len(paths)).astype(np.int64)
    lost = np.bincount(row, losses.lost, len(paths)).astype(np.int64)
    failed = np.flatnonzero(lost)
    some = gathered(paths, failed)
    sums = {
        "paths": Sums({"components": paths}, {"attempts": attempts}, len(paths)),
        "failing": Sums({"components": some}, {"failures": lost[failed]}, len(failed)),
        "over_time": Sums(
            {"components": some, "slice": np.zeros(len(failed), np.int64)},
            {"failures": lost[failed]},
            len(failed),
        ),
    }
    return Window(EPOCH, EPOCH + SLICE, "simulated", "path_outcome", sums)


def together(
    first: Sequence[Said], second: Sequence[Said], discount: float
) -> list[tuple[Said, float, bool]]:
    """Each blame of either with its fused score, and whether both blame it; the most probable first."""
    found: list[tuple[Said, float, bool]] = []
    taken: set[str] = set()
    for one in first:
        partner = next((other for other in second if other.names & one.names), None)
        scores = [one.score, None if partner is None else partner.score]
        both = Said(
            one.names if partner is None else one.names & partner.names, one.component, one.score, one.right
        )
        if partner is not None:
            taken.add(partner.component)
            narrowed = partner.component if partner.component in both.names else one.component
            both = Said(both.names, narrowed, one.score, one.right or partner.right)
        found.append((both, state.fused(scores, discount) or 0.0, partner is not None))
    found += [(one, one.score or 0.0, False) for one in second if one.component not in taken]
    return sorted(found, key=lambda entry: (-entry[1], not entry[2], entry[0].component))


def agreements(trials: Sequence[Trial]) -> list[tuple[float, float, bool]]:
    """Of what both blame: the score of each, and whether it was at fault."""
    pairs = []
    for _, (first, second) in trials:
        for one in first:
            partner = next((other for other in second if other.names & one.names), None)
            if partner is not None and one.score is not None and partner.score is not None:
                pairs.append((one.score, partner.score, one.right and partner.right))
    return pairs


def brier(pairs: Sequence[tuple[float, float, bool]], discount: float) -> tuple[float, float, float]:
    """Brier score, mean probability and share at fault of what both blame."""
    said = [state.fused((a, b), discount) or 0.0 for a, b, _ in pairs]
    truth = [float(right) for *_, right in pairs]
    if not pairs:
        return math.nan, math.nan, math.nan
    return (
        float(np.mean([(p - t) ** 2 for p, t in zip(said, truth, strict=True)])),
        float(np.mean(said)),
        float(np.mean(truth)),
    )


def trials_of(world: str, count: int, first: int, kinds: Sequence[str], lowered: bool) -> list[Trial]:
    jobs = [Job(first + n, world, kinds[n % len(kinds)], lowered) for n in range(count)]
    return spread(run_trial, jobs)


def doubtful(trials: Sequence[Trial]) -> list[tuple[float, float, bool]]:
    """Agreements in which neither is sure by itself: there the fused number matters."""
    return [pair for pair in agreements(trials) if max(pair[:2]) < DOUBTFUL]


def main(trials: int = 800) -> list[Row]:
    return list(figures(trials))


def figures(trials: int) -> Iterator[Row]:
    for world in WORLDS:
        found = trials_of(world, trials, FIRST_REPORTING_SEED, KINDS, lowered=False)
        yield from _top1(world, found)
        yield from _lone(world, found)
    for world in ("separate", "shared", "methods"):
        seen = trials_of(world, trials, FIRST_REPORTING_SEED, ("faint", "healthy"), lowered=True)
        yield from _calibration(world, seen)


def _top1(world: str, found: Sequence[Trial]) -> Iterator[Row]:
    faulty = [(truth, said) for truth, said in found if truth]
    healthy = [said for truth, said in found if not truth]
    ways = {
        f"{NAMES[world][0]} alone": [said[0][:1] for _, said in faulty],
        f"{NAMES[world][1]} alone": [said[1][:1] for _, said in faulty],
        "fused": [[one[0] for one in together(*said, state.SHARED_EVIDENCE)[:1]] for _, said in faulty],
    }
    beside = {
        name: [0, 0, _hits(tops, faulty), len(faulty)] for name, tops in ways.items() if name != "fused"
    }
    recall = [_hits(ways["fused"], faulty), len(faulty)]
    best = max(_hits(ways[name], faulty) for name in ways if name != "fused")
    for name, tops in ways.items():
        share = Share(_hits(tops, faulty), len(faulty))
        low, high = share.interval
        bar = f">= {best / len(faulty):.4f}" if name == "fused" else None
        note = f"[{low:.3f}, {high:.3f}], {len(faulty)} faulty windows"
        row = _row(f"{world}: top-1, {name}", share.value or 0.0, bar, note)
        row["interval"] = [low, high]
        yield row | (told("fusion", world, recall=recall, beside=beside) if bar else {})
    for name, accused in (
        (f"{NAMES[world][0]} alone", sum(bool(said[0]) for said in healthy)),
        (f"{NAMES[world][1]} alone", sum(bool(said[1]) for said in healthy)),
        ("either (an incident)", sum(bool(said[0] or said[1]) for said in healthy)),
        ("both on one component", sum(any(both for *_, both in together(*said, 0.5)) for said in healthy)),
    ):
        share = Share(accused, len(healthy))
        low, high = share.interval
        note = f"[{low:.3f}, {high:.3f}], {len(healthy)} healthy windows"
        row = _row(f"{world}: healthy windows that accuse, {name}", share.value or 0.0, None, note)
        yield row | (told("fusion", healthy=[accused, len(healthy)]) if name.startswith("either") else {})


def _hits(tops: Sequence[Sequence[Said]], faulty: Sequence[tuple[set[str], Any]]) -> int:
    return sum(bool(top) and top[0].component in truth for top, (truth, _) in zip(tops, faulty, strict=True))


def _calibration(world: str, found: Sequence[Trial]) -> Iterator[Row]:
    pairs = doubtful(found)
    share = Share(sum(right for *_, right in pairs), len(pairs))
    low, high = share.interval
    for name, discount in (
        ("best alone", 0.0),
        ("incidents' rule", state.SHARED_EVIDENCE),
        ("independent", 1.0),
    ):
        score, said, true = brier(pairs, discount)
        note = f"says {said:.3f}, true {true:.3f} [{low:.3f}, {high:.3f}], {len(pairs)} doubtful suspects"
        yield _row(f"{world}: Brier where both blame, {name}", score, None, note)


def lone_blames(world: str, trials: Sequence[Trial]) -> list[DisputedBlame]:
    """Blames by one of the two that the other does not share."""
    return [
        DisputedBlame(one.component.partition("/")[0], one.score, False, (NAMES[world][1 - n],), one.right)
        for _, said in trials
        for n in (0, 1)
        for one in said[n]
        if one.score is not None and not any(one.names & other.names for other in said[1 - n])
    ]


def _lone(world: str, found: Sequence[Trial]) -> Iterator[Row]:
    """Stated minus true of lone blames: by themselves, and with the dissent learnt from the first half."""
    half = len(found) // 2
    record, judged = lone_blames(world, found[:half]), lone_blames(world, found[half:])
    if not judged:
        return
    true = Share(sum(one.right for one in judged), len(judged))
    low, high = true.interval
    for name, known in (("without a record", []), ("with the record", record)):
        stated = [
            state.fused([one.score], dissent=weights(known, one.kind).get(one.dissenters[0], 0.0)) or 0.0
            for one in judged
        ]
        mean = sum(stated) / len(stated)
        note = (
            f"says {mean:.3f}, true {true.value or 0:.3f} [{low:.3f}, {high:.3f}], {len(judged)} lone blames"
        )
        bar = "<= 0.05" if len(judged) >= ENOUGH else None
        yield _row(f"{world}: lone blames, {name}, stated minus true", mean - (true.value or 0), bar, note)


def _row(name: str, value: float, bar: str | None, note: str) -> Row:
    return {"name": name, "value": round(value, 4), "unit": "", "bar": bar, "note": note}


def tune(trials: int) -> Iterator[str]:
    for world in ("separate", "shared"):
        found = trials_of(world, trials, 0, ("faint", "healthy"), lowered=True)
        for name, pairs in (("all", agreements(found)), ("doubtful", doubtful(found))):
            for discount in DISCOUNTS:
                score, said, true = brier(pairs, discount)
                yield (
                    f"{world}, {name} {len(pairs)}, discount {discount:4.2f}: Brier {score:.5f},"
                    f" says {said:.4f}, true {true:.4f}"
                )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=800)
    parser.add_argument("--tune", action="store_true")
    arguments = parser.parse_args()
    if arguments.tune:
        for text in tune(arguments.trials):
            print(text, flush=True)
    else:
        from tests.benchmarks.__main__ import line

        for row in figures(arguments.trials):
            print(line(row), flush=True)
