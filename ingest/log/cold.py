"""Parts of the log in files, read. Nothing here writes, and nothing here asks Postgres.

A part has two Parquet files. `FILE.parquet` holds its events in the total order, GROUP in each row group: a reader of
the order reads on from the row group of its place. `FILE.streams.parquet` holds stream, version and row of each event,
sorted by stream and version: a reader of a stream reads the row group of that stream (by the statistics in the footer),
and then those row groups of the first file in which its events lie.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from django.conf import settings
from numpy.typing import NDArray

from ingest.db.storage import DUCKDB, ColdStorageError, duckdb_source, storage
from ingest.log.types import Position

GROUP = 2_048
"""Events of a row group: about 2 MB, 300 kB in the file. A page of 500 events decodes one or two of them; the footer of
a part of ten million events has 5 MB. Files of earlier versions have 8,192."""
STREAMS_GROUP = 8_192
TOGETHER = 4
"""Row groups of one read where all of a file is wanted: each read may be a request of a storage elsewhere."""
BOUNDED = frozenset({"epoch", "txid", "seq", "stream"})
"""Columns whose bounds in each row group are in the footer: places of events and, sorted by these, streams. Bounds of
bodies would be most of it."""
_TIME = pa.timestamp("us", tz="UTC")
EVENTS = pa.schema(
    [
        pa.field("stream", pa.string(), nullable=False),
        pa.field("version", pa.int32(), nullable=False),
        pa.field("type", pa.string(), nullable=False),
        pa.field("schema", pa.int32(), nullable=False),
        pa.field("body", pa.string(), nullable=False),
        pa.field("actor", pa.string(), nullable=False),
        pa.field("cause", pa.string()),
        pa.field("trace", pa.string()),
        pa.field("occurred_at", _TIME, nullable=False),
        pa.field("recorded_at", _TIME, nullable=False),
        pa.field("hash", pa.binary(32), nullable=False),
        pa.field("epoch", pa.int32(), nullable=False),
        pa.field("txid", pa.uint64(), nullable=False),
        pa.field("seq", pa.int64(), nullable=False),
    ]
)
STREAMS = pa.schema(
    [
        pa.field("stream", pa.string(), nullable=False),
        pa.field("version", pa.int32(), nullable=False),
        pa.field("row", pa.int64(), nullable=False),
    ]
)
_PLACE = ("epoch", "txid", "seq", "type", "recorded_at")
"""Columns that say whether an event is wanted, and are small."""
_1970 = datetime(1970, 1, 1, tzinfo=UTC)
_MEMORY = "1GB"
"""Memory for what DuckDB sorts; beyond it goes to a temporary directory."""

Row = tuple[Any, ...]


def events_of(file: str) -> str:
    return f"{file}.parquet"


def streams_of(file: str) -> str:
    return f"{file}.streams.parquet"


# Files and their row groups, which never change
# ----------------------------------------------------------------------------------------------------------
class _Bounds(Sequence[tuple[Any, ...]]):
    """Lowest or highest values of some columns in each row group, out of the footer when they are looked at: a part of
    ten million events has 5,000 row groups, of which a search looks at a dozen.

    Raises ColdStorageError where the footer does not have them.
    """

    def __init__(self, name: str, metadata: pq.FileMetaData, columns: Sequence[str], end: str) -> None:
        names = metadata.schema.to_arrow_schema().names
        self._name, self._metadata, self._end = name, metadata, end
        self._places = [names.index(one) for one in columns]
        self._known = dict[int, tuple[Any, ...]]()

    def __len__(self) -> int:
        return int(self._metadata.num_row_groups)

    def __getitem__(self, group: Any) -> Any:
        if (found := self._known.get(group)) is None:
            if group >= len(self):
                raise IndexError(group)
            columns = self._metadata.row_group(group)
            bounds = [columns.column(place).statistics for place in self._places]
            if any(one is None or not one.has_min_max for one in bounds):
                raise ColdStorageError(
                    f"file {self._name} of the log has no statistics: it was written by something else"
                )
            found = self._known[group] = tuple(getattr(one, self._end) for one in bounds)
        return found


@dataclass(frozen=True, slots=True)
class _File:
    name: str
    metadata: pq.FileMetaData
    starts: NDArray[np.int64]
    """First row of each row group."""
    lows: Sequence[Any]
    highs: Sequence[Any]
    """Bounds of each row group: streams, or epoch, txid and seq, each for itself."""


def footer(name: str) -> pq.FileMetaData:
    """The footer of a file, read from its storage. Raises ColdStorageError."""
    system, root = storage()
    with _reading(name), system.open_input_file(f"{root}/{name}") as opened:
        return pq.ParquetFile(opened).metadata


@contextmanager
def _reading(name: str) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise ColdStorageError(f"file {name} of the log cannot be read: {error}") from error


def _file(name: str) -> _File:
    return _file_in(settings.TELEMETRY_COLD, name)


@lru_cache(maxsize=64)
def _file_in(_where: str, name: str) -> _File:
    metadata = footer(name)
    counts = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    is_of_streams = "row" in metadata.schema.to_arrow_schema().names
    by = ("stream",) if is_of_streams else ("epoch", "txid", "seq")
    return _File(
        name,
        metadata,
        np.cumsum([0, *counts])[:-1],
        _Bounds(name, metadata, by, "min"),
        _Bounds(name, metadata, by, "max"),
    )


@lru_cache(maxsize=8)
def _group(where: str, name: str, group: int, columns: tuple[str, ...]) -> pa.Table:
    file = _file_in(where, name)
    system, root = storage()
    with _reading(name), system.open_input_file(f"{root}/{name}") as opened:
        reader = pq.ParquetFile(opened, metadata=file.metadata, pre_buffer=True)
        # One chunk, so that a row is found at once. A row group is too small for several threads.
        return reader.read_row_group(group, columns=list(columns), use_threads=False).combine_chunks()


def _read(file: _File, group: int, columns: Sequence[str]) -> pa.Table:
    return _group(settings.TELEMETRY_COLD, file.name, group, tuple(columns))


def _rows(table: pa.Table, columns: Sequence[str]) -> list[Row]:
    """Rows as the driver of Postgres gives them; a transaction id is its text."""
    return list(zip(*(_values(table.column(name), name) for name in columns), strict=True))


def _values(column: pa.ChunkedArray, name: str) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        numbers = column.cast(pa.int64()).to_pylist()
        times = {at: _1970 + timedelta(microseconds=at) for at in set(numbers)}  # a transaction has one
        return [times[at] for at in numbers]
    values: list[Any] = column.to_pylist()
    return list(map(str, values)) if name == "txid" else values


# Streams
# ----------------------------------------------------------------------------------------------------------
def of_streams(
    file: str,
    columns: Sequence[str],
    streams: Sequence[str],
    versions: Sequence[int] | None = None,
    after_version: int = 0,
) -> list[Row]:
    """Events of some streams in a part, in any order."""
    events, found = _file(events_of(file)), list[Row]()
    rows = np.sort(_rows_of(_file(streams_of(file)), streams, versions, after_version))
    groups = np.searchsorted(events.starts, rows, side="right") - 1
    for group in np.unique(groups).tolist():
        own = rows[groups == group] - events.starts[group]
        found += _rows(_read(events, group, columns).take(pa.array(own)), columns)
    return found


def _rows_of(
    file: _File, streams: Sequence[str], versions: Sequence[int] | None, after_version: int
) -> NDArray[np.int64]:
    """Rows of the events of these streams in the file of events."""
    groups = set[int]()
    for stream in set(streams):
        group = bisect_left(file.highs, (stream,))
        while group < len(file.lows) and file.lows[group] <= (stream,):
            groups.add(group)
            group += 1
    found = [np.empty(0, np.int64)]
    for group in sorted(groups):
        table = _read(file, group, STREAMS.names)
        wanted = pc.is_in(table.column("stream"), pa.array(sorted(set(streams)), pa.string()))
        if versions is not None:
            own = pc.is_in(table.column("version"), pa.array(list(versions), pa.int32()))
            wanted = pc.and_(wanted, own)
        if after_version:
            wanted = pc.and_(wanted, pc.greater(table.column("version"), after_version))
        found.append(table.filter(wanted).column("row").to_numpy())
    return np.concatenate(found)


# The total order
# ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Span:
    """A piece of the total order: after a position, up to another (inclusive), with numbers from `low` to `high`."""

    after: Position | None = None
    upto: Position | None = None
    low: int = 0
    high: int | None = None


def in_order(
    file: str,
    columns: Sequence[str],
    span: Span,
    limit: int | None,
    types: Collection[str] | None = None,
) -> list[Row]:
    """Up to `limit` events of a part, the first in the total order."""
    events, found = _file(events_of(file)), list[Row]()
    # Where events of some types are wanted, few row groups may have any: their places are read first.
    every = tuple(dict.fromkeys((*columns, *_PLACE)))
    for group in _groups(events, span):
        table = _read(events, group, every if types is None else _PLACE)
        places = _wanted(table, span, types)
        if limit is not None:
            places = places[: limit - len(found)]
        if len(places):
            table = table if types is None else _read(events, group, columns)
            found += _rows(_taken(table, places), columns)
        if len(found) == limit:
            break
    return found


def _taken(table: pa.Table, places: NDArray[np.int64]) -> pa.Table:
    """Rows of a table; those of a page follow each other, which copies nothing."""
    if places[-1] - places[0] + 1 == len(places):
        return table.slice(places[0], len(places))
    return table.take(pa.array(places))


def last(file: str, columns: Sequence[str], span: Span, recorded_until: datetime | None = None) -> Row | None:
    """The last event of a part in the span, recorded up to a moment."""
    events = _file(events_of(file))
    for group in reversed(_groups(events, span)):
        places = _wanted(_read(events, group, _PLACE), span, None, recorded_until)
        if len(places):
            (row,) = _rows(_read(events, group, columns).take(pa.array(places[-1:])), columns)
            return row
    return None


def _groups(file: _File, span: Span) -> range:
    begin, end = 0, len(file.lows)
    if span.after is not None:
        begin = bisect_left(file.highs, (span.after.epoch, span.after.txid), key=_transaction)
        while begin < end and _passed(file, begin, span.after):
            begin += 1
    if span.upto is not None:
        beyond = (span.upto.epoch, span.upto.txid + 1)
        end = bisect_left(file.lows, beyond, key=_transaction)
    return range(begin, end)


def _transaction(bounds: tuple[int, int, int]) -> tuple[int, int]:
    return bounds[:2]


def _passed(file: _File, group: int, after: Position) -> bool:
    """Whether no event of a row group follows a position in its transaction: the row group, or the next one, holds
    nothing else, so that the bounds of numbers tell."""
    here = (after.epoch, after.txid)

    def is_of_here(one: int) -> bool:
        return one < len(file.lows) and file.lows[one][:2] == here == file.highs[one][:2]

    return (is_of_here(group) and file.highs[group][2] <= after.seq) or (
        is_of_here(group + 1) and file.lows[group + 1][2] <= after.seq
    )


def _wanted(
    table: pa.Table,
    span: Span,
    types: Collection[str] | None,
    recorded_until: datetime | None = None,
) -> NDArray[np.int64]:
    """Rows of a row group that are in the span, in order."""
    place = [table.column(name).to_numpy() for name in ("epoch", "txid", "seq")]
    seqs = place[2]
    wanted = seqs >= span.low
    if span.high is not None:
        wanted &= seqs <= span.high
    if span.after is not None:
        wanted &= _compared(place, span.after, np.greater)
    if span.upto is not None:
        wanted &= _compared(place, span.upto, np.less_equal)
    if types is not None:
        wanted &= pc.is_in(table.column("type"), pa.array(sorted(types), pa.string())).to_numpy()
    if recorded_until is not None:
        wanted &= pc.less_equal(table.column("recorded_at"), pa.scalar(recorded_until, _TIME)).to_numpy()
    return np.flatnonzero(wanted)


def _compared(
    place: Sequence[NDArray[Any]], position: Position, compare: Callable[..., NDArray[np.bool_]]
) -> NDArray[np.bool_]:
    epochs, txids, seqs = place
    txid = np.uint64(position.txid)
    strict = np.greater if compare is np.greater else np.less
    earlier = strict(epochs, position.epoch) | ((epochs == position.epoch) & strict(txids, txid))
    return np.asarray(
        earlier | ((epochs == position.epoch) & (txids == txid) & compare(seqs, position.seq)), np.bool_
    )


def of_numbers(file: str, columns: Sequence[str], numbers: Collection[int]) -> list[Row]:
    """Events of a part that have these numbers, in any order."""
    events, found = _file(events_of(file)), list[Row]()
    wanted = np.sort(np.fromiter(numbers, np.int64))
    for group, (low, high) in enumerate(zip(events.lows, events.highs, strict=True)):
        begin, end = np.searchsorted(wanted, [low[2], high[2] + 1])
        if begin < end:
            seqs = _read(events, group, _PLACE).column("seq").to_numpy()
            places = np.flatnonzero(np.isin(seqs, wanted[begin:end]))
            found += _rows(_read(events, group, columns).take(pa.array(places)), columns)
    return found


# Whole parts
# ----------------------------------------------------------------------------------------------------------
def batches(name: str, columns: Sequence[str]) -> Iterator[list[Row]]:
    """All rows of a file in their order, TOGETHER row groups at a time, from its storage."""
    system, root = storage()
    with _reading(name), system.open_input_file(f"{root}/{name}") as opened:
        reader = pq.ParquetFile(opened, pre_buffer=True)
        count = reader.metadata.num_row_groups
        for begin in range(0, count, TOGETHER):
            groups = list(range(begin, min(begin + TOGETHER, count)))
            yield _rows(reader.read_row_groups(groups, columns=list(columns)), columns)


def by_stream(files: Sequence[str], columns: Sequence[str]) -> Iterator[Row]:
    """All events of these parts, by stream (as bytes) and version. Sorted on disk where memory does not suffice."""
    return _queried(files, f"SELECT {', '.join(columns)} FROM {{}} ORDER BY stream, version", columns)


HEADS = ("stream", "version", "hash", "epoch", "txid", "seq", "first_seq")


def heads(files: Sequence[str]) -> Iterator[Row]:
    """HEADS of each stream, as far as these parts know, by stream (as bytes)."""
    text = (
        "SELECT stream, max(version) AS version, arg_max(hash, version) AS hash, arg_max(epoch, version) AS epoch,"
        " arg_max(txid, version) AS txid, max(seq) AS seq, min(seq) AS first_seq FROM {}"
        " GROUP BY stream ORDER BY stream"
    )
    return _queried(files, text, HEADS)


def _queried(files: Sequence[str], text: str, columns: Sequence[str]) -> Iterator[Row]:
    import duckdb  # takes a tenth of a second, and only checks of the whole log need it

    if not files:
        return
    try:
        with duckdb.connect(":memory:", config={**DUCKDB, "memory_limit": _MEMORY}) as session:
            source = duckdb_source(session, [events_of(file) for file in files], EVENTS)
            for batch in session.sql(text.format(source)).to_arrow_reader(GROUP):
                yield from _rows(pa.Table.from_batches([batch]), columns)
    except (OSError, duckdb.IOException, pa.ArrowException) as error:
        raise ColdStorageError(f"files of the log cannot be read: {error}") from error
