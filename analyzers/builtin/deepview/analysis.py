"""Deepview (Zhang et al., NSDI 2018): blame the component that the failing paths share and the healthy
ones avoid.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from analyzers.builtin.deepview import likelihood_verdict, published_verdict
from analyzers.builtin.deepview.binomial import blame
from analyzers.builtin.deepview.observed import Observed, alike, component_sets, observe
from analyzers.builtin.deepview.published import judge_by_mean
from analyzers.builtin.text import so_many
from analyzers.contract import Params, Verdict, Window, inconclusive


def analyze(window: Window, params: Params) -> Verdict:
    seen = observe(window.sums)
    measures = _measures(seen, window)
    reason = _nothing_to_judge(seen, window)
    if reason is not None:
        return inconclusive(reason, measures)
    if params["method"] == "lasso":
        return published_verdict.verdict_of(window, judge_by_mean(window, params), params, measures)
    return likelihood_verdict.verdict_of(window, blame(window, params), measures)


def _measures(seen: Observed, window: Window) -> dict[str, Any]:
    return {
        "paths": len(component_sets(window.sums["paths"])),
        "components": len(seen.names),
        "units": int(seen.total),
        "failed": int(seen.failures.sum()),
        "failing_paths": seen.rows,
        "failing_hosts": None if seen.testimony is None else seen.testimony.hosts,
        "unplaced": window.sums["failing"].unmatched + seen.unknown,
        "history": len(window.history),
    }


def _nothing_to_judge(seen: Observed, window: Window) -> str | None:
    """Why the window cannot be judged at all, or None."""
    lost = window.sums["failing"].unmatched + seen.unknown
    if seen.total <= 0:
        if lost:
            return (
                f"{so_many(lost, 'failure')}, but no unit is placed on any path: there is nothing to compare."
            )
        return "No unit is placed on any path in this window."
    distinct = len(np.unique(alike(component_sets(window.sums["paths"]))))
    if distinct == 1 and seen.rows:
        return "Every path holds the same components: there is nothing to compare."
    if lost > seen.failures.sum() and lost >= 10:
        return f"{lost} of {lost + int(seen.failures.sum())} failures are of units that are placed nowhere."
    return None
