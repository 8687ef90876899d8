"""The worlds of `trace_blame` with log lines counted as the endpoints count them: rows of `span` and `log_count`."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from ingest.integrations.logs.templates import Record, Templates, count_rows, severity_of
from tests.worlds import Row, World, trace_blame

CASES = trace_blame.CASES
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def make(seed: int, case: str) -> World:
    world, lines = trace_blame.make_logged(seed, case)
    counts: list[Row] = list(count_rows(map(_record, lines), Templates()))
    return replace(world, rows={**world.rows, "log_count": counts})


def _record(line: Row) -> Record:
    instance, severity = f"instance/{line['instance']}", severity_of(str(line["severity"]))
    return Record(_nanoseconds(line["time"]), instance, str(line["service"]), severity, str(line["message"]))


def _nanoseconds(time: object) -> int:
    if isinstance(time, int):
        return time
    return (datetime.fromisoformat(str(time)) - _EPOCH) // timedelta(microseconds=1) * 1000
