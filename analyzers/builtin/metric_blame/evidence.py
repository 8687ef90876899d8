"""Evidence of a verdict: the candidates, their changed metrics, the charts of the first, and the judged series."""

from __future__ import annotations

from typing import Any

import numpy as np

from analyzers.builtin.metric_blame.blame import Outcome
from analyzers.builtin.metric_blame.change import Change, Changes
from analyzers.builtin.metric_blame.series import Observed
from analyzers.builtin.text import NATS, figure, hundredths
from analyzers.builtin.vega import COLOURS, SCHEMA, colour, time_axis
from analyzers.contract import Evidence, chart, table
from ingest.log.types import rfc3339

Json = dict[str, Any]

_ROWS, _POINTS, _CHARTS = 20, 200, 2


def pieces(seen: Observed, found: Changes, outcome: Outcome) -> tuple[Evidence, ...]:
    return (*_candidates(seen, outcome), *_charts(seen, outcome), *_changed(seen, found))


def _candidates(seen: Observed, outcome: Outcome) -> tuple[Evidence, ...]:
    rows = tuple(
        (
            one.component.name,
            hundredths(one.share),
            round(one.component.external, 1),
            round(one.component.internal, 1),
            rfc3339(seen.starts[one.component.onset]),
            sum(
                share >= 0.5 and outcome.components[name].external >= 1
                for name, share in one.explained.items()
                if name != one.component.name and name in outcome.components
            )
            if seen.calls
            else None,
        )
        for one in outcome.candidates[:_ROWS]
    )
    columns = (
        "component",
        "share of the weight (%)",
        "external (nats)",
        "internal (nats)",
        "since",
        "callers explained",
    )
    note = f"External: latency, errors, availability; internal: resources of its own. {NATS}"
    return (table("Components that changed, as the cause", columns, rows, note),) if rows else ()


def _changed(seen: Observed, found: Changes) -> tuple[Evidence, ...]:
    order = sorted(found.found, key=lambda one: (-one.nats, one.identity))
    rows = tuple(
        (
            one.identity.component,
            one.identity.shown,
            one.identity.sort,
            figure(one.before),
            figure(one.value),
            round(one.size, 1),
            rfc3339(seen.starts[one.first]),
            round(one.nats, 1),
        )
        for one in order[:_ROWS]
        if one.nats > 0
    )
    columns = (
        "component",
        "metric",
        "sort",
        "before",
        "value",
        "robust deviations",
        "since",
        "evidence (nats)",
    )
    note = "Availability is shown as what is missing. Load accuses nobody."
    return (table("Changed metrics", columns, rows, note),) if rows else ()


def _charts(seen: Observed, outcome: Outcome) -> tuple[Evidence, ...]:
    if not outcome.candidates:
        return ()
    shown = [(outcome.candidates[0].component.changes[0], "cause")]
    if outcome.symptom is not None and outcome.symptom.name != outcome.candidates[0].component.name:
        shown.append((outcome.symptom.changes[0], "symptom"))
    return tuple(_chart(seen, one) for one, _ in shown[:_CHARTS])


def _chart(seen: Observed, one: Change) -> Evidence:
    values = seen.values[one.series]
    there = np.flatnonzero(np.isfinite(values))
    step = max(1, -(-len(there) // _POINTS))
    names = ("before", "window")
    points = [
        {
            "time": rfc3339(seen.starts[at]),
            "series": names[at >= seen.now],
            "value": float(f"{values[at]:.5g}"),
        }
        for at in there.tolist()
        if at >= seen.now or at % step == 0
    ]
    spec: Json = {
        "$schema": SCHEMA,
        "width": "container",
        "height": 160,
        "data": {"values": points},
        "mark": {"type": "line", "point": True, "tooltip": {"content": "data"}},
        "encoding": {
            "x": time_axis("time", "%H:%M"),
            "y": {
                "field": "value",
                "type": "quantitative",
                "title": one.identity.name,
                "scale": {"zero": False},
            },
            "color": colour("series", names, (COLOURS[5], COLOURS[0])),
        },
    }
    return chart(f"{one.identity.shown} of {one.identity.component}", spec)
