"""Result for the nodes of a fleet: the rules, judged and unjudged nodes, and the charges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.nodes.samples import Direction, Stratum
from analyzers.builtin.nodes.similarity import Criteria

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules for a defective node: see the parameters of the validator."""

    similarity: float = 0.95
    spreads: float = 4.0
    min_nodes: int = 3
    most_failing: float = 0.2
    most_false: float = 0.02
    higher: frozenset[str] = frozenset()
    lower: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """One stratum whose nodes were judged. Arrays have shape (nodes,), in the order of `nodes`, those of this window.

    `worse` is how far each is worse than the criteria and `bar` how far it may be, as shares; `spreads` is `worse` in
    units of how far healthy nodes scatter. `quantiles` has shape (nodes, quantiles). For failed tests (`direction`
    zero) there are no criteria, and `worse` is 1 or 0.

    `failing` are blamed; `by_chance` is how many healthy nodes are to be expected that are as far off as each (NaN for
    those within their bar).
    """

    stratum: Stratum
    direction: Direction
    nodes: tuple[str, ...]
    worse: Floats
    bar: Floats
    spreads: Floats
    means: Floats
    runs: Ints
    learnt_from: int
    quantiles: Floats
    criteria: Criteria | None
    repeatability: float | None
    failing: NDArray[np.bool_]
    by_chance: Floats


@dataclass(frozen=True, slots=True)
class Unjudged:
    """A stratum that could not be judged: `why` is few, split, direction, scale or repeatability."""

    stratum: Stratum
    why: str
    reason: str


@dataclass(frozen=True, slots=True)
class Failure:
    """One metric in which a node failed: row `at` of `judged`."""

    judged: Judged
    at: int

    @property
    def spreads(self) -> float:
        return float(self.judged.spreads[self.at])


@dataclass(frozen=True, slots=True)
class Charge:
    """A blamed node with what it failed in, worst first."""

    node: str
    failures: tuple[Failure, ...]

    @property
    def spreads(self) -> float:
        return self.failures[0].spreads

    @property
    def by_chance(self) -> float:
        """Expected number of healthy nodes that are as far off, in what it fails in most surely."""
        return min(float(one.judged.by_chance[one.at]) for one in self.failures)


@dataclass(frozen=True, slots=True)
class Outcome:
    """`charges` are in order: first what chance explains least. `other_kind` are the nodes whose results are those of
    another kind of machine than they are labelled as, with that kind.
    """

    judged: tuple[Judged, ...]
    unjudged: tuple[Unjudged, ...]
    charges: tuple[Charge, ...]
    nodes: int
    other_kind: Mapping[str, str]
