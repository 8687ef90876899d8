"""Training jobs with a suspect component and what becomes of them under each option: futures drawn event by event.

Lost is the time that passes until the job runs at full speed without the fault, less the work that it kept. Nothing
here is an expectation: crash and repair are drawn, checkpoints are a list of moments, and the work kept is that of the
last one before a crash. Cases: `assumed` (crash exponential, repair at its mean), `early` and `late` (Weibull of shape
0.6 and 3 with the same mean), `repair` (log-normal), `growing` (the slow-down doubles within the repair), `skipped` (a
third of the checkpoints fail), `unlike` (all of these), `wrong` (inputs are off by a factor of two, either way).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import gamma

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
CASES = ("assumed", "early", "late", "repair", "growing", "skipped", "unlike", "wrong")
OPTIONS = ("wait", "restart", "restart_at_checkpoint", "migrate")


@dataclass(frozen=True, slots=True)
class Job:
    """Hours throughout. `migrate` 0: impossible; `slow` 1: hangs."""

    gpus: float
    guilty: float
    slow: float
    repair: float
    crash: float
    every: float
    since: float
    notice: float
    restart: float
    prepare: float
    migrate: float
    standby: float


def job(rng: np.random.Generator) -> Job:
    every = float(rng.choice([0.25, 0.5, 1.0, 2.0, 4.0]))
    return Job(
        gpus=float(8 * 2 ** rng.integers(0, 9)),
        guilty=float(rng.uniform(0.2, 1)),
        slow=1.0 if rng.random() < 0.1 else float(rng.choice([0.0, 0.03, 0.1, 0.3, 0.6])),
        repair=float(rng.lognormal(1.1, 0.8)),
        crash=float(rng.lognormal(2.2, 1.2)),
        every=every,
        since=float(rng.uniform(0, every)),
        notice=float(rng.uniform(0.05, 0.5)),
        restart=float(rng.uniform(0.05, 0.7)),
        prepare=float(rng.uniform(0.05, 0.4)),
        migrate=0.0 if rng.random() < 0.4 else float(rng.uniform(0.005, 0.05)),
        standby=8.0,
    )


def losses(one: Job, case: str, rng: np.random.Generator, futures: int) -> Mapping[str, Floats]:
    """GPU-hours lost in each future, by option; the same futures for all. Options that cannot be are left out."""
    if case == "wrong":
        one = replace(one, repair=one.repair * _twice(rng), crash=one.crash * _twice(rng))
    guilty = rng.random(futures) < one.guilty
    crash = np.where(guilty, _crashes(one, case, rng, futures), np.inf)
    repair = np.full(futures, one.repair)
    if case in ("repair", "unlike"):
        repair = one.repair * rng.lognormal(-0.5, 1.0, futures)
    growth = 1.0 if case in ("growing", "unlike") else 0.0
    missing = 1 / 3 if case in ("skipped", "unlike") else 0.0
    kept = _Kept(one, growth, _checkpoints(one, missing, rng, float(repair.max())))
    found = {
        "wait": kept.lost(crash, repair, np.zeros(futures)),
        "restart": one.since + one.restart + np.where(guilty, 0.0, _again(one, kept, repair)),
    }
    if one.slow < 1:
        first = np.full(futures, one.every - one.since)
        found["restart_at_checkpoint"] = kept.acted(crash, repair, first, one.restart, guilty)
        if one.migrate:
            ready = np.full(futures, one.prepare)
            found["migrate"] = kept.acted(crash, repair, ready, one.migrate, guilty)
    hours = {name: one.gpus * lost for name, lost in found.items()}
    if "migrate" in hours:
        hours["migrate"] = hours["migrate"] + one.standby * (one.prepare + one.migrate)
    return hours


def _twice(rng: np.random.Generator) -> float:
    return float(2 ** rng.uniform(-1, 1))


def _crashes(one: Job, case: str, rng: np.random.Generator, futures: int) -> Floats:
    shape = {"early": 0.6, "unlike": 0.6, "late": 3.0}.get(case, 1.0)
    return np.asarray(one.crash / gamma(1 + 1 / shape) * rng.weibull(shape, futures))


def _checkpoints(one: Job, missing: float, rng: np.random.Generator, until: float) -> Floats:
    """Moments of those that were written, the one before the beginning first."""
    if one.slow >= 1:
        return np.array([-one.since])
    due = np.arange(one.every - one.since, until + 2 * one.every, one.every)
    return np.concatenate([[-one.since], due[rng.random(len(due)) >= missing]])


def _again(one: Job, kept: _Kept, repair: Floats) -> Floats:
    """After a restart that did not help: a job that hung is noticed and restarted, another stays slow."""
    return np.full(len(repair), one.notice + one.restart) if one.slow >= 1 else repair - kept.work(repair)


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """Work of a slow job. `written` are its checkpoints."""

    one: Job
    growth: float
    written: Floats

    def work(self, at: Floats) -> Floats:
        """Hours of full speed done by a moment; before the beginning the speed was full."""
        slow = self.one.slow
        grown = self.growth * min(slow, 1 - slow) * np.minimum(at, self.one.repair) ** 2 / 2 / self.one.repair
        return np.where(at < 0, at, at * (1 - slow) - grown)

    def lost(self, crash: Floats, end: Floats, cost: Floats) -> Floats:
        """Until `end`, with `cost` afterwards; a crash before ends it, and work after the last checkpoint is gone."""
        one = self.one
        if one.slow >= 1:  # nothing runs that could crash
            return np.asarray(end + one.since + one.restart)
        last = self.written[np.searchsorted(self.written, np.minimum(crash, end), side="right") - 1]
        crashed = crash + one.notice + one.restart - self.work(last)
        return np.where(crash < end, crashed, end - self.work(end) + cost)

    def acted(
        self, crash: Floats, repair: Floats, when: Floats, cost: float, guilty: NDArray[np.bool_]
    ) -> Floats:
        """Something is done at `when`, or at the repair if that is sooner; of an innocent one it stays slow."""
        end = np.minimum(when, repair)
        innocent = repair - self.work(repair) + cost
        return np.where(guilty, self.lost(crash, end, np.full(len(end), cost)), innocent)
