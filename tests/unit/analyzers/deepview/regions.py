"""Rows of `path_outcome` of a small region, hour by hour, with failures in the history: what Deepview must stand.

Compute clusters reach every storage cluster through the spines of both; no row names a host.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from io import BytesIO
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.deepview import ANALYZER
from analyzers.contract import Window
from analyzers.offline import choose_input, windows
from analyzers.runner import judge
from ingest.telemetry.windows.offline import read_file

START = datetime(2026, 2, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)

Floats = NDArray[np.float64]
Faults = Mapping[str, float]
"""The share of the attempts that each component at fault fails."""

NOBODY: Mapping[str, float] = MappingProxyType({})


@dataclass
class Region:
    """Twelve storage clusters, ten compute clusters, and what passes both; `recorded` is what rows say of a path."""

    seed: int
    attempts: float = 400.0
    usual: float = 5e-4
    uneven: float = 0.2
    rng: np.random.Generator = field(init=False)
    paths: list[tuple[str, ...]] = field(init=False)
    recorded: list[tuple[str, ...]] = field(init=False)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng([self.seed, 4])
        self.paths = [
            (f"compute_cluster/c{c}", f"storage_cluster/s{s}", *sorted({f"t2/d{c % 2}", f"t2/d{s % 2}"}))
            for c in range(10)
            for s in range(12)
        ]
        self.recorded = list(self.paths)
        self.size = self.rng.lognormal(np.log(self.attempts), 0.6, len(self.paths))
        self.level = {name: float(np.exp(self.uneven * self.rng.standard_normal())) for name in self.names}

    @property
    def names(self) -> list[str]:
        return sorted({name for path in self.paths for name in path})

    def misrecord(self, share: float) -> None:
        """Replace that share of what the rows say of paths by another component of the same kind."""
        for at, path in enumerate(self.paths):
            said = []
            for name in path:
                same = [
                    other
                    for other in self.names
                    if other.split("/")[0] == name.split("/")[0] and other not in path
                ]
                said.append(str(self.rng.choice(same)) if same and self.rng.random() < share else name)
            self.recorded[at] = tuple(said)

    def hour(
        self,
        number: int,
        faults: Faults,
        times: float = 1.0,
        *,
        rough: bool = False,
        load: Mapping[str, float] = NOBODY,
    ) -> list[dict[str, Any]]:
        """The rows of one hour; `times` multiplies attempts and the share of them that fails in health. A `rough` fault
        fails its paths unevenly (gamma, shape 2). The `load` of a component multiplies attempts, and its cube the share
        of them that fails in health.
        """
        rows = []
        for at, path in enumerate(self.paths):
            busy = float(np.prod([load.get(name, 1.0) for name in path]))
            tried = int(self.rng.poisson(self.size[at] * times * busy))
            rate = (
                self.usual
                * times
                * busy**3
                * float(np.prod([self.level[name] for name in path]))
                * self.rng.gamma(4, 0.25)
            )
            hit = self.rng.gamma(2, 0.5) if rough else 1.0
            alive = (1 - min(rate, 0.5)) * float(
                np.prod([1 - min(hit * faults.get(name, 0.0), 1.0) for name in path])
            )
            if tried:
                failed = int(self.rng.binomial(tried, 1 - alive))
                rows.append(
                    {
                        "time": (START + number * HOUR + timedelta(minutes=30)).isoformat(),
                        "components": list(self.recorded[at]),
                        "attempts": tried,
                        "failures": failed,
                    }
                )
        return rows


def hourly(hours: Sequence[Sequence[Mapping[str, Any]]]) -> Iterator[Window]:
    """The windows that `manage.py analyze --every 1h` cuts out of the rows of these hours."""
    body = b"".join(msgspec.json.encode(row) + b"\n" for rows in hours for row in rows)
    tables = {"path_outcome": read_file("path_outcome", "-", BytesIO(body))}
    return windows(ANALYZER, choose_input(ANALYZER, tables), tables, HOUR)


def verdicts(hours: Sequence[Sequence[Mapping[str, Any]]], last: int) -> list[dict[str, Any]]:
    """The verdicts of the last hours."""
    return [judge(ANALYZER, window, {}) for window in list(hourly(hours))[-last:]]


def named(verdict: Mapping[str, Any]) -> set[str]:
    return {suspect["component"] for suspect in verdict["suspects"]}
