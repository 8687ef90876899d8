"""GPU nodes that fail rarely, for `failure_forecast`: metrics, Xid errors, job attempts and incidents of nodes.

Failure rates differ by node as gamma-distributed frailties and by rack; about half of all failures are GPU, memory or
network, and many come without a sign, as reported for a training run on 16,384 GPUs ("The Llama 3 herd of models",
2024, table 5: 419 unexpected interruptions in 54 days, GPU 30 %, HBM 17 %, switches and cables 8 %). Xid codes are
those of NVIDIA: 63 and 64 remapped rows, 48 a double-bit error, 79 off the bus, 31 and 13 mostly the application's.
Disk and memory errors come in clumps before a failure on some components and never on others (Pinheiro et
al., FAST 2007: over half of the failed disks gave no sign in the strongest signals).

Readings are AR(1) with a level of each node; racks share an inlet temperature with summer days; workloads move between
nodes and shift several metrics at once; exporters restart and lose days; counters reset on reboot.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.worlds import World

START = datetime(2026, 4, 6, tzinfo=UTC)
Floats = NDArray[np.float64]
Row = dict[str, Any]
RACK = 16


@dataclass(frozen=True)
class Plan:
    """A case. `rate` are failures of a node a day; `signs` the share that is announced, over `lead` days, by readings
    `size` deviations from usual; `noise` application errors of a node a day; `lost` the share of lost node-days."""

    says: str
    nodes: int = 160
    days: int = 90
    rate: float = 0.004
    signs: float = 0.6
    lead: float = 4.0
    size: float = 4.0
    noise: float = 0.05
    lost: float = 0.03
    frailty: float = 2.0
    moves: float = 0.02


PLANS = {
    "announced": Plan("three failures in five are announced for days"),
    "faint": Plan("signs of two deviations", size=2.0),
    "sudden": Plan("nine failures in ten have no sign", signs=0.1),
    "short": Plan("signs for a day", lead=1.0),
    "rare": Plan("one failure in 700 node-days", rate=0.0014, nodes=240),
    "frail": Plan("a few nodes fail far more often than others", signs=0.2, frailty=0.3),
    "noisy": Plan("application errors on a third of the node-days", noise=0.3),
    "lost": Plan("a quarter of the node-days is lost", lost=0.25),
    "moving": Plan("workloads move often and shift readings", moves=0.15),
    "no_sign": Plan("failures without any sign, equal nodes", signs=0.0, frailty=50.0),
}
CASES = {name: plan.says for name, plan in PLANS.items()}


def make(seed: int, case: str) -> World:
    plan, rng = PLANS[case], np.random.default_rng([seed, 9_001, *case.encode()])
    rows = _rows(plan, rng)
    announced = f"{len(rows['node_incident'])} failures in {plan.nodes * plan.days} node-days"
    return World(case, seed, rows, timedelta(days=plan.days + 1), START, notes=(announced,))


def _rows(plan: Plan, rng: np.random.Generator) -> dict[str, list[Row]]:
    shape = plan.nodes, plan.days
    rack = np.arange(plan.nodes) // RACK
    frail = rng.gamma(plan.frailty, 1 / plan.frailty, plan.nodes)
    failed = rng.random(shape) < np.minimum(0.2, plan.rate * frail)[:, None]
    kinds = rng.choice(["hbm", "thermal", "nic", "gpu_lost"], shape, p=[0.4, 0.2, 0.25, 0.15])
    signs = {name: np.zeros(shape) for name in ("hbm", "thermal", "nic", "gpu_lost")}
    for node, day in np.argwhere(failed & (rng.random(shape) < plan.signs)).tolist():
        lead = 1 + int(rng.poisson(plan.lead - 1)) if plan.lead > 1 else 1
        for back in range(1, min(lead, day) + 1):
            signs[kinds[node, day]][node, day - back] = (
                plan.size * rng.uniform(0.6, 1.4) * (1 - (back - 1) / (lead + 1))
            )
    busy = _busy(plan, rng)
    inlet = (
        2 * np.sin(np.arange(plan.days) / 9)
        + rng.normal(0, 1, (rack.max() + 1, 1))
        + _walk(rng, (rack.max() + 1, plan.days))
    )
    readings = {
        "gpu_temp": 50 + 12 * busy + inlet[rack] + 2 * (_walk(rng, shape) + signs["thermal"]),
        "power_watts": 180 + 420 * busy + 15 * _walk(rng, shape),
        "corrected_errors_per_hour": np.exp(
            0.7 * (_walk(rng, shape) + rng.normal(0, 0.8, (plan.nodes, 1)) + signs["hbm"])
        ),
        "link_errors_per_hour": np.exp(0.8 * (_walk(rng, shape) + signs["nic"])) * (0.5 + busy),
    }
    lost = rng.random(shape) < plan.lost
    rows: dict[str, list[Row]] = {"metric": [], "unit_failure": [], "job_attempt": [], "node_incident": []}
    for name, values in readings.items():
        rows["metric"] += [
            {
                "time": _stamp(day + 0.01 + 0.9 * float(rng.random())),
                "name": name,
                "labels": {"instance": f"g{node}:9400", "rack": f"r{rack[node]}"},
                "value": round(float(values[node, day]), 3),
            }
            for node, day in np.argwhere(~lost).tolist()
        ]
    for node, day in np.argwhere(rng.random(shape) < plan.noise * (0.3 + busy)).tolist():
        rows["unit_failure"].append(_error(node, day, str(rng.choice(["xid_31", "xid_13"])), rng))
    for node, day in np.argwhere(signs["hbm"] > 0).tolist():
        if rng.random() < 0.4:
            rows["unit_failure"].append(_error(node, day, str(rng.choice(["xid_63", "xid_64"])), rng))
    for node, day in np.argwhere(signs["gpu_lost"] > 0).tolist():
        rows["unit_failure"].append(_error(node, day, "xid_48" if rng.random() < 0.5 else "xid_79", rng))
    rows["job_attempt"] = _attempts(plan, rng, signs["nic"] + signs["gpu_lost"])
    for node, day in np.argwhere(failed).tolist():
        kind = str(kinds[node, day])
        rows["node_incident"].append(
            {"time": _stamp(day + float(rng.random())), "node": f"node/g{node}", "kind": kind}
        )
    return rows


def _busy(plan: Plan, rng: np.random.Generator) -> Floats:
    """Use of each node, from 0 to 1, which stays until the workload moves."""
    busy = np.zeros((plan.nodes, plan.days))
    now = rng.beta(4, 2, plan.nodes)
    for day in range(plan.days):
        moved = rng.random(plan.nodes) < plan.moves
        now = np.where(moved, rng.beta(2, 2, plan.nodes), now)
        busy[:, day] = now
    return busy


def _walk(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Stationary AR(1) of unit variance by row, with another correlation for each."""
    rho = rng.uniform(0.1, 0.7, shape[0])
    steps = rng.standard_t(6, shape) / np.sqrt(1.5)
    found = np.zeros(shape)
    found[:, 0] = steps[:, 0]
    for day in range(1, shape[1]):
        found[:, day] = rho * found[:, day - 1] + np.sqrt(1 - rho**2) * steps[:, day]
    return found


