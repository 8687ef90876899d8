"""The tables of telemetry: their columns as the kinds declare them, their partitions by time, and the dictionary of
texts and component sets.

Migrations hold the SQL of the tables written out; a test holds both equal."""

from __future__ import annotations

import functools
import hashlib
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta

import numpy as np
from django.conf import settings
from django.db import OperationalError, connection, transaction
from numpy.typing import NDArray

from ingest.db import database
from ingest.telemetry.decode.builder import NONE_KNOWN, KnownTexts
from ingest.telemetry.decode.columns import Bounds, Names, Sets, microseconds
from ingest.telemetry.kinds import KINDS, Field, Kind

SHOWN = "telemetry_shard_receipt"
"""Receipts beside the rows, on the nodes of sharded telemetry (`ingest.telemetry.store.sharding`)."""
SQL_TYPES = {
    "time": "timestamptz",
    "choice": "integer",
    "id": "uuid",
    "component": "integer",
    "name": "integer",
    "text": "integer",
    "labels": "integer",
    "measures": "integer",
    "numbers": "double precision[]",
    "components": "integer",
    "count": "integer",
    "amount": "double precision",
    "flag": "boolean",
}
"""Texts are numbers into `telemetry_name`, component sets numbers into `telemetry_set`: but for lists of
numbers, a row has a fixed width."""


def table(kind: Kind) -> str:
    return f"telemetry_{kind.name}"


@functools.cache
def columns(kind: Kind) -> tuple[tuple[str, str], ...]:
    """Names and SQL types of the columns that a row brings, in the table's order: lists of numbers last.

    What says when is called `time` in every table.
    """
    return (
        ("time", "timestamptz"),
        ("receipt", "bigint"),
        ("region", "integer"),
        *((field.name, SQL_TYPES[field.type]) for field in _own(kind)),
    )


def _own(kind: Kind) -> tuple[Field, ...]:
    own = [field for field in kind.fields if field.name != kind.time]
    return tuple(sorted(own, key=lambda field: field.type == "numbers"))


def column(kind: Kind, field: str) -> str:
    """Column of a field."""
    return "time" if field == kind.time else field


PLACE = (
    """USING brin (region int4_minmax_multi_ops, "time") WITH (pages_per_range='8', autosummarize='true')"""
)
"""The index of events: which regions and times each 64 kB of a partition hold. It costs writers next to nothing, unlike
a B-tree, and bodies bring many rows of a region together."""


def create_sql(kind: Kind) -> str:
    """The statements that make the kind's table; paste them into a migration when a kind is new."""
    name = table(kind)
    lines = [f'    "{column}" {type_} NOT NULL' for column, type_ in columns(kind)]
    if not kind.is_event:
        lines.append("    id bigint GENERATED ALWAYS AS IDENTITY")
        listed = ",\n".join(lines)
        if kind.is_interval:
            # The first finds what ends after a window's start, the second whether it was told of again.
            index = f'CREATE INDEX {name}_until ON {name} (region, "{kind.end}");\n'
            index += f'CREATE INDEX {name}_since ON {name} (region, "time", "{kind.key}", id DESC);'
            return f"CREATE TABLE {name} (\n{listed}\n);\n{index}\n"
        index = f'CREATE INDEX {name}_in_force ON {name} (region, "{kind.key}", "time" DESC, id DESC);'
        return f"CREATE TABLE {name} (\n{listed}\n);\n{index}\n"
    listed = ",\n".join(lines)
    index = f"CREATE INDEX {name}_place ON {name} {PLACE};"
    return f'CREATE TABLE {name} (\n{listed}\n) PARTITION BY RANGE ("time");\n{index}\n'


SPARSE = timedelta(days=30)
"""Least time in a partition of a kind with a long retention."""
AHEAD = 3
"""Partitions that are made before they are needed."""
PATIENCE = "2s"
"""Longest wait of a partition change for a lock; then it is left to the next round."""
FORGOTTEN_AFTER = timedelta(hours=1)
"""Age at which an upload that was never finished is taken for dead."""
REMEMBER_IDEMPOTENCY = timedelta(days=7)

