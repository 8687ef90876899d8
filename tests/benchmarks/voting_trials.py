"""Windows of the network of 007, and what `voting` and simpler methods say of each."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from analyzers.builtin.flows.explain import Rules, explain
from analyzers.builtin.flows.observed import Observed, observe
from analyzers.builtin.flows.votes import blamed_by_flow, discounted, majority, votes_of
from analyzers.builtin.paths import METHODS, bad_paths, solve
from analyzers.builtin.voting import ANALYZER
from analyzers.builtin.voting.analysis import BAD_PATH, by_flow
from analyzers.builtin.voting.charges import over_threshold
from analyzers.contract import Verdict, check_params
from analyzers.simulators.fabric import VIGIL, Fabric, build
from analyzers.simulators.voting import (
    Cut,
    Fault,
    Load,
    benign_traffic,
    break_pair,
    cut,
    draw_fault,
    draw_traffic,
    misnamed,
    run,
)
from tests.benchmarks.scoring import Tally


@dataclass(frozen=True)
class Job:
    """One window: `bad` links of rates U(low, high), or a benign event."""

    seed: int
    bad: int = 1
    noise: float = 1e-6
    low: float = 1e-4
    high: float = 1e-2
    flows: int = 60
    benign: str = ""
    params: tuple[tuple[str, Any], ...] = ()
    baselines: bool = True


@dataclass
class Trial:
    """Answer of each method on one window; `surplus` are nats over the threshold at margin 0 with the truth."""

    tallies: dict[str, Tally] = field(default_factory=dict)
    surplus: list[tuple[float, bool]] = field(default_factory=list)
    seconds: float = 0.0


_FABRICS: dict[str, Fabric] = {}


def fabric() -> Fabric:
    """The network of 007, built once in a process."""
    if "vigil" not in _FABRICS:
        _FABRICS["vigil"] = build(VIGIL)
    return _FABRICS["vigil"]


def made(job: Job, epoch: int = 0) -> Cut:
    """The window of a job; further epochs are later windows with the same bad links."""
    rng = np.random.default_rng([job.seed, job.bad, len(job.benign)])
    load = Load(job.flows)
    fault = draw_fault(fabric(), rng, job.bad, job.low, job.high) if job.bad else Fault()
    rng = rng.spawn(epoch + 1)[epoch]
    traffic = draw_traffic(fabric(), rng, load)
    if job.benign:
        traffic, _ = benign_traffic(fabric(), rng, job.benign, load)
    losses = run(traffic, rng, job.noise, fault)
    if job.benign == "broken_pair":
        losses = break_pair(traffic, losses, int(rng.integers(0, len(traffic))))
    if job.benign == "stale_topology":
        traffic = misnamed(traffic, rng)
    return cut(traffic, losses, fault)


def run_trial(job: Job) -> Trial:
    window = made(job)
    trial = Trial()
    began = time.process_time()
    verdict = ANALYZER.analyze(window.window, check_params(ANALYZER, dict(job.params)))
    trial.seconds = time.process_time() - began
    seen = observe(window.window, "underlay")
    truth = set(window.bad)
    trial.tallies["explain"] = _explained(seen, verdict, window, job)
    trial.surplus = _surplus(verdict, truth, dict(job.params))
    if job.baselines:
        trial.tallies.update(_others(seen, window))
    return trial


def _explained(seen: Observed, verdict: Verdict, window: Cut, job: Job) -> Tally:
    params = check_params(ANALYZER, dict(job.params))
    found = explain(seen, Rules(float(params["margin"]), float(params["min_loss"]), int(params["min_flows"])))
    named = [suspect.component for suspect in verdict.suspects]
    tally = Tally.of(named, set(window.bad))
    tally.undecided = int(verdict.status == "inconclusive")
    tally.alike = sum(len(suspect.ambiguous_with) for suspect in verdict.suspects)
    tally.unheard = unheard(seen, window, int(params["min_flows"]))
    place = by_flow(found.share)
    blamed = [seen.paths.names[found.chosen[at]] if at >= 0 else "" for at in place.tolist()]
    return _with_flows(tally, blamed, seen, window)


def unheard(seen: Observed, window: Cut, least: int) -> int:
    """Bad links on which fewer than `least` pairs of hosts lost anything: nothing that needs so many can name them."""
    lossy = np.array(window.lossy)
    pairs = (len(np.unique(seen.failing.pair[lossy == link])) for link in window.bad)
    return sum(count < least for count in pairs)


def _others(seen: Observed, window: Cut) -> dict[str, Tally]:
    """007, the majority and the Boolean methods on the same window."""
    truth, names = set(window.bad), seen.paths.names
    votes = blamed_by_flow(seen, votes_of(seen))
    blamed = [names[c] if c >= 0 else "" for c in votes.tolist()]
    tallies = {
        "007": _with_flows(
            Tally.of([names[one.component] for one in discounted(seen, 0.01, 3)], truth),
            blamed,
            seen,
            window,
        ),
        "007 as published": Tally.of([names[one.component] for one in discounted(seen, 0.01, 1)], truth),
        "majority": Tally.of([names[one.component] for one in majority(seen, 3)], truth),
    }
    bad = bad_paths(seen.paths, BAD_PATH)
    for method in METHODS:
        tallies[method] = Tally.of([names[one.component] for one in solve(method, bad)], truth)
    return tallies


def _with_flows(tally: Tally, blamed: Sequence[str], seen: Observed, window: Cut) -> Tally:
    """Flows that lost their packets on a bad link, and those put down to that link; noise drops are left out."""
    flows = seen.failing.flows.astype(int).tolist()
    for r in np.flatnonzero(window.by_fault).tolist():
        tally.flows += flows[r]
        tally.right += flows[r] * (blamed[r] == window.lossy[r])
    return tally


def _surplus(verdict: Verdict, truth: set[str], params: dict[str, Any]) -> list[tuple[float, bool]]:
    margin = float(params.get("margin", check_params(ANALYZER, {})["margin"]))
    rows = [row for one in verdict.evidence if one.title == "Blamed" for row in one.rows]
    evidence, needed = (np.array([float(row[at]) for row in rows]) for at in (9, 10))
    above = over_threshold(evidence, needed + math.log(max(1, len(rows))) - margin)
    entries = [{str(row[0]), *str(row[13]).split(", ")} for row in rows]
    return [(float(nats), bool(entry & truth)) for nats, entry in zip(above, entries, strict=True)]


def run_until_named(job: Job, most: int = 20) -> int:
    """In which window of 30 seconds the bad link is named; `most` + 1 if in none."""
    params = check_params(ANALYZER, dict(job.params))
    for epoch in range(most):
        window = made(job, epoch)
        verdict = ANALYZER.analyze(window.window, params)
        if set(window.bad) & {suspect.component for suspect in verdict.suspects}:
            return epoch + 1
    return most + 1
