"""Old parts of the log into files, step by step. A row of `log_cold` says how far each part has come, so that a process
may be killed between any two steps:

- `writing`: the files may be half written. What is found so is deleted and begun again.
- `cold`: the files are on disk and hold what the table holds, read back and compared value by value. Readers that look
  now take the events from the files; those who looked before still find the table.
- `detached`: nobody is left who looked before (`source.READERS_GONE_AFTER`), and the table is no part of the log.
- `moved`: it is dropped.

Parts move from the oldest on, once they are closed and sealed: nothing is ever added to them. The files are never
deleted, as events are not.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.db import OperationalError, connection, transaction

from ingest.db import database
from ingest.db.storage import ColdStorageError, Output, delete, unreadable_file
from ingest.log import seals, source
from ingest.log.types import Position

LOCK_PATIENCE = "200ms"
"""Longest wait of appends for a part to leave the log; where it takes longer, the next call tries again."""

STAYS_AFTER = source.READERS_GONE_AFTER + timedelta(hours=1)


@dataclass(slots=True)
class Moved:
    """Result of one call: parts that were written into files, their events, bytes of the files, and parts that left
    Postgres."""

    parts: int = 0
    events: int = 0
    bytes: int = 0
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class ColdLog:
    """Parts in files, their events and bytes. `overdue`: parts that should be in files and are not, `unsealed` of them
    for want of a seal; `staying`: parts that are in files and have not left Postgres for STAYS_AFTER."""

    parts: int
    events: int
    bytes: int
    overdue: int
    unsealed: int
    staying: int


def move_old(now: datetime, keep: int | None = None) -> Moved:
    """Move closed parts into files, but for the newest `keep` (DOSSIER_LOG_HOT), and finish what an earlier call began.
    Does nothing while another process does. Not inside a transaction.

    Raises ColdStorageError, OSError when the files cannot be written; what was moved before stays moved.
    """
    done = Moved()
    with database.alone("log_cold") as is_alone:
        if is_alone:
            _resume()
            for part in _due(keep):
                _write(part, done)
            _drop(now, done)
    return done


def status(keep: int | None = None) -> ColdLog:
    """Amounts of the log in files."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), coalesce(sum(events), 0), coalesce(sum(bytes), 0),"
            " count(*) FILTER (WHERE state <> 'moved' AND changed_at < %s)"
            " FROM log_cold WHERE state <> 'writing'",
            (database.now() - STAYS_AFTER,),
        )
        parts, events, size, staying = cursor.fetchone()
    full, due = _full(keep), _due(keep)
    return ColdLog(int(parts), int(events), int(size), len(full), len(full) - len(due), int(staying))


def unreadable() -> str | None:
    """Reason why this machine cannot read the oldest or the newest part in files."""
    from ingest.log import cold

    with connection.cursor() as cursor:
        cursor.execute("SELECT file, events FROM log_cold WHERE state <> 'writing' ORDER BY first")
        found = cursor.fetchall()
    ends = dict.fromkeys((*found[:1], *found[-1:]))
    return unreadable_file(
        [(name(file), rows) for file, rows in ends for name in (cold.events_of, cold.streams_of)]
    )


def _due(keep: int | None) -> list[source.Part]:
    """The parts that are to move and can, the oldest first."""
    full = _full(keep)
    newest = seals.newest_seal() if full else None
    covered = Position.parse(newest.body["upto"]) if newest else Position.START
    return list(takewhile(lambda part: part.last is not None and part.last <= covered, full))


def _full(keep: int | None) -> list[source.Part]:
    """Closed parts beyond those that stay, which are not in files; the oldest first."""
    hot = settings.LOG_HOT if keep is None else keep
    if not settings.TELEMETRY_COLD or not hot:
        return []
    closed = list(takewhile(lambda part: part.last is not None, source.parts()))
    return [part for part in closed[: max(0, len(closed) - hot)] if part.file is None]


# Written, and read back
# ----------------------------------------------------------------------------------------------------------
_EVENTS = "SELECT {columns} FROM {table} ORDER BY epoch, {table}.txid, seq"
_STREAMS = """SELECT stream, version, row_number() OVER (ORDER BY epoch, txid, seq) - 1 AS row FROM {table}
ORDER BY stream COLLATE "C", version"""


def _write(part: source.Part, done: Moved) -> None:
    from ingest.log import cold  # brings pyarrow

    file = f"log/{part.first:015d}-{uuid4().hex[:12]}"
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO log_cold (first, state, file, changed_at) VALUES (%s, 'writing', %s, %s)",
            (part.first, file, database.now()),
        )
    columns = ", ".join("txid::text AS txid_text" if name == "txid" else name for name in source.COLUMNS)
    events = _EVENTS.format(columns=columns, table=part.table)
    streams = _STREAMS.format(table=part.table)
    count, size = _copy(events, cold.events_of(file), cold.EVENTS, cold.GROUP)
    _compare(events, cold.events_of(file), cold.EVENTS, cold.GROUP)
    places, more = _copy(streams, cold.streams_of(file), cold.STREAMS, cold.STREAMS_GROUP)
    _compare(streams, cold.streams_of(file), cold.STREAMS, cold.STREAMS_GROUP)
    if places != count:
        raise ColdStorageError(
            f"{cold.streams_of(file)} has {places} rows for {count} events: it is not used"
        )
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE log_cold SET state = 'cold', events = %s, bytes = %s, changed_at = %s WHERE first = %s",
            (count, size + more, database.now(), part.first),
        )
    source.forget()
    done.parts, done.events, done.bytes = done.parts + 1, done.events + count, done.bytes + size + more


