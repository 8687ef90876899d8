"""Failing nodes that share a cause: many nodes, worse by about as much in the same metrics.

Single faults differ from each other. Where a large part of the fleet is worse in the same way, one thing that these
nodes share (cooling, power, a driver) is the likelier explanation, and it is named once. What contains most of them is
named in their place where the topology knows it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.nodes.outcome import Charge, Outcome

Floats = NDArray[np.float64]

FEWEST = 4
"""Nodes with a common cause at least; with a component that contains them one less."""
_SHARE = 0.04
"""Share of the measured nodes that has to fail in the same way."""
_ALONE = 5
"""Nodes from which on a group that makes up half of all failing nodes needs no such share."""
_ALIKE = 0.8
"""Least cosine of the deviations of two nodes, in spreads, over all metrics."""
_FACTOR, _SCATTER = math.log(2), 0.25
"""Most that two nodes may differ in how far they are off, and what a group may scatter by; logarithms."""
_INSIDE, _OF_PARENT = 0.7, 0.4
"""Share of a group that one component contains, and share of what it contains that is in the group."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Charges with one cause, the surest first. `parent` is the component that contains them, None where unknown."""

    charges: tuple[Charge, ...]
    parent: str | None = None

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(sorted(one.node for one in self.charges))


def causes(outcome: Outcome, parents: Mapping[str, Sequence[str]]) -> tuple[Cause, ...]:
    """The charges of an outcome by cause, in their order. `parents` are the components that contain each node."""
    charged = [one for one in outcome.charges if one.failures[0].judged.criteria is not None]
    found: list[Cause] = []
    for group in _alike(outcome, charged):
        parent = _parent(outcome, [one.node for one in group], parents)
        if _is_common(len(group), len(charged), outcome.nodes, parent):
            found.append(Cause(tuple(group), parent))
    shared = {one.node for cause in found for one in cause.charges}
    single = [Cause((one,)) for one in outcome.charges if one.node not in shared]
    place = {one.node: at for at, one in enumerate(outcome.charges)}
    return tuple(sorted((*found, *single), key=lambda cause: place[cause.charges[0].node]))


def _is_common(members: int, charged: int, measured: int, parent: str | None) -> bool:
    if members < FEWEST - (parent is not None):
        return False
    alone = members >= _ALONE and 2 * members >= charged
    return parent is not None or alone or members >= _SHARE * measured


def _alike(outcome: Outcome, charged: Sequence[Charge]) -> list[list[Charge]]:
    """Groups of two and more charges that are off by about as much in the same metrics."""
    off = _deviations(outcome, [one.node for one in charged])
    size = np.linalg.norm(off, axis=1)
    free, groups = list(range(len(charged))), []
    for leader in sorted(free, key=lambda i: (-len(charged[i].failures), i)):
        if leader not in free:
            continue
        cosine = off[free] @ off[leader] / (size[free] * size[leader])
        differ = np.abs(np.log(size[free] / size[leader]))
        members = [i for i, near in zip(free, (cosine >= _ALIKE) & (differ <= _FACTOR), strict=True) if near]
        if len(members) > 1 and np.log(size[members]).std() <= _SCATTER:
            groups.append([charged[i] for i in sorted(members)])
            free = [i for i in free if i not in members]
    return groups


def _deviations(outcome: Outcome, nodes: Sequence[str]) -> Floats:
    """How far each node is worse in each metric, in spreads of healthy nodes; shape (nodes, metrics)."""
    row = {node: i for i, node in enumerate(nodes)}
    names = sorted({(one.stratum.benchmark, one.stratum.metric) for one in outcome.judged if one.criteria})
    column = {name: i for i, name in enumerate(names)}
    off = np.full((len(nodes), len(names)), 1e-9)
    for one in outcome.judged:
        if one.criteria is not None:
            at = column[one.stratum.benchmark, one.stratum.metric]
            for node, spreads in zip(one.nodes, one.spreads.tolist(), strict=True):
                if node in row:
                    off[row[node], at] = max(spreads, 1e-9)
    return off


def _parent(outcome: Outcome, nodes: Sequence[str], parents: Mapping[str, Sequence[str]]) -> str | None:
    """The component that contains most of the nodes and little else that was measured; the smallest such."""
    measured = {name for one in outcome.judged for name in one.nodes}
    inside = Counter(parent for node in nodes for parent in parents.get(node, ()))
    holds = Counter(parent for node in measured for parent in parents.get(node, ()))
    fitting = [
        name
        for name, count in inside.items()
        if count >= _INSIDE * len(nodes) and count >= _OF_PARENT * holds[name]
    ]
    return min(fitting, key=lambda name: (-inside[name], holds[name], name), default=None)
