"""Windows of a backtest by time and component, as coordinates for SVG: one line a component."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from frontend import times
from incidents.scorecards.models import BacktestWindow

WIDTH, HEIGHT = 600.0, 16.0
MOST_CELLS = 120
"""Of one line; more windows share cells."""
MOST_LINES = 8
GAP = 1.0
LEAST_OPACITY = 0.3


@dataclass(frozen=True, slots=True)
class Cell:
    x: str
    width: str
    opacity: str
    title: str


@dataclass(frozen=True, slots=True)
class Line:
    component: str
    region: str
    windows: int
    cells: Sequence[Cell]


@dataclass(frozen=True, slots=True)
class Strip:
    """The components named in most windows; `more` others are left out."""

    lines: Sequence[Line]
    more: int
    start: datetime
    end: datetime


def strip(windows: Iterable[BacktestWindow]) -> Strip | None:
    """None where no component was named."""
    rows = sorted(windows, key=lambda one: (one.end, one.number))
    named = Counter((one.region, _name(suspect)) for one in rows for suspect in one.suspects)
    if not named:
        return None
    ends = sorted({one.end for one in rows})
    cells = min(len(ends), MOST_CELLS)
    place = {end: index * cells // len(ends) for index, end in enumerate(ends)}
    shown = sorted(named, key=lambda key: (-named[key], key))[:MOST_LINES]
    lines = [Line(key[1], key[0], named[key], _cells(rows, key, place, WIDTH / cells)) for key in shown]
    return Strip(lines, len(named) - len(shown), min(one.start for one in rows), ends[-1])


def _name(suspect: Mapping[str, object]) -> str:
    names = suspect["names"]
    assert isinstance(names, list)
    return str(names[0])


def _cells(
    rows: Sequence[BacktestWindow], key: tuple[str, str], place: Mapping[datetime, int], wide: float
) -> list[Cell]:
    """The cells with a window that names the component, darker for a higher probability."""
    found: dict[int, tuple[float, datetime]] = {}
    for one in rows:
        scores = [suspect["score"] or 0.0 for suspect in one.suspects if (one.region, _name(suspect)) == key]
        if scores:
            at = place[one.end]
            best = max(scores[0], found[at][0]) if at in found else scores[0]
            found[at] = (best, one.end)
    return [
        Cell(
            f"{at * wide:.2f}",
            f"{max(wide - GAP, GAP):.2f}",
            f"{LEAST_OPACITY + (1 - LEAST_OPACITY) * score:.2f}",
            f"window that ended {times.local(end):%-d %b %H:%M} {times.offset(end)}: {score:.0%}",
        )
        for at, (score, end) in sorted(found.items())
    ]
