"""Spans of distributed traces, as CSV, made into `path_outcome` rows. Pure: bytes in, rows out.

One row is one trace: its components are the service instances that it passed (`instance/<pod>`), its time is
the start of its root span, and it failed if one of its spans carries an error or its root took longer than
the normal p99 of its operation. What is normal is learnt from spans of fault-free time (`learn`).

The columns are those of the Nezha data set (Yu et al., FSE 2023, https://github.com/IntelligentDDS/Nezha):
TraceID, SpanID, ParentID (`root` or empty at the top), PodName, OperationName, StartTimeUnixNano,
EndTimeUnixNano, Duration (microseconds); a column Error (true or false) is read where there is one.

Real traces have holes, and each is counted (`Holes`) rather than guessed at. Only durations of roots are
compared, each measured by one clock, so clocks that disagree between instances cannot make a trace slow.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal

from ingest.log.types import rfc3339

Operations = Literal["root", "entry"]
"""Sources of the operation of a trace; see `operation_of`."""

COLUMNS = (
    "TraceID",
    "SpanID",
    "ParentID",
    "PodName",
    "OperationName",
    "StartTimeUnixNano",
    "EndTimeUnixNano",
    "Duration",
)
NORMAL_SHARE = 0.99
ENOUGH = 20
"""Normal traces from which on an entry has a limit of its own: a few say little of the slowest hundredth."""
_TOP = ("root", "")
_LAST_NS = 2**63 - 1


class InvalidSpansError(ValueError):
    """The payload holds no spans as expected. `row` counts from 1 after the header; 0 is the header."""

    def __init__(self, row: int, field: str, reason: str) -> None:
        self.row, self.field, self.reason = row, field, reason
        super().__init__(f"row {row}, field {field}: {reason}" if row else f"header, field {field}: {reason}")


@dataclass(frozen=True, slots=True)
class Span:
    """One operation of one instance; `parent` is None at the top of a trace, `start` in epoch nanoseconds."""

    trace: str
    span: str
    parent: str | None
    instance: str
    operation: str
    start: int
    duration_us: float
    error: bool


@dataclass(slots=True)
class Holes:
    """Irregularities of the spans, with their treatment; see `sentences`."""

    spans: int = 0
    traces: int = 0
    repeated: int = 0
    rootless: int = 0
    backward: int = 0
    orphans: int = 0
    early: int = 0
    unjudged: int = 0

    def sentences(self) -> list[str]:
        """One sentence for each kind of hole that was met."""
        counts = (
            (self.repeated, "spans came twice and were counted once"),
            (self.rootless, "traces without a root were left out: nobody knows how long they took"),
            (self.backward, "traces whose root ends before it starts were left out"),
            (self.orphans, "spans name a parent that is missing; their instances count as passed"),
            (
                self.early,
                "spans start before their parent (clocks disagree); only durations of roots are compared",
            ),
            (
                self.unjudged,
                "traces of operations without a normal duration were judged by their errors alone",
            ),
        )
        return [f"{count} {sentence}" for count, sentence in counts if count]


@dataclass(frozen=True, slots=True)
class Normal:
    """The longest normal duration (p99, microseconds) of each operation, and the key of an operation."""

    operations: Operations
    limit_us: Mapping[tuple[str, ...], float]


@dataclass(frozen=True, slots=True)
class Trace:
    """The spans of one trace with their root, the earliest if there are several."""

    root: Span
    spans: tuple[Span, ...] = field(repr=False)

    @property
    def instances(self) -> tuple[str, ...]:
        return tuple(sorted({span.instance for span in self.spans}))


def parse(payload: bytes) -> list[Span]:
    """The spans of a CSV file with a header; raises InvalidSpansError with row number, field and reason."""
    try:
        text = payload.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = payload[: error.start].count(b"\n")
        raise InvalidSpansError(row, "(all)", "is not UTF-8 text") from error
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    spans: list[Span] = []
    try:
        places = _places(next(lines, []))
        spans.extend(_span(row, values, places) for row, values in enumerate(lines, start=1) if values)
    except csv.Error as error:
        raise InvalidSpansError(len(spans) + 1, "(all)", f"is not CSV: {error}") from error
    return spans


def _places(header: Sequence[str]) -> dict[str, int]:
    places = {name.strip(): place for place, name in enumerate(header)}
    for column in COLUMNS:
        if column not in places:
            raise InvalidSpansError(0, column, f"the column is missing; expected {','.join(COLUMNS)}")
    return places


def _span(row: int, values: Sequence[str], places: Mapping[str, int]) -> Span:
    if len(values) < len(places):
        raise InvalidSpansError(
            row, list(places)[len(values)], f"the row ends after {len(values)} of {len(places)} columns"
        )
    trace, span, parent, instance, operation = (values[places[name]] for name in COLUMNS[:5])
    for name, value in (
        ("TraceID", trace),
        ("SpanID", span),
        ("PodName", instance),
        ("OperationName", operation),
    ):
        if not value:
            raise InvalidSpansError(row, name, "is empty")
    if any(character.isspace() for character in instance):
        raise InvalidSpansError(row, "PodName", f"{instance!r} has white space in it")
    start, end = (_nanoseconds(row, name, values[places[name]]) for name in COLUMNS[5:7])
    duration = _duration(row, values[places["Duration"]])
    error = "Error" in places and _boolean(row, values[places["Error"]])
    lasted = duration if end >= start else -1.0
    return Span(trace, span, None if parent in _TOP else parent, instance, operation, start, lasted, error)


def _nanoseconds(row: int, name: str, value: str) -> int:
    if not value.isascii() or not value.isdigit() or int(value) > _LAST_NS:
        raise InvalidSpansError(row, name, f"{value!r} is not a time in epoch nanoseconds")
    return int(value)


def _duration(row: int, value: str) -> float:
    try:
        duration = float(value)
    except ValueError:
        duration = math.nan
    if not math.isfinite(duration):
        raise InvalidSpansError(row, "Duration", f"{value!r} is not a number of microseconds")
    return duration


def _boolean(row: int, value: str) -> bool:
    known = {"true": True, "1": True, "false": False, "0": False, "": False}
    if value.lower() not in known:
        raise InvalidSpansError(row, "Error", f"{value!r} is not true or false")
    return known[value.lower()]


def traces(spans: Iterable[Span], holes: Holes) -> list[Trace]:
    """The traces that can be judged, by their start; what is odd about them is counted in `holes`."""
    by_trace: dict[str, dict[str, Span]] = {}
    for span in sorted(spans, key=lambda one: (one.start, one.trace, one.span)):
        holes.spans += 1
        known = by_trace.setdefault(span.trace, {})
        if span.span in known:
            holes.repeated += 1
        known.setdefault(span.span, span)
    holes.traces += len(by_trace)
    found = (_trace(tuple(known.values()), holes) for known in by_trace.values())
    return sorted((one for one in found if one is not None), key=lambda one: (one.root.start, one.root.trace))


def _trace(spans: tuple[Span, ...], holes: Holes) -> Trace | None:
    """One trace of spans in order of their start, or None if it has no usable root."""
    root = next((span for span in spans if span.parent is None), None)
    if root is None:
        holes.rootless += 1
        return None
    if root.duration_us < 0:
        holes.backward += 1
        return None
    started = {span.span: span.start for span in spans}
    for span in spans:
        if span.parent is not None:
            holes.orphans += span.parent not in started
            holes.early += span.start < started.get(span.parent, span.start)
    return Trace(root, spans)


def operation_of(trace: Trace, operations: Operations) -> tuple[str, ...]:
    """The name under which a trace is compared with normal ones.

    `root`: the root span's operation. `entry`: with it the first operation on another instance than the
    root's, which tells requests apart where the root is a gateway that names them all alike (`/*`).
    """
    if operations == "root":
        return (trace.root.operation,)
    away = (span.operation for span in trace.spans if span.instance != trace.root.instance)
    return (trace.root.operation, next(away, ""))


def learn(normal: Iterable[Trace], operations: Operations = "entry") -> Normal:
    """The normal p99 of each operation: the shortest duration that at least 99 % of its traces do not exceed.

    With fewer than 100 traces that is the longest; an entry seen fewer than `ENOUGH` times is compared by its
    root alone. Traces that carry an error are left out.
    """
    durations: dict[tuple[str, ...], list[float]] = {}
    for trace in normal:
        if not any(span.error for span in trace.spans):
            for name in {operation_of(trace, "root"), operation_of(trace, operations)}:
                durations.setdefault(name, []).append(trace.root.duration_us)
    limits = {
        name: sorted(found)[math.ceil(NORMAL_SHARE * len(found)) - 1]
        for name, found in durations.items()
        if len(name) == 1 or len(found) >= ENOUGH
    }
    return Normal(operations, limits)


def failed(trace: Trace, normal: Normal) -> bool | None:
    """Whether the trace had an error or was slower than normal; None if nothing tells (no normal known)."""
    if any(span.error for span in trace.spans):
        return True
    operation = operation_of(trace, normal.operations)
    limit = normal.limit_us.get(operation, normal.limit_us.get(operation[:1]))
    return None if limit is None else trace.root.duration_us > limit


def path_outcomes(
    judged: Iterable[Trace], normal: Normal, holes: Holes, shift: timedelta = timedelta(0)
) -> list[dict[str, object]]:
    """One `path_outcome` row a trace, in order of time; `shift` is added to every time."""
    rows: list[dict[str, object]] = []
    for trace in judged:
        failure = failed(trace, normal)
        holes.unjudged += failure is None
        when = instant(trace.root.start) + shift
        rows.append(
            {
                "time": rfc3339(when),
                "components": [f"instance/{name}" for name in trace.instances],
                "attempts": 1,
                "failures": int(bool(failure)),
            }
        )
    return rows


def instant(nanoseconds: int) -> datetime:
    """Epoch nanoseconds as a time, to the microsecond."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=nanoseconds // 1000)
