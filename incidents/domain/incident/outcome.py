"""Outcome of each analyzer on a resolved incident: right, wrong, or it missed the cause. What score-cards count.

The cause that the incident was resolved with is the truth. An analyzer is

* `right` if its last blame on this incident, the component or one that it could not tell apart from it, is that cause,
  or is related to it (`Incident.related`): it named the rank behind the network card that was at fault;
* `wrong` if it is not, or if nothing was at fault ("none");
* neither if it is a class of causes, such as "firmware": that says what kind of thing failed, not which;
* `missed` if a component was at fault, it judged windows over that component, and named it nowhere
  (`incident.analyzer_missed_cause`).

One that blames something else is judged on that one's incident, one that saw nothing where nothing was at fault is
not counted: silence is the rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from incidents.domain.incident.state import Incident, Opinion
from incidents.domain.values import is_class

Outcome = Literal["right", "wrong", "missed"]


@dataclass(frozen=True, slots=True)
class AnalyzerOutcome:
    """`component` and `score` are of its last blame, None if it missed.

    `first`: it was right before any person or alert reported the incident; `alone`: none ever did, it was found by
    analyzers only. `lead_seconds` is how long before the first report it blamed, below zero if after; None
    if it was not right or nobody reported.
    """

    analyzer: str
    analyzer_version: str
    outcome: Outcome
    component: str | None
    score: float | None
    first: bool
    alone: bool
    lead_seconds: float | None


def analyzer_outcomes(state: Incident) -> list[AnalyzerOutcome]:
    """By name of the analyzer; none while the incident is not resolved, or where only a class was confirmed."""
    if state.state != "resolved" or state.confirmed_cause is None or is_class(state.confirmed_cause):
        return []
    blamed = [_blamed(state, one) for one in state.opinions.values() if has_blamed(one)]
    named = {one.analyzer for one in blamed}
    missed = [
        AnalyzerOutcome(name, version, "missed", None, None, first=False, alone=False, lead_seconds=None)
        for name, version in state.missed_by.items()
        if name not in named
    ]
    return sorted([*blamed, *missed], key=lambda one: one.analyzer)


def has_blamed(opinion: Opinion) -> bool:
    """Whether its last word on this incident's cause was a blame, still held or not."""
    return opinion.stance in ("blames", "no_longer_blames")


def failing_span(state: Incident, resolved_at: datetime) -> tuple[datetime, datetime]:
    """The data time in which the cause failed and should have been found.

    As far as findings tell: from the first failure known, else the earliest window that is still remembered, to
    the last failure or window. An incident that nobody blamed failed as long as it was open.
    """
    remembered = [one.window_start for one in state.opinions.values() if has_blamed(one)]
    since = state.failing_since or min([state.opened_at, *remembered])
    until = state.last_failure or state.last_blamed or resolved_at
    return since, max(until, since)


def _blamed(state: Incident, opinion: Opinion) -> AnalyzerOutcome:
    right = state.confirmed_cause in opinion.cause or (
        state.confirmed_cause in state.named and bool(opinion.cause & state.related.keys())
    )
    reported, at = state.reported_at, opinion.first_at
    assert at is not None
    return AnalyzerOutcome(
        analyzer=opinion.analyzer,
        analyzer_version=opinion.version,
        outcome="right" if right else "wrong",
        component=opinion.component,
        score=opinion.score,
        first=right and (reported is None or at < reported),
        alone=right and reported is None,
        lead_seconds=(reported - at).total_seconds() if right and reported is not None else None,
    )