def _attempts(plan: Plan, rng: np.random.Generator, signs: Floats) -> list[Row]:
    """Jobs of one to eight nodes of a rack; one fails by itself or by a node with signs."""
    rows: list[Row] = []
    for day in range(plan.days):
        for job in range(plan.nodes // 4):
            first = int(rng.integers(plan.nodes))
            many = int(rng.choice([1, 2, 4, 8]))
            nodes = list(range(first, min(first + many, plan.nodes, (first // RACK + 1) * RACK)))
            chance = 0.04 + 0.25 * float(np.minimum(1, signs[nodes, day]).max())
            end = day + float(rng.uniform(0.1, 0.99))
            rows.append(
                {
                    "start": _stamp(end - 0.08),
                    "end": _stamp(end),
                    "job": f"d{day}-{job}",
                    "nodes": [f"node/g{node}" for node in nodes],
                    "outcome": "failed" if rng.random() < chance else "completed",
                }
            )
    return rows


def _error(node: int, day: int, symptom: str, rng: np.random.Generator) -> Row:
    return {
        "time": _stamp(day + float(rng.random())),
        "unit": f"slot/g{node}:{rng.integers(8)}",
        "symptom": symptom,
    }


def _stamp(day: float) -> str:
    return (START + timedelta(days=day)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