Span = tuple[int, int]  # seconds since 1970, end exclusive

_known: dict[
    tuple[str, str], set[int]
] = {}  # by database and kind: cells (in units of the length) that exist


def length(kind: Kind) -> int:
    """Seconds in a partition of a kind: months of a sparse kind are a few partitions and not thousands, each of which
    costs its writers and readers locks and statements."""
    chosen: timedelta = settings.TELEMETRY_PARTITION_INTERVAL
    return max(1, int((max(chosen, SPARSE) if kind.has_long_retention else chosen).total_seconds()))


def ensure(kind: Kind, times: NDArray[np.int64]) -> None:
    """Have partitions for these times (microseconds since 1970)."""
    if not kind.is_event:
        return
    cell = length(kind) * 1_000_000
    first, last = int(times.min()) // cell, int(times.max()) // cell
    known = _known.get((database.name(), kind.name), set())
    if first in known and last in known and last - first <= 1:
        return
    wanted = set(np.unique(times // cell).tolist())
    if not wanted <= known:
        make(kind, wanted - known)


def make(kind: Kind, cells: Iterable[int]) -> None:
    """Make the partitions of these cells (in units of the length), where they are missing."""
    span = length(kind)
    spans = [(cell * span, (cell + 1) * span) for cell in sorted(cells)]
    with transaction.atomic(), connection.cursor() as cursor:
        # One at a time; ATTACH PARTITION lets writers go on, unlike CREATE TABLE ... PARTITION OF.
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (table(kind),))
        for start, end in missing(existing(kind), spans):
            name = f"{table(kind)}_p{start}_{end - start}"
            cursor.execute(f"CREATE TABLE {name} (LIKE {table(kind)} INCLUDING INDEXES)")
            cursor.execute(
                f"ALTER TABLE {table(kind)} ATTACH PARTITION {name}"
                " FOR VALUES FROM (to_timestamp(%s)) TO (to_timestamp(%s))",
                (start, end),
            )
    if not connection.in_atomic_block:
        _known.setdefault((database.name(), kind.name), set()).update(s // span for s, _ in spans)


def summarize(kind: Kind, start: datetime, end: datetime) -> None:
    """Bring the index of rows by region and time up to date in the partitions of [start, end), once for all readers:
    what it does not cover yet is read by each. A partition that something else holds is passed over. Must not be called
    inside a transaction.
    """
    first, last = microseconds(start) // 1_000_000, microseconds(end) // 1_000_000
    with connection.cursor() as cursor:
        cursor.execute(_PARTITIONS, (table(kind),))
        found = [
            (name, index, never) for name, index, never in cursor.fetchall() if _meets(name, first, last)
        ]
    for name, index, is_new in found:
        with patience("100ms"), connection.cursor() as cursor:
            cursor.execute("SELECT brin_summarize_new_values(%s::regclass)", (index,))
            if is_new:  # Without statistics the planner reads the whole partition.
                cursor.execute(f'ANALYZE {name} (region, "time")')


def _meets(partition: str, first: int, last: int) -> bool:
    start, end = _span(partition)
    return start <= last and end > first


# Partitions with their index of rows by region and time, and whether the planner knows nothing of them yet.
_PARTITIONS = """
SELECT part.oid::regclass::text, place.indexrelid::regclass::text, part.reltuples < 0
FROM pg_inherits
JOIN pg_class AS part ON part.oid = inhrelid
JOIN pg_index AS place ON place.indrelid = part.oid AND place.indisvalid
JOIN pg_class AS index ON index.oid = place.indexrelid
JOIN pg_am AS method ON method.oid = index.relam AND method.amname = 'brin'
WHERE inhparent = %s::regclass AND NOT inhdetachpending
"""


def _index_partitions(kind: Kind) -> None:
    """Make the index of rows by region and time in the newest partition that has none: one a call, while rows come.

    Partitions that are older than the index have none; when all do, Postgres takes that of the table for valid.
    """
    parent = f"{table(kind)}_place"
    with connection.cursor() as cursor:
        cursor.execute("SELECT indisvalid FROM pg_index WHERE indexrelid = %s::regclass", (parent,))
        if cursor.fetchone() == (True,):
            return
        cursor.execute(_PARTITIONS, (table(kind),))
        indexed = {_span(name) for name, _, _ in cursor.fetchall()}
        for start, end in [span for span in existing(kind) if span not in indexed][-1:]:
            name = f"{table(kind)}_p{start}_{end - start}"
            cursor.execute(f"DROP INDEX IF EXISTS {name}_place")
            cursor.execute(f"CREATE INDEX CONCURRENTLY {name}_place ON {name} {PLACE}")
            cursor.execute(f"ALTER INDEX {parent} ATTACH PARTITION {name}_place")


def forget() -> None:
    """Look again which partitions there are, and whether they are sharded."""
    _known.clear()
    _sharded.clear()


def missing(there: list[Span], wanted: list[Span]) -> list[Span]:
    """The gaps in `wanted` that `there` leaves; both ascending."""
    gaps: list[Span] = []
    for start, end in wanted:
        for known_start, known_end in there:
            if known_end <= start or known_start >= end:
                continue
            if known_start > start:
                gaps.append((start, known_start))
            start = max(start, known_end)
        if start < end:
            gaps.append((start, end))
    return gaps


def existing(kind: Kind) -> list[Span]:
    """The spans of the kind's partitions, ascending."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT inhrelid::regclass::text FROM pg_inherits"
            " WHERE inhparent = %s::regclass AND NOT inhdetachpending",
            (table(kind),),
        )
        return sorted(_span(name) for (name,) in cursor.fetchall())


def _span(name: str) -> Span:
    match = re.search(r"_p(-?\d+)_(\d+)\W?$", name)
    if match is None:
        raise ValueError(f"{name} is not a telemetry partition")
    return int(match[1]), int(match[1]) + int(match[2])


_sharded: dict[str, bool] = {}  # by database


def is_sharded() -> bool:
    """Whether windows wait for the nodes. Looked up once a process: nodes stop before `shard_telemetry` runs."""
    known_as = database.name()
    if known_as not in _sharded:
        with connection.cursor() as cursor:
            cursor.execute("SELECT to_regclass(%s) IS NOT NULL", (SHOWN,))
            (_sharded[known_as],) = cursor.fetchone()
    return _sharded[known_as]


def maintain(now: datetime) -> dict[str, int]:
    """Make partitions ahead, drop what retention no longer keeps, sweep up after uploads that died.

    Says how many partitions were made and dropped and how many rows deleted. What another transaction holds
    for longer than PATIENCE is left to the next call. Must not be called inside a transaction.
    """
    done = {"made": 0, "dropped": 0, "deleted": 0}
    for kind in KINDS.values():
        keep_from = now - retention_of(kind)
        with patience():
            if kind.is_state:
                done["deleted"] += _delete_superseded(kind, keep_from)
                continue
            if kind.is_interval:
                done["deleted"] += _delete_over(kind, keep_from)
                continue
            before = len(existing(kind))
            cell = microseconds(now) // 1_000_000 // length(kind)
            make(kind, range(cell, cell + 1 + AHEAD))
            done["made"] += len(existing(kind)) - before
            _index_partitions(kind)
            done["dropped"] += _drop_before(kind, microseconds(keep_from) // 1_000_000)
    done["deleted"] += _sweep(now)
    return done


def overdue(now: datetime) -> dict[str, timedelta]:
    """Time by kind since the oldest partition should have been dropped, where it is still there."""
    found = {}
    for kind in KINDS.values():
        spans = existing(kind) if kind.is_event else []
        if spans and (late := (now - retention_of(kind)).timestamp() - spans[0][1]) > 0:
            found[kind.name] = timedelta(seconds=late)
    return found


class patience:
    """Give up on locks after PATIENCE, or a shorter time: what could not be had now is tried at the next call."""

    def __init__(self, limit: str = "") -> None:
        self.limit = limit or PATIENCE

    def __enter__(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"SET lock_timeout = '{self.limit}'")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        with connection.cursor() as cursor:
            cursor.execute("RESET lock_timeout")
        # 55P03: lock not available
        return isinstance(error, OperationalError) and getattr(error.__cause__, "pgcode", "") == "55P03"


def _drop_before(kind: Kind, keep_from: int) -> int:
    dropped = 0
    for start, end in existing(kind):
        if end > keep_from:
            break
        name = f"{table(kind)}_p{start}_{end - start}"
        with connection.cursor() as cursor:
            # Writers and readers of the other partitions go on; a plain DROP would lock them all out. Citus knows only
            # the plain way, which locks for the moment that it takes.
            concurrently = "" if is_sharded() else "CONCURRENTLY"
            cursor.execute(f"ALTER TABLE {table(kind)} DETACH PARTITION {name} {concurrently}")
            cursor.execute(f"DROP TABLE {name}")
        dropped += 1
    _finish_detaching(kind)
    return dropped


def _finish_detaching(kind: Kind) -> None:
    """Drop what an earlier call began to detach or had detached when it was stopped."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT inhrelid::regclass::text FROM pg_inherits"
            " WHERE inhparent = %s::regclass AND inhdetachpending",
            (table(kind),),
        )
        for (name,) in cursor.fetchall():
            cursor.execute(f"ALTER TABLE {table(kind)} DETACH PARTITION {name} FINALIZE")
        cursor.execute(
            "SELECT oid::regclass::text FROM pg_class"
            " WHERE relkind = 'r' AND NOT relispartition AND relname ~ %s",
            (f"^{table(kind)}_p[0-9]+_[0-9]+$",),
        )
        for (name,) in cursor.fetchall():
            cursor.execute(f"DROP TABLE {name}")


def _delete_superseded(kind: Kind, keep_from: datetime) -> int:
    """Delete rows of a state kind that had been replaced before `keep_from`, and ends that have nothing to
    end."""
    name, key = table(kind), kind.key
    replaced = f"""
        EXISTS (SELECT 1 FROM {name} AS newer WHERE newer.region = old.region AND newer."{key}" = old."{key}"
            AND (newer."time", newer.id) > (old."time", old.id) AND newer."time" <= %s)
    """
    ended = "NOT old.active" if kind.has("active") else "false"
    with connection.cursor() as cursor:
        cursor.execute(
            f'DELETE FROM {name} AS old WHERE old."time" <= %s AND ({replaced} OR {ended})',
            (keep_from, keep_from),
        )
        return int(cursor.rowcount)


def _delete_over(kind: Kind, keep_from: datetime) -> int:
    """Delete the intervals that were over before `keep_from`."""
    name, key = table(kind), kind.key
    # What was said before goes with what was said last: an outage whose end is forgotten would seem to last.
    again = f"""EXISTS (SELECT 1 FROM {name} AS newer WHERE newer.region = old.region
        AND newer."{key}" = old."{key}" AND newer."time" = old."time" AND newer.id > old.id)"""
    with connection.cursor() as cursor:
        cursor.execute(
            f'DELETE FROM {name} AS old WHERE "time" <= %s AND (old."{kind.end}" <= %s OR {again})',
            (keep_from, keep_from),
        )
        return int(cursor.rowcount)


def _sweep(now: datetime) -> int:
    """Rows of uploads that died half-way, receipts of rows that are gone, and old idempotency keys."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT number, kind, first, last FROM telemetry_unfinished WHERE begun_at < %s",
            (now - FORGOTTEN_AFTER,),
        )
        deleted = sum(discard(*row) for row in cursor.fetchall())
        for kind in KINDS.values():
            keep_from = now - retention_of(kind)
            cursor.execute(
                "DELETE FROM telemetry_receipt WHERE kind = %s AND received_at < %s AND last < %s",
                (kind.name, keep_from - FORGOTTEN_AFTER, keep_from),
            )
            deleted += cursor.rowcount
        cursor.execute(
            "DELETE FROM telemetry_idempotency WHERE created_at < %s", (now - REMEMBER_IDEMPOTENCY,)
        )
        return int(deleted + cursor.rowcount)


def discard(number: int, kind: str, first: datetime, last: datetime) -> int:
    """Delete the rows of an upload that will not be finished. Says how many there were."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            f'DELETE FROM {table(KINDS[kind])} WHERE receipt = %s AND "time" BETWEEN %s AND %s',
            (number, first, last),
        )
        rows = int(cursor.rowcount)
        cursor.execute("DELETE FROM telemetry_unfinished WHERE number = %s", (number,))
        return rows


