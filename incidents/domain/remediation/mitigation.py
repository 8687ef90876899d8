"""Expected cost of what can be done about a suspect component of a training job, in GPU-hours. Pure arithmetic.

Waiting, a restart from the last checkpoint, a restart at the next checkpoint, and a live migration to standby machines
are compared by the GPU-hours that each is expected to lose, after the trade that TrainMover describes (Lao et al.,
arXiv 2412.12636): a restart loses the work since the last checkpoint and the time to start again, a migration loses
seconds and holds standby machines, waiting loses what the fault costs until somebody mends it.

Notation: `d` share of speed lost now (1: the job hangs), `p` probability that the component is the cause, `T` hours
until the fault is mended, `F` mean hours until the fault ends the job (exponential), `s` hours since the last
checkpoint, `tau` between checkpoints, `D` until a dead job is noticed, `R` for a restart, `P` to prepare and `M` to
carry out a migration. A crash at time t costs d t + w(t) + D + R, where w(t) is the work since the last checkpoint
then, at full speed: s + (1 - d) t before the next checkpoint, (1 - d) times the hours since the newest one after it.
With probability 1 - p the component is innocent: it does not end the job, and acting on it leaves the slow-down as it
is. A job that hangs takes no checkpoint and must be restarted in any case.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Name = Literal["wait", "restart", "restart_at_checkpoint", "migrate"]

NAMES: dict[Name, str] = {
    "wait": "Wait for the repair",
    "restart": "Restart from the last checkpoint",
    "restart_at_checkpoint": "Restart at the next checkpoint",
    "migrate": "Migrate to standby machines",
}
HUNG = 1.0
WORTH = 0.1
"""Share of an iteration that a faster network must save before it is recommended."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """Inputs of the comparison. `crash_hours` 0: the fault does not end the job. `migrate_seconds` 0: the job's
    framework cannot migrate."""

    gpus: float
    probability: float
    slowdown: float
    repair_hours: float
    crash_hours: float
    checkpoint_minutes: float
    since_checkpoint_minutes: float
    detect_minutes: float
    restart_minutes: float
    prepare_minutes: float
    migrate_seconds: float
    standby_gpus: float

    @property
    def hangs(self) -> bool:
        return self.slowdown >= HUNG


@dataclass(frozen=True, slots=True)
class Option:
    """One thing to do. `gpu_hours` are expected to be lost, None where it cannot be done (`reason` says why)."""

    name: Name
    gpu_hours: float | None
    reason: str = ""


def options(given: Inputs) -> list[Option]:
    """All options, the cheapest first, those that cannot be done last."""
    found = [_wait(given), _restart(given), _restart_at_checkpoint(given), _migrate(given)]
    return sorted(found, key=lambda one: math.inf if one.gpu_hours is None else one.gpu_hours)


def _wait(given: Inputs) -> Option:
    hours, restart, since = (
        given.repair_hours,
        given.restart_minutes / 60,
        given.since_checkpoint_minutes / 60,
    )
    if given.hangs:
        return Option(
            "wait", given.gpus * (hours + since + restart), "The job hangs: it needs a restart afterwards."
        )
    p, slow = given.probability, given.slowdown * hours
    return Option("wait", given.gpus * (p * _until(given, hours, slow) + (1 - p) * slow))


def _restart(given: Inputs) -> Option:
    once = given.since_checkpoint_minutes / 60 + given.restart_minutes / 60
    return Option("restart", given.gpus * (once + (1 - given.probability) * _remaining(given)))


def _remaining(given: Inputs) -> float:
    """Hours lost after a restart if the component was not the cause: the slow-down goes on; a job that hung hangs
    again, is noticed and restarted once more."""
    if given.hangs:
        return (given.detect_minutes + given.restart_minutes) / 60
    return given.slowdown * given.repair_hours


def _restart_at_checkpoint(given: Inputs) -> Option:
    if given.hangs:
        return Option("restart_at_checkpoint", None, "A job that hangs takes no checkpoint.")
    p, restart = given.probability, given.restart_minutes / 60
    wait = max(0.0, (given.checkpoint_minutes - given.since_checkpoint_minutes) / 60)
    slow = given.slowdown * min(wait, given.repair_hours)
    guilty = _until(given, min(wait, given.repair_hours), slow + restart)
    innocent = given.slowdown * given.repair_hours + restart
    return Option("restart_at_checkpoint", given.gpus * (p * guilty + (1 - p) * innocent))


def _migrate(given: Inputs) -> Option:
    if given.migrate_seconds <= 0:
        return Option("migrate", None, "No live migration: its time is set to 0.")
    if given.hangs:
        return Option("migrate", None, "A job that hangs cannot be migrated live.")
    p, prepare, move = given.probability, given.prepare_minutes / 60, given.migrate_seconds / 3600
    slow = given.slowdown * min(prepare, given.repair_hours)
    guilty = _until(given, min(prepare, given.repair_hours), slow + move)
    innocent = given.slowdown * given.repair_hours + move
    standby = given.standby_gpus * (prepare + move)
    return Option("migrate", given.gpus * (p * guilty + (1 - p) * innocent) + standby)


def _until(given: Inputs, horizon: float, otherwise: float) -> float:
    """Expected hours lost, GPU by GPU, if the component is at fault and nothing is done for `horizon` hours: the cost
    of a crash before then, else `otherwise`."""
    mean = given.crash_hours
    if mean <= 0 or horizon <= 0:
        return otherwise
    # Between checkpoints the cost of a crash is linear in its time: exact integrals, piece by piece.
    every, since = given.checkpoint_minutes / 60, given.since_checkpoint_minutes / 60
    fixed = (given.detect_minutes + given.restart_minutes) / 60
    expected, begin, at_begin = 0.0, 0.0, since
    end = min(horizon, max(0.0, every - since))
    while True:
        # d t + (1 - d) (t - begin) + what was already at stake + detection and restart
        level = fixed + at_begin - (1 - given.slowdown) * begin
        expected += _exponential(level, begin, end, mean)
        if end >= horizon:
            break
        begin, at_begin, end = end, 0.0, min(horizon, end + every)
    return expected + math.exp(-horizon / mean) * otherwise


def _exponential(level: float, begin: float, end: float, mean: float) -> float:
    """The integral of (level + t) e^(-t / mean) / mean from `begin` to `end`."""

    def rest(t: float) -> float:
        return (level + t + mean) * math.exp(-t / mean)

    return rest(begin) - rest(end)


# Network
# ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Traffic:
    """Traffic of a job's workers in one iteration: `gigabytes` of gradients each; the first `overlap_seconds` of the
    exchange run while they compute."""

    workers: float
    gigabytes: float
    iteration_seconds: float
    overlap_seconds: float


def exposed_seconds(traffic: Traffic, gigabits: float) -> float:
    """Seconds of an iteration in which workers wait for a ring all-reduce at so many gigabits a second: each sends
    2 (n - 1) / n of its bytes (Patarasuk and Yuan 2009), minus the part that overlaps with computation."""
    share = 2 * (traffic.workers - 1) / traffic.workers
    return max(0.0, share * traffic.gigabytes * 8 / gigabits - traffic.overlap_seconds)


def saved_share(traffic: Traffic, now: float, then: float) -> float:
    """The share of an iteration that `then` gigabits a second in place of `now` save, such as by RDMA in place of TCP
    or by neighbours in the ring below one switch."""
    saved = exposed_seconds(traffic, now) - exposed_seconds(traffic, then)
    return max(0.0, saved) / traffic.iteration_seconds
