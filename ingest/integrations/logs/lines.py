"""Log records of CSV files. Pure: bytes in, records out.

The columns read are those of the Nezha data set (Yu et al., FSE 2023): TimeUnixNano, PodName and Log; others are passed
over. Log is the line as the program wrote it, or as a container runtime wraps it (JSON with `log`); a line that is JSON
itself gives its message and its severity by the usual names.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from typing import Any

from ingest.integrations.logs.templates import Record, severity_in, severity_of
from ingest.integrations.span_rows import service_of

COLUMNS = ("TimeUnixNano", "PodName", "Log")
MESSAGES = ("message", "msg", "log", "body", "text", "event")
SEVERITIES = ("severity", "level", "levelname", "lvl", "log.level", "severity_text")
_LAST_NS = 2**63 - 1
_LONGEST_NAME = 190


class InvalidLogsError(ValueError):
    """The payload holds no log records as expected; the message names the row and the field."""


def parse(payload: bytes) -> tuple[list[Record], int]:
    """The records of a CSV file with a header, and how many were left out because they have no time: before 1970, as
    collectors write where a program gave none. Raises InvalidLogsError with row number, field and reason.
    """
    try:
        text = payload.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = payload[: error.start].count(b"\n")
        raise InvalidLogsError(f"row {row}: is not UTF-8 text") from error
    found = list(_records(csv.reader(io.StringIO(text, newline=""), strict=True)))
    records = [one for one in found if one.time > 0]
    return records, len(found) - len(records)


def _records(lines: Any) -> Iterator[Record]:
    row = 0
    try:
        header = {name.strip(): place for place, name in enumerate(next(lines, []))}
        for column in COLUMNS:
            if column not in header:
                raise InvalidLogsError(
                    f"header, field {column}: the column is missing; expected {','.join(COLUMNS)}"
                )
        places = [header[column] for column in COLUMNS]
        for row, values in enumerate(lines, start=1):
            if values and len(values) <= max(places):
                raise InvalidLogsError(f"row {row}: ends after {len(values)} of {len(header)} columns")
            if values:
                yield _record(row, *(values[place] for place in places))
    except csv.Error as error:
        raise InvalidLogsError(f"row {row + 1}: is not CSV: {error}") from error


def _record(row: int, time: str, pod: str, line: str) -> Record:
    if re.fullmatch(r"-?[0-9]{1,20}", time) is None or int(time) > _LAST_NS:
        raise InvalidLogsError(
            f"row {row}, field TimeUnixNano: {time[:40]!r} is not a time in epoch nanoseconds"
        )
    if not pod or len(pod) > _LONGEST_NAME or any(character.isspace() for character in pod):
        raise InvalidLogsError(f"row {row}, field PodName: {pod[:40]!r} is not a name without white space")
    text, severity = message_of(line)
    return Record(int(time), f"instance/{pod}", service_of(pod), severity, text)


def message_of(line: str) -> tuple[str, str]:
    """The message of a line, out of up to two layers of JSON, and its severity."""
    severity = "unspecified"
    for _ in range(2):
        try:
            found = json.loads(line) if line.lstrip().startswith("{") else None
        except ValueError:
            break
        if not isinstance(found, dict):
            break
        result = next((found[name] for name in SEVERITIES if isinstance(found.get(name), str)), "")
        severity = severity_of(result) if severity == "unspecified" else severity
        message = next((found[name] for name in MESSAGES if isinstance(found.get(name), str)), None)
        if message is None:
            break
        line = message
    return line, severity if severity != "unspecified" else severity_in(line)
