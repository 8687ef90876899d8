"""Telemetry in files, and reductions in numpy: the reader that needs neither database nor configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from ingest.telemetry.decode.body import decode_array, decode_ndjson
from ingest.telemetry.decode.builder import no_rows
from ingest.telemetry.decode.columns import (
    MICROSECOND,
    Bounds,
    Known,
    Names,
    Numbers,
    Rows,
    Sets,
    microseconds,
)
from ingest.telemetry.errors import InvalidBodyError, InvalidRowsError, NoRowsError
from ingest.telemetry.kinds import KINDS, Kind
from ingest.telemetry.windows.reductions import Each, Input, Plan, Reduction, Sums, plan
from ingest.telemetry.windows.sums import Groups, Partials, Values, add_up, as_key, finish, group

REGION = "default"
ALWAYS = Bounds()


class InvalidFileError(ValueError):
    """A file that cannot be used. The message is one line: file, row, field, reason."""


def read_file(kind_name: str, name: str, stdin: BinaryIO | None = None) -> Rows:
    """The rows of a file, its format known by its ending; `-` reads NDJSON from `stdin`. Raises InvalidFileError.

    A file without rows is one in which nothing happened.
    """
    if kind_name not in KINDS:
        raise InvalidFileError(f"there is no telemetry kind {kind_name}; there are {', '.join(KINDS)}")
    kind = KINDS[kind_name]
    shown = "standard input" if name == "-" else name
    try:
        if name == "-":
            return decode_ndjson(kind, stdin.read() if stdin is not None else b"", REGION, ALWAYS)
        reader = READERS.get(Path(name).suffix.lower())
        if reader is None:
            raise InvalidFileError(f"{shown}: the ending says no format; known are {', '.join(READERS)}")
        return reader(kind, Path(name))
    except NoRowsError:
        return no_rows(kind, REGION)
    except InvalidRowsError as error:
        more = f" (and {len(error.rows) - 1} more)" if len(error.rows) > 1 else ""
        raise InvalidFileError(f"{shown}: {error.rows[0]}{more}") from error
    except InvalidBodyError as error:
        raise InvalidFileError(f"{shown}: {error}") from error
    except EOFError as error:
        raise InvalidFileError(f"{shown}: cannot be read: {str(error).splitlines()[0][:200]}") from error
    except OSError as error:
        raise InvalidFileError(f"{shown}: {error.strerror or str(error).splitlines()[0][:200]}") from error


def _read_parquet(kind: Kind, path: Path) -> Rows:
    from ingest.telemetry.windows.arrow_files import read_parquet  # loads pyarrow

    return read_parquet(kind, path, REGION, ALWAYS)


def _read_arrow(kind: Kind, path: Path) -> Rows:
    from ingest.telemetry.windows.arrow_files import read_arrow  # loads pyarrow

    return read_arrow(kind, path, REGION, ALWAYS)


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
    rows = _chosen(rows, start, end, reduction)
    if reduction.only is not None:
        rows = _only(rows, *reduction.only)
    later = int((rows.times > start).sum()) if reduction.or_within else 0
    if reduction.where is not None and chosen.owners[reduction.where] == "row":
        rows = rows.take(np.asarray(rows.columns[reduction.where]) > 0)
    each: Values | None = None
    if reduction.each is not None:
        rows, each = _taken_apart(rows, reduction.each)
    unmatched = 0
    states: Rows | None = None
    if reduction.as_of is not None:
        there = rows.count
        rows, states = _joined(rows, _in_force(tables[reduction.as_of.kind], start), reduction.as_of.key)
        unmatched = there - rows.count
        if reduction.where is not None and chosen.owners[reduction.where] == "state":
            above = np.asarray(states.columns[reduction.where]) > 0
            rows, states = rows.take(above), states.take(above)
    found = _partials(chosen, rows, states, start, each)
    return finish(chosen, replace(found, unmatched=unmatched, later=later))


def _chosen(rows: Rows, start: int, end: int, reduction: Reduction) -> Rows:
    if rows.kind.is_state and not reduction.changes:
        held = _in_force_or_within if reduction.or_within else _in_force_at_start
        return held(rows, start, end)
    return _overlapping(rows, start, end) if rows.kind.is_interval else _between(rows, start, end)


def _taken_apart(rows: Rows, each: Each) -> tuple[Rows, Values]:
    """A row for every number of the lists, and beside each its number, or the bin that it is in."""
    column = rows.columns[each.field]
    assert isinstance(column, Numbers)
    if not each.edges:
        return rows.take(column.owners), column.values
    return rows.take(column.owners), np.searchsorted(each.edges, column.values, side="right").astype(np.int64)


def _only(rows: Rows, field: str, values: tuple[str, ...]) -> Rows:
    column = rows.names(field)
    wanted = [code for code, name in enumerate(column.names) if name in values]
    return rows.take(np.isin(column.codes, wanted))


def _between(rows: Rows, start: int, end: int) -> Rows:
    return rows.take((rows.times >= start) & (rows.times < end))


def _overlapping(rows: Rows, start: int, end: int) -> Rows:
    """The intervals that overlap [start, end), each as it was last told of."""
    assert rows.kind.key is not None
    begun = rows.take(rows.times < end)
    found = begun.take(_last_of(begun.names(rows.kind.key).codes, begun.times))
    return found.take(found.ends > start)


def _last_of(*keys: NDArray[np.generic]) -> NDArray[np.intp]:
    """The last of the rows that agree in all keys."""
    order = np.lexsort((np.arange(len(keys[0])), *reversed(keys)))
    last = np.ones(len(order), bool)
    last[:-1] = np.logical_or.reduce([key[order][1:] != key[order][:-1] for key in keys])
    return order[last]


def _in_force_at_start(rows: Rows, start: int, _end: int) -> Rows:
    return _in_force(rows, start)


def _in_force(rows: Rows, at: int) -> Rows:
    """The rows of a state kind that are in force: the last of each key up to `at`, unless it says that it
    ends."""
    return rows.take(_held(rows, at))


def _held(rows: Rows, at: int) -> NDArray[np.intp]:
    """Rows of a state kind that are in force."""
    assert rows.kind.key is not None
    past = np.flatnonzero(rows.times <= at)
    ordered = past[np.argsort(rows.times[past], kind="stable")]
    found = ordered[_last_of(rows.names(rows.kind.key).codes[ordered])]
    return found[_active(rows)[found]]


def _in_force_or_within(rows: Rows, start: int, end: int) -> Rows:
    """The rows in force at the start, and of keys that have none the first that came into force before the end."""
    assert rows.kind.key is not None
    held, codes = _held(rows, start), rows.names(rows.kind.key).codes
    within = np.flatnonzero((rows.times > start) & (rows.times < end))
    chosen = within[_last_of(codes[within], rows.times[within])]
    chosen = chosen[_active(rows)[chosen] & ~np.isin(codes[chosen], codes[held])]
    _, first = np.unique(codes[chosen], return_index=True)  # they ascend by key, then by time
    return rows.take(np.concatenate([held, chosen[first]]))


def _active(rows: Rows) -> NDArray[np.bool_]:
    return np.asarray(rows.columns["active"], bool) if rows.kind.has("active") else np.ones(rows.count, bool)


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


def _partials(chosen: Plan, rows: Rows, states: Rows | None, start: int, each: Values | None) -> Partials:
    def column(name: str) -> Names | Sets | NDArray[np.generic]:
        owner = rows if chosen.owners[name] == "row" else states
        assert owner is not None
        found = owner.columns[name]
        assert not isinstance(found, Numbers | Known)
        return found

    def identity(name: str) -> NDArray[np.generic]:
        found = column(name)
        return found.codes if isinstance(found, Names | Sets) else found

    numbered = {name: as_key(identity(name)) for name in chosen.numbered}
    if chosen.reduction.each is not None and each is not None:
        numbered[chosen.reduction.each.key] = each
    keys = [*(identity(name) for name in chosen.named), *numbered.values()]
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
        numbered={name: key[groups.first] for name, key in numbered.items()},
        slices=None if slices is None else slices[groups.first],
        sets=None if sets is None else sets.take(groups.first),
        distinct={name: identity(name)[groups.first] for name in chosen.distinct},
        flags={name: _any_above(groups, np.asarray(column(name))) for name in chosen.flags},
        sums={name: add_up(groups, np.asarray(column(name))) for name in chosen.sums},
    )


def _slices(reduction: Reduction, times: NDArray[np.int64], start: int) -> NDArray[np.int64] | None:
    if reduction.slice is None:
        return None
    return (times - start) // max(1, reduction.slice // MICROSECOND)


def _any_above(groups: Groups, values: NDArray[np.generic]) -> NDArray[np.bool_]:
    found = np.zeros(groups.count, bool)
    found[groups.of[values > 0]] = True  # type: ignore[operator]
    return found
