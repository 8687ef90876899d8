"""What Boolean methods would have said of the same window, for evidence."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from analyzers.builtin.deepview.observed import Observed, component_sets, locate
from analyzers.builtin.paths.incidence import incidence
from analyzers.builtin.paths.tomography import TITLE, simpler_methods
from analyzers.contract import Evidence, Window, text

MOST_PATHS = 50_000
"""Above this they are not asked: reading all paths for them would take longer than the verdict."""

BAD_PATH = 0.005
"""Least share of units that fail on a path that the simpler methods call bad."""

_ABOVE_NORMAL = 3
"""A bad path fails so many times as much as is normal."""


def simpler(window: Window, seen: Observed, normal: float, blamed: Collection[str]) -> Evidence | None:
    """The table of `tomography.simpler_methods`, or a sentence that says why there is none; None when nothing failed.

    `normal` is the share of units that fail in health, `blamed` the names in the verdict with those that cannot be
    told from them.
    """
    if not seen.rows:
        return None
    placed = window.sums["paths"]
    sets = component_sets(placed)
    if len(sets) > MOST_PATHS:
        return text(TITLE, f"Not asked: they are for windows of at most {MOST_PATHS:,} paths.")
    at = locate(sets, seen.row, seen.column, seen.rows)
    known = at >= 0
    failures = np.bincount(at[known], seen.failures[known], minlength=len(sets))
    paths = incidence(sets, np.asarray(placed.values["attempts"]), failures)
    return simpler_methods(paths, max(BAD_PATH, _ABOVE_NORMAL * normal), blamed)