def retention_of(kind: Kind) -> timedelta:
    """DOSSIER_TELEMETRY_SPARSE_RETENTION for kinds that are few and asked for by the month, but never less than the
    others."""
    retention: timedelta = settings.TELEMETRY_RETENTION
    long: timedelta = settings.TELEMETRY_SPARSE_RETENTION
    return max(retention, long) if kind.has_long_retention else retention


def bounds(kind: Kind, now: datetime) -> Bounds:
    """Times that the endpoints take at `now`."""
    return Bounds.around(now, retention_of(kind), max(settings.TELEMETRY_FUTURE, kind.ahead))


def whole_for(kinds: Iterable[str]) -> timedelta:
    """Span in which windows of all these kinds (by name) are whole. Of a state kind what is in force stays anyway."""
    spans = [retention_of(KINDS[name]) for name in kinds if not KINDS[name].is_state]
    retention: timedelta = settings.TELEMETRY_RETENTION
    return min(spans, default=retention)


MOST_REMEMBERED = 2_000_000
"""Entries in a process's memory of texts (of sets: the same), about 200 MB; full, it is emptied."""
BATCH = 10_000

_FIND_NAMES = "SELECT name, id FROM telemetry_name WHERE name = ANY(%s)"
_ADD_NAMES = """
INSERT INTO telemetry_name (name) SELECT unnest(%s::text[]) ON CONFLICT DO NOTHING RETURNING name, id
"""
_FIND_SETS = "SELECT digest, id FROM telemetry_set WHERE digest = ANY(%s)"
_ADD_SETS = """
INSERT INTO telemetry_set (digest, members)
SELECT new.digest, new.members::integer[] FROM unnest(%s::bytea[], %s::text[]) AS new (digest, members)
ON CONFLICT DO NOTHING RETURNING digest, id
"""
Numbers = NDArray[np.int32]

