"""The demo's nightly validation of GPU nodes: in the last night one of them is ten per cent slower. Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from analyzers.simulators.node_benchmarks import METRICS, Defect, Preset, build, results, rows_of

Row = dict[str, Any]
NODES = Preset(runs=10)
SLOW = Defect(node=139, metrics=(0,), severity=0.10)
FEW = 20
DAY = timedelta(days=1)


class Validation:
    """Rounds in the nights before `start`: a few nodes, then all of them, then the first of the night that follows.

    Windows are days; the day of the round with the slow node is over when the next round begins.
    """

    def __init__(self, start: datetime, seed: int) -> None:
        self.midnight, self.seed = start.replace(hour=0, minute=0, second=0, microsecond=0), seed
        self.fleet = build(NODES, np.random.default_rng(seed))

    @property
    def culprit(self) -> str:
        return self.fleet.name(SLOW.node)

    @property
    def metric(self) -> str:
        return METRICS[SLOW.metrics[0]].benchmark

    def rows(self) -> list[Row]:
        rng = np.random.default_rng([self.seed, 139])
        few = replace(self.fleet, preset=replace(NODES, nodes=FEW), level=self.fleet.level[:FEW])
        rows = rows_of(few, results(few, rng), self.midnight - 2 * DAY)
        rows += rows_of(self.fleet, results(self.fleet, rng, (SLOW,)), self.midnight - DAY)
        return rows + rows_of(few, results(few, rng), self.midnight)
