"""The verdict: the changes that are about to go out or did so lately, each with its risk and the path to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from analyzers.builtin.config_risk.features import Facts, facts_of
from analyzers.builtin.config_risk.model import Model, Risk, TooLittleHistoryError, fit
from analyzers.builtin.config_risk.records import HOUR, Change, changes_in, settled
from analyzers.builtin.stats.intervals import microseconds, moment
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

MOST_SIMILAR = 5
_TEST_SHARE = 0.25
_LEAST_HELD_OUT = 20


@dataclass(frozen=True, slots=True)
class Trial:
    """Predictions for the last quarter of the changes by what was known before it."""

    changes: int
    bad: int
    expected: float
    brier: float
    usual_brier: float


@dataclass(frozen=True, slots=True)
class Judged:
    """A change with its risk and the most similar past changes of the same leaf."""

    change: Change
    risk: Risk
    similar: tuple[Change, ...]


def analyze(window: Window, params: Params) -> Verdict:
    horizon = round(float(params["horizon_hours"]) * HOUR)
    now = microseconds(window.end)
    changes = settled(changes_in(window), now, horizon)
    waiting = [one for one in changes if not one.outcome]
    measures: dict[str, Any] = {
        "changes": len(changes),
        "bad": sum(one.is_bad for one in changes),
        "to_judge": len(waiting),
        "history": len(window.history),
    }
    least = int(params["min_changes"]), int(params["min_bad"])
    try:
        model = fit(changes, *least)
    except TooLittleHistoryError as error:
        return inconclusive(f"No probability: {error}.", measures)
    tried = hold_out(model.past, *least)
    judged = judge(model, changes)
    measures |= {
        "usual": model.usual,
        "learner": model.learner,
        "tree": model.shape.name,
        "brier": None if tried is None else tried.brier,
        "brier_of_usual_share": None if tried is None else tried.usual_brier,
    }
    evidence = (*_tables(judged, model), _method(model))
    checked = (_history(tried),)
    named = [one for one in judged if one.risk.probability >= float(params["least_risk"])]
    named = [one for one in named if one.risk.rule]
    if not named:
        return quiet(measures, evidence, checked)
    suspects = tuple(_suspect(one, model) for one in named)
    return Verdict("named", suspects, None, measures, evidence, checked)


def judge(model: Model, changes: Sequence[Change]) -> list[Judged]:
    """Those of the changes (in order of time) without an outcome, the riskiest first."""
    found = [
        Judged(one, risk := model.risk(facts), similar(model, facts, risk))
        for one, facts in zip(changes, facts_of(changes), strict=True)
        if not one.outcome
    ]
    return sorted(found, key=lambda one: (-one.risk.probability, one.change.at, one.change.name))


def similar(model: Model, facts: Facts, risk: Risk) -> tuple[Change, ...]:
    """Past changes of the same leaf, those first that share most words (Jaccard), the latest of equals first."""
    words = facts.coarse | facts.fine

    def alike(place: int) -> float:
        other = model.facts[place].coarse | model.facts[place].fine
        return len(words & other) / max(1, len(words | other))

    places = [place for place, leaf in enumerate(model.leaves) if leaf == risk.leaf]
    places.sort(key=lambda place: (-alike(place), -model.past[place].at))
    return tuple(model.past[place] for place in places[:MOST_SIMILAR])


def hold_out(past: Sequence[Change], min_changes: int, min_bad: int) -> Trial | None:
    """The method on the last quarter of the changes, learnt from what was known before; None for too few."""
    cut = int((1 - _TEST_SHARE) * len(past))
    later = past[cut:]
    if len(later) < _LEAST_HELD_OUT:
        return None
    try:
        model = fit([one for one in past[:cut] if one.known_at < later[0].at], min_changes, min_bad)
    except TooLittleHistoryError:
        return None
    facts = facts_of(past)[cut:]
    predicted = np.array([model.risk(one).probability for one in facts])
    bad = np.array([one.is_bad for one in later], dtype=np.float64)
    return Trial(
        len(later),
        int(bad.sum()),
        float(predicted.sum()),
        float(np.mean((predicted - bad) ** 2)),
        float(np.mean((model.usual - bad) ** 2)),
    )


def sentence(one: Judged, usual: float) -> str:
    """The risk and the path in words, as the end of a sentence that begins with the change."""
    risk = one.risk
    chance = (
        f"has a bad outcome with probability {percent(risk.probability)} (95 % interval {percent(risk.low)} to "
        f"{percent(risk.high)}; usual {percent(usual)})"
    )
    if not risk.path:
        none = "no rule about past changes predicts better than the usual share"
        return f"{chance}: {risk.rule or none}"
    last = risk.path[-1]
    return f"{chance}: {risk.rule}; {last.bad} of {so_many(last.changes, 'past change')} like it were bad"


def _suspect(one: Judged, model: Model) -> Suspect:
    phrase, name = sentence(one, model.usual), component(one.change)
    text = f"has a bad outcome with probability {percent(one.risk.probability)}: {one.risk.rule}"
    return Suspect(
        name,
        None,
        f"{name} {phrase}.",
        phrase=text if len(text) <= 200 else f"{text[:199]}…",
        forecast=True,
        indicator="change risk",
    )


def component(one: Change) -> str:
    """The change as the name of a component."""
    return f"change/{''.join(c if c.isprintable() and not c.isspace() else '-' for c in one.name)[:190]}"


def _tables(judged: Sequence[Judged], model: Model) -> tuple[Evidence, ...]:
    if not judged:
        return ()
    rows = tuple(
        (
            component(one.change),
            _shown(one.change.at),
            round(one.risk.probability, 4),
            round(one.risk.low, 4),
            round(one.risk.high, 4),
            ", ".join(step.condition for step in one.risk.path) or None,
            f"{one.risk.path[-1].bad} of {one.risk.path[-1].changes}" if one.risk.path else None,
            ", ".join(one.risk.reasons) or None,
            ", ".join(f"{past.name} ({past.outcome})" for past in one.similar),
        )
        for one in judged
    )
    columns = (
        "change",
        "goes out",
        "probability of a bad outcome",
        "from",
        "to",
        "path",
        "bad among past changes of that path",
        "raised by",
        "similar past changes",
    )
    note = f"From and to are the ends of a 95 % interval. The usual share is {percent(model.usual)}."
    return (table("Risk of changes", columns, rows, note), *_steps(judged[0]))


def _steps(one: Judged) -> tuple[Evidence, ...]:
    if not one.risk.path:
        return ()
    rows = tuple((step.condition, step.changes, step.bad) for step in one.risk.path)
    title = f"Path to the risk of {component(one.change)}"
    note = "Each line narrows the past changes of the line above."
    return (table(title, ("condition", "past changes", "bad"), rows, note),)


def _method(model: Model) -> Evidence:
    losses: Mapping[str, float] = dict(model.losses)
    best, shape = min(losses.values()), model.shape.name
    return text(
        "Method",
        f"Probability by {model.learner} over {so_many(len(model.past), 'past change')}, chosen and calibrated in "
        f"time-ordered folds: log loss {best:.4f}, {losses['usual share']:.4f} for the usual share. The path is that "
        f"of a decision tree (Santolucito et al., OOPSLA 2018): {shape}, log loss {losses[shape]:.4f}. "
        "Advice only: a rule says what past bad changes have in common and not what caused them.",
    )


def _history(tried: Trial | None) -> Assumption:
    if tried is None:
        detail = "Too few changes to hold some out: nothing shows that the probabilities hold."
        return Assumption("history", False, detail)
    detail = (
        f"{tried.bad} of the last {tried.changes} changes were bad where {tried.expected:.3g} were predicted from "
        f"earlier ones; mean square error {tried.brier:.4f}, {tried.usual_brier:.4f} for the usual share."
    )
    return Assumption("history", tried.brier <= tried.usual_brier, detail)


def _shown(at: int) -> str:
    when: datetime = moment(at)
    return when.strftime("%Y-%m-%d %H:%M UTC")
