"""Deepview (Zhang et al., NSDI 2018): blame the component that failing paths share and healthy paths avoid.

One window is judged by the binomial likelihood (`binomial`) or as published (`published`); the verdict of the
likelihood method in tables and sentences is here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from analyzers.builtin.deepview import evidence as show
from analyzers.builtin.deepview import published
from analyzers.builtin.deepview.binomial import Charge, Outcome, blame
from analyzers.builtin.deepview.evidence import simpler
from analyzers.builtin.deepview.observed import Observed, alike, component_sets, observe
from analyzers.builtin.deepview.published import judge_by_mean
from analyzers.builtin.text import CHANCE, NATS, count, hundredths, listed, percent, so_many
from analyzers.contract import Evidence, Params, Suspect, Verdict, Window, inconclusive, quiet, table, text


def analyze(window: Window, params: Params) -> Verdict:
    seen = observe(window.sums)
    measures = _measures(seen, window)
    reason = _nothing_to_judge(seen, window)
    if reason is not None:
        return inconclusive(reason, measures)
    if params["method"] == "lasso":
        return published.verdict_of(window, judge_by_mean(window, params), params, measures)
    return verdict_of(window, blame(window, params), measures)


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
    """Reason why the window cannot be judged at all, or None."""
    lost = window.sums["failing"].unmatched + seen.unknown
    if seen.total <= 0:
        if lost:
            return f"{so_many(lost, 'failure')}, but no unit is placed on a path: paths cannot be compared."
        return "No unit is placed on any path in this window."
    distinct = len(np.unique(alike(component_sets(window.sums["paths"]))))
    if distinct == 1 and seen.rows:
        return "All paths hold the same components: paths cannot be compared."
    if lost > seen.failures.sum() and lost >= 10:
        return f"{lost} of {lost + int(seen.failures.sum())} failures are of units that are placed nowhere."
    return None


_EVERYWHERE = 0.05
"""Share of units above which failures that no component explains are worth saying that nothing is known."""

_CONTRAST = 0.8
"""Share of units above which too little is healthy to tell several components apart."""


def verdict_of(window: Window, outcome: Outcome, measures: Mapping[str, Any]) -> Verdict:
    """Verdict of a likelihood outcome, for a person on call."""
    noun = show.noun(window)
    reason = _nothing_known(outcome, noun)
    if reason is not None:
        outcome = replace(outcome, charges=(), runners=())
    base, blamed = outcome.baseline, tuple(charge.name for charge in outcome.charges)
    figures = {
        **measures,
        "baseline": base.units,
        "baseline_windows": base.windows,
        "threshold_nats": float(outcome.needed.max()),
    }
    shown = show.charts(window, outcome.seen, blamed, noun)
    named = {name for charge in outcome.charges for name in (charge.name, *charge.ambiguous)}
    others = simpler(window, outcome.seen, base.units, named)
    account = text("Method", _account(outcome, noun))
    evidence = (*_tables(outcome, noun), *shown, *([others] if others else []), account)
    if reason is not None:
        return Verdict("inconclusive", (), reason, figures, evidence, outcome.assumptions)
    if outcome.lasting and not blamed:
        names = listed(tuple(one.name for one in outcome.lasting)).replace(" or ", " and ")
        reason = (
            f"{names} {'fails' if len(outcome.lasting) == 1 else 'fail'} as in most of the {base.windows} windows "
            f"before: that is usual there, or a failure that is older than the history."
        )
        return Verdict("inconclusive", (), reason, figures, evidence, outcome.assumptions)
    if not blamed:
        return quiet(figures, evidence, outcome.assumptions)
    when = show.spans(window, {charge.name: charge.expected for charge in outcome.charges})
    suspects = tuple(_suspect(charge, when.get(charge.name), noun) for charge in outcome.charges)
    return Verdict("named", suspects, None, figures, evidence, outcome.assumptions)


def _nothing_known(outcome: Outcome, noun: str) -> str | None:
    """Much fails and no one component explains it: say so, for `quiet` would be wrong and names a guess."""
    seen = outcome.seen
    share = float(seen.failures.sum()) / seen.total
    if len(outcome.charges) != 1 and share >= _CONTRAST:
        return (
            f"{percent(share)} of {count(seen.total)} {noun} fail: too little is healthy to tell components "
            "apart. The cause may lie outside the paths, or in the telemetry."
        )
    usual = 5 * outcome.baseline.units if outcome.baseline.windows else 0.0
    if outcome.charges or share < max(_EVERYWHERE, usual):
        return None
    return (
        f"{percent(share)} of {count(seen.total)} {noun} fail, on paths of every kind, and no component or "
        "small set of components explains it: the cause may lie outside the paths, or in the telemetry."
    )


def _suspect(charge: Charge, span: show.Span | None, noun: str) -> Suspect:
    return Suspect(
        component=charge.name,
        score=charge.score,
        summary=_sentence(charge, noun),
        p_value=charge.p_value,
        q_value=charge.q_value,
        estimate=charge.estimate,
        ambiguous_with=charge.ambiguous,
        sure=charge.sure,
        first_failure=span.first if span else None,
        last_failure=span.last if span else None,
    )


def _sentence(charge: Charge, noun: str) -> str:
    on = "" if charge.hosts is None else f" on {count(charge.hosts)} host{'s' if charge.hosts != 1 else ''}"
    rate = charge.estimate
    sentence = (
        f"{charge.name} fails {percent(rate.failure_rate)} of what depends on it: {count(charge.lost)} of "
        f"{count(charge.carried)} {noun} failed{on}; about {count(charge.expected)} expected"
    )
    if charge.ambiguous:
        return f"{sentence}. The paths do not separate it from {listed(charge.ambiguous)}."
    return f"{sentence}. No other component explains these failures."


def _tables(outcome: Outcome, noun: str) -> tuple[Evidence, ...]:
    tables = []
    if outcome.charges:
        rows = tuple(
            (
                one.name, int(one.carried), int(one.lost), one.hosts,
                hundredths(one.estimate.failure_rate), hundredths(one.estimate.low), hundredths(one.estimate.high),
                round(one.evidence, 1), round(one.needed, 1),
                one.p_value, one.q_value,
                ", ".join(one.ambiguous),
            )
            for one in outcome.charges
        )  # fmt: skip
        figures = (
            "hosts",
            "failure rate (%)",
            "low (%)",
            "high (%)",
            "evidence (nats)",
            "needed",
            "p",
            "q",
            "ambiguous with",
        )
        note = (
            f"Failure rate: the share that the component itself adds, with its 95 % interval. {NATS} {CHANCE}"
        )
        tables.append(table("Blamed", ("component", noun, "failed", *figures), rows, note))
    if outcome.runners:
        cleared = tuple(
            (one.name, int(one.carried), int(one.lost), round(one.alone, 1), round(one.left, 1), one.reason)
            for one in outcome.runners
        )
        columns = ("component", noun, "failed", "evidence alone", "evidence left", "why it is cleared")
        note = f"Evidence is in nats: alone, and with the blamed components taken into account. {NATS}"
        tables.append(table("Looked into and cleared", columns, cleared, note))
    return tuple(tables)


def _account(outcome: Outcome, noun: str) -> str:
    base, seen = outcome.baseline, outcome.seen
    if base.windows:
        source = (
            f"the {base.windows} windows before this one"
            if base.windows > 1
            else "the window before this one"
        )
        if base.excluded:
            source += f", each without its outliers ({listed(base.excluded).replace(' or ', ' and ')})"
    else:
        source = "this window itself, because it has no history"
    witnesses = "hosts" if seen.testimony is not None else noun
    return (
        f"Baseline: {percent(base.units)} of {noun} fail in a healthy window (upper bound), from {source}. "
        f"{count(float(seen.failures.sum()))} of {count(seen.total)} {noun} failed here. A component is "
        f"blamed when it explains what the others cannot, judged on {noun} and again on {witnesses} so that "
        f"one dead host counts once; {outcome.needed.min():.1f} to {outcome.needed.max():.1f} nats of evidence are "
        "needed, more where a kind has more components. Components are added while one more explains failures that "
        "nothing else does, and dropped again where the others explain theirs. Method: maximum likelihood over paths, "
        "after Deepview (Zhang et al., NSDI 2018)."
    )