_texts: dict[str, dict[str, dict[str, int]]] = {}  # by database, then by type of field, then by text
_sets: dict[str, dict[bytes, int]] = {}  # by database, then by the members' ids as bytes


def known_texts() -> KnownTexts:
    """By type what this process remembers: texts that were good in a field of that type, and their numbers.

    Inside a transaction, which may yet be undone, it remembers nothing.
    """
    return NONE_KNOWN if connection.in_atomic_block else _texts.get(database.name(), NONE_KNOWN)


def _memory_of_texts(type_: str) -> dict[str, int]:
    if connection.in_atomic_block:
        return {}
    memories = _texts.setdefault(database.name(), {})
    if sum(map(len, memories.values())) > MOST_REMEMBERED:
        memories = _texts[database.name()] = {}
    return memories.setdefault(type_, {})


def _memory_of_sets() -> dict[bytes, int]:
    if connection.in_atomic_block:
        return {}
    memory = _sets.setdefault(database.name(), {})
    if len(memory) > MOST_REMEMBERED:
        memory = _sets[database.name()] = {}
    return memory


def _text_ids(texts: Sequence[str], type_: str) -> Numbers:
    """The numbers of texts that are good in a field of a type, given to those that have none yet; shape (texts,)."""
    memory = _memory_of_texts(type_)
    try:
        return np.fromiter(map(memory.__getitem__, texts), np.int32, len(texts))
    except KeyError:
        _learn_texts(memory, [text for text in texts if text not in memory])
    return np.fromiter(map(memory.__getitem__, texts), np.int32, len(texts))


