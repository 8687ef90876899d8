"""The verdict of the published method in tables and sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from analyzers.builtin.deepview import evidence as show
from analyzers.builtin.deepview.observed import alike, component_sets
from analyzers.builtin.deepview.published import Tested, severity
from analyzers.builtin.deepview.simpler import simpler
from analyzers.builtin.text import count, percent
from analyzers.contract import Evidence, Params, Suspect, Verdict, Window, quiet, table, text


def verdict_of(window: Window, tested: Tested, params: Params, measures: Mapping[str, Any]) -> Verdict:
    """What the on-call reads of the published method; it gives no calibrated score."""
    names = tuple(tested.seen.names[j] for j in tested.blamed.tolist())
    figures = {**measures, "penalty": tested.alpha}
    suspects = _suspects(window, tested, names)
    blamed = {name for one in suspects for name in (one.component, *one.ambiguous_with)}
    others = simpler(window, tested.seen, 0.0, blamed)
    evidence = (
        *_estimates(tested, show.noun(window)),
        *show.charts(window, tested.seen, names, show.noun(window)),
        *([others] if others else []),
        text("How this was concluded", _account(tested, params)),
    )
    if not names:
        return quiet(figures, evidence)
    return Verdict("named", suspects, None, figures, evidence)


def _estimates(tested: Tested, noun: str) -> tuple[Evidence, ...]:
    seen, theta = tested.seen, tested.theta
    lost = seen.per_component(seen.failures)
    order = np.lexsort((np.arange(len(seen.names)), -theta))[:12].tolist()
    rows = tuple(
        (seen.names[j], int(seen.carried[j]), int(lost[j]), severity(theta[j]), float(tested.p_values[j]))
        for j in order
        if theta[j] > 0
    )
    columns = ("component", noun, "failed", "failure rate", "p")
    return (table("Components with a failure rate above zero", columns, rows),) if rows else ()


def _account(tested: Tested, params: Params) -> str:
    return (
        f"Method: non-negative Lasso on log(1 - e/n), penalty {tested.alpha:.3g} by cross-validation, "
        f"one-sided test ({params['test']}) against the mean at level {params['alpha']} (Zhang et al., NSDI "
        "2018). It has no baseline and gives no calibrated score."
    )


def _suspects(window: Window, tested: Tested, names: tuple[str, ...]) -> tuple[Suspect, ...]:
    seen, noun = tested.seen, show.noun(window)
    lost = seen.per_component(seen.failures)
    first = alike(component_sets(window.sums["paths"]))
    when = show.spans(window, dict.fromkeys(names, 0.0))  # it knows of no usual failures
    q_values = np.minimum(1.0, tested.p_values * len(seen.names))
    suspects = []
    for j in tested.blamed.tolist():
        twins = [seen.names[k] for k in np.flatnonzero(first == first[j]).tolist() if k != j]
        span = when.get(seen.names[j])
        rate = percent(severity(tested.theta[j]))
        sentence = (
            f"{seen.names[j]} fails {rate} of what depends on it, more than the mean component: "
            f"{count(lost[j])} of {count(seen.carried[j])} {noun} failed."
        )
        suspects.append(
            Suspect(
                component=seen.names[j],
                score=None,
                summary=sentence,
                p_value=float(tested.p_values[j]),
                q_value=float(q_values[j]),
                ambiguous_with=tuple(sorted(twins)),
                first_failure=span.first if span else None,
                last_failure=span.last if span else None,
            )
        )
    return tuple(suspects)
