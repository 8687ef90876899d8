"""Risk of planned and past changes from the changes and outcomes that are stored, by the method of `config_risk`.
Nothing here writes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import pairwise
from typing import Any

import numpy as np

from analyzers.builtin.config_risk.analysis import Judged, hold_out, sentence, similar
from analyzers.builtin.config_risk.analyzer import ANALYZER
from analyzers.builtin.config_risk.features import facts_of
from analyzers.builtin.config_risk.model import Model, Risk, TooLittleHistoryError, fit
from analyzers.builtin.config_risk.records import HOUR, Change, changes_in, in_order, settled
from analyzers.builtin.stats.intervals import microseconds, moment
from analyzers.builtin.stats.probability import wilson
from analyzers.contract import Window
from incidents.domain.values import rfc3339
from ingest.queries import read_window

Json = dict[str, Any]
DAYS = 200
"""Length of the history that is learnt from, in days."""
AHEAD = timedelta(days=60)
"""Time before they go out from which changes are listed."""
BINS = (0.0, 0.05, 0.2, 1.0)
_MOST_MODELS = 4


@dataclass(frozen=True, slots=True)
class Assessment:
    """Risk of a planned change by past ones. `risk` is None for too little history, and `reason` says what is
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
            "path": _path(risk),
            "reasons": list(risk.reasons),
            "similar": [
                {"change": one.name, "at": rfc3339(moment(one.at)), "kind": one.kind, "outcome": one.outcome}
                for one in self.risk.similar
            ],
            "trial": self.trial,
        }


@dataclass(frozen=True, slots=True)
class ListedChange:
    """A change as the list shows it. `probability` is None where nothing could be learnt before it. Without an outcome
    `risk` has the path that leads to the probability; of a change with one the probability is what changes before it
    gave. `ahead` of one that has not gone out."""

    change: Change
    ahead: bool
    probability: float | None = None
    risk: Risk | None = None

    def as_json(self) -> Json:
        one, risk = self.change, self.risk
        return {
            "change": one.name,
            "at": rfc3339(moment(one.at)),
            "ahead": self.ahead,
            "kind": one.kind,
            "team": one.team,
            "author": one.author,
            "targets": list(one.targets),
            "probability": self.probability,
            "low": None if risk is None else risk.low,
            "high": None if risk is None else risk.high,
            "path": [] if risk is None else _path(risk),
            "reasons": [] if risk is None else list(risk.reasons),
            "outcome": one.outcome or None,
            "outcome_at": rfc3339(moment(one.known_at)) if one.outcome else None,
        }


@dataclass(frozen=True, slots=True)
class StatedBin:
    """Of changes whose probability, from changes before them, was in [low, high): the mean of it, and how many were
    bad, with the 95 % interval of that share."""

    low: float
    high: float
    changes: int
    bad: int
    stated: float
    interval: tuple[float, float]

    @property
    def happened(self) -> float:
        return self.bad / self.changes


@dataclass(frozen=True, slots=True)
class RiskList:
    """Changes of a region, those ahead first (the next one first), then the latest. `reason` says what is missing for
    probabilities."""

    changes: tuple[ListedChange, ...]
    past: int
    bad: int
    usual: float | None
    reason: str
    reliability: tuple[StatedBin, ...]


def risks(region: str, now: datetime) -> RiskList:
    """The changes of the days before and ahead, with what the past says of each."""
    at, horizon = microseconds(now), round(float(_default("horizon_hours")) * HOUR)
    found = settled(stored(region, now, ahead=AHEAD), at, horizon)
    past, bad = [one for one in found if one.outcome], sum(one.is_bad for one in found)
    try:
        model = _fitted(found)
    except TooLittleHistoryError as error:
        none = [ListedChange(one, one.at > at) for one in found]
        return RiskList(_listed(none), len(past), bad, None, f"No probability: {error}.", ())
    before = dict(zip((one.name for one in model.past), model.stated.tolist(), strict=True))
    lines = list[ListedChange]()
    for one, facts in zip(found, facts_of(found), strict=True):
        if one.outcome:
            stated = before.get(one.name, math.nan)
            lines.append(ListedChange(one, False, None if math.isnan(stated) else stated))
        else:
            risk = model.risk(facts)
            lines.append(ListedChange(one, one.at > at, risk.probability, risk))
    return RiskList(_listed(lines), len(past), bad, model.usual, "", reliability(model))


def _listed(lines: Sequence[ListedChange]) -> tuple[ListedChange, ...]:
    ahead = sorted((one for one in lines if one.ahead), key=lambda one: one.change.at)
    gone = sorted((one for one in lines if not one.ahead), key=lambda one: -one.change.at)
    return (*ahead, *gone)


def reliability(model: Model) -> tuple[StatedBin, ...]:
    """Stated risk of past changes, each from those before it, beside their outcome."""
    bad = np.array([one.is_bad for one in model.past])
    found = []
    for low, high in pairwise(BINS):
        inside = (model.stated >= low) & (model.stated < high if high < 1 else model.stated <= 1)
        if count := int(inside.sum()):
            hits = int(bad[inside].sum())
            mean = float(model.stated[inside].mean())
            found.append(StatedBin(low, high, count, hits, mean, wilson(hits, count)))
    return tuple(found)


_models: dict[str, Model] = {}


def _fitted(changes: Sequence[Change]) -> Model:
    """The model of these changes; the last few are kept by this process, because learning takes seconds."""
    known = sha256(repr(changes).encode()).hexdigest()
    model = _models.get(known)
    if model is None:
        model = fit(changes, int(_default("min_changes")), int(_default("min_bad")))
        while len(_models) >= _MOST_MODELS:
            _models.pop(next(iter(_models)), None)
        _models[known] = model
    return model


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


def stored(region: str, until: datetime, ahead: timedelta = timedelta()) -> list[Change]:
    """The changes of a region in the days before, with outcomes known by then, and those of the time ahead."""
    begin, end = until - timedelta(days=DAYS), until + ahead
    chosen = ANALYZER.inputs[0]
    sums = read_window(chosen, region, begin, end)
    return changes_in(Window(begin, end, region, chosen.name, sums))


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


def _path(risk: Risk) -> list[Json]:
    return [{"condition": one.condition, "changes": one.changes, "bad": one.bad} for one in risk.path]


def _default(name: str) -> Any:
    return next(one.default for one in ANALYZER.params if one.name == name)
