"""Evidence of a NetBouncer verdict: the blamed with their numbers, the cleared, losses as a chart."""

from __future__ import annotations

from typing import Any

from analyzers.builtin.netbouncer.stages import Blamed, Found
from analyzers.builtin.paths import Incidence, simpler_methods
from analyzers.builtin.text import NATS, hundredths
from analyzers.builtin.vega import COLOURS, SCHEMA
from analyzers.contract import Evidence, chart, table, text

MOST_LINES = 20


def sentence(seen: Incidence, one: Blamed) -> str:
    name = seen.names[one.component]
    paths = seen.containing([one.component])
    lost, sent = int(seen.failures[paths].sum()), int(seen.attempts[paths].sum())
    note = (
        f"{name} loses {_percent(one.loss)} ({_percent(one.low)} to {_percent(one.high)}) of the probes that pass it: "
        f"{lost:,} of {sent:,} probes on its {int(paths.sum()):,} paths were lost"
    )
    if one.device:
        note += ", and none of these paths is clean"
    if seen.alike[one.component]:
        others = ", ".join(seen.alike[one.component][:5])
        return f"{note}. The same paths pass {others} and do not separate it from them."
    return f"{note}."


def evidence_of(seen: Incidence, found: Found) -> tuple[Evidence, ...]:
    named = {name for one in found.blamed for name in (seen.names[one.component], *seen.alike[one.component])}
    shown = [_blamed(seen, found)] if found.blamed else []
    if found.cleared:
        shown.append(_cleared(seen, found))
    if found.blamed:
        shown.append(_losses(seen, found))
    if found.blamed or (~found.clean).any():
        shown.append(simpler_methods(seen, max(0.005, 3 * found.noise), named))
    shown.append(_method(seen, found))
    return tuple(shown)


def _blamed(seen: Incidence, found: Found) -> Evidence:
    rows = []
    for one in found.blamed:
        paths = seen.containing([one.component])
        rows.append(
            (
                seen.names[one.component],
                "device" if one.device else seen.names[one.component].partition("/")[0],
                hundredths(one.loss),
                hundredths(one.low),
                hundredths(one.high),
                int(paths.sum()),
                int((paths & ~found.clean).sum()),
                int(seen.attempts[paths].sum()),
                int(seen.failures[paths].sum()),
                round(one.ratio / 2, 1),
                float(f"{one.p_value:.3g}"),
                ", ".join(seen.alike[one.component][:5]) or "–",
            )
        )
    columns = (
        "component", "what", "loss (%)", "low (%)", "high (%)", "paths", "lossy paths", "probes sent", "lost",
        "evidence (nats)", "p", "ambiguous with",
    )  # fmt: skip
    note = (
        "The loss is the component's own, with its 95 % interval; p is how probable as much is by chance. "
        + NATS
    )
    return table("Blamed", columns, tuple(rows), note)


def _cleared(seen: Incidence, found: Found) -> Evidence:
    worst = sorted(found.cleared, key=lambda one: (-one[1], int(seen.mark[one[0]]), seen.names[one[0]]))
    rows = []
    for component, ratio in worst[:MOST_LINES]:
        paths = seen.containing([component])
        rows.append(
            (
                seen.names[component],
                hundredths(1 - float(found.success[component])),
                int(paths.sum()),
                int((paths & found.clean).sum()),
                round(max(ratio, 0.0) / 2, 1),
                "losses explained by noise and blamed components",
            )
        )
    columns = (
        "component", "first estimate of its loss (%)", "paths", "clean paths", "evidence left (nats)",
        "why it is cleared",
    )  # fmt: skip
    return table(
        "Looked into and cleared",
        columns,
        tuple(rows),
        f"Suspected by a first estimate, cleared by a second. {NATS}",
    )


def _losses(seen: Incidence, found: Found) -> Evidence:
    values: list[dict[str, Any]] = [
        {
            "component": seen.names[one.component],
            "loss": round(100 * one.loss, 4),
            "low": round(100 * one.low, 4),
            "high": round(100 * one.high, 4),
        }
        for one in found.blamed[:MOST_LINES]
    ]
    order = [one["component"] for one in values]
    y = {"field": "component", "type": "nominal", "title": None, "sort": order}
    x = {"type": "quantitative", "title": "loss (% of probes, 95 % interval)"}
    spec = {
        "$schema": SCHEMA,
        "width": "container",
        "data": {"values": values},
        "height": {"step": 18},
        "layer": [
            {
                "mark": {"type": "rule", "strokeWidth": 2, "color": COLOURS[0]},
                "encoding": {"y": y, "x": {**x, "field": "low"}, "x2": {"field": "high"}},
            },
            {
                "mark": {
                    "type": "point",
                    "filled": True,
                    "size": 60,
                    "color": COLOURS[0],
                    "tooltip": {"content": "data"},
                },
                "encoding": {"y": y, "x": {**x, "field": "loss"}},
            },
        ],
    }
    return chart("Loss of the blamed", spec)


def _method(seen: Incidence, found: Found) -> Evidence:
    lossy = int((~found.clean).sum())
    return text(
        "Method",
        f"{seen.paths:,} paths over {seen.components:,} components; {lossy:,} paths lost more than noise "
        f"({100 * found.noise:.3g} % at most) explains. A device is blamed when no clean path crosses it. For the "
        "links on lossy paths a first estimate says which lose anything, leaning towards none or all by how many "
        "paths a link has and the smallest loss of interest. What that suspects is estimated again by how probable "
        "the lost probes are, merged where one link explains what several do, and blamed if chance and the other "
        "blamed do not explain them; the more are blamed, the less is asked of each. Method: coordinate descent, "
        "then maximum likelihood (NetBouncer, Tan et al., NSDI 2019; penalty a link, merging, refit and bar are ours).",
    )


def _percent(share: float) -> str:
    value = 100 * share
    return f"{value:.2g} %" if value < 10 else f"{value:.0f} %"
