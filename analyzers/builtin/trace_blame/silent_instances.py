"""Instances whose spans stopped arriving while they were still called: lost telemetry, or a crash."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from analyzers.builtin.text import moment, percent
from analyzers.builtin.trace_blame.one_sided_calls import Silence, called_service
from analyzers.builtin.trace_blame.spans import LOST, Flags, Ints, Spans
from analyzers.contract import Evidence, table

EXPECTED = 10.0
"""Spans that an instance should have told of since its last one, before it counts as silent."""

FEWEST = 3
"""Calls without their other side, or calls without a caller, that show that it is still at work."""

FAILING = 0.05
"""Share of the calls that failed, above which silence is more than lost telemetry."""

_MOST = 20


@dataclass(frozen=True, slots=True)
class Silent:
    """`before` is spans a window; `last` microseconds since 1970, None if none came in the judged window. `calls` are
    calls of its service since then of which only the caller told, `failed` those of them that ended in an error,
    `orphans` calls made by its service since then of which only the called told.
    """

    instance: int
    service: int
    before: float
    last: int | None
    calls: int
    failed: int
    orphans: int


def silent_instances(spans: Spans, silence: Silence) -> tuple[Silent, ...]:
    """Instances that should have told of at least `EXPECTED` spans since their last one, and are still at work.

    One that was drained, stopped or replaced is not called any more, and is not among them.
    """
    now = spans.era == spans.eras - 1
    if not now.any() or spans.eras < 2:
        return ()
    size = len(spans.instances)
    before = np.bincount(spans.instance[~now], minlength=size) / (spans.eras - 1)
    first = int(spans.start[now].min())
    length = max(1, int(spans.start[now].max()) - first)
    last = np.full(size, first - 1, dtype=np.int64)
    np.maximum.at(last, spans.instance[now], spans.start[now])
    missed = before * (first + length - last) / length
    service_of = np.zeros(size, dtype=np.int64)
    service_of[spans.instance] = spans.service
    called, caller = called_service(spans, silence), _calling_service(spans)
    found = []
    for instance in np.flatnonzero(missed >= EXPECTED).tolist():
        service, since = int(service_of[instance]), int(last[instance])
        unheard = now & (called == service) & (spans.start > since)
        orphans = int((now & (caller == service) & (spans.start > since)).sum())
        calls, failed = int(unheard.sum()), int(spans.error[unheard].sum())
        if max(calls, orphans) >= FEWEST:
            end = since if since >= first else None
            found.append(Silent(instance, service, float(before[instance]), end, calls, failed, orphans))
    return tuple(sorted(found, key=lambda one: (-one.before, spans.instances[one.instance])))


def _calling_service(spans: Spans) -> Ints:
    """By span whose parent is lost, the service that mostly calls its operation; -1 for all others."""
    children = np.flatnonzero((spans.parent >= 0) & (spans.era < spans.eras - 1))
    width = max(1, len(spans.services))
    pair, count = np.unique(
        spans.operation[children] * width + spans.service[spans.parent[children]], return_counts=True
    )
    order = np.lexsort((pair, count))
    mostly = np.full(len(spans.operations), -1, dtype=np.int64)
    mostly[pair[order] // width] = pair[order] % width
    lost: Flags = spans.parent == LOST
    return np.where(lost, mostly[spans.operation], -1)


def silent_table(spans: Spans, found: tuple[Silent, ...]) -> Evidence:
    rows = tuple(
        (
            f"instance/{spans.instances[one.instance]}",
            f"service/{spans.services[one.service]}",
            round(one.before, 1),
            "none in this window" if one.last is None else _clock(one.last),
            one.calls,
            one.failed,
            one.orphans,
            _reading(one),
        )
        for one in found[:_MOST]
    )
    columns = (
        "instance", "service", "spans a window before", "last span", "calls of the service told by callers alone",
        "of them failed", "calls it made, told by the called alone", "reading",
    )  # fmt: skip
    note = (
        "A call that ends without an error, and not too fast to have been served, was served: its missing side is "
        "lost telemetry and accuses nobody. That it was slow or failed still counts."
    )
    return table("Spans that stopped arriving", columns, rows, note)


def _reading(one: Silent) -> str:
    if one.failed > FAILING * one.calls:
        return f"its spans stopped arriving, and {percent(one.failed / one.calls)} of these calls failed"
    if one.calls:
        return "its spans stopped arriving, its callers saw no failures: lost telemetry"
    return "its spans stopped arriving, what it calls is still called: lost telemetry"


def _clock(microseconds: int) -> str:
    return moment(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds))
