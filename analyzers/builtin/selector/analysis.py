"""Selection of nodes to validate before the next job, and of benchmarks for it (Xiong et al., USENIX ATC 2024).

The authors learn a node's time to its next incident with a neural model (Cox-Time); here it is a regression of the
hazard at landmarks (`hazard`). A suspect is a recommendation: nothing is wrong with the node yet that anyone has seen,
so that its score, the probability of being at fault, is None; the probability of an incident stands in the sentence
and in the evidence. Assumptions are checked on the data; probabilities are corrected where one fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.selector import evidence as show
from analyzers.builtin.selector.episodes import PRIOR, Episodes, episodes
from analyzers.builtin.selector.hazard import HazardModelError, Model, State, fit, state_of
from analyzers.builtin.selector.plan import Choice, Past, Step, choose, greedy, past_of
from analyzers.builtin.selector.trial import Risk, Trial, hold_out, last_quarter
from analyzers.builtin.text import percent, so_many
from analyzers.contract import Assumption, Params, Suspect, Verdict, Window, inconclusive, quiet

Floats = NDArray[np.float64]


_MOMENT = 1e-6  # hours; times of microseconds since 1970 are no sharper in hours


def analyze(window: Window, params: Params) -> Verdict:
    record = episodes(window, _kinds(params["not_incidents"]), _kinds(params["gone"]))
    measures: dict[str, Any] = {
        "nodes": len(record.nodes),
        "intervals": len(record),
        "incidents": int(record.event.sum()),
        "history": len(window.history),
    }
    if not record.nodes:
        return inconclusive("No node was seen in this window.", measures)
    horizon, least = float(params["horizon_hours"]), int(params["min_incidents"])
    try:
        model = fit(record, horizon, least)
    except HazardModelError as error:
        return inconclusive(f"No probability: {error}.", measures)
    tried = hold_out(record, horizon, least)
    factor = correction(tried, last_quarter(record, model, horizon))
    model = model.scaled(factor)
    at = window.end.timestamp() / 3600
    checked = assumptions(tried, factor, at_risk(record, at)[0])
    risk = risk_of(record, model, at, horizon, float(params["target_probability"]))
    past = past_of(window)
    steps = greedy(past, float(params["benchmark_hours"]))
    measures |= _figures(model, tried, risk, steps)
    verdict = _verdict(risk, model, tried, past, steps, params, measures)
    return replace(verdict, assumptions=checked)


def at_risk(record: Episodes, at: float) -> tuple[State, Episodes]:
    """The nodes that are at risk at a time (in hours since 1970), which is the end of the data."""
    last = np.flatnonzero(np.append(record.node[1:] != record.node[:-1], True)[: len(record)])
    now = record.only(last[record.stop[last] >= at - _MOMENT])
    return state_of(record, now, at), now


def risk_of(record: Episodes, model: Model, at: float, horizon: float, target: float) -> Risk:
    """The nodes that are at risk at a time (in hours since 1970), likeliest first."""
    state, now = at_risk(record, at)
    chance = model.chance(state, horizon)
    due = model.due(state, target, 100 * horizon)
    names = [record.nodes[node] for node in now.node.tolist()]
    strongest = _strongest(record, model, model.strongest(state), now.covariates)
    order = sorted(range(len(now)), key=lambda i: (-chance[i], names[i]))
    return Risk(
        tuple(names[i] for i in order),
        state.since[order],
        now.incidents[order],
        chance[order],
        due[order],
        tuple(strongest[i] for i in order),
    )


def _strongest(
    record: Episodes, model: Model, places: NDArray[np.int64], covariates: Floats
) -> list[str | None]:
    """For each node what raises its probability most, with the value."""
    found: list[str | None] = []
    for row, place in enumerate(places.tolist()):
        column = int(model.columns[place]) if place >= 0 else -1
        value = float(covariates[row, column]) if column >= 0 else float("nan")
        if column >= 0 and record.names[column] == PRIOR:
            found.append(_before(round(float(np.expm1(value)))) or None)
        else:
            found.append(None if np.isnan(value) else f"{record.names[column]} {value:.4g}")
    return found


def _figures(model: Model, tried: Trial | None, risk: Risk, steps: tuple[Step, ...]) -> Mapping[str, Any]:
    return {
        "at_risk": len(risk.nodes),
        "covariates": len(model.names),
        "expected_incidents": float(risk.chance.sum()),
        "brier": None if tried is None else tried.brier,
        "brier_of_usual_share": None if tried is None else tried.climate,
        "concordance": None if tried is None else tried.concordance,
        "coverage": steps[-1].coverage if steps else None,
    }


def _verdict(
    risk: Risk,
    model: Model,
    tried: Trial | None,
    past: Past,
    steps: tuple[Step, ...],
    params: Params,
    measures: Mapping[str, Any],
) -> Verdict:
    target = float(params["target_probability"])
    above = int((risk.chance > target).sum())
    many = min(above, int(params["most_nodes"]))
    choices = [choose(p, steps, target, float(params["incident_hours"])) for p in risk.chance[:many].tolist()]
    evidence = (
        *show.recommended(risk, choices, params),
        *show.spared(risk, many, params),
        *show.reliability(tried, params),
        *show.effects(model),
        *show.benchmarks(past, steps, params),
        show.account(params, tried),
    )
    figures = {
        **measures,
        "above_target": above,
        "recommended": many,
        "validation_hours": sum(one.hours for one in choices),
    }
    if not many:
        return quiet(figures, evidence)
    suspects = tuple(_suspect(risk, i, choices[i], params, bool(steps)) for i in range(many))
    return Verdict("named", suspects, None, figures, evidence)


def _suspect(risk: Risk, i: int, choice: Choice, params: Params, known: bool) -> Suspect:
    node, reason = risk.nodes[i], _summary(risk, i, params)
    if not known:
        advice = "Validate it before its next job."
    elif choice.benchmarks:
        advice = f"Run {', '.join(choice.benchmarks)} ({choice.hours:.3g} h) before its next job."
    else:
        advice = "No benchmark that has found defects would pay for itself."
    return Suspect(node, None, f"{node} {reason}. {advice}", phrase=reason, forecast=True)


def _summary(risk: Risk, i: int, params: Params) -> str:
    """Forecast for a node and its reason, as the end of a sentence that begins with it."""
    chance, usual = float(risk.chance[i]), float(np.median(risk.chance))
    times = chance / usual if usual > 0 else 0.0
    many = "over 100" if times > 100 else f"{times:.0f}"
    against = f", {many} times the median node's" if times >= 1.5 else ""
    why = [risk.strongest[i], _before(int(risk.incidents[i]))]
    reasons = ", ".join(dict.fromkeys(reason for reason in why if reason))
    return (
        f"may have an incident within {params['horizon_hours']:g} hours "
        f"(predicted probability {percent(chance)}{against}){f': {reasons}' if reasons else ''}"
    )


def _before(incidents: int) -> str:
    return "" if not incidents else f"{incidents} incident{'s' if incidents > 1 else ''} so far"


def _kinds(text: object) -> frozenset[str]:
    return frozenset(word.strip() for word in str(text).split(",") if word.strip())


_OFF = 1.5
"""Largest factor between predicted and observed incidents, up or down."""
_ERRORS = 3.0
"""Standard errors of a count that this must exceed, too."""
_PRIOR = 5.0
"""Incidents as predicted that a correction starts from, so that a few do not move it far."""
_KNOWN = 0.5


def correction(tried: Trial | None, learnt: Trial | None) -> float:
    """Factor on the hazard of an incident: 1 where the predictions that were `tried` came true.

    The factor is what happened over what the model predicts that has `learnt` from the last quarter, too: it knows a
    part of the change already, so that the ratio of `tried` would count that part twice.
    """
    if tried is None or learnt is None or _came_true(tried):
        return 1.0
    return (learnt.incidents + _PRIOR) / (learnt.expected + _PRIOR)


def assumptions(tried: Trial | None, factor: float, state: State) -> tuple[Assumption, ...]:
    """Whether the past predicts what follows it, with the `factor` on the hazard where it does not, and whether
    covariates are told of the nodes at risk."""
    return (_history(tried, factor), _sampling(state))


def _history(tried: Trial | None, factor: float) -> Assumption:
    if tried is None:
        detail = "The data are too short to hold some out: nothing shows that the probabilities hold."
        return Assumption("history", False, detail)
    happened = f"{so_many(tried.incidents, 'incident')} happened"
    ratio = f"{happened} where {tried.expected:.3g} were predicted, on held-out data"
    if _came_true(tried):
        return Assumption("history", True, f"{ratio}.")
    return Assumption("history", False, f"{ratio}: hazards are multiplied by {factor:.2g}.")


def _came_true(tried: Trial) -> bool:
    error = _ERRORS * float(np.sqrt(max(tried.expected, 1.0)))
    ratio = (tried.incidents + 0.5) / (tried.expected + 0.5)
    return abs(tried.incidents - tried.expected) <= error or 1 / _OFF <= ratio <= _OFF


def _sampling(state: State) -> Assumption:
    covariates = state.covariates[:, 1:]  # the first is the count of incidents, which is always known
    if not covariates.shape[1] or not len(covariates):
        return Assumption("sampling", True, "No covariates: nodes differ by their incidents only.")
    known = float(np.mean(~np.isnan(covariates)))
    detail = f"{percent(known)} of the covariates of {so_many(len(covariates), 'node')} at risk are known."
    return Assumption("sampling", known >= _KNOWN, detail)
