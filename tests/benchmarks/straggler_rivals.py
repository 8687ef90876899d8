"""Common methods in the straggler's place: a limit, a robust z and a local outlier factor of means of nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.straggler import ANALYZER
from analyzers.builtin.straggler.series import Grid, observe
from analyzers.contract import Window, check_params

Floats = NDArray[np.float64]

_LAST = 30
"""Columns at the end of a window, five minutes, whose means are compared."""


def means(window: Window) -> Iterator[tuple[Grid, Floats]]:
    """For each metric of a job how far the mean of each node's last five minutes is from the median, as a share."""
    for grid in observe(window, check_params(ANALYZER, {})).grids:
        last = grid.values[:, -_LAST:]
        there = np.isfinite(last)
        mean = np.where(there, last, 0).sum(axis=1) / np.maximum(there.sum(axis=1), 1)
        node = np.bincount(grid.owner, mean) / np.bincount(grid.owner)
        middle = float(np.median(node))
        yield grid, (node - middle) / max(abs(middle), 1e-9)


def limit(window: Window) -> Sequence[str]:
    """A mean more than 20 % off the median of the peers."""
    return sorted({grid.nodes[at] for grid, off in means(window) for at in np.flatnonzero(abs(off) > 0.2)})


def robust_z(window: Window) -> Sequence[str]:
    """A mean more than 6 robust deviations (of the median of distances) and 5 % off."""
    named = set()
    for grid, off in means(window):
        width = 1.4826 * float(np.median(abs(off)))
        named |= {grid.nodes[at] for at in np.flatnonzero(abs(off) > max(0.05, 6 * width))}
    return sorted(named)


def outlier_factor(window: Window) -> Sequence[str]:
    """A local outlier factor above 2 over all metrics together (Breunig et al., 2000), 20 neighbours."""
    from sklearn.neighbors import LocalOutlierFactor

    found = list(means(window))
    nodes = sorted({node for grid, _ in found for node in grid.nodes})
    if len(nodes) < 4:
        return []
    place = {node: at for at, node in enumerate(nodes)}
    table = np.zeros((len(nodes), len(found)))
    for column, (grid, off) in enumerate(found):
        table[[place[node] for node in grid.nodes], column] = np.clip(off, -5, 5)
    factor = LocalOutlierFactor(n_neighbors=min(20, len(nodes) - 1)).fit(table)
    return [nodes[at] for at in np.flatnonzero(-factor.negative_outlier_factor_ > 2).tolist()]


BASELINES: Mapping[str, Callable[[Window], Sequence[str]]] = MappingProxyType(
    {"20 % off the median": limit, "robust z": robust_z, "local outlier factor": outlier_factor}
)
