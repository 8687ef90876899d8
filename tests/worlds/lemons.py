"""Fleets of nodes with known lemons: unevenly used, unevenly healthy, in batches, with attempts that are lost.

Hazards of healthy nodes are lognormal, which the method does not assume. A job takes a block of neighbours or nodes
anywhere, popular ones more often; one in a hundred fails by itself, and each node of it fails it at its hazard times
the length of the attempt. Incidents are Poisson over the hours in use.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BATCHES = 8
SIZES = (1, 2, 4, 8, 16, 32)
SHARES = (0.34, 0.2, 0.18, 0.14, 0.09, 0.05)
ITS_OWN = 0.01
SPREAD = 0.45
"""Standard deviation of the logarithm of a healthy node's hazard."""


@dataclass(frozen=True, slots=True)
class Plan:
    """`lemons` of `nodes` fail `factor` times as often; of a batch all fail `batch_factor` times as often (1: none).
    `lost` is the share of attempts that never arrive."""

    nodes: int = 128
    attempts: int = 12_000
    lemons: int = 0
    factor: float = 8.0
    batch_factor: float = 1.0
    lost: float = 0.0
    hazard: float = 0.008


PLANS = {
    "healthy": Plan(),
    "lemons": Plan(lemons=6),
    "lemons, a fifth of attempts lost": Plan(lemons=6, lost=0.2),
    "lemons, four times the attempts": Plan(lemons=6, attempts=48_000),
    "mild lemons": Plan(lemons=6, factor=4.0),
    "bad batch": Plan(batch_factor=4.0),
}


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """Attempt `i` ran on `nodes[indptr[i]:indptr[i + 1]]` and `failed[i]`. `incidents` and `hours` are by node. Truth:
    `lemons` and `batch` (None where all are alike); `batches` is the batch of each node."""

    indptr: Ints
    nodes: Ints
    failed: Floats
    incidents: Floats
    hours: Floats
    batches: Ints
    lemons: frozenset[int]
    batch: int | None


def make(seed: int, name: str) -> World:
    plan = PLANS[name]
    random = np.random.default_rng([seed, 19])
    hazard = plan.hazard * random.lognormal(-(SPREAD**2) / 2, SPREAD, plan.nodes)
    batches = random.integers(0, BATCHES, plan.nodes)
    lemons = random.choice(plan.nodes, plan.lemons, replace=False)
    hazard[lemons] = plan.hazard * plan.factor
    batch = 3 if plan.batch_factor > 1 else None
    if batch is not None:
        hazard[batches == batch] *= plan.batch_factor
    popular = random.gamma(2.0, 0.5, plan.nodes)
    sizes = random.choice(SIZES, plan.attempts, p=SHARES)
    lengths = random.gamma(1.5, 2 / 3, plan.attempts)
    hours = np.zeros(plan.nodes)
    kept_nodes, kept_failed, kept_sizes = [], [], []
    for size, length in zip(sizes.tolist(), lengths.tolist(), strict=True):
        if random.random() < 0.4:
            chosen = (random.integers(0, plan.nodes) + np.arange(size)) % plan.nodes
        else:
            chosen = np.argpartition(random.exponential(1.0, plan.nodes) / popular, size - 1)[:size]
        hours[chosen] += length
        failed = random.random() < 1 - np.exp(-ITS_OWN - length * hazard[chosen].sum())
        if random.random() >= plan.lost:
            kept_nodes.append(np.sort(chosen))
            kept_failed.append(float(failed))
            kept_sizes.append(size)
    return World(
        np.concatenate([[0], np.cumsum(kept_sizes)]).astype(np.int64),
        np.concatenate(kept_nodes).astype(np.int64),
        np.asarray(kept_failed),
        random.poisson(0.15 * hazard * hours).astype(float),
        hours,
        batches,
        frozenset(lemons.tolist()),
        batch,
    )
