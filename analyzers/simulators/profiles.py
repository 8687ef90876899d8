"""Simulated function profiles of a training job: patterns (beta, mu, sigma) of each function on each worker.

An iteration is the worker's own work (kernels, copies, Python) and then collectives, in which all wait for the last.
What a fault adds to one worker, the others wait for: their collectives have more of the critical path, at the usual
use of the link, because waiting is not use. A pattern differs between workers by a factor of its own (lognormal,
deviation `Preset.spread`). Names and shares are our choice, of the order that profiles of large models show.

Seeds below `FIRST_REPORTING_SEED` are for choosing and calibrating; published figures use seeds from there on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.contract import Sums, Window
from analyzers.simulators.training import EPOCH, FIRST_REPORTING_SEED
from analyzers.simulators.truth import happened

__all__ = ["FIRST_REPORTING_SEED"]

Floats = NDArray[np.float64]
Row = dict[str, Any]

LENGTH = timedelta(seconds=20)


@dataclass(frozen=True, slots=True)
class Function:
    """Share of an iteration without faults, mean use of the resource and its deviation."""

    name: str
    cls: str
    beta: float
    mu: float
    sigma: float


FUNCTIONS = (
    Function("flash_attention", "compute", 0.18, 0.82, 0.06),
    Function("gemm_fp8", "compute", 0.3, 0.9, 0.04),
    Function("layer_norm", "compute", 0.04, 0.55, 0.08),
    Function("optimizer_step", "compute", 0.05, 0.6, 0.1),
    Function("memcpy_h2d", "memory", 0.03, 0.7, 0.12),
    Function("memcpy_d2h", "memory", 0.01, 0.6, 0.12),
    Function("all_reduce", "collective", 0.14, 0.75, 0.12),
    Function("all_gather", "collective", 0.08, 0.72, 0.12),
    Function("send_recv", "collective", 0.05, 0.5, 0.15),
    Function("dataloader.next", "python", 0.006, 0.5, 0.2),
    Function("gc.collect", "python", 0.002, 0.9, 0.1),
    Function("logger.write", "python", 0.001, 0.3, 0.2),
)
NAMES = tuple(one.name for one in FUNCTIONS)

FAULTS = {
    "slow_nic": "all_reduce",
    "congestion": "all_reduce",
    "slow_pcie": "memcpy_h2d",
    "throttle": "gemm_fp8",
    "slow_loader": "dataloader.next",
    "gc_pauses": "gc.collect",
}
"""Fault of one worker, and the function that it shows in. slow_nic: its link is capped, steadily; congestion: now and
then. slow_pcie: copies to the GPU take longer. throttle: matrix products take longer at a lower use. slow_loader: its
data comes late. gc_pauses: the garbage of its Python is collected at length."""
COMMON = {"common_gc": "gc.collect", "common_loader": "dataloader.next"}
"""Causes that all workers have."""
EVENTS = (
    "checkpoint",
    "evaluation",
    "elastic_resize",
    "time_shared",
    "slow_read",
    "moe_imbalance",
    "missing_rows",
)
"""checkpoint: an eighth of the workers writes for 5 % of the profile. evaluation: all do less backward and more log.
elastic_resize: an eighth of the workers is not there. time_shared: a quarter shares its GPUs, and computes for longer.
slow_read: one read of one worker takes 1 % of the profile. moe_imbalance: experts are not equally asked. missing_rows:
a fifth of the rows is not there.
"""


@dataclass(frozen=True, slots=True)
class Preset:
    """`workers` are spread over `stages` roles; `minor` further functions take next to nothing."""

    workers: int = 1024
    stages: int = 4
    spread: float = 0.05
    minor: int = 12


@dataclass(frozen=True, slots=True)
class Fault:
    """Worker number `worker`; `severity` is the share of an iteration that it costs."""

    kind: str
    worker: int
    severity: float


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """`values` has shape (3, functions, workers), NaN where there is no row; `stage` is the role of each worker."""

    functions: tuple[Function, ...]
    stage: NDArray[np.int64]
    values: Floats
    faults: tuple[Fault, ...]

    def name(self, worker: int) -> str:
        return f"worker/{worker}"


def draw_faults(preset: Preset, rng: np.random.Generator, kind: str, count: int = 1) -> tuple[Fault, ...]:
    """Faults of a kind on different workers, each of which costs 5 to 40 % of an iteration."""
    workers = rng.permutation(preset.workers)[:count].tolist()
    return tuple(Fault(kind, worker, float(rng.uniform(0.05, 0.4))) for worker in workers)


def profile(
    preset: Preset, rng: np.random.Generator, faults: Sequence[Fault] = (), event: str = ""
) -> Profile:
    """One profile with these faults, of one or of all workers, and one benign event."""
    if event and event not in EVENTS:
        raise ValueError(f"no benign event {event!r}; there are {', '.join(EVENTS)}")
    functions = FUNCTIONS + tuple(
        Function(f"aten::minor_{at:03d}", ("compute", "python")[at % 2], 0.0004, 0.4, 0.2)
        for at in range(preset.minor)
    )
    shape = len(functions), preset.workers
    usual = np.array([[one.beta, one.mu, one.sigma] for one in functions]).T[:, :, None]
    stage = np.arange(preset.workers) * preset.stages // preset.workers
    values = usual * np.exp(preset.spread * rng.standard_normal((3, *shape)))
    values[0] *= (1 + 0.15 * rng.standard_normal((len(functions), preset.stages)).clip(-2, 2))[:, stage]
    extra = np.zeros(preset.workers)
    for fault in faults:
        _break(values, extra, fault, rng)
    if event:
        _happen(values, extra, event, rng)
    _wait(values, extra)
    values[0] /= values[0].sum(axis=0)
    values[1] = np.minimum(values[1], 1.0)
    if event == "elastic_resize":
        values[:, :, rng.permutation(preset.workers)[: preset.workers // 8]] = np.nan
    if event == "missing_rows":
        values[:, rng.random(shape) < 0.2] = np.nan
    return Profile(functions, stage, values, tuple(faults))


def _break(values: Floats, extra: Floats, fault: Fault, rng: np.random.Generator) -> None:
    """Change its worker's own patterns by a fault; the cost for the worker is added to `extra`."""
    if fault.kind in COMMON:
        at = NAMES.index(COMMON[fault.kind])
        values[0, at] += fault.severity * np.exp(0.1 * rng.standard_normal(values.shape[2]))
        return
    at, worker, cost = NAMES.index(FAULTS[fault.kind]), fault.worker, fault.severity
    share = values[0, at, worker]
    slower = share / (share + cost)
    values[0, at, worker] += cost
    if fault.kind in ("slow_nic", "congestion"):
        values[1, at, worker] *= max(0.15, slower)
        values[2, at, worker] *= 0.3 if fault.kind == "slow_nic" else 2.5
    elif fault.kind in ("throttle", "slow_pcie"):
        values[1, at, worker] *= max(0.3, slower)
    extra[worker] += cost


