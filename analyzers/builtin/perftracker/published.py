"""The published rule: expected ranges and the share of peers that are far away (EROICA, section on localisation)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.perftracker.differential import Apart, Found
from analyzers.builtin.perftracker.patterns import BETA, Role
from analyzers.contract import Params

Floats = NDArray[np.float64]

RANGES = {"python": 0.01, "collective": 0.3}
"""Shares of the critical path above which a function is not as expected; others never are."""
FAR = 0.4
PEERS = 100
DEVIATIONS = 5.0


def differ(all_roles: Sequence[Role], params: Params) -> Found:
    """Workers whose pattern is not as expected and far from most peers'."""
    apart = []
    for role in all_roles:
        if len(role.workers) < int(params["min_workers"]):
            continue
        for function, cls in enumerate(role.classes):
            if cls in RANGES:
                apart += _of_function(role, function, RANGES[cls])
    best: dict[str, Apart] = {}
    for one in sorted(apart, key=lambda each: (-each.nats, each.component, each.name)):
        best.setdefault(one.component, one)
    return Found(tuple(best.values()), (), ())


def _of_function(role: Role, function: int, most: float) -> list[Apart]:
    pattern = np.nan_to_num(role.values[:, function], nan=0.0)
    unexpected = pattern[BETA] > most
    if not unexpected.any():
        return []
    scaled = pattern / np.maximum(pattern.max(axis=1, keepdims=True), 1e-12)
    away = np.abs(scaled - np.median(scaled, axis=1, keepdims=True)).sum(axis=0)
    order = np.lexsort((scaled[2], scaled[1], scaled[0], away))
    peers = order[np.unique(np.linspace(0, len(order) - 1, min(PEERS, len(order))).round().astype(int))]
    distance = np.abs(scaled[:, :, None] - scaled[:, None, peers]).sum(axis=0)
    share = (distance > FAR).mean(axis=1)
    middle = float(np.median(share))
    bar = middle + DEVIATIONS * float(np.median(np.abs(share - middle)))
    medians = np.median(pattern, axis=1)
    return [
        Apart(
            role,
            function,
            worker,
            float(10 * share[worker]),
            (
                float(pattern[0, worker] / max(medians[0], 1e-9)),
                float(pattern[1, worker] / max(medians[1], 1e-9)),
                float(pattern[2, worker] / max(medians[2], 1e-9)),
            ),
        )
        for worker in np.flatnonzero(unexpected & (share > bar)).tolist()
    ]
