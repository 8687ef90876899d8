"""Incidents and sightings of nodes, as intervals at risk: what survival analysis counts.

The clock of a node is the time since its last incident (since it was first seen, if it had none), as in the gap-time
form of a counting process (Prentice, Williams and Peterson, 1981). Every row of a node begins an interval with the
covariates as they are known then; the interval ends with the next row and is an event if that row is an incident. The
last one is censored at the end of the data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.paths import texts
from analyzers.contract import Sums, Window

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

PRIOR = "incidents_before"
"""The covariate that every node has: log(1 + incidents so far)."""
_HOUR = 3_600_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Episodes:
    """Intervals at risk. `node` numbers `nodes`; times are hours since 1970; `origin` is when the clock began, so that
    an interval reaches from `start - origin` to `stop - origin` on it. `covariates` has shape (intervals, names), NaN
    where nothing is known.
    """

    nodes: tuple[str, ...]
    names: tuple[str, ...]
    node: Ints
    start: Floats
    stop: Floats
    origin: Floats
    event: Mask
    covariates: Floats
    incidents: Ints

    def __len__(self) -> int:
        return len(self.node)

    def until(self, at: float) -> Episodes:
        """Episodes as known at a time: later intervals left out, those that reach beyond it censored there."""
        mask = self.start < at
        return self._only(mask, np.minimum(self.stop[mask], at), self.event[mask] & (self.stop[mask] <= at))

    def under_way(self, at: float) -> Episodes:
        """The intervals that a time falls into, one for each node that is at risk then."""
        mask = (self.start <= at) & (at < self.stop)
        return self._only(mask, self.stop[mask], self.event[mask])

    def only(self, rows: Ints) -> Episodes:
        """Some of the intervals, by place."""
        mask = np.zeros(len(self), dtype=bool)
        mask[rows] = True
        return self._only(mask, self.stop[mask], self.event[mask])

    def _only(self, mask: Mask, stop: Floats, event: Mask) -> Episodes:
        return Episodes(
            self.nodes,
            self.names,
            self.node[mask],
            self.start[mask],
            stop,
            self.origin[mask],
            event,
            self.covariates[mask],
            self.incidents[mask],
        )


@dataclass(slots=True)
class _Row:
    """All that is told of a node at one time."""

    incident: bool
    gone: bool
    measured: dict[str, float]


def episodes(window: Window, not_incidents: frozenset[str], gone: frozenset[str]) -> Episodes:
    """The intervals of the window with its history. Kinds of `not_incidents` are sightings, those of `gone` end what is
    known of a node until it is seen again.
    """
    reported = _reported([one.sums["incidents"] for one in (*window.history, window)], not_incidents, gone)
    nodes = tuple(sorted(reported))
    end = window.end.timestamp() * 1_000_000
    names = tuple(
        sorted({name for rows in reported.values() for row in rows.values() for name in row.measured})
    )
    place = {name: i for i, name in enumerate(names)}
    intervals: list[tuple[int, float, float, float, bool, int]] = []
    known: list[list[float]] = []
    for number, node in enumerate(nodes):
        _walk(number, reported[node], end, place, intervals, known)
    columns = np.array(intervals, dtype=np.float64).reshape(-1, 6)
    return Episodes(
        nodes,
        (PRIOR, *names),
        columns[:, 0].astype(np.int64),
        columns[:, 1] / _HOUR,
        columns[:, 2] / _HOUR,
        columns[:, 3] / _HOUR,
        columns[:, 4] > 0,
        np.column_stack([np.log1p(columns[:, 5]), np.array(known).reshape(len(columns), len(names))]),
        columns[:, 5].astype(np.int64),
    )


def _reported(
    tables: Sequence[Sums], not_incidents: frozenset[str], gone: frozenset[str]
) -> dict[str, dict[int, _Row]]:
    """Rows by node and time; those of one time are one, the larger value counts where they differ."""
    reported: dict[str, dict[int, _Row]] = {}
    parsed: dict[str, Mapping[str, float]] = {}
    for sums in tables:
        times = np.asarray(sums.keys["time"]).tolist()
        for node, time, kind, text in zip(
            texts(sums, "node"), times, texts(sums, "kind"), texts(sums, "covariates"), strict=True
        ):
            row = reported.setdefault(node, {}).setdefault(time, _Row(False, False, {}))
            row.gone |= kind in gone
            row.incident |= kind not in gone and kind not in not_incidents
            if text not in parsed:
                parsed[text] = json.loads(text) if text else {}
            for name, value in parsed[text].items():
                row.measured[name] = max(float(value), row.measured.get(name, float("-inf")))
    return reported


def _walk(
    number: int,
    rows: Mapping[int, _Row],
    end: float,
    place: Mapping[str, int],
    intervals: list[tuple[int, float, float, float, bool, int]],
    known: list[list[float]],
) -> None:
    """Add the intervals of one node."""
    times = sorted(rows)
    values = [float("nan")] * len(place)
    origin, incidents, seen = float(times[0]), 0, False
    for at, until in zip(times, [*times[1:], end], strict=True):
        row = rows[at]
        for name, value in row.measured.items():
            values[place[name]] = value
        if row.incident or not seen:
            origin = float(at)
        incidents += row.incident
        seen = not row.gone
        if seen and until > at:
            event = until < end and rows[int(until)].incident
            intervals.append((number, float(at), float(until), origin, event, incidents))
            known.append(list(values))
