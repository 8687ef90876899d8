"""A month of units that go down and come back, near to their storage or far from it.

Far units fail more often by a known share. Days differ (a common factor), the mix of near and far shifts from
day to day, and some failures come in clumps, when a cluster takes many units of one placement down at once:
each would mislead a ratio of totals, or make its interval too narrow.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.contract import Window
from analyzers.simulators.outages import START, micro, stamp
from analyzers.simulators.tables import rows_as_sums

Row = dict[str, Any]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CAUSES = ("storage", "network", "host", "software")
SHARES = (0.4, 0.2, 0.25, 0.15)
MINUTES = (12.0, 8.0, 30.0, 5.0)


@dataclass(frozen=True, slots=True)
class Month:
    """`daily` failures a unit near its storage; far ones fail `farther` more often (0.114: 11.4 %).

    A share `far` of the units is far, less each day as `shift` of them are moved near over the month. Days
    vary log-normally by `unevenness`. A share `clumped` of the failures comes in clumps of ten. `bad` units
    fail `bad_factor` times as often.
    """

    units: int = 6000
    days: int = 30
    daily: float = 0.03
    farther: float = 0.114
    far: float = 0.5
    shift: float = 0.3
    unevenness: float = 0.4
    clumped: float = 0.0
    bad: int = 0
    bad_factor: float = 40.0


@dataclass(frozen=True, slots=True, eq=False)
class Life:
    """Down times of units, sorted by unit and start: minutes from the start, index of the cause; `move` is the
    minute at which a far unit becomes near (never: infinity), `far_first` whether it began far.
    """

    month: Month
    names: tuple[str, ...]
    bad: tuple[int, ...]
    far_first: NDArray[np.bool_]
    move: Floats
    unit: Ints
    start: Floats
    end: Floats
    cause: Ints

    @property
    def culprits(self) -> tuple[str, ...]:
        return tuple(self.names[unit] for unit in self.bad)


def draw(month: Month, seed: int) -> Life:
    rng = np.random.default_rng(seed)
    length = month.days * 1440.0
    far = rng.random(month.units) < month.far
    move = np.where(rng.random(month.units) < month.shift, rng.uniform(0, length, month.units), np.inf)
    bad = np.sort(rng.choice(month.units, month.bad, replace=False))
    factor = np.ones(month.units)
    factor[bad] = month.bad_factor
    of_day = rng.lognormal(-(month.unevenness**2) / 2, month.unevenness, month.days)
    units, starts = [], []
    for day in range(month.days):
        is_far = far & (move > day * 1440)
        rate = month.daily * of_day[day] * factor * np.where(is_far, 1 + month.farther, 1.0)
        unit = np.repeat(np.arange(month.units), rng.poisson(rate * (1 - month.clumped)))
        units.append(unit)
        starts.append(day * 1440 + rng.uniform(0, 1440, len(unit)))
        for members in _clumps(month, rng, rate, is_far):
            units.append(members)
            starts.append(np.full(len(members), day * 1440 + rng.uniform(0, 1440)))
    names = tuple(f"vm/v{i + 1:05d}" for i in range(month.units))
    return _lives(
        month, rng, names, tuple(bad.tolist()), far, move, np.concatenate(units), np.concatenate(starts)
    )


def _clumps(month: Month, rng: np.random.Generator, rate: Floats, far: NDArray[np.bool_]) -> list[Ints]:
    """Units that one cluster takes down: ten of one placement at once."""
    found = []
    for side in (far, ~far):
        members = np.flatnonzero(side)
        expected = float(rate[side].sum()) * month.clumped / 10
        for _ in range(int(rng.poisson(expected)) if len(members) >= 10 else 0):
            found.append(rng.choice(members, 10, replace=False))
    return found


def _lives(
    month: Month,
    rng: np.random.Generator,
    names: tuple[str, ...],
    bad: tuple[int, ...],
    far: NDArray[np.bool_],
    move: Floats,
    unit: Ints,
    start: Floats,
) -> Life:
    """Give each failure its cause and end, and drop those of units that are down already."""
    cause = rng.choice(len(CAUSES), len(unit), p=SHARES)
    minutes = rng.exponential(np.array(MINUTES)[cause]) + 0.2
    end = np.minimum(start + minutes, month.days * 1440.0 - 0.01)
    order = np.lexsort((start, unit))
    unit, start, end, cause = unit[order], start[order], end[order], cause[order]
    apart = unit * (2 * month.days * 1440.0)  # so that no unit reaches into the time of the next
    reach = np.concatenate([[-1.0], np.maximum.accumulate(apart + end)[:-1]])
    valid = (start < end) & (apart + start >= reach + 1)
    return Life(month, names, bad, far, move, unit[valid], start[valid], end[valid], cause[valid])


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Uptime rows as columns."""

    unit: list[str]
    start: list[float]
    end: list[float]
    state: list[str]
    cause: list[str]
    placed: list[str]


def table_of(life: Life) -> Table:
    """Up and down in turn for each unit; a unit that is moved begins a new row."""
    out = Table([], [], [], [], [], [])
    bounds = np.searchsorted(life.unit, np.arange(len(life.names) + 1))
    length = life.month.days * 1440.0

    def add(unit: int, start: float, end: float, state: str, cause: str) -> None:
        move = float(life.move[unit])
        if state == "up" and start < move < end and life.far_first[unit]:
            add(unit, start, move, state, cause)
            start = move
        if end <= start:
            return
        out.unit.append(life.names[unit])
        out.start.append(start)
        out.end.append(end)
        out.state.append(state)
        out.cause.append(cause)
        out.placed.append("far" if life.far_first[unit] and start < move else "near")

    for unit in range(len(life.names)):
        at = 0.0
        for row in range(bounds[unit], bounds[unit + 1]):
            add(unit, at, float(life.start[row]), "up", "")
            add(unit, float(life.start[row]), float(life.end[row]), "down", CAUSES[life.cause[row]])
            at = float(life.end[row])
        add(unit, at, length, "up", "")
    return out


def window_of(life: Life, reported: Table | None = None) -> Window:
    """The whole month as one window of the input `uptime`; of what was `reported`, if that differs from what was."""
    table = reported or table_of(life)
    start, end = (
        np.array([micro(at) for at in column], dtype=np.int64) for column in (table.start, table.end)
    )
    valid = np.flatnonzero(start < end).tolist()
    sums = rows_as_sums(
        {
            "unit": [table.unit[row] for row in valid],
            "start": start[valid],
            "end": end[valid],
            "state": [table.state[row] for row in valid],
            "cause": [table.cause[row] for row in valid],
            "hops_class": [table.placed[row] for row in valid],
        }
    )
    over = START + timedelta(days=life.month.days)
    return Window(START, over, "synthetic", "uptime", {"uptimes": sums})


def uptime_rows(table: Table) -> list[Row]:
    rows = []
    columns = zip(table.unit, table.start, table.end, table.state, table.cause, table.placed, strict=True)
    for unit, start, end, state, cause, placed in columns:
        if micro(start) < micro(end):
            row = {"unit": unit, "start": stamp(start), "end": stamp(end), "state": state}
            rows.append({**row, **({"cause": cause} if cause else {}), "hops_class": placed})
    return rows


def truth(name: str, seed: int, life: Life) -> Row:
    span = {"start": stamp(0), "end": stamp(life.month.days * 1440)}
    faults = [{"component": culprit, "kind": "fails_often", **span} for culprit in life.culprits]
    return {"scenario": name, "seed": seed, **span, "faults": faults, "far_over_near": life.month.farther}
