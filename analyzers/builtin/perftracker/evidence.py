"""Evidence of a verdict: the blamed workers and functions, the role's patterns in the worst one, and common causes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from analyzers.builtin.perftracker.differential import Apart, Common, Found
from analyzers.builtin.perftracker.patterns import BETA, MU, SIGMA, Role
from analyzers.builtin.text import hundredths
from analyzers.builtin.vega import COLOURS, SCHEMA, colour
from analyzers.contract import Evidence, chart, table

Json = dict[str, Any]

_ROWS, _DOTS, _FUNCTIONS = 30, 300, 12


def pieces(
    all_roles: Sequence[Role], found: Found, causes: Sequence[Common], nodes: Mapping[str, str]
) -> tuple[Evidence, ...]:
    return (
        *_apart("Blamed workers and their functions", found.apart, nodes),
        *[_against_role(one) for one in found.apart[:1]],
        *_common(causes),
        *_apart("Looked into and cleared", found.doubtful, nodes),
        *_groups(found),
        *[_usual(role) for role in all_roles[:1]],
    )


def _apart(title: str, apart: Sequence[Apart], nodes: Mapping[str, str]) -> tuple[Evidence, ...]:
    rows = tuple(
        (
            one.component,
            *([nodes.get(one.component, "–")] if nodes else []),
            one.name,
            one.cls,
            one.role.shown,
            *[hundredths(float(one.role.values[BETA, one.function, one.worker]))],
            *[round(ratio, 2) for ratio in one.ratios],
            round(one.nats, 1),
        )
        for one in apart[:_ROWS]
    )
    columns = (
        *("worker", *(["node"] if nodes else []), "function", "class", "role", "critical path (%)"),
        *("path, times the median", "use, times the median", "spread, times the median", "evidence (nats)"),
    )
    return (table(title, columns, rows),) if rows else ()


def _against_role(one: Apart) -> Evidence:
    """Every worker of the role in the worst function: share of the critical path against use of the resource."""
    beta, mu = one.role.values[BETA, one.function], one.role.values[MU, one.function]
    there = np.flatnonzero(np.isfinite(beta))
    drawn = there[np.unique(np.linspace(0, len(there) - 1, min(_DOTS, len(there))).astype(int))]
    points = [
        {
            "worker": one.role.workers[at],
            "critical path": float(f"{beta[at]:.4g}"),
            "use": float(f"{mu[at]:.4g}"),
            "judgement": "blamed" if at == one.worker else "peers",
        }
        for at in sorted({*drawn.tolist(), one.worker})
    ]
    spec: Json = {
        "$schema": SCHEMA,
        "width": "container",
        "height": 240,
        "data": {"values": points},
        "mark": {"type": "point", "filled": True, "tooltip": {"content": "data"}},
        "encoding": {
            "x": {
                "field": "critical path",
                "type": "quantitative",
                "title": "share of the critical path",
                "axis": {"format": "%"},
                "scale": {"zero": False},
            },
            "y": {
                "field": "use",
                "type": "quantitative",
                "title": "mean use of its resource",
                "scale": {"zero": False},
            },
            "color": colour("judgement", ("blamed", "peers"), (COLOURS[0], "#9aa5b1")),
        },
    }
    return chart(f"{one.name} on {one.component} and the other workers of {one.role.shown}", spec)


def _common(causes: Sequence[Common]) -> tuple[Evidence, ...]:
    rows = tuple(
        (
            one.name,
            one.role.shown,
            len(one.role.workers),
            hundredths(one.beta),
            None if one.before is None else hundredths(one.before),
        )
        for one in causes[:_ROWS]
    )
    columns = ("function", "role", "workers", "critical path (%)", "before (%)")
    note = "Nearly all workers have this: code or configuration, not a machine."
    return (table("Functions that all workers have too much of", columns, rows, note),) if rows else ()


def _groups(found: Found) -> tuple[Evidence, ...]:
    rows = tuple(
        (role.functions[function], role.shown, count, len(role.workers))
        for role, function, count in found.groups[:_ROWS]
    )
    note = "Too many for a fault of single workers: they do other work, or share a cause."
    columns = ("function", "role", "workers apart", "workers")
    return (table("Functions in which a group is apart", columns, rows, note),) if rows else ()


def _usual(role: Role) -> Evidence:
    medians = role.medians()
    order = np.lexsort((np.arange(len(role.functions)), -medians[BETA]))[:_FUNCTIONS]
    rows = tuple(
        (
            role.functions[at],
            role.classes[at],
            hundredths(float(medians[BETA, at])),
            round(float(medians[MU, at]), 3),
            round(float(medians[SIGMA, at]), 3),
        )
        for at in order.tolist()
    )
    return table(
        f"Usual patterns of {role.shown}", ("function", "class", "critical path (%)", "use", "spread"), rows
    )
