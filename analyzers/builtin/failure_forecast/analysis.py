"""The verdict: nodes that are likely to fail within the horizon, within a budget of alarms, with the probable cause."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from analyzers.builtin.failure_forecast.causes import Cause, Network, network
from analyzers.builtin.failure_forecast.days import Days, days_of
from analyzers.builtin.failure_forecast.model import Forecast, TooLittleError, Trial, forecast
from analyzers.builtin.stats.intervals import HOUR, microseconds
from analyzers.builtin.stats.probability import wilson
from analyzers.builtin.text import percent, so_many
from analyzers.contract import (
    Assumption,
    Evidence,
    Params,
    Suspect,
    Verdict,
    Window,
    inconclusive,
    quiet,
    table,
    text,
)

MOST_SHOWN = 100
"""Nodes of the table; named ones are all there."""


@dataclass(frozen=True, slots=True)
class AtRisk:
    node: str
    probability: float
    raised: bool
    reasons: tuple[str, ...]
    cause: Cause | None


def analyze(window: Window, params: Params) -> Verdict:
    kinds = frozenset(word.strip() for word in str(params["not_incidents"]).split(",") if word.strip())
    days = days_of(window, kinds, str(params["node_label"]))
    measures: dict[str, Any] = {
        "nodes": len(days.nodes),
        "days": len(days.ends),
        "incidents": len(days.incidents),
        "history": len(window.history),
    }
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    end, hours = microseconds(window.end), float(params["horizon_hours"])
    try:
        # Threads that wait for each other cost more than they save on small tables.
        with threadpool_limits(limits=1):
            found = forecast(
                days, round(hours * HOUR), end, float(params["alarms"]), int(params["min_incidents"])
            )
    except TooLittleError as error:
        return inconclusive(f"No forecast: {error}.", measures)
    tried = found.trial
    measures |= _figures(tried, found.learner)
    checked = (_history(tried),)
    if not tried.holds:
        reason = f"No forecast: alarms on held-out nodes are no better than chance. {checked[0].detail}"
        return inconclusive(reason, measures, checked)
    causes = network(days, end)
    ranked = _ranked(days, found, causes)
    named = [one for one in ranked if one.raised and one.probability >= float(params["least_probability"])]
    evidence = (
        *_tables(ranked, len(named), hours),
        *_causes(ranked, causes),
        _trial(tried),
        _method(found, params),
    )
    if not named:
        return quiet(measures, evidence, checked)
    suspects = tuple(_suspect(one, hours, tried.usual) for one in named)
    return Verdict("named", suspects, None, measures | {"named": len(named)}, evidence, checked)


def _ranked(days: Days, found: Forecast, causes: Network | None) -> list[AtRisk]:
    ranked = [
        AtRisk(
            days.nodes[node],
            float(found.probability[node]),
            bool(found.raised[node]),
            found.reasons[node],
            None if causes is None else causes.cause(days.symptoms[node, -1]),
        )
        for node in np.flatnonzero(np.isfinite(found.probability)).tolist()
    ]
    return sorted(ranked, key=lambda one: (-one.probability, not one.raised, one.node))


def _suspect(one: AtRisk, hours: float, usual: float) -> Suspect:
    chance = percent(one.probability)
    phrase = f"may fail within {hours:g} hours (predicted probability {chance}, usual {percent(usual)})"
    why = f": {', '.join(one.reasons)}" if one.reasons else ""
    cause = (
        "" if one.cause is None else f" Probable kind: {one.cause.kind} ({percent(one.cause.probability)})."
    )
    summary = f"{one.node} {phrase}{why}.{cause}"
    # The threshold keeps alarms within their budget a day, and a second day is half of what is left to act.
    return Suspect(
        one.node,
        None,
        summary,
        sure=True,
        phrase=phrase,
        forecast=True,
        indicator="; ".join(one.reasons)[:100],
    )


def _figures(tried: Trial, learner: str) -> dict[str, Any]:
    return {
        "learner": learner,
        "pr_auc": dict(tried.areas),
        "usual": tried.usual,
        "alarms": tried.alarms,
        "precision": tried.precision,
        "brier": tried.brier,
        "brier_of_usual_share": tried.usual * (1 - tried.usual),
    }


def _history(tried: Trial) -> Assumption:
    low, high = wilson(tried.right, tried.alarms)
    detail = (
        f"{tried.right} of {so_many(tried.alarms, 'alarm')} on {tried.node_days:,} later days of other nodes were right"
        " "
        f"({percent(tried.precision)}, 95 % interval {percent(low)} to {percent(high)}); usual {percent(tried.usual)}."
    )
    return Assumption("history", tried.holds, detail)


def _tables(ranked: Sequence[AtRisk], named: int, hours: float) -> tuple[Evidence, ...]:
    rows = tuple(
        (
            one.node,
            round(one.probability, 4),
            ", ".join(one.reasons) or None,
            None if one.cause is None else one.cause.kind,
            None if one.cause is None else round(one.cause.probability, 3),
        )
        for one in ranked[: max(MOST_SHOWN, named)]
    )
    columns = (
        "component",
        f"probability of an incident within {hours:g} h",
        "unlike other nodes in",
        "probable kind",
        "probability of the kind",
    )
    note = "The probability of the kind holds if there is an incident."
    return (table("Nodes at risk", columns, rows, note),) if rows else ()


def _causes(ranked: Sequence[AtRisk], causes: Network | None) -> tuple[Evidence, ...]:
    if causes is None or not ranked or ranked[0].cause is None:
        return ()
    cause = ranked[0].cause
    rows = tuple((name, round(own, 3), round(other, 3)) for name, own, other in cause.symptoms)
    counts = ", ".join(f"{kind} {count}" for kind, count in zip(causes.kinds, causes.counts, strict=True))
    title = f"Symptoms of {ranked[0].node} that speak for {cause.kind}"
    note = f"Past incidents: {counts}. Symptoms are taken as independent given the kind."
    columns = ("symptom", f"share before {cause.kind}", "share before other kinds")
    return (table(title, columns, rows, note),) if rows else ()


def _trial(tried: Trial) -> Evidence:
    rows = (*tried.areas, ("always no", tried.usual))
    shown = tuple((name, round(area, 4)) for name, area in rows)
    note = f"{tried.failing:,} of {tried.node_days:,} held-out node-days were followed by an incident."
    return table("Area under precision and recall, held out", ("method", "area"), shown, note)


def _method(found: Forecast, params: Params) -> Evidence:
    return text(
        "Method",
        f"A {found.learner} with classes weighed alike, over each node's day against the fleet and its own week. It"
        " was chosen and calibrated on days later than what taught it, of other nodes; the threshold allows "
        f"{params['alarms']:g} alarms in 1,000 node-days. Advice only: nothing about these nodes has failed yet.",
    )