def _batches(query: str, size: int) -> Generator[list[tuple[Any, ...]]]:
    """Rows of a query, some at a time, with plain bytes."""
    with transaction.atomic(), connection.chunked_cursor() as cursor:
        cursor.execute(query)
        while rows := cursor.fetchmany(size):
            yield [tuple(bytes(one) if type(one) is memoryview else one for one in row) for row in rows]


def _copy(query: str, name: str, schema: Any, size: int) -> tuple[int, int]:
    """Write the rows of a query into a file; their number, and the bytes of the file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from ingest.log import cold

    output, count = Output(name), 0
    numbers = [field.name for field in schema if pa.types.is_integer(field.type)]
    few = [one for one in ("type", "actor", "cause", "trace") if one in schema.names]
    with (
        pq.ParquetWriter(
            output.stream,
            schema,
            compression="zstd",
            use_dictionary=few,
            column_encoding=dict.fromkeys(numbers, "DELTA_BINARY_PACKED"),
            write_statistics=[one for one in schema.names if one in cold.BOUNDED],
        ) as writer,
        closing(_batches(query, size)) as batches,
    ):
        for rows in batches:
            writer.write_table(_table(rows, schema), row_group_size=size)
            count += len(rows)
    output.close()
    return count, int(output.system.get_file_info(output.path).size)


def _table(rows: Sequence[tuple[Any, ...]], schema: Any) -> Any:
    import pyarrow as pa

    columns = [
        list(map(int, column)) if field.name == "txid" else column
        for field, column in zip(schema, zip(*rows, strict=True), strict=True)
    ]
    return pa.table(
        [pa.array(column, field.type) for field, column in zip(schema, columns, strict=True)], schema=schema
    )


def _compare(query: str, name: str, schema: Any, size: int) -> None:
    """Read a file again, from its storage. Raises ColdStorageError unless it holds the rows of the query."""
    from ingest.log import cold

    written = cold.batches(name, schema.names)
    with closing(_batches(query, size * cold.TOGETHER)) as batches:
        for rows in batches:
            if next(written, None) != rows:
                raise ColdStorageError(f"{name} does not hold what is in Postgres: it is not used")
    if next(written, None) is not None:
        raise ColdStorageError(f"{name} holds more than is in Postgres: it is not used")


# Out of Postgres
# ----------------------------------------------------------------------------------------------------------
def _resume() -> None:
    """Undo what a call began to write that was stopped."""
    from ingest.log import cold

    with connection.cursor() as cursor:
        cursor.execute("SELECT first, file FROM log_cold WHERE state = 'writing'")
        for first, file in cursor.fetchall():
            delete(cold.events_of(file))
            delete(cold.streams_of(file))
            cursor.execute("DELETE FROM log_cold WHERE first = %s", (first,))


def _drop(now: datetime, done: Moved) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT first, file, events FROM log_cold WHERE state = 'cold' AND changed_at <= %s ORDER BY first",
            (now - source.READERS_GONE_AFTER,),
        )
        for first, file, events in cursor.fetchall():
            _expect_files(file, events)
            if not _detach(first):
                break
        cursor.execute("SELECT first FROM log_cold WHERE state = 'detached' ORDER BY first")
        for (first,) in cursor.fetchall():
            cursor.execute(f"DROP TABLE IF EXISTS log_event_p{first}")
            cursor.execute(
                "UPDATE log_cold SET state = 'moved', changed_at = %s WHERE first = %s",
                (database.now(), first),
            )
            done.dropped += 1


def _expect_files(file: str, events: int) -> None:
    """Raises ColdStorageError where the files are not there any more, as long as Postgres has the events."""
    from ingest.log import cold

    for name in (cold.events_of(file), cold.streams_of(file)):
        if (found := cold.footer(name).num_rows) != events:
            raise ColdStorageError(f"{name} holds {found} rows, {events} are in Postgres: they stay there")


def _detach(first: int) -> bool:
    """Take a part out of the log; false where others had it locked."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_PATIENCE}'")
            cursor.execute(f"ALTER TABLE log_event DETACH PARTITION log_event_p{first}")
            cursor.execute(
                "UPDATE log_cold SET state = 'detached', changed_at = %s WHERE first = %s",
                (database.now(), first),
            )
    except OperationalError as error:
        if getattr(error.__cause__, "pgcode", "") == "55P03":  # lock not available
            return False
        raise
    return True
