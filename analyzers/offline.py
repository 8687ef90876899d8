"""Windows cut out of files: what `manage.py analyze` hands to an analyzer. No database, no clock.

All rows are one window, from the first row to just after the last (an interval reaches to its end, if that is
known); or windows of one length, one after the other, aligned to the epoch, each with its predecessors as
history. Rows of state kinds (`placement`: "from `time` on") do not stretch a window: they count as far as they
are in force at its start. Where nothing happened, a window begins when all of them are in force.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from analyzers.contract import Analyzer, Input, Window
from ingest.integrations import superbench
from ingest.log.types import rfc3339
from ingest.telemetry.decode.columns import Rows
from ingest.telemetry.errors import NoRowsError
from ingest.telemetry.windows.offline import InvalidFileError, read_file, reduce

REGION = "default"
MOST_WINDOWS = 100_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LINES = (".jsonl", ".ndjson")
_MICROSECOND = timedelta(microseconds=1)
_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


class AnalysisInputError(ValueError):
    """The request makes no sense for these rows; the message is one clear line."""


@dataclass(frozen=True, slots=True)
class Span:
    start: datetime
    end: datetime


def duration(text: str) -> timedelta:
    """`90s`, `5m`, `1h`, `30d` or `250ms`, more than nothing; raises AnalysisInputError otherwise."""
    match = re.fullmatch(r"(\d{1,6})(ms|s|m|h|d)", text.strip())
    if match is None or int(match[1]) == 0:
        raise AnalysisInputError(f"{text[:40]!r} is not a duration such as 90s, 5m, 1h or 30d")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def read(inputs: Sequence[str], stdin: BinaryIO) -> dict[str, Rows]:
    """The rows of `KIND=FILE` by kind; raises AnalysisInputError naming file, row, field and reason."""
    if not inputs:
        raise AnalysisInputError("--input KIND=FILE is missing: which rows should be read?")
    tables: dict[str, Rows] = {}
    for given in inputs:
        kind, equals, name = given.partition("=")
        if not (kind and equals and name):
            raise AnalysisInputError(f"--input {given}: is not of the form KIND=FILE")
        if name == "-" and any(other.endswith("=-") for other in inputs[: len(tables)]):
            raise AnalysisInputError(f"--input {given}: standard input can be read only once")
        if kind in tables:
            raise AnalysisInputError(
                f"--input {given}: {kind} is given twice; join the files and give - to read stdin"
            )
        try:
            tables[kind] = _benchmarks(name, stdin) if kind == "benchmark" else read_file(kind, name, stdin)
        except InvalidFileError as error:
            raise AnalysisInputError(str(error)) from error
    if not any(rows.count for rows in tables.values()):
        name = inputs[0].partition("=")[2]
        raise AnalysisInputError(f"{'standard input' if name == '-' else name}: {NoRowsError()}")
    return tables


def _benchmarks(name: str, stdin: BinaryIO) -> Rows:
    """Rows of `benchmark`, or what SuperBench wrote; its results carry no time and are taken as of 1970."""
    if name != "-" and Path(name).suffix.lower() not in _LINES:
        return read_file("benchmark", name, stdin)
    try:
        body = stdin.read() if name == "-" else Path(name).read_bytes()
        if not superbench.is_summary(body):
            return read_file("benchmark", "-", BytesIO(body)) if name == "-" else read_file("benchmark", name)
        rows = superbench.benchmark_rows(superbench.parse_results(body), _EPOCH)
    except (OSError, superbench.InvalidResultsError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise AnalysisInputError(f"{'standard input' if name == '-' else name}: {reason}") from error
    lines = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    return read_file("benchmark", "-", BytesIO(lines.encode()))


def choose_input(analyzer: Analyzer, kinds: Collection[str]) -> Input:
    """The first input of the analyzer that the kinds complete; else AnalysisInputError says what it requires."""
    for one in analyzer.inputs:
        if set(one.kinds) <= set(kinds):
            return one
    ways = ", or ".join(" and ".join(one.kinds) for one in analyzer.inputs)
    given = " and ".join(kinds) if kinds else "nothing"
    raise AnalysisInputError(f"{analyzer.name} requires {ways}; given: {given}")


def spans(tables: Mapping[str, Rows], every: timedelta | None) -> list[Span]:
    """The windows that the rows fall into, in order of time.

    Raises AnalysisInputError if there are no rows, or too many windows.
    """
    first, last = _extent(tables)
    if every is None:
        return [Span(first, last + _MICROSECOND)]
    start = _EPOCH + (first - _EPOCH) // every * every
    if not _happened(tables):
        start = last = _EPOCH - (_EPOCH - first) // every * every
    count = (last - start) // every + 1
    if count > MOST_WINDOWS:
        raise AnalysisInputError(
            f"the rows reach from {_shown(first)} to {_shown(last)}: {count} windows of {every}, "
            f"more than {MOST_WINDOWS}"
        )
    return [Span(start + i * every, start + (i + 1) * every) for i in range(count)]


def windows(
    analyzer: Analyzer, one: Input, tables: Mapping[str, Rows], every: timedelta | None = None
) -> Iterator[Window]:
    """Each window with up to `analyzer.history` predecessors, oldest first.

    The same rows in any order give the same windows.
    """
    used = {kind: tables[kind] for kind in one.kinds}
    past: deque[Window] = deque(maxlen=analyzer.history)
    for span in spans(used, every):
        sums = reduce(one, used, span.start, span.end)
        yield Window(span.start, span.end, REGION, one.name, sums, tuple(past))
        past.append(Window(span.start, span.end, REGION, one.name, sums))


def unplaced(window: Window) -> str | None:
    """A sentence if rows were left out because nothing said where their unit was, else None."""
    most = max((sums.unmatched for sums in window.sums.values()), default=0)
    if not most:
        return None
    start = _shown(window.start)
    rows = "1 row was" if most == 1 else f"{most} rows were"
    return f"{rows} left out: nothing in force at {start} says where their unit was placed"


def placed_later(window: Window) -> str | None:
    """A sentence if some states that were used came into force only within the window, else None."""
    most = max((sums.later for sums in window.sums.values()), default=0)
    if not most:
        return None
    components = "1 component is" if most == 1 else f"{most} components are"
    return f"{components} first known after {_shown(window.start)}, taken as first reported"


def _extent(tables: Mapping[str, Rows]) -> tuple[datetime, datetime]:
    """The first and the last time of what happened; if nothing did, the time of the last state, twice."""
    if happened := _happened(tables):
        first = min(int(rows.times.min()) for rows in happened)
        return _moment(first), _moment(max(int(rows.latest.max()) for rows in happened))
    states = [int(rows.times.max()) for rows in tables.values() if rows.count]
    if not states:
        raise AnalysisInputError(f"there are no rows of {' and '.join(tables)}")
    return _moment(max(states)), _moment(max(states))


def _happened(tables: Mapping[str, Rows]) -> list[Rows]:
    """Rows that tell what happened; the others say only how things are."""
    return [rows for rows in tables.values() if not rows.kind.is_state and rows.count]


def _moment(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)


def _shown(when: datetime) -> str:
    return rfc3339(when)
