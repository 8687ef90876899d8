"""Medians of tables with missing values."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def medians(table: Floats) -> Floats:
    """Medians of rows without their NaN; NaN for a row of nothing else. (`numpy.nanmedian` is slow on small tables.)"""
    if not table.size:
        return np.full(len(table), np.nan)
    ordered = np.sort(table, axis=1)
    count = (~np.isnan(table)).sum(axis=1)
    rows = np.arange(len(table))
    low, high = (
        ordered[rows, np.maximum(count - 1, 0) // 2],
        ordered[rows, np.minimum(count // 2, table.shape[1] - 1)],
    )
    return np.where(count > 0, (low + high) / 2, np.nan)
