"""Profiles of functions on the workers of a training job, one profile of each worker every ten minutes, for
`perftracker`.

A profile has for each function its share of the critical path (`beta`), the mean use of its resource (`mu`) and the
deviation of that use (`sigma`), as PerfTracker does (Guan et al., "EROICA", NSDI 2026, arXiv 2506.08528). Shares of a
worker and what it waits for make a whole. Training is synchronous: a worker that computes, reads or pauses for longer
waits less in collectives, and all others wait more. Roles are stages of a pipeline, which differ in load and size;
experts and first ranks have functions of their own; a role may have a single worker.

Noise: every share and use is log-normal with a coefficient of variation of 4 to 15 % that differs by function, half of
it kept by the worker from profile to profile; one value in a hundred is off by up to twofold; functions below .1 % of
the path are left out of a profile now and then. Profiles begin within seconds of each other on unequal clocks, some are
told twice.

Truth: the suspect is `worker/N`; where all workers of a host share a cause, its workers are. A cause in the code is
`function/NAME` or the job, and no single worker. A fault at least doubles a share of .4 % and more of the path, or
takes a third of a use away, in each profile of its windows; `faint` ones take a fifth.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from tests.worlds import Fault, World

START = datetime(2026, 6, 1, 3, tzinfo=UTC)
EVERY = timedelta(minutes=10)
HISTORY, JUDGED = 4, 3
HOST = 8

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Function:
    """A function, its class, its usual share of the path, use of its resource, and coefficient of variation."""

    name: str
    cls: str
    beta: float
    mu: float
    spread: float
    sigma: float = 0.1


FUNCTIONS = (
    Function("ampere_bf16_s16816gemm_256x128", "compute", 0.34, 0.82, 0.04),
    Function("flash_bwd_dq_dk_dv_loop", "compute", 0.14, 0.64, 0.05),
    Function("flash_fwd_kernel", "compute", 0.08, 0.66, 0.05),
    Function("fused_layer_norm", "compute", 0.03, 0.35, 0.08),
    Function("multi_tensor_adam", "compute", 0.02, 0.30, 0.08),
    Function("memcpy_h2d", "memory", 0.012, 0.55, 0.12),
    Function("memcpy_d2d", "memory", 0.02, 0.70, 0.08),
    Function("ncclDevKernel_ReduceScatter", "collective", 0.09, 0.72, 0.10),
    Function("ncclDevKernel_AllGather", "collective", 0.08, 0.74, 0.10),
    Function("ncclDevKernel_SendRecv", "collective", 0.05, 0.45, 0.15),
    Function("dataloader.__next__", "python", 0.004, 0.5, 0.15),
    Function("optimizer.step", "python", 0.005, 0.7, 0.10),
    Function("gc.collect", "python", 0.001, 0.9, 0.15),
    Function("forward_hook", "python", 0.003, 0.8, 0.12),
    Function("logging.emit", "python", 0.0006, 0.3, 0.15),
)
NAMES = tuple(one.name for one in FUNCTIONS)
COLLECTIVE = np.array([one.cls == "collective" for one in FUNCTIONS])
LOADER, COLLECT, COPY = (
    NAMES.index("dataloader.__next__"),
    NAMES.index("gc.collect"),
    NAMES.index("memcpy_h2d"),
)
HOOK, GEMM, SCATTER = NAMES.index("forward_hook"), 0, NAMES.index("ncclDevKernel_ReduceScatter")
SIGNS = {
    "nic_slow": (SCATTER, "mu", -1),
    "nic_faint": (SCATTER, "mu", -1),
    "nic_unsteady": (SCATTER, "sigma", 1),
    "pcie_slow": (COPY, "mu", -1),
    "gc_pauses": (COLLECT, "beta", 1),
    "loader_slow": (LOADER, "beta", 1),
    "throttled": (GEMM, "mu", -1),
    "hook_slow": (HOOK, "beta", 1),
}
"""Function, value and direction in which a fault shows most."""


@dataclass(frozen=True)
class Plan:
    """A case. `roles` are numbers of workers; `noise` multiplies every coefficient of variation; `skew` is how many
    seconds clocks are off around the edge of a window."""

    says: str
    roles: tuple[int, ...] = (32, 32)
    faults: tuple[str, ...] = ()
    begins: int = HISTORY
    lasts: int = JUDGED
    history: int = 0
    noise: float = 1.0
    benign: str = ""
    experts: float = 0.0
    missing: float = 0.0
    twice: float = 0.0
    skew: float = 0.0


PLANS = {
    "healthy": Plan("two stages of 32 workers"),
    "healthy_1024": Plan("1,024 workers of one role", (1024,), lasts=1),
    "healthy_stages": Plan("eight stages of unequal size", (8, 16, 16, 16, 16, 16, 24, 8)),
    "healthy_small": Plan("four workers", (4,)),
    "healthy_single": Plan("a role with a single worker beside 24", (24, 1)),
    "healthy_noisy": Plan("twice the usual spread", noise=2.0),
    "healthy_missing": Plan("a fifth of the rows lost", missing=0.2),
    "healthy_skew": Plan(
        "profiles at a window's edge, clocks off by up to 8 s: half in each window", skew=8.0
    ),
    "healthy_after_faults": Plan("two faults of other workers in the history", history=2),
    "checkpoints": Plan("every other profile falls into a checkpoint", benign="checkpoints"),
    "evaluation": Plan("some profiles fall into an evaluation", benign="evaluation"),
    "elastic_resize": Plan("a quarter of the workers leaves and returns", benign="resize"),
    "time_shared": Plan("another job takes turns on the same GPUs", benign="shared"),
    "storage_slow": Plan("a slow storage read holds up all workers a little", benign="storage"),
    "moe_imbalance": Plan("experts load their workers unevenly, others each time", experts=0.25),
    "planned_reboot": Plan("a host is away for a profile and comes back cold", benign="reboot"),
    "nic_slow": Plan("one worker's network card is capped", faults=("nic_slow",)),
    "nic_faint": Plan("one worker's network card lost a fifth", faults=("nic_faint",)),
    "nic_unsteady": Plan("one worker's network card is congested now and then", faults=("nic_unsteady",)),
    "pcie_slow": Plan("one worker's copies to the GPU are slow", faults=("pcie_slow",)),
    "gc_pauses": Plan("one worker pauses to collect garbage", faults=("gc_pauses",)),
    "loader_slow": Plan("the eight workers of a host wait for its disk", faults=("loader_slow",)),
    "throttled": Plan("one worker's GPU is throttled", faults=("throttled",)),
    "code_regression": Plan("a hook became slow on all workers", faults=("hook_slow",)),
    "two_at_once": Plan(
        "a capped network card and garbage on another worker", faults=("nic_slow", "gc_pauses")
    ),
    "three_at_once": Plan("three different faults", faults=("nic_slow", "pcie_slow", "gc_pauses")),
    "always": Plan(
        "a capped network card from the first profile on", faults=("nic_slow",), begins=0, lasts=7
    ),
    "after_faults": Plan("a fault after two others", faults=("gc_pauses",), history=2),
    "noisy": Plan("a capped card among twice the spread", faults=("nic_slow",), noise=2.0),
    "missing": Plan("a fifth of the rows lost", faults=("pcie_slow",), missing=0.2, twice=0.05),
    "experts": Plan("a capped card among uneven experts", faults=("nic_slow",), experts=0.25),
    "small": Plan("a capped card among four workers", (4,), faults=("nic_slow",)),
    "stages": Plan("garbage in one of eight stages", (8, 16, 16, 16, 16, 16, 24, 8), faults=("gc_pauses",)),
    "large": Plan("a slow copy among 1,024", (1024,), faults=("pcie_slow",), lasts=1),
    "storage_and_nic": Plan("a capped card while storage is slow", faults=("nic_slow",), benign="storage"),
}
CASES = {name: plan.says for name, plan in PLANS.items()}


@dataclass
class Planted:
    kind: str
    workers: NDArray[np.int64]
    begin: int
    end: int
    depth: float


def make(seed: int, case: str) -> World:
    """The world of a case. Raises KeyError for a case that is not in `CASES`."""
    plan = PLANS[case]
    rng = np.random.default_rng([seed, crc32(case.encode())])
    workers = sum(plan.roles)
    role = np.repeat(np.arange(len(plan.roles)), plan.roles)
    planted = _planted(plan, rng, workers)
    # Stages differ in what they compute and send; a worker keeps half of its deviation.
    stage = np.exp(0.15 * rng.standard_normal((len(plan.roles), len(FUNCTIONS))))[role]
    kept = rng.standard_normal((3, workers, len(FUNCTIONS)))
    windows = HISTORY + (JUDGED if plan.lasts != 1 else 1)
    rows: list[dict[str, Any]] = []
    for window in range(windows):
        beta, mu, sigma, here = _profile(plan, rng, stage, kept, window)
        for one in planted:
            if one.begin <= window < one.end:
                _strike(one, beta, mu, sigma)
        beta = _shared_out(beta)
        rows += _rows(plan, rng, role, window, np.stack([beta, mu, sigma]), here)
    faults = tuple(_fault(one) for one in planted)
    notes = tuple(f"{one.kind}: depth {one.depth:.2f} on {len(one.workers)} workers" for one in planted)
    rows.sort(key=lambda row: (row["time"], row["worker"], row["function"]))
    return World(case, seed, {"function_profile": rows}, EVERY, START + HISTORY * EVERY, faults, notes)


def _planted(plan: Plan, rng: np.random.Generator, workers: int) -> list[Planted]:
    order = [int(one) for one in rng.permutation(workers)]
    kinds = [
        (str(rng.choice(("nic_slow", "gc_pauses", "pcie_slow"))), 2 * n, 2 * n + 1)
        for n in range(plan.history)
    ]
    kinds += [(kind, plan.begins, plan.begins + plan.lasts) for kind in plan.faults]
    planted = []
    for kind, begin, end in kinds:
        hit = np.array([order.pop()])
        if kind == "loader_slow":
            first = int(hit[0]) // HOST * HOST
            hit = np.arange(first, min(first + HOST, workers))
        elif kind == "hook_slow":
            hit = np.arange(workers)
        planted.append(Planted(kind, hit, begin, end, float(rng.uniform(0.0, 1.0))))
    return planted


def _profile(
    plan: Plan, rng: np.random.Generator, stage: Floats, kept: Floats, window: int
) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
    """`beta`, `mu` and `sigma` of shape (worker, function) before faults, and which workers are there."""
    spread = plan.noise * np.array([one.spread for one in FUNCTIONS])
    new = rng.standard_normal(kept.shape)
    noise = np.exp(spread * (kept + new) / np.sqrt(2))
    odd = rng.random(kept.shape) < 0.01
    noise = noise * np.where(odd, np.exp(rng.uniform(-0.6, 0.6, kept.shape)), 1.0)
    workers = stage.shape[0]
    beta = np.array([one.beta for one in FUNCTIONS]) * stage * noise[0]
    mu = np.array([one.mu for one in FUNCTIONS]) * (1 + 0.3 * (stage - 1)) * (1 + 0.5 * (noise[1] - 1))
    sigma = np.array([one.sigma for one in FUNCTIONS]) * noise[2]
    here = np.ones(workers, dtype=bool)
    if plan.experts:
        beta[:, :3] *= np.exp(plan.experts * rng.standard_normal((workers, 1)))
    if plan.benign == "checkpoints" and window % 2:
        beta[:, NAMES.index("memcpy_d2d")] *= 2.0
        beta[:, HOOK] *= 12.0
    elif plan.benign == "evaluation" and window in (1, HISTORY, HISTORY + 2):
        beta[:, [1, 4]] *= 0.05
        beta[:, COLLECTIVE] *= 0.4
        beta[:, LOADER] *= 3.0
    elif plan.benign == "resize" and window >= HISTORY + 1:
        here[3 * workers // 4 :] = window > HISTORY + 1
        beta[:, COLLECTIVE] *= 0.85
    elif plan.benign == "shared":
        mu *= 0.75 if window % 2 else 0.9
        sigma *= 1.8
    elif plan.benign == "storage" and window in (1, HISTORY, HISTORY + 1):
        beta[:, LOADER] *= rng.uniform(3.0, 6.0)
    elif plan.benign == "reboot" and window >= HISTORY:
        here[:HOST] = window > HISTORY
        beta[:HOST, NAMES.index("optimizer.step")] *= 1.3 if window == HISTORY + 1 else 1.0
    return beta, mu, sigma, here


def _strike(one: Planted, beta: Floats, mu: Floats, sigma: Floats) -> None:
    """Writes a fault into a profile. `depth` is how bad of its kind it is, from 0 to 1."""
    hit, deep = one.workers, one.depth
    if one.kind in ("nic_slow", "nic_faint"):
        left = 0.65 - 0.4 * deep if one.kind == "nic_slow" else 0.8
        mu[np.ix_(hit, COLLECTIVE)] *= left
        sigma[np.ix_(hit, COLLECTIVE)] *= 0.6
        beta[:, COLLECTIVE] *= 1 + 0.8 * (1 / left - 1)
        # The rings go at the pace of the slow card, which others see only between their bursts.
        mu[:, COLLECTIVE] *= 0.9 if one.kind == "nic_slow" else 0.97
    elif one.kind == "nic_unsteady":
        mu[np.ix_(hit, COLLECTIVE)] *= 0.85 - 0.15 * deep
        sigma[np.ix_(hit, COLLECTIVE)] *= 3 + 2 * deep
        beta[:, COLLECTIVE] *= 1.2
    elif one.kind == "pcie_slow":
        mu[hit, COPY] *= 0.5 - 0.25 * deep
        _longer(one, beta, COPY, 3 + 4 * deep)
    elif one.kind == "gc_pauses":
        _longer(one, beta, COLLECT, 30 + 60 * deep)
    elif one.kind == "loader_slow":
        _longer(one, beta, LOADER, 8 + 25 * deep)
    elif one.kind == "hook_slow":
        beta[:, HOOK] *= 12 + 20 * deep
    elif one.kind == "throttled":
        mu[np.ix_(hit, np.arange(3))] *= 0.66 - 0.2 * deep
        for function in range(3):
            _longer(one, beta, function, 1.35 + 0.2 * deep)


def _longer(one: Planted, beta: Floats, function: int, times: float) -> None:
    """A function takes that many times as long on the hit workers; all others wait for them in collectives."""
    extra = beta[one.workers, function] * (times - 1)
    beta[one.workers, function] += extra
    others = np.setdiff1d(np.arange(len(beta)), one.workers)
    collectives = np.flatnonzero(COLLECTIVE)
    share = beta[np.ix_(others, collectives)]
    beta[np.ix_(others, collectives)] += float(extra.mean()) * share / share.sum(axis=1, keepdims=True)


def _shared_out(beta: Floats) -> Floats:
    """Shares of at most the whole: what exceeds .97 is scaled down."""
    total = beta.sum(axis=1, keepdims=True)
    return np.asarray(beta * np.minimum(1.0, 0.97 / total))


def _fault(one: Planted) -> Fault:
    start, end = START + one.begin * EVERY, START + one.end * EVERY - timedelta(seconds=30)
    if one.kind == "hook_slow":
        return Fault(f"function/{NAMES[HOOK]}", one.kind, start, end, ("job/pretrain-a",))
    workers = [f"worker/{number}" for number in one.workers.tolist()]
    hosts = sorted({f"node/{number // HOST}" for number in one.workers.tolist()}) if len(workers) > 1 else []
    return Fault(workers[0], one.kind, start, end, (*workers[1:], *hosts))


def _rows(
    plan: Plan,
    rng: np.random.Generator,
    role: NDArray[np.int64],
    window: int,
    values: Floats,
    here: NDArray[np.bool_],
) -> list[dict[str, Any]]:
    into = 0.0 if plan.skew else float(rng.uniform(60, 400))
    began = START + window * EVERY + timedelta(seconds=into)
    widest = plan.skew or 4.0
    off = rng.uniform(-widest, widest, len(role))
    told = np.round(values, 6).tolist()
    silent = rng.random(len(role)) < plan.missing / 2
    lost = rng.random(values.shape[1:]) < plan.missing / 2
    lost |= (values[0] < 0.001) & (rng.random(values.shape[1:]) < 0.2)
    rows = []
    for worker in np.flatnonzero(here & ~silent).tolist():
        when = (began + timedelta(seconds=round(float(off[worker]), 3))).isoformat()
        for at, function in enumerate(FUNCTIONS):
            if lost[worker, at]:
                continue
            row = {
                "time": when,
                "job": "pretrain-a",
                "worker": f"worker/{worker}",
                "role": f"pp{role[worker]}",
                "function": function.name,
                "cls": function.cls,
                "beta": told[0][worker][at],
                "mu": told[1][worker][at],
                "sigma": told[2][worker][at],
                "window_s": 20.0,
            }
            rows += [row, dict(row)] if rng.random() < plan.twice else [row]
    return rows
