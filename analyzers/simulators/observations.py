"""Simulated reports as windows and as telemetry rows, and the scenarios made of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from analyzers.contract import Sums, Window
from analyzers.simulators.observers import (
    SMALL,
    STATUSES,
    Fault,
    Reports,
    System,
    Transport,
    build,
    draw_event,
    draw_gray,
    draw_overload,
    observe,
)
from analyzers.simulators.truth import happened

EPOCH = datetime(2026, 1, 5, 12, tzinfo=UTC)
SECONDS, ONSET = 120.0, 60.0
"""Length of a scenario, and when its faults begin."""

Row = dict[str, Any]


def window_of(reports: Reports, start: float, end: float, known_at: float | None = None) -> Window:
    """Window of the reports stamped from `start` to `end` that had arrived at `known_at` (default: everything)."""
    first, last = np.searchsorted(reports.time, (start, end))
    chosen = slice(int(first), int(last))
    cell, status, time = reports.cell[chosen], reports.status[chosen], reports.time[chosen]
    if known_at is not None:
        there = reports.arrival[chosen] <= known_at
        cell, status, time = cell[there], status[there], time[there]
    at = np.floor((time - start) + 1e-9).astype(np.int64)
    slices = int(np.ceil(end - start)) + 1
    code, times = np.unique((cell * len(STATUSES) + status) * slices + at, return_counts=True)
    rest, at = np.divmod(code, slices)
    cell, status = np.divmod(rest, len(STATUSES))
    sums = {"seen": _sums(reports.system, cell, status, at, times)}
    return Window(_moment(start), _moment(end), "synthetic", "observation", sums)


def _sums(system: System, cell: Any, status: Any, at: Any, times: Any) -> Sums:
    observers = [system.processes[i] for i in system.observer.tolist()]
    subjects = [system.processes[i] for i in system.subject.tolist()]
    contexts = [system.contexts[i] for i in system.context.tolist()]
    rows = cell.tolist()
    keys: dict[str, Any] = {
        "observer": tuple(observers[row] for row in rows),
        "subject": tuple(subjects[row] for row in rows),
        "context": tuple(contexts[row] for row in rows),
        "status": tuple(STATUSES[one] for one in status.tolist()),
        "slice": at,
    }
    return Sums(keys=keys, values={"times": times.astype(np.int64)}, rows=len(rows))


def observation_rows(reports: Reports) -> list[Row]:
    system = reports.system
    return [
        {
            "time": stamp(time),
            "observer": system.processes[system.observer[cell]],
            "subject": system.processes[system.subject[cell]],
            "context": system.contexts[system.context[cell]],
            "status": STATUSES[status],
        }
        for time, cell, status in zip(
            reports.time.tolist(), reports.cell.tolist(), reports.status.tolist(), strict=True
        )
    ]


def observation_scenario(name: str, seed: int, event: str = "") -> tuple[dict[str, list[Row]], Row]:
    """`observation` rows of two minutes and the truth; the faults of `name` begin after one, and so does the event."""
    rng = np.random.default_rng(seed)
    system = build(SMALL, rng)
    faults: list[Fault] = []
    if name != "panorama_healthy":
        faults.append(draw_gray(system, rng, "gray", ONSET))
    if name == "panorama_overload":
        faults += draw_overload(system, rng, 0.4, ONSET, spared=[faults[0].process])
    harmless, transport = draw_event(system, rng, event, ONSET) if event else ([], Transport())
    reports = observe(system, rng, SECONDS, [*faults, *harmless], transport)
    inside = reports.time < SECONDS
    selected = Reports(system, *(column[inside] for column in _columns(reports)))
    truth = {
        "scenario": name,
        "seed": seed,
        "start": stamp(0),
        "end": stamp(SECONDS),
        "faults": [_fault_row(system, fault) for fault in faults],
        "benign": happened(event, stamp(ONSET), stamp(SECONDS)),
    }
    return {"observation": observation_rows(selected)}, truth


def _columns(reports: Reports) -> tuple[Any, Any, Any, Any]:
    return reports.time, reports.arrival, reports.cell, reports.status


def _fault_row(system: System, fault: Fault) -> Row:
    row: Row = {
        "component": system.processes[fault.process],
        "kind": fault.kind,
        "severity": round(fault.severity, 6),
        "start": stamp(fault.start),
        "end": stamp(min(fault.end, SECONDS)),
    }
    return row | ({"context": system.contexts[fault.context]} if fault.context >= 0 else {})


def _moment(second: float) -> datetime:
    return EPOCH + timedelta(microseconds=round(second * 1e6))


def stamp(second: float) -> str:
    return _moment(second).isoformat(timespec="microseconds").replace("+00:00", "Z")
