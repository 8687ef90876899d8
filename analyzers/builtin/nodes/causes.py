"""Failing nodes that share a cause: many nodes, worse by about as much in the same metrics.

Single faults differ from each other. Where a large part of the fleet is worse in the same way, one thing that these
nodes share (cooling, power, a driver) is the likelier explanation, and it is named once. What contains most of them
is named in their place where the topology knows it.

`shifts` finds nodes that became worse together: a driver, firmware, cooling or power that a part of the fleet shares.
Each node of such a part may be within what single nodes are allowed, and the part may be half of the fleet, so that
no typical node tells it. What changed since the earliest round known separates the parts: changes fall into two
groups that are far apart and narrow (the threshold with the least variance within; Otsu, IEEE Trans. SMC 1979). The
same nodes must be apart in every metric that says so. `kinds` does the same with levels: two kinds of machine under
one label.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.nodes.outcome import Charge, Outcome
from analyzers.builtin.nodes.samples import Sample, Stratum, direction_of

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
    """Deviation of each node in each metric, in spreads of healthy nodes, more is worse; shape (nodes, metrics)."""
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


Flags = NDArray[np.bool_]

SMALLEST, LARGEST = 0.04, 0.75
"""and its share of the measured nodes."""
LEAST = 0.025
"""Change of a part, as a share, from which on it is told; beside what the rest changed by."""
APART, ALONE = 6.0, 10.0
"""Distance of the two groups in their scatter: of several metrics, and of a single one. The two halves of one normal
sample are 2.7 apart."""
_VALLEY = 0.05
"""Most of the nodes that may lie between the two groups."""
_SAME = 0.8
"""Least agreement (Jaccard) of the nodes that two metrics tell."""
_KINDS_APART = 0.1
"""Distance of two kinds of machine, as a logarithm; nodes that are better by less are better nodes."""
_STEADY = 1 / 3
"""Most that runs of a node may scatter by, as a share of the shift: runs on either of two NUMA nodes are no shift."""
_LEAST_SCATTER = 0.0005
_LEAST_NODES = 8


@dataclass(frozen=True, slots=True)
class Shift:
    """`nodes` (sorted) are worse by a share `by` in `metrics`, the clearest first, than the others; for changes: than
    they were. `of` is how many nodes were compared.
    """

    nodes: tuple[str, ...]
    by: float
    metrics: tuple[Stratum, ...]
    of: int


@dataclass(frozen=True, slots=True, eq=False)
class _Parted:
    """A metric that is in two groups: all nodes compared, those of the worse group, by how much, how far apart."""

    stratum: Stratum
    of: int
    worse: frozenset[str]
    by: float
    apart: float


def shifts(
    now: Mapping[Stratum, Sample],
    past: Sequence[Mapping[Stratum, Sample]],
    words: tuple[frozenset[str], frozenset[str]],
) -> tuple[Shift, ...]:
    """The parts of the fleet that became worse since the earliest of the `past` rounds (newest first)."""
    found = []
    for stratum, sample in now.items():
        before = next((one[stratum] for one in reversed(past) if stratum in one), None)
        direction = direction_of(stratum.benchmark, stratum.metric, *words)
        if before is None or direction not in ("higher", "lower"):
            continue
        levels, earlier = _levels(sample, direction), _levels(before, direction)
        both = sorted(levels.keys() & earlier.keys())
        change = np.array([levels[node] - earlier[node] for node in both])
        worse = _worse_half(change)
        if worse is None:
            continue
        by = float(np.median(change[worse]) - np.median(change[~worse]))
        became = float(np.median(change[worse])) >= max(LEAST, by / 2)
        if by >= LEAST and became and _scatter_of_runs(sample) <= _STEADY * by:
            found.append(_parted(stratum, both, change, worse))
    return tuple(_together(found))


def kinds(now: Mapping[Stratum, Sample]) -> tuple[Shift, ...]:
    """Two kinds of machine under one label: the smaller kind, and how far apart the two are, whichever is better."""
    found = []
    for stratum, sample in now.items():
        levels = _levels(sample, "lower")
        nodes = sorted(levels)
        values = np.array([levels[node] for node in nodes])
        upper = _worse_half(values)
        if upper is None:
            continue
        if abs(float(np.median(values[upper]) - np.median(values[~upper]))) >= _KINDS_APART:
            found.append(_parted(stratum, nodes, values, upper if 2 * upper.sum() <= len(upper) else ~upper))
    return tuple(one for one in _together(found) if len(one.metrics) > 1)


def _levels(sample: Sample, direction: str) -> dict[str, float]:
    """Slowness of each node: the logarithm of its median, more is worse; without nodes that measured 0."""
    middle = sample.quantiles(3)[:, 1]
    sign = -1.0 if direction == "higher" else 1.0
    return {
        node: sign * float(np.log(value))
        for node, value in zip(sample.nodes, middle, strict=True)
        if value > 0
    }


def _scatter_of_runs(sample: Sample) -> float:
    """The standard deviation of the runs of a node, as a share of their mean; the median of the nodes."""
    runs = sample.quantiles(16)
    mean = runs.mean(axis=1)
    return float(np.median(runs.std(axis=1) / np.where(mean > 0, mean, 1.0)))


def _worse_half(values: Floats) -> Flags | None:
    """Values of the upper of two groups, None where they are one group."""
    size = len(values)
    if size < _LEAST_NODES:
        return None
    ordered = np.sort(values)
    upto = np.arange(1, size)
    left, total = np.cumsum(ordered)[:-1], float(ordered.sum())
    between = (left / upto - (total - left) / (size - upto)) ** 2 * upto * (size - upto)
    cut = int(np.argmax(between))
    upper = values > (ordered[cut] + ordered[cut + 1]) / 2
    fewest = max(FEWEST, SMALLEST * size)
    if min(int(upper.sum()), int((~upper).sum())) < fewest or upper.sum() > LARGEST * size:
        return None
    low, high = float(np.median(values[~upper])), float(np.median(values[upper]))
    middle = np.count_nonzero(np.abs(values - (low + high) / 2) < (high - low) / 6)
    return upper if high - low >= APART * _scatter(values, upper) and middle <= _VALLEY * size else None


def _scatter(values: Floats, upper: Flags) -> float:
    """Scatter of values within the two groups, robustly."""
    off = np.concatenate([values[part] - np.median(values[part]) for part in (upper, ~upper)])
    return max(1.4826 * float(np.median(np.abs(off))), _LEAST_SCATTER)


def _parted(stratum: Stratum, nodes: Sequence[str], values: Floats, worse: Flags) -> _Parted:
    by = float(np.median(values[worse]) - np.median(values[~worse]))
    named = frozenset(node for node, is_worse in zip(nodes, worse.tolist(), strict=True) if is_worse)
    return _Parted(stratum, len(nodes), named, by, abs(by) / _scatter(values, worse))


def _together(found: Sequence[_Parted]) -> Iterator[Shift]:
    """Metrics that tell the same nodes are one shift; one metric alone has to be clearer."""
    left = sorted(found, key=lambda one: (-one.apart, one.stratum))
    while left:
        first = left[0]
        same = [one for one in left if _agreement(one.worse, first.worse) >= _SAME]
        left = [one for one in left if one not in same]
        if len(same) == 1 and first.apart < ALONE:
            continue
        counts = Counter(node for one in same for node in one.worse)
        nodes = tuple(sorted(node for node, times in counts.items() if 2 * times > len(same)))
        yield Shift(nodes, float(np.expm1(first.by)), tuple(one.stratum for one in same), first.of)


def _agreement(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / max(1, len(one | other))


def shared_by(
    nodes: Sequence[str], groups: Mapping[str, Sequence[str]], measured: Sequence[str]
) -> str | None:
    """The component or attribute that nearly all of the nodes have and hardly any other measured node; None if none.

    `groups` are those of each node. Of several that fit the one that fits best.
    """
    inside = Counter(group for node in nodes for group in groups.get(node, ()))
    holds = Counter(group for node in measured for group in groups.get(node, ()))
    fitting = {
        name: count / (len(nodes) + holds[name] - count)
        for name, count in inside.items()
        if count / (len(nodes) + holds[name] - count) >= _SAME
    }
    return min(fitting, key=lambda name: (-fitting[name], name), default=None)
