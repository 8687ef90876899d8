"""The grid: every pair of two kinds of component at once, over time, with what was blamed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import numpy as np
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from frontend.templatetags.dossier import short_name
from frontend.views.pages import page, show
from incidents.components.grid import Grid, grid_of
from incidents.domain.components.grid_query import WINDOWS, grid_query_from
from ingest.queries import PathSumsTooSlow

WORST = 10
"""Cells, rows and columns that the table lists."""
WORDS = {5: "5 min", 15: "15 min", 60: "1 hour", 360: "6 hours", 1440: "1 day"}
SPANS = (6, 12, 24)


@dataclass(frozen=True, slots=True)
class Cell:
    row: str
    column: str
    carried: int
    failed: int

    @property
    def share(self) -> float:
        return self.failed / self.carried if self.carried else 1.0


@dataclass(frozen=True, slots=True)
class Crumb:
    name: str
    address: str


@page
@require_safe
def grid(request: HttpRequest) -> HttpResponse:
    requested = grid_query_from(request.GET.dict(), request.GET.getlist("within"))
    context: dict[str, Any] = {
        "windows": [(minutes, WORDS[minutes]) for minutes in WINDOWS],
        "window": int(requested.window.total_seconds() // 60),
        "spans": sorted({*SPANS, requested.steps}),
        "count": requested.steps,
        "requested": requested,
        "crumbs": _crumbs(request, requested.within),
    }
    try:
        found = grid_of(requested)
    except PathSumsTooSlow as error:
        return show(
            request,
            "frontend/components/grid.html",
            {**context, "slow": str(error)},
            section="grid",
            status=503,
        )
    context["grid"] = found
    if found.crossing is not None:
        context |= _shown(request, found)
    live = "" if requested.end else "incidents runs"
    return show(request, "frontend/components/grid.html", context, section="grid", watch=live)


def _shown(request: HttpRequest, found: Grid) -> dict[str, Any]:
    assert found.crossing is not None
    crossing, at = found.crossing, found.at
    carried, failed = crossing.carried[at], crossing.failed[at]
    names = crossing.rows.names, crossing.columns.names
    every = Cell("", "", int(carried.sum()), int(failed.sum()))
    return {
        "data": _data(found),
        "start": found.steps[at][0],
        "end": found.steps[at][1],
        "every": every,
        "tall": _tall(*names),
        "lost": found.unplaced[at],
        "worst": _worst(names[0], names[1], carried, failed),
        "worst_rows": _worst(names[0], ("",), carried.sum(1, keepdims=True), failed.sum(1, keepdims=True)),
        "worst_columns": _worst(("",), names[1], carried.sum(0, keepdims=True), failed.sum(0, keepdims=True)),
        "marked": _marked(found),
        "steps": [
            {"end": end, "here": place == at, "address": _address(request, at=_written(end))}
            for place, (_, end) in enumerate(found.steps)
        ],
        "down": _drills(request, found, "r"),
        "right": _drills(request, found, "c"),
        "compare": f"{reverse('compare_grid')}?{_compared(request, found)}",
        "earlier": _address(request, end=_written(found.steps[0][1]), at=None),
        "later": _address(request, end=None, at=None) if request.GET.get("end") else "",
    }


def _tall(rows: Sequence[str], columns: Sequence[str]) -> int:
    """Pixels that `grid_drawing.js` takes where there is room, so that nothing moves once the cells are there: rows,
    and names above the columns while cells are wide enough for them."""
    row = min(max(640 / len(rows), 2.5), 26)
    if row < 12 and len(rows) * 13 <= 640:
        row = 13
    names = min(24 + 6.6 * max(len(short_name(one)) for one in columns), 124) if len(columns) < 60 else 18
    return round(names + row * len(rows)) + 19


def _data(found: Grid) -> str:
    """Address of the cells, with each choice that the address of the page leaves open: both are of one moment."""
    assert found.crossing is not None
    query: list[tuple[str, str]] = [
        ("region", found.region),
        ("telemetry", found.source or ""),
        ("rows", found.crossing.rows.kind),
        ("columns", found.crossing.columns.kind),
        ("window", str(int(found.window.total_seconds() // 60))),
        ("steps", str(len(found.steps))),
        ("end", _written(found.steps[-1][1])),
        ("at", _written(found.steps[found.at][1])),
        *(("within", one) for one in found.within),
    ]
    return f"{reverse('api-grid')}?{urlencode(query)}"


def _drills(request: HttpRequest, found: Grid, side: str) -> dict[str, str]:
    """By name of a row (`r`) or a column (`c`) the grid of what lies beneath it; empty where nothing does."""
    assert found.crossing is not None
    axis = found.crossing.rows if side == "r" else found.crossing.columns
    finer = found.finer_rows if side == "r" else found.finer_columns
    if finer is None:
        return {}
    query = {"rows": found.crossing.rows.kind, "columns": found.crossing.columns.kind}
    query["rows" if side == "r" else "columns"] = finer
    sides = _sides(request, found.within) + side
    return {name: _address(request, **query, within=[*found.within, name], side=sides) for name in axis.names}


def _worst(rows: Sequence[str], columns: Sequence[str], carried: Any, failed: Any) -> list[Cell]:
    """Cells with the largest share of failures, of those in which anything failed; little evidence goes last: shares
    are taken as if one more had been carried and none of it failed."""
    at = np.argwhere(failed > 0)
    share = failed[failed > 0] / (carried[failed > 0] + 1)
    order = np.argsort(-share, kind="stable")[:WORST]
    return [
        Cell(rows[row], columns[column], int(carried[row, column]), int(failed[row, column]))
        for row, column in at[order].tolist()
    ]


def _marked(found: Grid) -> list[dict[str, Any]]:
    """Components blamed in the step that is shown, each once: by incidents and analyzers."""
    by: dict[str, dict[str, Any]] = {}
    for mark in found.marks[found.at]:
        entry = by.setdefault(mark.component, {"component": mark.component, "incidents": [], "runs": []})
        entry["incidents" if mark.by == "incident" else "runs"].append(mark)
    return list(by.values())


def _crumbs(request: HttpRequest, within: Sequence[str]) -> list[Crumb]:
    """The way down; each leads back to the grid in which it was a row (`r` in `side`) or a column (`c`)."""
    sides = _sides(request, within)
    found = []
    for place, name in enumerate(within):
        back: dict[str, str] = {}
        for side, below in zip(sides[place:], within[place:], strict=True):
            back.setdefault("columns" if side == "c" else "rows", below.partition("/")[0])
        address = _address(request, within=list(within[:place]), side=sides[:place], **back)
        found.append(Crumb(name, address))
    return found


def _sides(request: HttpRequest, within: Sequence[str]) -> str:
    """On which side each was drilled into; whatever nobody says was a row."""
    sides = "".join(one for one in request.GET.get("side", "") if one in "rc")
    return sides[: len(within)].ljust(len(within), "r")


def _address(request: HttpRequest, **changed: object) -> str:
    """This page with some parameters changed; None and empty ones are taken away."""
    given: dict[str, object] = {name: request.GET.getlist(name) for name in request.GET}
    query = urlencode({name: value for name, value in {**given, **changed}.items() if value}, doseq=True)
    return reverse("grid") + (f"?{query}" if query else "")


def _compared(request: HttpRequest, found: Grid) -> str:
    """The query of the comparison of the first step with the one that is shown."""
    stored = ("region", "telemetry", "rows", "columns", "window", "within")
    query = [(name, value) for name in stored for value in request.GET.getlist(name) if value]
    first = 0 if found.at else -1
    start = found.steps[first][1] if first == 0 else found.steps[0][0]
    return urlencode([*query, ("from", _written(start)), ("to", _written(found.steps[found.at][1]))])


def _written(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
