"""The most frequent of many things, in memory that does not grow with how many there are. Pure.

A Count-Min sketch (Cormode and Muthukrishnan, "An improved data stream summary", J. Algorithms 2005) with conservative
updates (Estan and Varghese, SIGCOMM 2002): an estimate is never below the count, and above it by more than
`WIDTH_FACTOR` N / width with a probability of exp(-depth) at most, N being all that was counted. The heaviest are those
of which an estimate was among the largest when they came last.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

WIDTH_FACTOR: Final = math.e
T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Heavy(Generic[T]):
    """A thing that was counted between `least` and `most` times; `most` is certain, `least` with the probability of the
    sketch."""

    thing: T
    least: int
    most: int


class CountMin:
    """Counts of texts. `width` counters in each of `depth` rows, 8 bytes each."""

    def __init__(self, width: int = 2_048, depth: int = 5, seed: int = 0) -> None:
        if width < 1 or not 1 <= depth <= 8:
            raise ValueError("a sketch has a width of at least 1 and 1 to 8 rows")
        self._counts: NDArray[np.int64] = np.zeros((depth, width), dtype=np.int64)
        self._rows = np.arange(depth)
        self._key = seed.to_bytes(8, "big")
        self.total = 0

    def add(self, text: str, times: int = 1) -> int:
        """Count it so many times more; its estimate afterwards."""
        columns = self._columns(text)
        estimate = int(self._counts[self._rows, columns].min()) + times
        self._counts[self._rows, columns] = np.maximum(self._counts[self._rows, columns], estimate)
        self.total += times
        return estimate

    def estimate(self, text: str) -> int:
        return int(self._counts[self._rows, self._columns(text)].min())

    @property
    def excess(self) -> int:
        """Bound of an estimate's excess over the count, with the probability 1 - exp(-depth)."""
        width: int = self._counts.shape[1]
        return math.floor(WIDTH_FACTOR * self.total / width)

    def _columns(self, text: str) -> NDArray[np.int64]:
        depth, width = self._counts.shape
        digest = blake2b(text.encode(), digest_size=8 * depth, key=self._key).digest()
        return np.asarray(np.frombuffer(digest, dtype=">u8") % width, dtype=np.int64)


@dataclass
class HeavyHitters(Generic[T]):
    """The `most` things with the largest counts among all that were added, each named by a text."""

    most: int
    sketch: CountMin = field(default_factory=CountMin)
    _things: dict[str, T] = field(default_factory=dict)
    _estimates: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, thing: T, times: int = 1) -> None:
        estimate = self.sketch.add(name, times)
        if name not in self._estimates and len(self._estimates) >= self.most:
            least = min(self._estimates, key=lambda one: (self._estimates[one], one))
            if self._estimates[least] >= estimate:
                return
            del self._estimates[least], self._things[least]
        self._estimates[name], self._things[name] = estimate, thing

    def heaviest(self, most: int | None = None) -> list[Heavy[T]]:
        """The largest first; those of one estimate by name."""
        excess = self.sketch.excess
        chosen = heapq.nsmallest(
            most or self.most, self._estimates, key=lambda name: (-self._estimates[name], name)
        )
        return [
            Heavy(self._things[name], max(1, self._estimates[name] - excess), self._estimates[name])
            for name in chosen
        ]
