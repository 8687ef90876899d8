"""Common methods in the validator's place, for its benchmark."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from analyzers.simulators.node_benchmarks import Fleet

Floats = NDArray[np.float64]


def _worse(fleet: Fleet, measured: Floats) -> Floats:
    """The means of nodes as shares of the fleet's median, turned so that more is worse; (nodes, metrics)."""
    means = np.nanmean(measured, axis=2)
    share = means / np.nanmedian(means, axis=0)
    higher = np.array([metric.higher for metric in fleet.preset.metrics])
    return np.asarray(np.where(higher, 1 - share, share - 1))


def fixed_threshold(fleet: Fleet, measured: Floats) -> list[int]:
    """5 % worse than the mean of those that are not: SuperBench's `fix_threshold` baseline generation."""
    worse = _worse(fleet, measured)
    blamed = np.zeros(worse.shape, dtype=bool)
    while True:
        centre = np.nanmean(np.where(blamed, np.nan, worse), axis=0)
        found = worse - centre > 0.05
        if (found == blamed).all() or (found | blamed == blamed).all():
            return np.flatnonzero(blamed.any(axis=1)).tolist()
        blamed |= found


def interquartile(fleet: Fleet, measured: Floats) -> list[int]:
    """Beyond 1.5 times the interquartile range on the worse side (Tukey's fence)."""
    worse = _worse(fleet, measured)
    low, high = np.nanquantile(worse, [0.25, 0.75], axis=0)
    return np.flatnonzero((worse > high + 1.5 * (high - low)).any(axis=1)).tolist()


def outlier_factor(fleet: Fleet, measured: Floats) -> list[int]:
    """Local outlier factor above 1.5 over all metrics together (Breunig et al., 2000), 20 neighbours."""
    from sklearn.neighbors import LocalOutlierFactor

    found = LocalOutlierFactor(n_neighbors=20).fit(_worse(fleet, measured))
    return np.flatnonzero(-found.negative_outlier_factor_ > 1.5).tolist()


BASELINES: dict[str, Callable[[Fleet, Floats], list[int]]] = {
    "5 % below the mean": fixed_threshold,
    "interquartile range": interquartile,
    "local outlier factor": outlier_factor,
}
