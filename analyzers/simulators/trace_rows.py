"""Simulated spans as windows and as telemetry rows."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np

from analyzers.contract import Sums, Window
from analyzers.simulators.traces import (
    COLUMNS,
    EPOCH,
    EVENTS,
    Fault,
    Row,
    SpanColumns,
    System,
    build_system,
    draw_fault,
    record,
)
from analyzers.simulators.truth import happened


def sums_of_spans(recorded: SpanColumns) -> Sums:
    """The reduction of the spans that `trace_blame` asks for, in the order of its keys."""
    columns = {name: column.tolist() for name, column in recorded.columns.items()}
    epoch = int(EPOCH.timestamp()) * 1_000_000
    rows = sorted(
        zip(
            map(_hex, columns["trace"]),
            map(_hex, columns["span"]),
            map(_hex, columns["parent"]),
            columns["service"],
            columns["pod"],
            columns["operation"],
            (epoch + int(time) for time in columns["time"]),
            map(int, columns["error"]),
            map(int, columns["duration_us"]),
            strict=True,
        )
    )
    trace, span, parent, service, pod, operation, time, error, duration = zip(*rows, strict=True)
    return Sums(
        keys={
            "trace": trace,
            "span": span,
            "parent": parent,
            "service": service,
            "instance": pod,
            "operation": operation,
            "time": np.array(time, dtype=np.int64),
            "error": np.array(error, dtype=np.int64),
        },
        values={
            "duration_us": np.array(duration, dtype=np.float64),
            "rows": np.ones(len(rows), dtype=np.int64),
        },
        rows=len(rows),
    )


def _hex(number: int) -> str:
    return f"{number:016x}" if number else ""


def window(recorded: SpanColumns, minute: int, history: tuple[Window, ...] = ()) -> Window:
    start = EPOCH + timedelta(minutes=minute)
    sums = {"spans": sums_of_spans(recorded)}
    return Window(start, start + timedelta(minutes=1), "default", "span", sums, history)


def case(
    seed: int,
    fault: str | None = None,
    benign: str | None = None,
    history: int = 6,
    services: int = 12,
    requests: float = 150.0,
    replicas: int = 3,
) -> tuple[Window, System, Fault | None]:
    """A window of a minute with its history, the system that it is of, and the fault in it."""
    rng = np.random.default_rng([seed, 8])
    system = build_system(rng, services, requests, replicas)
    struck = draw_fault(system, rng, fault) if fault else None
    past = tuple(window(record(system, rng, minute), minute) for minute in range(history))
    return window(record(system, rng, history, struck, benign), history, past), system, struck


def truth_of(system: System, fault: Fault) -> str:
    """The component that a verdict should name."""
    if fault.instance is None:
        return f"service/{system.services[fault.service]}"
    return f"instance/{system.replicas[fault.service][fault.instance]}"


def span_rows(recorded: SpanColumns) -> list[Row]:
    """The same spans as telemetry rows, in order of time."""
    columns = {name: column.tolist() for name, column in recorded.columns.items()}
    rows = [
        {
            "time": _stamp(time),
            "trace": _hex(trace),
            "span": _hex(span),
            **({"parent": _hex(parent)} if parent else {}),
            "service": service,
            "instance": pod,
            "operation": operation,
            "duration_us": int(duration),
            "error": bool(error),
        }
        for trace, span, parent, service, pod, operation, time, duration, error in zip(
            *(columns[name] for name in COLUMNS), strict=True
        )
    ]
    return sorted(rows, key=lambda row: (str(row["time"]), str(row["trace"]), str(row["span"])))


SCENARIO_MINUTES = 7
"""Six healthy minutes, then the one with the fault."""


def trace_scenario(
    name: str, seed: int, kind: str | None, event: str = ""
) -> tuple[dict[str, list[Row]], dict[str, Any]]:
    """`span` rows and the truth of a system in whose last minute a service, or one of its instances, is struck, or an
    event happens.
    """
    rng = np.random.default_rng(seed)
    system = build_system(rng)
    fault = draw_fault(system, rng, kind) if kind else None
    last = SCENARIO_MINUTES - 1
    rows: list[Row] = []
    for minute in range(SCENARIO_MINUTES):
        late = minute == last
        rows += span_rows(
            record(system, rng, minute, fault if late else None, EVENTS.get(event) if late else None)
        )
    start, end = _stamp(60_000_000 * last), _stamp(60_000_000 * SCENARIO_MINUTES)
    faults = []
    if fault is not None:
        faults.append(
            {
                "component": truth_of(system, fault),
                "service": f"service/{system.services[fault.service]}",
                "kind": fault.kind,
                "severity": round(fault.strength, 6),
                "start": start,
                "end": end,
            }
        )
    truth = {"scenario": name, "seed": seed, "start": _stamp(0), "end": end, "faults": faults}
    truth["benign"] = happened(event, start, end)
    return {"span": rows}, truth


def _stamp(microseconds: float) -> str:
    return (EPOCH + timedelta(microseconds=int(microseconds))).isoformat().replace("+00:00", "Z")
