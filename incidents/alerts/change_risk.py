"""Risk of a planned change from the changes and outcomes that are stored, by the method of `config_risk`. Nothing here
writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from analyzers.builtin.config_risk.analysis import Judged, hold_out, sentence, similar
from analyzers.builtin.config_risk.analyzer import ANALYZER
from analyzers.builtin.config_risk.features import facts_of
from analyzers.builtin.config_risk.model import TooLittleHistoryError, fit
from analyzers.builtin.config_risk.records import HOUR, Change, changes_in, in_order, settled
from analyzers.builtin.stats.intervals import microseconds, moment
from analyzers.contract import Window
from incidents.domain.values import rfc3339
from ingest.queries import read_window

Json = dict[str, Any]
DAYS = 200
"""Length of the history that is learnt from, in days."""


@dataclass(frozen=True, slots=True)
class Assessment:
    """What past changes say of a planned one. `risk` is None for too little history, and `reason` says what is
    missing; `trial` is how the method did on the last quarter of the past changes."""

    past: int
    bad: int
    reason: str
    risk: Judged | None = None
    usual: float = 0.0
    trial: str = ""

    def as_json(self) -> Json:
        if self.risk is None:
            none: Json = dict.fromkeys(("probability", "low", "high", "usual"))
            return none | {
                "past": self.past,
                "bad": self.bad,
                "reason": self.reason,
                "path": [],
                "reasons": [],
                "similar": [],
            }
        risk = self.risk.risk
        return {
            "probability": risk.probability,
            "low": risk.low,
            "high": risk.high,
            "usual": self.usual,
            "past": self.past,
            "bad": self.bad,
            "reason": sentence(self.risk, self.usual),
            "path": [
                {"condition": one.condition, "changes": one.changes, "bad": one.bad} for one in risk.path
            ],
            "reasons": list(risk.reasons),
            "similar": [
                {"change": one.name, "at": rfc3339(moment(one.at)), "kind": one.kind, "outcome": one.outcome}
                for one in self.risk.similar
            ],
            "trial": self.trial,
        }


def risk_of(planned: Change, region: str) -> Assessment:
    """Of a change by what was known before it goes out."""
    known = known_before(stored(region, moment(planned.at)), planned)
    past, bad = [one for one in known if one.outcome], sum(one.is_bad for one in known)
    least = (int(_default("min_changes")), int(_default("min_bad")))
    try:
        model = fit(known, *least)
    except TooLittleHistoryError as error:
        return Assessment(len(past), bad, f"No probability: {error}.")
    facts = facts_of([*known, planned])[-1]
    risk = model.risk(facts)
    tried = hold_out(model.past, *least)
    trial = (
        ""
        if tried is None
        else f"{tried.bad} of the last {tried.changes} changes were bad where {tried.expected:.3g} were predicted from "
        f"earlier ones; mean square error {tried.brier:.4f}, {tried.usual_brier:.4f} for the usual share."
    )
    judged = Judged(planned, risk, similar(model, facts, risk))
    return Assessment(len(past), bad, "", judged, model.usual, trial)


def stored(region: str, until: datetime) -> list[Change]:
    """The changes of a region in the days before, with outcomes known by then."""
    begin = until - timedelta(days=DAYS)
    chosen = ANALYZER.inputs[0]
    sums = read_window(chosen, region, begin, until)
    return changes_in(Window(begin, until, region, chosen.name, sums))


def known_before(changes: Sequence[Change], planned: Change) -> list[Change]:
    """The other changes that went out before the planned one, with what was known of them when it does."""
    earlier = [one for one in changes if one.at < planned.at and one.name != planned.name]
    return settled(in_order(earlier), planned.at, round(float(_default("horizon_hours")) * HOUR))


def planned_change(
    name: str,
    at: datetime,
    kind: str,
    *,
    targets: Sequence[str] = (),
    author: str = "",
    team: str = "",
    settings: Json | None = None,
    measures: Json | None = None,
) -> Change:
    return Change(
        name,
        microseconds(at),
        kind,
        tuple(sorted(set(targets))),
        author,
        team,
        settings or {},
        measures or {},
    )


def _default(name: str) -> Any:
    return next(one.default for one in ANALYZER.params if one.name == name)
