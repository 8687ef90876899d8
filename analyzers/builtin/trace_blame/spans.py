"""The spans of a window and of its history as one table of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

import numpy as np
from numpy.typing import NDArray

from analyzers.contract import Sums, Window

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

LONGEST_US = 10**12
"""Longer durations (eleven days) are cut here, so that sums of a million of them stay exact."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """One row a span, ordered by trace, span and start; arrays have shape (spans,).

    `era` numbers the windows, the judged one last; all spans of a trace
    belong to that of its root. `service`, `instance` and `operation` number the texts of
    the same name in `traces`, `services`, `instances` and `operations`; an operation is a pair of service and name.
    `parent` is the row of the parent, -1 at the top of a trace and `LOST` where the parent is not in the table.
    `start` and `end` are microseconds since 1970.
    """

    traces: tuple[str, ...]
    services: tuple[str, ...]
    instances: tuple[str, ...]
    operations: tuple[tuple[str, str], ...]
    eras: int
    era: Ints
    trace: Ints
    service: Ints
    instance: Ints
    operation: Ints
    parent: Ints
    start: Ints
    duration: Ints
    error: Flags
    until: Ints
    """The end of each window, of shape (eras,)."""

    @property
    def rows(self) -> int:
        return len(self.era)

    @property
    def end(self) -> Ints:
        return self.start + self.duration


LOST = -2


def microseconds(when: datetime) -> int:
    return int((when - _EPOCH).total_seconds()) * 1_000_000 + when.microsecond


def spans_of(window: Window, reduction: str = "spans") -> Spans:
    """All spans of the window and its history; of several rows of one span the earliest counts."""
    eras = [past.sums[reduction] for past in window.history] + [window.sums[reduction]]
    era = np.repeat(np.arange(len(eras)), [sums.rows for sums in eras])
    texts = {name: _texts(eras, name) for name in ("trace", "span", "parent")}
    traces, names = numbered(texts["trace"])
    ids, _ = numbered([*texts["span"], *texts["parent"]])
    span, parent = ids[: len(era)], ids[len(era) :]
    services, service = _named(_texts(eras, "service"))
    instances, instance = _named(_texts(eras, "instance"))
    operations, operation = _pairs(services, service, *_named(_texts(eras, "operation")))
    start = _numbers(eras, "time")
    duration = _durations(eras)
    error = _numbers(eras, "error") > 0
    order = np.lexsort((error, operation, instance, duration, start, span, traces))
    order = order[_first_of_each(traces[order], span[order])]
    top = np.array([not text for text in texts["parent"]], dtype=np.bool_)[order]
    known = _rows_of(traces[order], span[order], parent[order])
    return Spans(
        traces=names,
        services=services,
        instances=instances,
        operations=operations,
        eras=len(eras),
        era=_era_of_root(era[order], traces[order], top),
        trace=traces[order],
        service=service[order],
        instance=instance[order],
        operation=operation[order],
        parent=np.where(top, -1, known),
        start=start[order],
        duration=duration[order],
        error=error[order],
        until=np.array([microseconds(one.end) for one in (*window.history, window)], dtype=np.int64),
    )


def numbered(texts: Sequence[str]) -> tuple[Ints, tuple[str, ...]]:
    """Equal texts get equal numbers, in the order in which they are first seen; and the distinct texts."""
    seen: dict[str, int] = {}
    numbers = np.array([seen.setdefault(text, len(seen)) for text in texts], dtype=np.int64)
    return numbers, tuple(seen)


def _named(texts: Sequence[str]) -> tuple[tuple[str, ...], Ints]:
    """The distinct texts in order, and the number of each text among them."""
    names = tuple(sorted(set(texts)))
    index = {name: i for i, name in enumerate(names)}
    return names, np.array([index[text] for text in texts], dtype=np.int64)


def _pairs(
    services: Sequence[str], service: Ints, names: Sequence[str], name: Ints
) -> tuple[tuple[tuple[str, str], ...], Ints]:
    found, numbers = np.unique(service * max(1, len(names)) + name, return_inverse=True)
    pairs = tuple((services[one // len(names)], names[one % len(names)]) for one in found.tolist())
    return pairs, numbers.astype(np.int64)


def _texts(eras: Sequence[Sums], name: str) -> list[str]:
    return [text for sums in eras for text in cast(Sequence[str], sums.keys[name])]


def _numbers(eras: Sequence[Sums], name: str) -> Ints:
    columns = [np.asarray(sums.keys[name], dtype=np.int64) for sums in eras]
    return np.concatenate(columns) if columns else np.zeros(0, dtype=np.int64)


def _durations(eras: Sequence[Sums]) -> Ints:
    """Rows that came twice are one group of the reduction, their durations summed: the mean is the span's."""
    values: list[Mapping[str, NDArray[np.int64] | NDArray[np.float64]]] = [sums.values for sums in eras]
    means = [
        np.asarray(one["duration_us"], dtype=np.float64) / np.maximum(1, np.asarray(one["rows"]))
        for one in values
    ]
    return np.clip(np.concatenate(means), 0, LONGEST_US).astype(np.int64)


def _era_of_root(era: Ints, trace: Ints, top: Flags) -> Ints:
    """The era of each trace's root for all its spans: clocks differ, and a trace may cross the border."""
    of_trace = np.full(int(trace.max()) + 1 if len(trace) else 0, -1, dtype=np.int64)
    np.maximum.at(of_trace, trace[top], era[top])
    found = of_trace[trace]
    return np.where(found >= 0, found, era)


def _first_of_each(trace: Ints, span: Ints) -> Flags:
    """Of rows in order of trace and span, the first of each pair."""
    new = np.ones(len(trace), dtype=np.bool_)
    new[1:] = (trace[1:] != trace[:-1]) | (span[1:] != span[:-1])
    return new


def _rows_of(trace: Ints, span: Ints, parent: Ints) -> Ints:
    """The row of each parent in its own trace, `LOST` where it is not there or is the span itself."""
    if not len(trace):
        return np.zeros(0, dtype=np.int64)
    width = int(max(span.max(), parent.max())) + 1
    key, wanted = trace * width + span, trace * width + parent
    at = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
    return np.where((key[at] == wanted) & (at != np.arange(len(key))), at, LOST).astype(np.int64)


COARSEST_US, EVENLY = 1_000_000, 0.99
"""Coarsest step of a clock that is looked for, and the share of durations that it must divide."""


def clock_step(spans: Spans) -> int:
    """Microseconds that the clocks count in: the largest power of ten that divides nearly all durations."""
    asked = spans.duration[spans.duration > 0]
    step = 1
    while len(asked) and step < COARSEST_US and (asked % (step * 10) == 0).mean() >= EVENLY:
        step *= 10
    return step
