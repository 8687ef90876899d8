"""Telemetry in files, and reductions in numpy: the reader that needs neither database nor configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ingest.telemetry.check import MICROSECOND, Bounds, microseconds
from ingest.telemetry.columns import Names, Rows, Sets
from ingest.telemetry.decode_arrow import decode_batches, decode_stream
from ingest.telemetry.decode_json import decode_array, decode_ndjson
from ingest.telemetry.faults import BadBody, BadRows
from ingest.telemetry.kinds import KINDS, Kind
from ingest.telemetry.plan import Plan, plan
from ingest.telemetry.reductions import Input, Reduction, Sums
from ingest.telemetry.sums import Groups, Partials, add_up, finish, group

REGION = "default"
ALWAYS = Bounds()


class BadFile(ValueError):
    """A file that cannot be used. The message is one line: file, row, field, reason."""


def read_file(kind_name: str, name: str, stdin: BinaryIO | None = None) -> Rows:
    """The rows of a file, its format known by its ending; `-` reads NDJSON from `stdin`. Raises BadFile."""
    if kind_name not in KINDS:
        raise BadFile(f"there is no telemetry kind {kind_name}; there are {', '.join(KINDS)}")
    kind = KINDS[kind_name]
    shown = "standard input" if name == "-" else name
    try:
        if name == "-":
            return decode_ndjson(kind, stdin.read() if stdin is not None else b"", REGION, ALWAYS)
        reader = READERS.get(Path(name).suffix.lower())
        if reader is None:
            raise BadFile(f"{shown}: the ending says no format; known are {', '.join(READERS)}")
        return reader(kind, Path(name))
    except BadRows as error:
        more = f" (and {len(error.rows) - 1} more)" if len(error.rows) > 1 else ""
        raise BadFile(f"{shown}: {error.rows[0]}{more}") from error
    except BadBody as error:
        raise BadFile(f"{shown}: {error}") from error
    except (pa.ArrowException, EOFError) as error:
        raise BadFile(f"{shown}: cannot be read: {str(error).splitlines()[0][:200]}") from error
    except OSError as error:
        raise BadFile(f"{shown}: {error.strerror or str(error).splitlines()[0][:200]}") from error


def _read_parquet(kind: Kind, path: Path) -> Rows:
    with pq.ParquetFile(path) as file:
        return decode_batches(kind, file.schema_arrow, file.iter_batches(), REGION, ALWAYS)


def _read_arrow(kind: Kind, path: Path) -> Rows:
    """An Arrow file, or a stream in a file."""
    body = path.read_bytes()
    if not body.startswith(b"ARROW1"):
        return decode_stream(kind, body, REGION, ALWAYS)
    with pa.ipc.open_file(pa.py_buffer(body)) as file:
        batches = (file.get_batch(i) for i in range(file.num_record_batches))
        return decode_batches(kind, file.schema, batches, REGION, ALWAYS)


def _read_ndjson(kind: Kind, path: Path) -> Rows:
    return decode_ndjson(kind, path.read_bytes(), REGION, ALWAYS)


def _read_array(kind: Kind, path: Path) -> Rows:
    return decode_array(kind, path.read_bytes(), REGION, ALWAYS)


READERS: dict[str, Callable[[Kind, Path], Rows]] = {
    ".ndjson": _read_ndjson,
    ".jsonl": _read_ndjson,
    ".json": _read_array,
    ".parquet": _read_parquet,
    ".arrow": _read_arrow,
}


def reduce(input: Input, tables: Mapping[str, Rows], start: datetime, end: datetime) -> dict[str, Sums]:
    """The sums of the window [start, end) by reduction. `tables` holds rows by kind; regions are not told
    apart.

    Raises ValueError for a reduction that does not fit its kinds, KeyError for a kind without a table.
    """
    bounds = microseconds(start), microseconds(end)
    return {reduction.name: _reduce(reduction, tables, *bounds) for reduction in input.reductions}


def _reduce(reduction: Reduction, tables: Mapping[str, Rows], start: int, end: int) -> Sums:
    chosen = plan(reduction)
    rows = tables[reduction.kind]
    rows = _in_force(rows, start) if rows.kind.is_state else _between(rows, start, end)
    if reduction.where is not None and chosen.owners[reduction.where] == "row":
        rows = rows.take(np.asarray(rows.columns[reduction.where]) > 0)
    unmatched = 0
    states: Rows | None = None
    if reduction.as_of is not None:
        there = rows.count
        rows, states = _joined(rows, _in_force(tables[reduction.as_of.kind], start), reduction.as_of.key)
        unmatched = there - rows.count
        if reduction.where is not None and chosen.owners[reduction.where] == "state":
            above = np.asarray(states.columns[reduction.where]) > 0
            rows, states = rows.take(above), states.take(above)
    return finish(chosen, _partials(chosen, rows, states, start, unmatched))


def _between(rows: Rows, start: int, end: int) -> Rows:
    return rows.take((rows.times >= start) & (rows.times < end))


def _in_force(rows: Rows, at: int) -> Rows:
    """The rows of a state kind that are in force: the last of each key up to `at`, unless it says that it
    ends."""
    assert rows.kind.key is not None
    past = rows.take(rows.times <= at)
    keys = past.names(rows.kind.key).codes
    order = np.lexsort((np.arange(past.count), past.times, keys))
    ordered = keys[order]
    last = np.ones(len(order), bool)
    last[:-1] = ordered[1:] != ordered[:-1]
    found = past.take(order[last])
    return found.take(np.asarray(found.columns["active"], bool)) if rows.kind.has("active") else found


def _joined(rows: Rows, states: Rows, key: str) -> tuple[Rows, Rows]:
    """The rows that have a state, and beside each its state."""
    mine, theirs = rows.names(key), states.names(key)
    known = {name: code for code, name in enumerate(theirs.names)}
    place = np.full(len(theirs.names) + 1, -1, np.intp)
    place[theirs.codes] = np.arange(states.count)
    missing = len(theirs.names)
    translated = np.fromiter((known.get(name, missing) for name in mine.names), np.intp, len(mine.names))
    state_of = place[translated[mine.codes]]
    matched = state_of >= 0
    return rows.take(matched), states.take(state_of[matched])


def _partials(chosen: Plan, rows: Rows, states: Rows | None, start: int, unmatched: int) -> Partials:
    def column(name: str) -> Names | Sets | NDArray[np.generic]:
        owner = rows if chosen.owners[name] == "row" else states
        assert owner is not None
        return owner.columns[name]

    def identity(name: str) -> NDArray[np.generic]:
        found = column(name)
        return found.codes if isinstance(found, Names | Sets) else found

    keys = [identity(name) for name in chosen.named]
    sets = column(chosen.set_field) if chosen.set_field is not None else None
    assert sets is None or isinstance(sets, Sets)
    if sets is not None:
        keys.append(sets.codes)
    slices = _slices(chosen.reduction, rows.times, start)
    if slices is not None:
        keys.append(slices)
    keys += [identity(name) for name in chosen.distinct]
    groups = group(keys, rows.count)
    named = {
        name: found.take(groups.first) for name in chosen.named if isinstance(found := column(name), Names)
    }
    return Partials(
        counts=np.bincount(groups.of, minlength=groups.count).astype(np.int64),
        named=named,
        slices=None if slices is None else slices[groups.first],
        sets=None if sets is None else sets.take(groups.first),
        distinct={name: identity(name)[groups.first] for name in chosen.distinct},
        flags={name: _any_above(groups, np.asarray(column(name))) for name in chosen.flags},
        sums={name: add_up(groups, np.asarray(column(name))) for name in chosen.sums},
        unmatched=unmatched,
    )


def _slices(reduction: Reduction, times: NDArray[np.int64], start: int) -> NDArray[np.int64] | None:
    if reduction.slice is None:
        return None
    return (times - start) // max(1, reduction.slice // MICROSECOND)


def _any_above(groups: Groups, values: NDArray[np.generic]) -> NDArray[np.bool_]:
    found = np.zeros(groups.count, bool)
    found[groups.of[values > 0]] = True  # type: ignore[operator]
    return found
