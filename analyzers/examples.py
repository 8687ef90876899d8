"""A failure that is made up, judged by the real method: what an analyzer does, shown before any telemetry has come.

Nothing is stored and no incident opens; the region is simulated, the verdict is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from analyzers import registry, runner
from analyzers.simulators import deepview, fleet

HOURS = 6
PAST = 4
"""Windows before the one that is judged: what is usual."""
LASTED = 40.0  # minutes


@dataclass(frozen=True, slots=True)
class Sample:
    """Planted fault, the analyzer's input, and its verdict."""

    planted: str
    severity: float
    """Share of the units on it that fail meanwhile."""
    components: int
    paths: int
    hours: int
    minutes: float
    verdict: dict[str, Any]

    @property
    def named(self) -> bool:
        """Whether what was planted is what was blamed first."""
        suspects = self.verdict["suspects"]
        return bool(suspects) and suspects[0]["component"] == self.planted


def judge_sample(seed: int, limit: float = 30.0) -> Sample:
    """A storage cluster of a small region stops for a while; which one, and what else fails, follows from the seed.

    `limit` is in seconds. Raises AnalysisError.
    """
    rng = np.random.default_rng(seed)
    region = fleet.build(fleet.S, rng)
    clusters = [name for name in region.paths.names if name.startswith("storage_cluster/")]
    planted, end = clusters[int(rng.integers(len(clusters)))], HOURS * 60.0
    fault = deepview.Fault(planted, severity=0.5, start=end - LASTED, end=end)
    failures = deepview.background(region, rng, deepview.INDEPENDENT, 0, end)
    failures = failures.plus(deepview.strike(region, rng, fault))
    window = deepview.with_history(region, failures, end, past=PAST)
    verdict = runner.judge(registry.get("deepview"), window, limit=limit)
    return Sample(planted, fault.severity, len(region.paths.names), len(region.paths), HOURS, LASTED, verdict)
