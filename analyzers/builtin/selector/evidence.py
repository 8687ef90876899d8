"""Evidence of the selector: nodes to validate with the reason, calibration of its probabilities, and findings of
benchmarks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from analyzers.builtin.selector.hazard import Model
from analyzers.builtin.selector.plan import Choice, Past, Step
from analyzers.builtin.selector.trial import Trial
from analyzers.builtin.text import percent, so_many
from analyzers.contract import Evidence, Params, chart, table, text

if TYPE_CHECKING:
    from analyzers.builtin.selector.trial import Risk

Json = dict[str, Any]

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"

_SPARED = 8
_BARS = 60
_RED, _AMBER, _GREY, _DARK = "#c0392b", "#e67e22", "#9aa5b1", "#4b5563"
_ADVICE = ("validate now", "above the target, later", "below the target")


def recommended(risk: Risk, choices: Sequence[Choice], params: Params) -> tuple[Evidence, ...]:
    rows = tuple(
        (
            risk.nodes[i],
            round(float(risk.chance[i]), 4),
            round(float(risk.since[i]), 1),
            int(risk.incidents[i]),
            risk.strongest[i],
            ", ".join(choice.benchmarks) or None,
            round(choice.hours, 2),
            round(choice.left, 4),
            round(choice.saved, 2),
        )
        for i, choice in enumerate(choices)
    )
    columns = (
        "node",
        f"probability within {params['horizon_hours']:g} h",
        "hours since the last incident",
        "incidents so far",
        "largest factors",
        "benchmarks to run",
        "hours",
        "probability left",
        "node-hours saved",
    )
    if not rows:
        return ()
    note = (
        f"Saved: the probability taken away times {params['incident_hours']:g} node-hours an incident, less the "
        "hours of the benchmarks. Hours count from when the node was first seen if it had no incident."
    )
    return table("Nodes to validate", columns, rows, note), _ranking(risk, len(choices), params)


def _ranking(risk: Risk, many: int, params: Params) -> Evidence:
    """Probabilities of the likeliest nodes, as bars, with the target as a line."""
    target = float(params["target_probability"])
    values = [
        {
            "node": risk.nodes[i],
            "probability": round(float(risk.chance[i]), 5),
            "advice": _ADVICE[0 if i < many else 1 if risk.chance[i] > target else 2],
        }
        for i in range(min(_BARS, len(risk.nodes)))
    ]
    y = {
        "field": "probability",
        "type": "quantitative",
        "title": f"probability of an incident within {params['horizon_hours']:g} h",
        "axis": {"format": ".1%"},
    }
    spec: Json = {
        "$schema": SCHEMA,
        "width": "container",
        "height": 180,
        "layer": [
            {
                "data": {"values": values},
                "mark": {"type": "bar", "tooltip": {"content": "data"}},
                "encoding": {
                    "x": {
                        "field": "node",
                        "type": "nominal",
                        "title": "node, likeliest first",
                        "sort": [value["node"] for value in values],
                        "axis": {"labels": len(values) <= 20, "ticks": False, "labelAngle": -40},
                    },
                    "y": y,
                    "color": {
                        "field": "advice",
                        "type": "nominal",
                        "title": None,
                        "scale": {"domain": list(_ADVICE), "range": [_RED, _AMBER, _GREY]},
                        "legend": {"orient": "top"},
                    },
                },
            },
            {
                "data": {"values": [{"target": target}]},
                "mark": {"type": "rule", "strokeDash": [4, 3]},
                "encoding": {"y": {"field": "target", "type": "quantitative"}},
            },
        ],
    }
    rest = len(risk.nodes) - len(values)
    note = f"The dashed line is the target, {percent(target)}." + (
        f" Not drawn: {so_many(rest, 'node')} below these." if rest else ""
    )
    return chart("How likely the next incident is", spec, note)


def spared(risk: Risk, many: int, params: Params) -> tuple[Evidence, ...]:
    """The likeliest of those that may go on unchecked, and for how long."""
    most = 100 * float(params["horizon_hours"])
    rows = tuple(
        (
            risk.nodes[i],
            round(float(risk.chance[i]), 5),
            round(float(risk.since[i]), 1),
            risk.strongest[i],
            None if risk.due[i] >= most else round(float(risk.due[i]), 1),
        )
        for i in range(many, min(many + _SPARED, len(risk.nodes)))
    )
    columns = (
        "node",
        f"probability within {params['horizon_hours']:g} h",
        "hours since the last incident",
        "largest factors",
        "hours until it reaches the target",
    )
    return (table("Next in line", columns, rows),) if rows else ()


def reliability(tried: Trial | None, params: Params) -> tuple[Evidence, ...]:
    """Whether what was predicted happened, on data that the model had not seen."""
    if tried is None:
        return ()
    values = [
        {"predicted": round(one.predicted, 5), "happened": round(one.happened, 5), "nodes": one.nodes}
        for one in tried.bins
    ]
    top = max(max(one.predicted, one.happened) for one in tried.bins)
    axis = {"format": ".1%"}
    x = {"field": "predicted", "type": "quantitative", "title": "predicted probability", "axis": axis}
    y = {"field": "happened", "type": "quantitative", "title": "share that had an incident", "axis": axis}
    even = [{"predicted": 0.0, "happened": 0.0}, {"predicted": round(top, 5), "happened": round(top, 5)}]
    spec: Json = {
        "$schema": SCHEMA,
        "width": "container",
        "height": 200,
        "layer": [
            {
                "data": {"values": even},
                "mark": {"type": "line", "strokeDash": [4, 3], "color": _GREY},
                "encoding": {"x": x, "y": y},
            },
            {
                "data": {"values": values},
                "mark": {
                    "type": "line",
                    "point": {"size": 60},
                    "color": _DARK,
                    "tooltip": {"content": "data"},
                },
                "encoding": {"x": x, "y": y},
            },
        ],
    }
    poor = (
        " They were no better than that: trust the order of nodes rather than the numbers."
        if tried.skill <= 0
        else ""
    )
    ranking = ""
    if tried.concordance is not None:
        right = percent(tried.concordance)
        ranking = f"; of two nodes the one said to be riskier had its incident first in {right} of the cases"
    note = (
        f"{tried.predictions} predictions over {params['horizon_hours']:g} h each, on the last quarter of the data, "
        f"learnt from what came before; {tried.incidents} incidents happened. Mean square error (Brier) "
        f"{tried.brier:.4f}, {tried.climate:.4f} for always saying the usual share{ranking}.{poor} On the dashed line "
        "predictions hold."
    )
    return (chart("Do the probabilities hold?", spec, note),)


def effects(model: Model) -> tuple[Evidence, ...]:
    rows = tuple(
        (one.name, round(one.ratio, 3), f"{one.low:.3g} to {one.high:.3g}")
        for one in sorted(model.effects, key=lambda one: (-abs(np.log(one.ratio)), one.name))
    )
    note = f"Learnt from {model.events} incidents. 2 times: one standard deviation more doubles the hazard."
    note += (
        f" Not used (unknown, constant, or too many for so few incidents): {', '.join(model.dropped)}."
        if (model.dropped)
        else ""
    )
    columns = ("known of a node", "risk (times)", "95 % interval")
    return (table("Factors of incident probability", columns, rows, note),) if rows else ()


def benchmarks(past: Past, steps: Sequence[Step], params: Params) -> tuple[Evidence, ...]:
    """The order in which benchmarks find most defects per hour."""
    if not past.found:
        return ()
    rows: list[tuple[Any, ...]] = []
    for step in steps:
        hours = past.hours[step.benchmark]
        rows.append(
            (step.benchmark, len(past.found[step.benchmark]), hours, round(step.coverage, 4), step.hours)
        )
    known = {step.benchmark for step in steps}
    rows += [
        (name, len(found), past.hours[name], None, None)
        for name, found in past.found.items()
        if name not in known
    ]
    note = f"{len(past.defects)} defects were found in past results. "
    if not steps:
        note += "No defect was found, so the benchmark that finds them is unknown."
    elif any(past.hours[step.benchmark] is None for step in steps):
        note += f"Without a stated duration {params['benchmark_hours']:g} h is taken."
    columns = ("benchmark", "defects it found", "hours it takes", "coverage up to here", "hours up to here")
    return (table("Benchmarks, by new defects found per hour", columns, tuple(rows), note),)


def account(params: Params, tried: Trial | None) -> Evidence:
    untried = (
        ""
        if tried is not None
        else " There was too little data to hold some out and try the probabilities on it."
    )
    return text(
        "Method",
        "Nodes that had an incident soon after a moment of the past were told from those that had none by a regression "
        "of the hazard on what was known of them (covariates, own rate of incidents, time since the last one), which "
        f"gives the probability now. Nodes above {percent(float(params['target_probability']))} should be validated, "
        f"at most {params['most_nodes']} in one round. It is advice: nothing about them has "
        "failed yet, so that no probability of being at fault is given. Benchmarks are chosen by the share of past "
        f"defects that they show, per hour, while they pay for themselves (Xiong et al., USENIX ATC 2024).{untried}",
    )