def _learn_texts(memory: dict[str, int], unknown: Iterable[str]) -> None:
    ordered = sorted(set(unknown))
    with connection.cursor() as cursor:
        for start in range(0, len(ordered), BATCH):
            wanted = ordered[start : start + BATCH]
            cursor.execute(_FIND_NAMES, (wanted,))
            memory.update(cursor.fetchall())
            # Looked for first: a conflict burns a number, and there are only two thousand million.
            if new := [name for name in wanted if name not in memory]:
                cursor.execute(_ADD_NAMES, (new,))
                memory.update(cursor.fetchall())
            if overtaken := [name for name in new if name not in memory]:
                cursor.execute(_FIND_NAMES, (overtaken,))
                memory.update(cursor.fetchall())


def text_column(column: Names, type_: str) -> Numbers:
    """The numbers of a column of texts, shape (rows,), all of them good in a field of that type."""
    return _text_ids(column.names, type_)[column.codes]


def set_column(column: Sets) -> Numbers:
    """The numbers of a column of component sets, shape (rows,)."""
    ids = _text_ids(column.names, "component")[column.indices]
    bounds = column.indptr.tolist()
    keys = [np.sort(ids[a:b]).tobytes() for a, b in itertools.pairwise(bounds)]
    memory = _memory_of_sets()
    if unknown := [key for key in keys if key not in memory]:
        _learn_sets(memory, unknown)
    return np.fromiter(map(memory.__getitem__, keys), np.int32, len(keys))[column.codes]