def _happen(values: Floats, extra: Floats, event: str, rng: np.random.Generator) -> None:
    count = values.shape[2]
    order = rng.permutation(count)
    if event == "checkpoint":
        some = order[: count // 8]
        values[0, NAMES.index("logger.write"), some] += 0.05
        extra[some] += 0.05
    elif event == "evaluation":
        values[0, NAMES.index("gemm_fp8")] *= 0.7
        values[0, NAMES.index("logger.write")] += 0.01
    elif event == "time_shared":
        some = order[: count // 4]
        values[0, NAMES.index("gemm_fp8"), some] *= 1.25
        values[1, NAMES.index("gemm_fp8"), some] *= 0.8
        extra[some] += 0.25 * 0.3
    elif event == "slow_read":
        values[0, NAMES.index("dataloader.next"), order[0]] += 0.01
        extra[order[0]] += 0.01
    elif event == "moe_imbalance":
        requested = np.exp(0.15 * rng.standard_normal(count))
        more = values[0, NAMES.index("gemm_fp8")] * (requested - 1)
        values[0, NAMES.index("gemm_fp8")] += more
        extra += more


def _wait(values: Floats, extra: Floats) -> None:
    """All wait in their first collective for the worker with most to do; that one does not."""
    values[0, NAMES.index("all_reduce")] += extra.max() - extra


def window_of(made: Profile) -> Window:
    """The profile as the reduction of `perftracker` would sum its rows."""
    rows = sorted(_keys(made))
    keys: dict[str, Any] = {
        "job": ("llm-70b",) * len(rows),
        "role": tuple(row[0] for row in rows),
        "worker": tuple(row[1] for row in rows),
        "function": tuple(row[2] for row in rows),
        "cls": tuple(row[3] for row in rows),
    }
    at = (
        np.array([row[4] for row in rows], dtype=np.int64),
        np.array([row[5] for row in rows], dtype=np.int64),
    )
    values: dict[str, Any] = {
        name: made.values[i, at[0], at[1]] for i, name in enumerate(("beta", "mu", "sigma"))
    }
    values["rows"] = np.ones(len(rows), dtype=np.int64)
    return Window(
        EPOCH, EPOCH + LENGTH, "simulated", "function_profile", {"profiles": Sums(keys, values, len(rows))}
    )


def _keys(made: Profile) -> list[tuple[str, str, str, str, int, int]]:
    return [
        (f"pp{made.stage[worker]}", made.name(worker), one.name, one.cls, at, worker)
        for worker in range(made.values.shape[2])
        for at, one in enumerate(made.functions)
        if np.isfinite(made.values[0, at, worker])
    ]


def rows_of(made: Profile) -> list[Row]:
    """The profile as `function_profile` rows."""
    time = EPOCH.isoformat().replace("+00:00", "Z")
    return [
        {
            "time": time,
            "job": "llm-70b",
            "worker": worker,
            "role": role,
            "function": function,
            "cls": cls,
            "beta": round(float(made.values[0, at, number]), 6),
            "mu": round(float(made.values[1, at, number]), 4),
            "sigma": round(float(made.values[2, at, number]), 4),
            "window_s": LENGTH.total_seconds(),
        }
        for role, worker, function, cls, at, number in _keys(made)
    ]


SCENE = Preset(workers=128, stages=2)


def scenario(name: str, seed: int, kind: str | None, event: str = "") -> tuple[dict[str, list[Row]], Row]:
    """Rows by kind and the truth: one profile of 128 workers, of which one has a fault."""
    rng = np.random.default_rng(seed)
    faults = draw_faults(SCENE, rng, kind) if kind else ()
    made = profile(SCENE, rng, faults, event)
    start, end = (when.isoformat().replace("+00:00", "Z") for when in (EPOCH, EPOCH + LENGTH))
    truth = {
        "scenario": name,
        "seed": seed,
        "start": start,
        "end": end,
        "faults": [
            {
                "component": made.name(one.worker),
                "kind": one.kind,
                "function": FAULTS[one.kind],
                "severity": round(one.severity, 3),
                "start": start,
                "end": end,
            }
            for one in faults
        ],
        "benign": happened(event, start, end),
    }
    return {"function_profile": rows_of(made)}, truth
