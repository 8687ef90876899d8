"""What a period of outages showed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.stats.nines import TargetComparison
from analyzers.builtin.tor_availability.outages import Excess, Group, Outages
from analyzers.contract import Assumption

REPEATER = 0.05
"""Share of false ones among the devices that are said to go out more often than their class."""


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """What the period showed. `low` and `high` bound the availability; `low` is None without an outage. `worst` is the
    availability if outages whose end was never told went on until the end; `low` leaves room for that.

    `outstanding` (devices seen,) marks the devices that go out more often than their class or for far longer. `chance`
    is how probable what the others lost is in a class that has just what it needs.
    """

    kind: str
    start: datetime
    end: datetime
    devices: int
    seen: Outages
    standing: TargetComparison
    worst: TargetComparison
    low: float | None
    high: float
    excess: Excess
    groups: tuple[Group, ...]
    outstanding: NDArray[np.bool_]
    chance: float
    assumptions: tuple[Assumption, ...]

    @property
    def repeaters(self) -> NDArray[np.bool_]:
        return self.excess.repeaters(REPEATER)

    @property
    def surely_missed(self) -> bool:
        return self.high < self.standing.required