def _learn_sets(memory: dict[bytes, int], unknown: Iterable[bytes]) -> None:
    digests = {hashlib.sha256(key).digest()[:16]: key for key in unknown}
    ordered = sorted(digests)
    found: dict[bytes, int] = {}
    with connection.cursor() as cursor:
        for start in range(0, len(ordered), BATCH):
            wanted = ordered[start : start + BATCH]
            cursor.execute(_FIND_SETS, (wanted,))
            found.update((bytes(digest), number) for digest, number in cursor.fetchall())
            if new := [digest for digest in wanted if digest not in found]:
                cursor.execute(_ADD_SETS, (new, [_array(digests[digest]) for digest in new]))
                found.update((bytes(digest), number) for digest, number in cursor.fetchall())
            if overtaken := [digest for digest in new if digest not in found]:
                cursor.execute(_FIND_SETS, (overtaken,))
                found.update((bytes(digest), number) for digest, number in cursor.fetchall())
    memory.update((digests[digest], number) for digest, number in found.items())


def _array(key: bytes) -> str:
    return "{" + ",".join(map(str, np.frombuffer(key, np.int32).tolist())) + "}"


# Reads of tables and files
# ----------------------------------------------------------------------------------------------------------
@contextmanager
def one_snapshot() -> Iterator[None]:
    """All reads inside see the same rows, unless a transaction is open already; rows that move into files meanwhile are
    seen once.

    A lock needs no snapshot: when the first read takes one, no partition can leave its table any more.
    """
    nested = connection.in_atomic_block
    with transaction.atomic():
        with connection.cursor() as cursor:
            if not nested:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            cursor.execute("LOCK TABLE telemetry_cold IN ACCESS SHARE MODE")
        yield


def cold_files(kind: Kind, start: datetime, end: datetime) -> list[str]:
    """The files that hold rows of [start, end), as the snapshot of this transaction knows them."""
    if not kind.is_event:
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT file FROM telemetry_cold WHERE kind = %s AND state = 'cold' AND start < %s AND until > %s"
            " ORDER BY file",
            (kind.name, end, start),
        )
        return [file for (file,) in cursor.fetchall()]
