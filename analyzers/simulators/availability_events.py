"""Months in which nothing is wrong and something unusual happens, as inventories and agents tell of them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.contract import Window
from analyzers.simulators import outages, uptimes
from analyzers.simulators.outages import Class, Outage, Record, Row, micro, stamp
from analyzers.simulators.tables import rows_as_sums
from analyzers.simulators.truth import happened
from analyzers.simulators.uptimes import Life, Month, Table

EVENTS = ("upgrade", "drain", "clock_step", "agent_crash", "missing_rows", "stale_topology")
"""Of a class of devices: half of them are taken down for a planned upgrade, or one in twenty for hours as planned work;
the clocks of one in twenty are wrong by up to an hour; the ends of their outages are never told, because what tells
them crashed, or because 5 % of all such rows are lost; one in twenty is missing in the topology.

Of units: all are upgraded as planned, ten minutes each; one in twenty is drained and told of no more; clocks as above;
nobody tells of one in twenty for six hours; 5 % of the rows are lost; one in twenty is told to be placed elsewhere.
"""

SHARE = 0.05


def device_month(record: Record, rng: np.random.Generator, event: str) -> Window:
    """The month of a class as it is told of, the topology included."""
    reported, unknown = record_of(record, rng, event)
    return outages.window_of(reported, unknown=unknown)


def record_of(record: Record, rng: np.random.Generator, event: str) -> tuple[Record, set[int]]:
    """Record of the month, and the devices that the topology does not know."""
    few = np.flatnonzero(rng.random(len(record.names)) < SHARE)
    reported = list(record.outages)
    if event == "upgrade":
        reported += [_planned(record, rng, n, 4, 12) for n in _half(record, rng)]
    elif event == "drain":
        reported += [_planned(record, rng, n, 120, 720) for n in few.tolist()]
    elif event == "clock_step":
        off = dict(zip(few.tolist(), rng.uniform(-60, 60, len(few)).tolist(), strict=True))
        reported = [_shifted(record, one, off.get(one.device, 0.0)) for one in reported]
    elif event == "agent_crash":
        silent = set(few.tolist())
        reported = [
            replace(one, end=None) if one.device in silent and not one.planned else one for one in reported
        ]
    elif event == "missing_rows":
        reported = [replace(one, end=None) if rng.random() < SHARE else one for one in reported]
    elif event != "stale_topology" and event:
        raise ValueError(f"no benign event {event!r}; there are {', '.join(EVENTS)}")
    reported.sort(key=lambda one: (one.start, one.device))
    unknown = set(few.tolist()) if event == "stale_topology" else set()
    return replace(record, outages=tuple(reported)), unknown


def _half(record: Record, rng: np.random.Generator) -> list[int]:
    return np.flatnonzero(rng.random(len(record.names)) < 0.5).tolist()


def _planned(record: Record, rng: np.random.Generator, device: int, low: float, high: float) -> Outage:
    start = float(rng.uniform(0, record.shape.days * 1440 - high - 1))
    return Outage(device, start, start + float(rng.uniform(low, high)), "upgrade", planned=True)


def _shifted(record: Record, one: Outage, by: float) -> Outage:
    length = record.shape.days * 1440.0
    start = min(max(one.start + by, 0.0), length - 2)
    return replace(
        one, start=start, end=None if one.end is None else min(max(one.end + by, start + 1), length)
    )


def unit_month(life: Life, rng: np.random.Generator, event: str) -> Window:
    """The month of units as it is told of."""
    if event == "upgrade":
        return _upgraded(life, rng)
    return uptimes.window_of(life, _event_rows(uptimes.table_of(life), life, rng, event))


def _event_rows(table: Table, life: Life, rng: np.random.Generator, event: str) -> Table:
    length = life.month.days * 1440.0
    start, end = np.array(table.start), np.array(table.end)
    units = len(life.names)
    of = {name: number for number, name in enumerate(life.names)}
    unit = np.array([of[name] for name in table.unit])
    few = (rng.random(units) < SHARE)[unit]
    sent, placed = np.ones(len(unit), dtype=bool), table.placed
    if event == "drain":
        end = np.where(few, np.minimum(end, rng.uniform(0, length, units)[unit]), end)
    elif event == "clock_step":
        by = np.where(few, rng.uniform(-60, 60, units)[unit], 0.0)
        start, end = np.clip(start + by, 0, length), np.clip(end + by, 0, length)
    elif event == "agent_crash":
        dark = rng.uniform(0, length - 360, units)[unit]
        sent = ~few | (end <= dark) | (start >= dark + 360)
    elif event == "missing_rows":
        sent = rng.random(len(unit)) >= SHARE
    elif event == "stale_topology":
        other = {"near": "far", "far": "near"}
        placed = [other[one] if wrong else one for one, wrong in zip(table.placed, few.tolist(), strict=True)]
    elif event:
        raise ValueError(f"no benign event {event!r}; there are {', '.join(EVENTS)}")
    return _rows(
        Table(table.unit, start.tolist(), end.tolist(), table.state, table.cause, placed),
        sent & (start < end),
    )


def _rows(table: Table, mask: NDArray[np.bool_]) -> Table:
    rows = np.flatnonzero(mask).tolist()
    unit, state, cause, placed = (
        [column[row] for row in rows] for column in (table.unit, table.state, table.cause, table.placed)
    )
    start, end = ([column[row] for row in rows] for column in (table.start, table.end))
    return Table(unit, start, end, state, cause, placed)


def _upgraded(life: Life, rng: np.random.Generator) -> Window:
    """Every unit goes down for ten minutes; it tells so, and the plan is told as an outage."""
    window = uptimes.window_of(life)
    at = _moments(life, rng)
    planned: dict[str, Sequence[str] | NDArray[Any]] = {
        "device": list(life.names),
        "start": np.array([micro(one) for one in at], dtype=np.int64),
        "end": np.array([micro(one + 10) for one in at], dtype=np.int64),
        "cause": ["upgrade"] * len(at),
        "planned": np.ones(len(at), dtype=np.int64),
    }
    down = _with_planned(uptimes.table_of(life), life, at)
    sums = {**uptimes.window_of(life, down).sums, "outages": rows_as_sums(planned)}
    return replace(window, input="uptime_and_outage", sums=sums)


def _with_planned(table: Table, life: Life, at: list[float]) -> Table:
    """The same table with ten more minutes down for each unit, told beside what else is told of these minutes."""
    count = len(at)
    return Table(
        table.unit + list(life.names),
        table.start + at,
        table.end + [one + 10 for one in at],
        table.state + ["down"] * count,
        table.cause + ["upgrade"] * count,
        table.placed + ["near"] * count,
    )


def outage_scenario(name: str, seed: int, shape: Class, event: str = "") -> tuple[dict[str, list[Row]], Row]:
    """`outage` and `topology` rows of a month, and the truth."""
    record = outages.draw(shape, seed)
    truth = outages.truth(name, seed, record)
    reported, unknown = (
        record_of(record, np.random.default_rng(seed), event) if event else (record, set[int]())
    )
    rows = {"outage": outages.outage_rows(reported), "topology": outages.topology_rows(record, unknown)}
    return rows, truth | {"benign": happened(event, truth["start"], truth["end"])}


def uptime_scenario(name: str, seed: int, month: Month, event: str = "") -> tuple[dict[str, list[Row]], Row]:
    """`uptime` rows of a month, those of `outage` where work was planned, and the truth."""
    life, rng = uptimes.draw(month, seed), np.random.default_rng(seed)
    truth = uptimes.truth(name, seed, life)
    rows: dict[str, list[Row]] = {}
    table = uptimes.table_of(life)
    if event == "upgrade":
        at = _moments(life, rng)
        table = _with_planned(table, life, at)
        planned = zip(life.names, at, strict=True)
        rows["outage"] = [
            {"device": name, "start": stamp(one), "end": stamp(one + 10), "cause": "upgrade", "planned": True}
            for name, one in planned
        ]
    elif event:
        table = _event_rows(table, life, rng, event)
    rows["uptime"] = uptimes.uptime_rows(table)
    return rows, truth | {"benign": happened(event, truth["start"], truth["end"])}


def _moments(life: Life, rng: np.random.Generator) -> list[float]:
    """Times of each unit's upgrade, in minutes."""
    at: list[float] = rng.uniform(0, life.month.days * 1440.0 - 11, len(life.names)).tolist()
    return at
