"""Tables of metrics with a column per series to rows of `metric`. Pure.

Two shapes of CSV, told apart by their first line:

- a column of times (`time`, `timestamp` or `unix_timestamp`) and columns `<service>_<metric>`, as RCAEval publishes
  them (Pham et al., WWW 2025): the service is what stands before the first underscore;
- three lines of column names, `microservice`, `metric` and `statistic`, and a first column of times, as PetShop
  publishes them (Hardt et al., CLeaR 2024).

Times are seconds, milliseconds, microseconds or nanoseconds since 1970, told apart by their size, or RFC 3339. An empty
cell, `nan` and what is not finite have no row.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

TIMES = ("time", "timestamp", "unix_timestamp", "time.1")
_STACKED = ("microservice", "metric", "statistic")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class InvalidColumnsError(ValueError):
    """The table cannot be read; the message says what is wrong where."""


@dataclass(frozen=True, slots=True)
class Table:
    """`labels[c]` and `names[c]` of each column of `cells`; `times` in nanoseconds since 1970, as `cells` has rows.
    `left_out` are columns whose names tell no service."""

    names: tuple[str, ...]
    labels: tuple[dict[str, str], ...]
    times: tuple[int, ...]
    cells: tuple[tuple[float, ...], ...]
    left_out: tuple[str, ...]

    @property
    def end(self) -> datetime:
        return _EPOCH + max(self.times) // 1000 * _MICROSECOND


def parse(payload: bytes) -> Table:
    """Raises InvalidColumnsError naming line and column."""
    try:
        text = payload.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidColumnsError(f"is not UTF-8: byte {error.start} cannot be read") from error
    try:
        lines = [(number, line) for number, line in enumerate(csv.reader(io.StringIO(text)), 1) if line]
    except csv.Error as error:
        raise InvalidColumnsError(f"is not CSV: {error}") from error
    if not lines:
        raise InvalidColumnsError("is empty: a first line with column names is missing")
    header = lines[0][1]
    if header[0].strip() == _STACKED[0]:
        names, labels, columns, left_out, body = _stacked(lines)
        time = 0
    else:
        names, labels, columns, left_out, time = _flat(header)
        body = lines[1:]
    if not columns:
        raise InvalidColumnsError(
            "no column is named <service>_<metric>, such as cart_latency; found " + ", ".join(header[:5])
        )
    if not body:
        raise InvalidColumnsError("has column names and no values")
    twice = _repeated([(name, *of.values()) for name, of in zip(names, labels, strict=True)])
    if twice is not None:
        raise InvalidColumnsError(f"column {header[columns[twice]]} is there twice")
    for number, line in body:
        if len(line) <= max(time, *columns):
            raise InvalidColumnsError(
                f"line {number}: has {len(line)} of {len(header)} columns: is the file cut off?"
            )
    times = tuple(_moment(line, time, number) for number, line in body)
    cells = tuple(tuple(_cell(line, at, number, header) for at in columns) for number, line in body)
    if not any(math.isfinite(value) for line in cells for value in line):
        raise InvalidColumnsError("has column names and no values")
    return Table(names, labels, times, cells, left_out)


def _repeated(keys: Sequence[tuple[str, ...]]) -> int | None:
    """The place of the first key that was there before."""
    seen = set[tuple[str, ...]]()
    for place, key in enumerate(keys):
        if key in seen:
            return place
        seen.add(key)
    return None


Columns = tuple[tuple[str, ...], tuple[dict[str, str], ...], tuple[int, ...], tuple[str, ...]]


def _flat(header: Sequence[str]) -> tuple[*Columns, int]:
    time = next((at for at, name in enumerate(header) if name.strip().lower() in TIMES), None)
    if time is None:
        raise InvalidColumnsError(f"no column of times: one of {', '.join(TIMES[:3])} is needed")
    names, labels, columns, left_out = [], [], [], []
    for at, column in enumerate(header):
        service, _, metric = column.strip().partition("_")
        if column.strip().lower() in TIMES:
            continue
        if service and metric:
            names.append(metric)
            labels.append({"service": service})
            columns.append(at)
        else:
            left_out.append(column)
    return tuple(names), tuple(labels), tuple(columns), tuple(left_out), time


def _stacked(
    lines: Sequence[tuple[int, list[str]]],
) -> tuple[*Columns, Sequence[tuple[int, list[str]]]]:
    for (number, line), wanted in zip(lines[:3], _STACKED, strict=False):
        if line[0].strip() != wanted:
            raise InvalidColumnsError(f"line {number}: begins with {line[0]!r}; {wanted!r} is needed")
    if len(lines) < len(_STACKED):
        raise InvalidColumnsError(
            f"line {len(lines)}: lines that begin with {', '.join(_STACKED)} are needed"
        )
    services, metrics, statistics = (line for _, line in lines[:3])
    count = min(len(services), len(metrics), len(statistics))
    names, labels, columns = [], [], []
    for at in range(1, count):
        if services[at] and metrics[at]:
            names.append(metrics[at])
            labels.append({"service": services[at], "statistic": statistics[at]})
            columns.append(at)
    body = lines[3:]
    if body and body[0][1][0].strip().lower() in TIMES:  # the index has a name of its own
        body = body[1:]
    return tuple(names), tuple(labels), tuple(columns), (), body


def _moment(line: Sequence[str], at: int, number: int) -> int:
    text = line[at].strip() if at < len(line) else ""
    try:
        value = float(text)
    except ValueError:
        try:
            found = datetime.fromisoformat(text)
        except ValueError:
            raise InvalidColumnsError(
                f"line {number}: {text!r} is no time: seconds since 1970 or RFC 3339 are"
            ) from None
        return (found.replace(tzinfo=found.tzinfo or UTC) - _EPOCH) // _MICROSECOND * 1000
    if not math.isfinite(value) or not 0 <= value < 1e19:
        raise InvalidColumnsError(f"line {number}: {text!r} is no time: seconds since 1970 or RFC 3339 are")
    for most, factor in ((1e11, 10**9), (1e14, 10**6), (1e17, 10**3)):
        if value < most:
            return round(value * factor)
    return round(value)


def _cell(line: Sequence[str], at: int, number: int, header: Sequence[str]) -> float:
    text = line[at].strip() if at < len(line) else ""
    if not text:
        return math.nan
    try:
        return float(text)
    except ValueError:
        column = header[at] if at < len(header) else str(at + 1)
        raise InvalidColumnsError(f"line {number}, column {column}: {text!r} is no number") from None


def rows(table: Table, shift: timedelta = timedelta(0)) -> Iterator[dict[str, Any]]:
    """Rows of `metric`, line by line; `shift` is added to every time."""
    more = shift // _MICROSECOND * 1000
    for time, cells in zip(table.times, table.cells, strict=True):
        for name, labels, value in zip(table.names, table.labels, cells, strict=True):
            if math.isfinite(value):
                yield {"time": time + more, "name": name, "labels": labels, "value": value}
