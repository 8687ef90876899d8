"""Evidence of a verdict: every change with its onset, common changes, cleared and steady components.

The tables `ONSETS` and `STEADY` are read by incidents, to say since when and to test changes as causes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from analyzers.builtin.changepoint.detect import Change
from analyzers.builtin.changepoint.findings import Changed, Outcome
from analyzers.builtin.changepoint.series import Observed
from analyzers.builtin.text import NATS, figure
from analyzers.builtin.vega import SCHEMA, time_axis
from analyzers.contract import Evidence, chart, table
from ingest.log.types import rfc3339

Json = dict[str, Any]

ONSETS, STEADY = "Onsets", "Components without a change"
_ROWS, _NAMES, _POINTS, _CHARTS = 300, 500, 240, 3


def pieces(seen: Observed, outcome: Outcome) -> tuple[Evidence, ...]:
    return (
        *_onsets(seen, outcome),
        *[_drawn(seen, one) for one in outcome.named[:_CHARTS]],
        *_common(seen, outcome),
        *_cleared(seen, outcome),
        *_steady(outcome),
    )


def begins(seen: Observed, column: int) -> str:
    return rfc3339(seen.starts[min(column, len(seen.starts) - 1)])


def ends(seen: Observed, column: int) -> str:
    return rfc3339(seen.starts[min(column, len(seen.starts) - 1)] + seen.width)


def _onsets(seen: Observed, outcome: Outcome) -> tuple[Evidence, ...]:
    """Changes that name a component and those common to all, which are changes too."""
    named = [one for each in outcome.named for one in each.changes]
    common = [one for each in outcome.common for one in each.changes]
    rows = tuple(
        (
            seen.series[one.series].component,
            seen.series[one.series].shown,
            begins(seen, one.first),
            begins(seen, one.at),
            ends(seen, one.last),
            None if one.end >= len(seen.starts) else begins(seen, one.end),
            _digits(one.before),
            _digits(one.after),
            round(one.shift, 2),
            round(one.evidence, 1),
        )
        for one in [*named, *common][:_ROWS]
    )
    columns = (
        "component",
        "metric",
        "onset from",
        "onset",
        "onset to",
        "until",
        "before",
        "after",
        "shift (sd)",
        "evidence (nats)",
    )
    note = f"The onset lies between its two ends with a probability of 95 %. {NATS}"
    return (table(ONSETS, columns, rows, note),) if rows else ()


def _drawn(seen: Observed, one: Changed) -> Evidence:
    """The series that changed most, with the interval of its onset."""
    most = one.changes[0]
    identity = seen.series[most.series]
    values = seen.values[most.series]
    since = max(0, most.first - 3 * max(1, len(values) - most.first))
    drawn = np.flatnonzero(np.isfinite(values[since:])) + since
    step = max(1, len(drawn) // _POINTS)
    points = [
        {"time": begins(seen, column), "value": _digits(float(values[column]))}
        for column in drawn[::step].tolist()
    ]
    spec: Json = {
        "$schema": SCHEMA,
        "width": "container",
        "height": 180,
        "layer": [
            {
                "data": {"values": [{"from": begins(seen, most.first), "to": ends(seen, most.last)}]},
                "mark": {"type": "rect", "color": "#c0392b", "opacity": 0.25},
                "encoding": {"x": time_axis("from", "%H:%M"), "x2": {"field": "to"}},
            },
            {
                "data": {"values": points},
                "mark": {"type": "line", "tooltip": {"content": "data"}},
                "encoding": {
                    "x": time_axis("time", "%H:%M"),
                    "y": {
                        "field": "value",
                        "type": "quantitative",
                        "title": identity.name,
                        "scale": {"zero": False},
                    },
                },
            },
        ],
    }
    return chart(
        f"{identity.shown} of {one.component}", spec, "The band is the onset, with 95 % probability."
    )


def _common(seen: Observed, outcome: Outcome) -> tuple[Evidence, ...]:
    rows = tuple(
        (one.name, one.changed, one.components, *_span(seen, one.changes)) for one in outcome.common[:_ROWS]
    )
    columns = ("metric", "components that changed", "components", "first onset", "last onset")
    note = "Half of the components or more changed alike and at the same time: what they share changed."
    return (table("Common changes", columns, rows, note),) if rows else ()


def _span(seen: Observed, changes: tuple[Change, ...]) -> Iterator[str]:
    yield begins(seen, min(one.at for one in changes))
    yield begins(seen, max(one.at for one in changes))


def _cleared(seen: Observed, outcome: Outcome) -> tuple[Evidence, ...]:
    rows = tuple(
        (
            seen.series[one.series].component,
            seen.series[one.series].shown,
            begins(seen, one.at),
            round(one.shift, 2),
            why,
        )
        for one, why in outcome.cleared[:_ROWS]
    )
    columns = ("component", "metric", "onset", "shift (sd)", "why it is cleared")
    return (table("Looked into and cleared", columns, rows),) if rows else ()


def _steady(outcome: Outcome) -> tuple[Evidence, ...]:
    rows = tuple((name,) for name in outcome.steady[:_NAMES])
    return (table(STEADY, ("component",), rows),) if rows else ()


def sentence(seen: Observed, one: Changed) -> str:
    """Change, as the end of a sentence that begins with the component."""
    most = one.changes[0]
    name = seen.series[most.series].shown
    more = len(one.changes) - 1
    others = f", with {more} other metric{'s' if more > 1 else ''}" if more else ""
    verb = "rose" if most.after > most.before else "fell"
    return f"changed: {name} {verb} from {figure(most.before, 3)} to {figure(most.after, 3)}{others}"


def _digits(value: float) -> float:
    return float(f"{value:.5g}")
