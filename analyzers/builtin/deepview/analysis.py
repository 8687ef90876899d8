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
from analyzers.builtin.deepview.reductions import INPUTS
from analyzers.builtin.text import so_many
from analyzers.contract import Analyzer, Param, Params, Verdict, Window, inconclusive

PARAMS = (
    Param(
        "method",
        "binomial",
        "binomial: likelihood with a baseline from history; lasso: the published method",
        choices=("binomial", "lasso"),
    ),
    Param(
        "margin",
        0.25,
        "binomial: nats of evidence above log(components of a kind x kinds x windows a day)",
        low=-5,
        high=50,
    ),
    Param(
        "sure_margin", 3.0, "binomial: nats above the threshold that make one window enough", low=0, high=100
    ),
    Param("min_rate", 0.001, "binomial: least share of a component's units worth a ticket", low=0, high=0.5),
    Param(
        "min_witnesses", 2.0, "binomial: least number of hosts (else units) that must speak", low=1, high=1000
    ),
    Param("alpha", 0.01, "lasso: level of the one-sided test", low=1e-9, high=0.5),
    Param("test", "z_mean", "lasso: which test against the mean", choices=("z_mean", "refit")),
    Param("folds", 5, "lasso: folds of the cross-validation", low=2, high=20),
)

HISTORY = 12


def analyze(window: Window, params: Params) -> Verdict:
    seen = observe(window.sums)
    measures = _measures(seen, window)
    reason = _nothing_to_judge(seen, window)
    if reason is not None:
        return inconclusive(reason, measures)
    if params["method"] == "lasso":
        return published_verdict.tell(window, judge_by_mean(window, params), params, measures)
    return likelihood_verdict.tell(window, blame(window, params), measures)


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


ANALYZER = Analyzer(
    name="deepview",
    version="2.0.2",
    title="Blames the component that failing paths share and healthy paths avoid",
    inputs=INPUTS,
    params=PARAMS,
    analyze=analyze,
    history=HISTORY,
)
