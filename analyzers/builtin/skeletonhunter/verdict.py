"""Suspects of a skeletonhunter verdict: sentences, estimates, probabilities.

The score of a suspect grows with its evidence above the bar (`SCORES`). A share by steps of evidence cannot be fitted,
because nobody was named wrongly: all 78 suspects of the tuning seeds were at fault, 15 of them with the bar lowered by
4 nats, so the points are rounded downwards. `python -m tests.benchmarks.skeletonhunter --calibrate` prints what was
stated and true.
"""

from __future__ import annotations

import math
from datetime import datetime

from analyzers.builtin.skeletonhunter.analyzer import SLICE, USUAL_MARGIN
from analyzers.builtin.skeletonhunter.localise import Named
from analyzers.builtin.stats.probability import probability_at, wilson
from analyzers.builtin.text import count, listed, percent, so_many
from analyzers.contract import Estimate, Suspect, Window

SCORES: tuple[tuple[float, float], ...] = ((-1.0, 0.6), (2.0, 0.85), (6.0, 0.95), (15.0, 0.985))
TABLE = 0.97
SURE, SURE_SLICES = 0.9, 3
"""One window is enough with such a score, and anomalies in so many slices."""

PHRASES = {
    "loss": "loses {} of the probes that pass it",
    "unreachable": "loses {} of the probes that pass it",
    "latency": "delays {} of the probes that pass it",
    "offloaded_rules": "delays {} of the probes that pass it",
}


def suspect(window: Window, one: Named, margin: float) -> Suspect:
    first, last = span(window, one)
    charge = one.charge
    estimate = None
    if charge is not None:
        lost, carried = round(charge.lost), round(max(charge.carried, 1.0))
        estimate = Estimate(min(lost / carried, 1.0), *wilson(lost, carried), PHRASES[one.indicator])
    score = probability(one, margin)
    return Suspect(
        component=one.component,
        score=score,
        summary=sentence(one),
        p_value=None if charge is None else charge.p_value,
        q_value=None if charge is None else charge.q_value,
        estimate=estimate,
        ambiguous_with=one.others,
        sure=score is not None and score >= SURE and len(one.slices) >= SURE_SLICES,
        first_failure=first,
        last_failure=last,
        phrase=title(one),
        indicator=one.indicator,
        path=one.path,
    )


def probability(one: Named, margin: float) -> float | None:
    """The stated probability; None for plain votes, which say nothing of it."""
    if one.charge is None:
        return TABLE
    return None if one.charge.p_value is None else probability_at(SCORES, surplus(one, margin))


def surplus(one: Named, margin: float) -> float:
    """Nats of evidence above the bar at the usual margin."""
    assert one.charge is not None
    return one.charge.strength - one.charge.needed - (USUAL_MARGIN - margin)


def span(window: Window, one: Named) -> tuple[datetime, datetime]:
    """The start of the first anomalous slice and the end of the last."""
    first, last = int(one.slices.min()), int(one.slices.max())
    return window.start + first * SLICE, min(window.start + (last + 1) * SLICE, window.end)


def title(one: Named) -> str:
    """Fault, for titles."""
    if one.indicator == "rule_missing":
        return f"has no next hop for {so_many(len(one.pairs), 'pair')} of endpoints"
    if one.indicator == "rule_loop":
        return f"forwards {so_many(len(one.pairs), 'pair')} of endpoints in a loop"
    if one.indicator == "offloaded_rules" and one.component.startswith("vswitch/"):
        return "has flow rules that the cards of its host hold otherwise, or not at all"
    if one.indicator == "offloaded_rules":
        return "has offloaded flow rules that differ from those of the virtual switch"
    if one.indicator == "unreachable":
        return "does not answer probes"
    if one.indicator == "loss":
        assert one.charge is not None
        return f"loses {percent(one.charge.lost / max(one.charge.carried, 1.0))} of the probes that pass it"
    return f"delays probes by {percent(math.expm1(one.delay))} of their usual round-trip time"


def sentence(one: Named) -> str:
    where = f"{so_many(len(one.pairs), 'pair')} of endpoints in {so_many(len(one.slices), 'slice')} of 30 s"
    summary = f"{one.component} {title(one)}: anomalies on {where}"
    if one.charge is not None:
        summary += f", {count(round(one.charge.lost))} of {count(one.charge.carried)} probes that pass it"
    if one.others:
        return f"{summary}. Not distinguishable on these paths: {listed(one.others)}."
    return f"{summary}."
