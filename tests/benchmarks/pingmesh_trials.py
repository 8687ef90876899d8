"""Windows of simulated networks of servers that probe each other, and what was named in each."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from analyzers.builtin.pingmesh import ANALYZER
from analyzers.builtin.pingmesh.analyzer import FEW, FINE
from analyzers.builtin.pingmesh.black_holes import symptoms
from analyzers.builtin.pingmesh.observed import observe
from analyzers.builtin.pingmesh.verdict import surplus
from analyzers.contract import Verdict, Window, check_params
from analyzers.simulators.mesh import build, draw_fault
from analyzers.simulators.mesh_windows import BENIGN, scene, window_of, with_event
from tests.benchmarks.pingmesh_rivals import plain_alerts, plain_black_holes, plain_pattern
from tests.benchmarks.scoring import Tally

LARGE, SMALL, TINY = (3, 20, 40), (3, 10, 20), (3, 6, 8)
PUBLISHED_PATTERNS = {
    "healthy": "none",
    "podset_down": "podset_down",
    "podset_leaf": "podset_failure",
    "podset_storm": "podset_failure",
    "spine": "spine",
}
OURS = {"pod_down": "pod_down", "tor_drops": "pod_failure", "server_drops": "server_failure"}
PATTERNS = PUBLISHED_PATTERNS | OURS
HOLES = ("black_hole_1", "black_hole_2", "leaf_black_hole")


@dataclass(frozen=True)
class Job:
    """`kind` is a fault, a benign event or `healthy`; `times` faults of the kind, from the minute `onset` on; `event`
    is a benign one beside them.
    """

    seed: int
    kind: str
    shape: tuple[int, int, int] = LARGE
    onset: int = 0
    times: int = 1
    params: tuple[tuple[str, Any], ...] = ()
    tries: int = 20
    rivals: bool = False
    event: str = ""


@dataclass(frozen=True)
class Done:
    """Faults planted and named (each entry with those alike), the pattern, alerts, and the rivals' answers.

    `evidence` holds the surplus (nats above the bar) of each suspect, `stated` its probability.
    """

    job: Job
    truth: frozenset[str]
    named: tuple[frozenset[str], ...]
    holes: int
    pattern: str
    status: str
    alerts: int
    evidence: tuple[float, ...]
    stated: tuple[float, ...]
    seconds: float
    plain: tuple[str, frozenset[str]] = ("", frozenset())
    plain_alerts: int = 0
    plain_holes: frozenset[str] = frozenset()

    @property
    def right(self) -> bool:
        """Exactly the planted components, under the right pattern."""
        entries = all(entry & self.truth for entry in self.named) and len(self.named) == len(self.truth)
        return entries and self.pattern == PATTERNS.get(self.job.kind, "none")

    @property
    def tally(self) -> Tally:
        leading = [min(entry & self.truth, default=min(entry)) for entry in self.named]
        one = Tally.of(leading, set(self.truth))
        one.undecided = int(self.status == "inconclusive")
        return one


def window(job: Job) -> tuple[Window, frozenset[str]]:
    rng = np.random.default_rng(job.seed)
    mesh = build(*job.shape)
    kinds = [job.kind] * job.times if job.kind in PATTERNS or job.kind in HOLES else []
    faults = [draw_fault(mesh, rng, kind, job.onset) for kind in kinds if kind != "healthy"]
    one = scene(mesh, rng, faults)
    for event in (job.kind, job.event):
        one = with_event(one, rng, event) if event in BENIGN else one
    return window_of(one, rng, FEW, FINE, job.tries), frozenset(fault.component for fault in faults)


def run(job: Job) -> Done:
    seen, truth = window(job)
    params = check_params(ANALYZER, dict(job.params))
    began = time.process_time()
    verdict = ANALYZER.analyze(seen, params)
    seconds = time.process_time() - began
    done = Done(
        job,
        truth,
        tuple(frozenset((one.component, *one.ambiguous_with)) for one in verdict.suspects),
        _holes(verdict),
        str(verdict.measures.get("pattern")),
        verdict.status,
        int(verdict.measures["alerts"]),
        tuple(surplus(one.q_value or 0.0) for one in verdict.suspects),
        tuple(one.score or 0.0 for one in verdict.suspects),
        seconds,
    )
    if not job.rivals:
        return done
    observed = observe(seen, "underlay", 5000.0)
    pattern, names = plain_pattern(observed)
    every = np.ones(observed.pairs, dtype=bool)
    holes = plain_black_holes(observed, symptoms(observed, every, 5), float(params["black_hole_score"]))
    extra = {
        "plain": (pattern, frozenset(names)),
        "plain_alerts": plain_alerts(observed),
        "plain_holes": frozenset(holes),
    }
    return Done(**{**vars(done), **extra})


def _holes(verdict: Verdict) -> int:
    return int(verdict.measures["black_hole_tors"])
