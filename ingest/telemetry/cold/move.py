"""Old partitions into files, step by step. A row of `telemetry_cold` says how far each file has come, so that a process
may be killed between any two steps:

- `writing`: the file may be half written. What is found so is deleted and begun again.
- `checked`: the file holds what the partition held, and is on disk. One transaction then takes the partition out of its
  table and makes the file `cold`, unless rows came meanwhile: then the file is deleted and begun again.
- `cold`: readers take the rows from the file. `heap` names the former partition until that is dropped.
- `removing`: retention is over; the file is deleted when no reader can have it open any more.

Rows that come late for a time that has been moved open a small partition again, which becomes a file beside the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from django.conf import settings
from django.db import connection, transaction

from ingest.db import database
from ingest.db.storage import ColdStorageError, delete
from ingest.log.read import watermark
from ingest.telemetry.cold import files
from ingest.telemetry.cold.rows import copy_batches, schema_of
from ingest.telemetry.kinds import KINDS, Kind
from ingest.telemetry.store import sharding, tables
from ingest.telemetry.store.tables import Span, existing, one_snapshot, patience, retention_of, table

QUIET_FOR = timedelta(hours=1)
"""Nothing may have come for a partition for so long, or for the age at which rows move if that is less: late rows come
in drops, and each file costs a request."""
READERS_GONE_AFTER = timedelta(hours=1)


@dataclass(slots=True)
class Moved:
    """Result of one call: files made, rows in them, bytes of the files, files that retention deleted."""

    files: int = 0
    rows: int = 0
    bytes: int = 0
    deleted: int = 0


def move_old(now: datetime, hot: timedelta | None = None) -> Moved:
    """Move partitions that ended longer than `hot` ago (DOSSIER_TELEMETRY_HOT) into files, finish what an earlier call
    began, and delete files past retention. Does nothing while another process does. Not inside a transaction.

    Raises ColdStorageError, OSError when the files cannot be written; what was moved before stays moved.
    """
    hot = hot or settings.TELEMETRY_HOT
    done = Moved()
    with database.alone("telemetry_cold") as is_alone:
        if not is_alone:
            return done
        _resume()
        _remove(now, done)
        for kind in KINDS.values() if settings.TELEMETRY_COLD else ():
            if kind.is_event:
                for span in _ended(kind, now - hot, now - retention_of(kind)):
                    _move(kind, span, now, min(hot, QUIET_FOR), done)
    return done


def _ended(kind: Kind, until: datetime, keep_from: datetime) -> list[Span]:
    return [span for span in existing(kind) if keep_from.timestamp() < span[1] <= until.timestamp()]


def _move(kind: Kind, span: Span, now: datetime, quiet: timedelta, done: Moved) -> None:
    partition = f"{table(kind)}_p{span[0]}_{span[1] - span[0]}"
    start, until = (datetime.fromtimestamp(at, UTC) for at in span)
    if not _has_rows(partition) or _has_unfinished(kind.name, start, until):
        return
    if _regions(kind.name, start, until, "received_at > %s", now - quiet):
        return
    if tables.is_sharded() and not _is_shown(kind, start, until):
        return
    file = f"{kind.name}/{start:%Y/%m/%d/%H%M%S}-{uuid4().hex[:12]}.parquet"
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO telemetry_cold (kind, start, until, state, file, changed_at)"
            " VALUES (%s, %s, %s, 'writing', %s, %s) RETURNING id",
            (kind.name, start, until, file, datetime.now(UTC)),
        )
        (number,) = cursor.fetchone()
    rows, size = _write(kind, partition, number, file, (start, until))
    if _switch(number):
        _drop_heap(number)
        done.files, done.rows, done.bytes = done.files + 1, done.rows + rows, done.bytes + size


def _has_rows(partition: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT 1 FROM {partition} LIMIT 1")
        return cursor.fetchone() is not None


def _is_shown(kind: Kind, start: datetime, until: datetime) -> bool:
    """Whether the nodes show all rows that the log tells of: one that lost the coordinator may hold some back."""
    upto = watermark()
    regions = _regions(kind.name, start, until)
    return all(sharding.shows_all(kind.name, region, start, until, upto) for region in regions)


def _has_unfinished(kind: str, start: datetime, until: datetime) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT 1 FROM telemetry_unfinished WHERE kind = %s AND first < %s AND last >= %s)",
            (kind, until, start),
        )
        return bool(cursor.fetchone()[0])


def _write(
    kind: Kind, partition: str, number: int, file: str, span: tuple[datetime, datetime]
) -> tuple[int, int]:
    """Write the file, read it again, and say so. Returns its rows and bytes."""
    writer = files.Writer(file, schema_of(kind))
    with one_snapshot(), connection.cursor() as cursor:
        seen = watermark()
        cursor.execute(f"SELECT count(*) FROM {partition}")
        (rows,) = cursor.fetchone()
        # Region by region, so that no sort is larger than one, and a window of one region reads its own row groups.
        for region in _regions(kind.name, *span):
            where = 'WHERE region = %s AND "time" >= %s AND "time" < %s ORDER BY "time"'
            copy_batches(kind, where, (region, *span), writer.add)
    writer.close()
    again, size = files.read_again(file)
    if not rows == writer.digest.rows == again.rows or writer.digest.bits != again.bits:
        raise ColdStorageError(
            f"{file} holds {again.rows} rows, {rows} were in {partition}, or their values differ: it is not used"
        )
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE telemetry_cold SET state = 'checked', rows = %s, bytes = %s, epoch = %s, txid = %s::xid8,"
            " changed_at = %s WHERE id = %s",
            (rows, size, seen.epoch, str(seen.txid), datetime.now(UTC), number),
        )
    return rows, size


def _switch(number: int) -> bool:
    """Take the partition out of its table and let readers have the file, in one transaction; false where that must
    wait, or where rows came and the file was given up."""
    with patience(), transaction.atomic(), connection.cursor() as cursor:
        # Readers lock this table first, too; from here on none has a snapshot in which the partition is there.
        cursor.execute("LOCK TABLE telemetry_cold IN ACCESS EXCLUSIVE MODE")
        cursor.execute(
            "SELECT kind, start, until, epoch, txid::text FROM telemetry_cold WHERE id = %s AND state = 'checked'",
            (number,),
        )
        name, start, until, epoch, txid = cursor.fetchone()
        kind = KINDS[name]
        first, last = int(start.timestamp()), int(until.timestamp())
        if (first, last) in existing(kind):
            only = "" if tables.is_sharded() else "ONLY"
            cursor.execute(f"LOCK TABLE {only} {table(kind)} IN ACCESS EXCLUSIVE MODE")
            # Rows that the file may lack: their event was not below the watermark when it was written.
            grown = _regions(name, start, until, "(epoch, txid) >= (%s, %s::xid8)", epoch, txid)
            if not (grown or _has_unfinished(name, start, until)):
                partition, heap = f"{table(kind)}_p{first}_{last - first}", f"{table(kind)}_moved_{number}"
                cursor.execute(f"ALTER TABLE {table(kind)} DETACH PARTITION {partition}")
                cursor.execute(f"ALTER TABLE {partition} RENAME TO {heap}")
                cursor.execute(
                    "UPDATE telemetry_cold SET state = 'cold', heap = %s, changed_at = %s WHERE id = %s",
                    (heap, datetime.now(UTC), number),
                )
                tables.forget()
                return True
        cursor.execute("UPDATE telemetry_cold SET state = 'writing' WHERE id = %s", (number,))
    return False


# By region, or an index of receipts could not be used.
_RECEIPTS = """
WITH RECURSIVE seen AS (
    (SELECT region FROM telemetry_receipt ORDER BY region LIMIT 1)
    UNION ALL
    SELECT (SELECT region FROM telemetry_receipt WHERE region > seen.region ORDER BY region LIMIT 1)
    FROM seen WHERE seen.region IS NOT NULL
)
SELECT DISTINCT region FROM seen JOIN LATERAL (
    SELECT 1 FROM telemetry_receipt AS came WHERE came.region = seen.region AND kind = %s AND first < %s AND last >= %s
    AND {condition} LIMIT 1
) AS came ON true ORDER BY region
"""


def _regions(
    kind: str, start: datetime, until: datetime, condition: str = "true", *values: datetime | int | str
) -> list[int]:
    """The regions of which rows of [start, until) came, as far as a condition on their receipts holds."""
    with connection.cursor() as cursor:
        cursor.execute(_RECEIPTS.format(condition=condition), (kind, until, start, *values))
        return [region for (region,) in cursor.fetchall()]


def _drop_heap(number: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT heap FROM telemetry_cold WHERE id = %s", (number,))
        (heap,) = cursor.fetchone()
        cursor.execute(f"DROP TABLE IF EXISTS {heap}")
        cursor.execute("UPDATE telemetry_cold SET heap = NULL WHERE id = %s", (number,))


def _resume() -> None:
    """Finish, or undo, what a call began that was stopped."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, state, heap FROM telemetry_cold WHERE state <> 'cold' OR heap IS NOT NULL")
        begun = cursor.fetchall()
    for number, state, heap in begun:
        if heap is not None or (state == "checked" and _switch(number)):
            _drop_heap(number)
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, file FROM telemetry_cold WHERE state = 'writing'")
        for number, file in cursor.fetchall():
            delete(file)
            cursor.execute("DELETE FROM telemetry_cold WHERE id = %s", (number,))


def _remove(now: datetime, done: Moved) -> None:
    """Delete files past retention: first from what readers see, then, when none can read them, from the storage."""
    with connection.cursor() as cursor:
        for kind in KINDS.values():
            cursor.execute(
                "UPDATE telemetry_cold SET state = 'removing', changed_at = %s"
                " WHERE kind = %s AND state = 'cold' AND heap IS NULL AND until <= %s",
                (now, kind.name, now - retention_of(kind)),
            )
        cursor.execute(
            "SELECT id, file FROM telemetry_cold WHERE state = 'removing' AND changed_at <= %s",
            (now - READERS_GONE_AFTER,),
        )
        for number, file in cursor.fetchall():
            delete(file)
            cursor.execute("DELETE FROM telemetry_cold WHERE id = %s", (number,))
            done.deleted += 1
