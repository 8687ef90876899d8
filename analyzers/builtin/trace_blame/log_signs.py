"""Signs of a fault in the log records of services and of their instances."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from analyzers.builtin.trace_blame.log_changes import Sign, exposure, learnt_most, signs, table_of
from analyzers.builtin.trace_blame.logs import Logs, logs_of
from analyzers.builtin.trace_blame.places import quarter_of
from analyzers.builtin.trace_blame.spans import Flags, Ints, Spans
from analyzers.contract import Window

Signs = dict[int, list[Sign]]
"""Signs by number of a service, or of an instance."""


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """The records of a window and its history beside its spans. `most` is the most nats that one place may say;
    `rows` the rows of `logs` by service.
    """

    logs: Logs
    spans: Spans
    quarter: Ints
    most: float
    rows: dict[int, Ints]


def records_of(window: Window, spans: Spans) -> Records | None:
    """None where there are no records of the judged window, or none of any window before it."""
    logs = logs_of(window, spans)
    if logs is None or len(logs.eras) < 2 or logs.eras[-1] != spans.eras - 1:
        return None
    quarter, last = quarter_of(spans), spans.eras - 1
    order = np.argsort(logs.service, kind="stable")
    services, begin = np.unique(logs.service[order], return_index=True)
    rows = dict(zip(services.tolist(), np.split(order, begin[1:]), strict=True))
    by_service, _ = exposure(spans, quarter, 0)
    tables = [table_of(logs, found, by_service[service], last) for service, found in rows.items()]
    return Records(logs, spans, quarter, learnt_most(logs, tables), rows)


def reach_of(spans: Spans) -> Flags:
    """Which services call which, directly or not, of shape (services, services); none itself."""
    count = len(spans.services)
    reach = np.zeros((count, count), dtype=np.bool_)
    child = np.flatnonzero(spans.parent >= 0)
    reach[spans.service[spans.parent[child]], spans.service[child]] = True
    np.fill_diagonal(reach, False)
    for _ in range(max(1, count.bit_length())):
        reach |= (reach.astype(np.float32) @ reach.astype(np.float32)) > 0
    np.fill_diagonal(reach, False)
    return reach


def signs_of_services(records: Records, since: int) -> Signs:
    """By service, from quarter `since` of the judged window on."""
    by_service, _ = exposure(records.spans, records.quarter, since)
    return {
        service: _signs(records, _kept(records, rows, since), by_service[service])
        for service, rows in records.rows.items()
    }


def signs_of_instances(records: Records, since: int, of: Iterable[int]) -> Signs:
    """By instance, each from its own records and spans."""
    logs = records.logs
    _, by_instance = exposure(records.spans, records.quarter, since)
    found = {}
    for instance in of:
        rows = _kept(records, np.flatnonzero(logs.instance == instance), since)
        found[instance] = _signs(records, rows, by_instance[instance])
    return found


def signs_of_others(records: Records, since: int, service: int, instance: int) -> list[Sign]:
    """From the records and spans of the service's other instances."""
    by_service, by_instance = exposure(records.spans, records.quarter, since)
    rows = records.rows.get(service, np.zeros(0, dtype=np.int64))
    rows = _kept(records, rows[records.logs.instance[rows] != instance], since)
    return _signs(records, rows, by_service[service] - by_instance[instance])


def _kept(records: Records, rows: Ints, since: int) -> Ints:
    logs, last = records.logs, records.spans.eras - 1
    return rows[(logs.era[rows] < last) | (logs.quarter[rows] >= since)]


def _signs(records: Records, rows: Ints, of_spans: np.ndarray) -> list[Sign]:
    if not len(rows):
        return []
    table = table_of(records.logs, rows, of_spans, records.spans.eras - 1)
    return signs(records.logs, table, records.most)
