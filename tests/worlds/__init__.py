"""Worlds that share no code and no assumption with `analyzers.simulators`: analyzers are judged on them, never tuned.

A module per analyzer has `make(seed, case) -> World` and `CASES`, the names of its cases. Its author knows the paper
and the wire format and has not read the analyzer. Nothing here may import `analyzers.builtin`
or `analyzers.simulators`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from io import BytesIO
from typing import Any

from analyzers.contract import Analyzer, Window
from analyzers.offline import choose_input, windows
from ingest.telemetry.decode.columns import Rows
from ingest.telemetry.windows.offline import read_file

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault from `start` until `end`: a component, and in one word how.

    `acceptable` are further components that a careful person would accept as the answer, because the rows cannot tell
    them from it.
    """

    component: str
    kind: str
    start: datetime
    end: datetime
    acceptable: tuple[str, ...] = ()


@dataclass(frozen=True)
class World:
    """Rows by telemetry kind in the wire format, what was broken, and what harmless happened.

    `every` is the length of a window. Windows that begin before `judged_from` are only history. `notes` say what is
    unlike a textbook here: missing rows, biased sampling, benign events.
    """

    case: str
    seed: int
    rows: Mapping[str, Sequence[Row]]
    every: timedelta
    judged_from: datetime
    faults: tuple[Fault, ...] = ()
    notes: tuple[str, ...] = field(default_factory=tuple)

    def faults_between(self, start: datetime, end: datetime) -> tuple[Fault, ...]:
        """The faults that are active for some of `[start, end)`."""
        return tuple(one for one in self.faults if one.start < end and one.end > start)

    def tables(self) -> dict[str, Rows]:
        """The rows as a file of them would be read, checked against the wire format."""
        return {kind: read_file(kind, "-", BytesIO(_ndjson(rows))) for kind, rows in self.rows.items()}

    def windows(self, analyzer: Analyzer) -> Iterator[Window]:
        """The judged windows as `manage.py analyze --every` cuts them, each with its history."""
        tables = self.tables()
        for window in windows(analyzer, choose_input(analyzer, tables), tables, self.every):
            if window.start >= self.judged_from:
                yield window


def _ndjson(rows: Sequence[Row]) -> bytes:
    return b"".join(json.dumps(row, separators=(",", ":")).encode() + b"\n" for row in rows)
