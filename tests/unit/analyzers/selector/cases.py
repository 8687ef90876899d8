"""Fleets of nodes with incidents, as rows and windows, for the tests of the selector."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from analyzers.builtin.selector import ANALYZER
from analyzers.contract import Sums, Window
from analyzers.runner import judge
from analyzers.simulators.node_wear import incident_sums

START = datetime(2026, 1, 5, tzinfo=UTC)


def row(node: str, hour: float, kind: str = "observed", **covariates: float) -> dict[str, Any]:
    at = START + timedelta(hours=hour)
    return {"time": at.isoformat(), "node": f"node/{node}", "kind": kind, "covariates": covariates}


def window_of(rows: list[dict[str, Any]], hours: float, **more: Sums) -> Window:
    sums = {"incidents": incident_sums(rows), **more}
    return Window(START, START + timedelta(hours=hours), "synthetic", "incidents", sums)


def fleet(
    seed: int, sick: str = "", nodes: int = 40, weeks: int = 12, step: float = 168.0
) -> list[dict[str, Any]]:
    """Sightings of nodes every `step` hours with a temperature; the hotter, the likelier an incident until the next.
    At the last all are cool, but for the sick one.
    """
    rng, rows = np.random.default_rng(seed), []
    for node in range(nodes):
        for week in range(weeks):
            heat = float(rng.uniform(0, 4)) if week < weeks - 1 else 4.5 if f"n{node:02d}" == sick else 0.1
            at = step * (week + node / 168)
            rows.append(row(f"n{node:02d}", at, heat=round(heat, 3)))
            if week < weeks - 1 and rng.random() < 0.002 * np.exp(1.5 * heat):
                rows.append(row(f"n{node:02d}", at + step * float(rng.uniform(0.006, 0.7)), "gpu_failure"))
    return rows


def verdict_of(rows: list[dict[str, Any]], hours: float = 12 * 168, **params: Any) -> Mapping[str, Any]:
    return judge(ANALYZER, window_of(rows, hours), params)
