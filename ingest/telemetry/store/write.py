"""Store the rows of one body and say so in the log. Bodies are decoded and names numbered before this begins.

One transaction holds the rows of one or several bodies, their receipts, their idempotency keys and the events
`telemetry.received`. A transaction that writes holds back every reader of the log, so a large body is copied in several
beforehand: until its receipt is there, its number stands in `telemetry_unfinished` and readers pass over its rows."""

from __future__ import annotations

import functools
import hashlib
import io
import itertools
import os
import struct
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from django.db import DatabaseError, IntegrityError, OperationalError, connection, transaction
from django.db.backends.utils import CursorWrapper
from numpy.typing import NDArray

from ingest.db import database
from ingest.db.database import GroupCommit, GroupCommitError, plain_array
from ingest.log.append import NewStream, begin_through
from ingest.log.types import (
    Context,
    NewEvent,
    StreamVersionError,
    UnrecordableEventError,
    ordered_id,
    time_text,
)
from ingest.telemetry.decode.builder import as_bytes
from ingest.telemetry.decode.columns import Known, Names, Numbers, Rows, Sets, moment
from ingest.telemetry.errors import InvalidBodyError
from ingest.telemetry.events import RECEIVED
from ingest.telemetry.kinds import Kind
from ingest.telemetry.store import tables
from ingest.telemetry.store.tables import columns, table

__all__ = ["Delivery", "IdempotencyConflictError", "Receipt", "find_repeated", "receive"]

AT_ONCE = 100_000
"""Rows copied in one transaction, well under a second of work."""
A_ROW = 10
"""Numbers in lists that cost as much as a row."""
MOST_REGIONS = 100
TRIES = 3
NO_PARTITION = "23514"  # Postgres: no partition of the table takes the row
LOST = ("08", "57P")  # Postgres: the connection broke, or the server or its administrator ended it
MOST_ROWS = 1_000
"""A body of up to so many rows shares its transaction: beyond, the rows cost more than the transaction."""
MOST_BODIES = AT_ONCE // MOST_ROWS
PIECE = 2**20  # by place: the cursor that records statements takes no name for it
BLOCK = 1000
"""Numbers for receipts are drawn by the thousand: one round trip less for every body."""

_drawing = threading.Lock()
_drawn: dict[str, range] = {}  # by database: what is left of the block
os.register_at_fork(after_in_child=_drawn.clear)


def receive(rows: Rows, delivery: Delivery) -> Receipt:
    """Store rows, all or none, durably. Raises InvalidBodyError, IdempotencyConflictError, django.db.Error.

    A body that came before under the same Idempotency-Key gets its first receipt and is not stored again.
    """
    values = _numbered(rows)
    tables.ensure(rows.kind, rows.times)
    if _weights(rows)[-1] <= MOST_ROWS and not connection.in_atomic_block:
        body = _prepared(rows, values, delivery)
        if _stored_in_a_group(body):
            return body.receipt
    for attempt in range(TRIES):
        try:
            if receipt := _store_alone(rows, values, delivery):
                return receipt
        except IntegrityError as error:
            # Retention, in another process, dropped a partition that this one knew.
            if getattr(error.__cause__, "pgcode", None) != NO_PARTITION or attempt + 1 == TRIES:
                raise
            tables.forget()
            tables.ensure(rows.kind, rows.times)
    raise OperationalError("the Idempotency-Key was forgotten while this body was stored")


def _stored_in_a_group(body: PendingBody) -> bool:
    """Store it with others that wait; false when it must be tried alone. Raises OperationalError."""
    known_as = database.name()
    if known_as not in _groups:
        _groups.setdefault(known_as, GroupCommit(_store_group, MOST_BODIES))
    try:
        return _groups[known_as].submit(body)
    except GroupCommitError as lost:
        raise OperationalError("the transaction that was to store this body with others was lost") from lost


_groups: dict[str, GroupCommit[PendingBody, bool]] = {}  # by database
os.register_at_fork(after_in_child=_groups.clear)


def _store_group(bodies: Sequence[PendingBody]) -> list[bool]:
    """Whether each is stored. The others must be tried alone: whatever is wrong then meets only the guilty one."""
    keys = [(body.delivery.key, body.delivery.idempotency_key) for body in bodies]
    first = {key: place for place, key in reversed(list(enumerate(keys)))}
    alike = [key[1] is not None and first[key] != place for place, key in enumerate(keys)]
    together = [body for body, is_alike in zip(bodies, alike, strict=True) if not is_alike]
    try:
        stored = iter(store(together))
    except (DatabaseError, StreamVersionError, UnrecordableEventError) as error:
        if isinstance(error, DatabaseError) and not _undone(error):
            raise
        return [False] * len(bodies)
    return [not is_alike and next(stored) for is_alike in alike]


def _undone(error: DatabaseError) -> bool:
    """Whether the transaction is known to have left nothing: the server itself refused a statement.

    A connection that was lost may have been lost after the commit; storing again could then store twice.
    """
    refusal = getattr(error.__cause__, "pgcode", None)
    return refusal is not None and not refusal.startswith(LOST)


def _store_alone(rows: Rows, values: Columns, delivery: Delivery) -> Receipt | None:
    """The receipt, or the first one of its Idempotency-Key; None when that was forgotten just now."""
    early = _weights(rows)[-1] > AT_ONCE and not connection.in_atomic_block
    body = _prepared(rows, values, delivery, early=early)
    if store([body])[0]:
        return body.receipt
    for piece in body.pieces if early else ():
        tables.discard(piece.number, rows.kind.name, moment(piece.first), moment(piece.last))
    return find_repeated(rows.kind, delivery)


def _prepared(rows: Rows, values: Columns, delivery: Delivery, *, early: bool = False) -> PendingBody:
    receipt = Receipt(str(ordered_id(database.now())), rows.count)
    pieces, numbers = _pieces(rows, np.asarray(values["region"]))
    values = {**values, "receipt": numbers}
    if not early:
        return PendingBody(rows.kind, receipt, delivery, pieces, encode(columns(rows.kind), values))
    _begin(rows, pieces)
    weights = _weights(rows)
    cuts = np.searchsorted(weights, np.arange(AT_ONCE, weights[-1], AT_ONCE), side="right")
    for start, end in itertools.pairwise(np.unique((0, *cuts, rows.count)).tolist()):
        copy_in(table(rows.kind), columns(rows.kind), _part(values, start, end))
    return PendingBody(rows.kind, receipt, delivery, pieces, None)


def _weights(rows: Rows) -> NDArray[np.float64]:
    """Weight of the rows up to and with each, in rows without lists; shape (rows,)."""
    weights = np.arange(1.0, rows.count + 1)
    for column in rows.columns.values():
        if isinstance(column, Numbers):
            weights += column.indptr[1:] / A_ROW
    return weights


Stored = NDArray[np.generic] | Numbers


def _numbered(rows: Rows) -> dict[str, Stored]:
    """The columns as the table takes them."""
    values: dict[str, Stored] = {}
    for name, column in rows.columns.items():
        if isinstance(column, Names) and rows.kind.field(name).type == "id":
            values[name] = as_bytes(column.names)[column.codes]
        elif isinstance(column, Names):
            values[name] = tables.text_column(column, rows.kind.field(name).type)
        elif isinstance(column, Known):
            values[name] = column.ids
        elif isinstance(column, Sets):
            values[name] = tables.set_column(column)
        else:
            values[tables.column(rows.kind, name)] = column
    return values


def _part(values: Columns, start: int, end: int) -> Columns:
    return {name: column[start:end] for name, column in values.items()}


def _pieces(rows: Rows, region_ids: NDArray[np.generic]) -> tuple[list[Piece], NDArray[np.int64]]:
    """The body by region, and every row's receipt number."""
    names, codes, times = rows.names("region").names, rows.names("region").codes, rows.times
    latest = rows.latest
    present = [0] if len(names) == 1 else np.unique(codes).tolist()
    if len(present) > MOST_REGIONS:
        raise InvalidBodyError(f"the body holds rows of more than {MOST_REGIONS} regions")
    drawn = _receipt_numbers(len(present))
    by_code = np.zeros(len(names), np.int64)
    by_code[present] = drawn
    pieces = []
    for code, number in zip(present, drawn, strict=True):
        mine = slice(None) if len(present) == 1 else codes == code
        region_id = int(region_ids[mine][0])
        first, last = int(times[mine].min()), int(latest[mine].max())
        pieces.append(Piece(number, names[code], region_id, len(times[mine]), first, last))
    return pieces, by_code[codes]


def _begin(rows: Rows, pieces: Sequence[Piece]) -> None:
    now = datetime.now(UTC)
    with connection.cursor() as cursor:
        for piece in pieces:
            cursor.execute(
                "INSERT INTO telemetry_unfinished (number, kind, first, last, begun_at)"
                " VALUES (%s, %s, %s, %s, %s)",
                (piece.number, rows.kind.name, moment(piece.first), moment(piece.last), now),
            )


def _receipt_numbers(count: int) -> list[int]:
    """Numbers that nobody else has. They are unique, not in order of time; those of a process that ends are lost."""
    numbers: list[int] = []
    known_as = database.name()
    with _drawing:
        while len(numbers) < count:
            left = _drawn.get(known_as) or _block()
            wanted = count - len(numbers)
            numbers += left[:wanted]
            _drawn[known_as] = left[wanted:]
    return numbers


def _block() -> range:
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval('telemetry_receipt_number')")
        (number,) = cursor.fetchone()
    return range(number * BLOCK, (number + 1) * BLOCK)


class IdempotencyConflictError(Exception):
    """The Idempotency-Key was used before, for another body."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """Origin of a body: the key's name, its size as sent, the SHA-256 of what it was after decompression."""

    key: str
    sha256: bytes
    size: int
    trace: str | None = None
    idempotency_key: str | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """Receipt of an accepted body: its id and the number of rows."""

    id: str
    accepted: int
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Piece:
    """The rows of one region; times are microseconds since 1970."""

    number: int
    region: str
    region_id: int
    rows: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class PendingBody:
    """A body that only needs to be stored. `encoded` is its binary COPY, None when its rows were copied already."""

    kind: Kind
    receipt: Receipt
    delivery: Delivery
    pieces: Sequence[Piece]
    encoded: bytes | None


def store(bodies: Sequence[PendingBody]) -> list[bool]:
    """Store bodies in one transaction, of which none may share an Idempotency-Key.

    False for those that were left out, because their Idempotency-Key was taken before.
    """
    with nullcontext() if _is_one_statement(bodies) else transaction.atomic():
        free = _claim(bodies)
        taken = [body for body, is_free in zip(bodies, free, strict=True) if is_free]
        rows = _by_kind(taken)
        for kind, encoded in rows[:-1]:
            with connection.cursor() as cursor:
                copy_encoded(cursor, table(kind), columns(kind), encoded)
        _record(taken, rows[-1:])
    database.note_use()
    return free


def _is_one_statement(bodies: Sequence[PendingBody]) -> bool:
    """Whether one journey does it all, which is a transaction of its own: no other needs to be begun and ended."""
    claims = any(body.delivery.idempotency_key is not None for body in bodies)
    return not claims and len(_by_kind(bodies)) == 1 and not connection.in_atomic_block


def _by_kind(bodies: Sequence[PendingBody]) -> list[tuple[Kind, list[bytes]]]:
    """The rows that are still to be copied."""
    found: dict[str, tuple[Kind, list[bytes]]] = {}
    for body in bodies:
        if body.encoded is not None:
            found.setdefault(body.kind.name, (body.kind, []))[1].append(body.encoded)
    return list(found.values())


def find_repeated(kind: Kind, delivery: Delivery) -> Receipt | None:
    """The receipt that the Idempotency-Key already stands for. Raises IdempotencyConflictError."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT sha256, receipt::text, accepted FROM telemetry_idempotency"
            " WHERE key_name = %s AND idempotency_key = %s",
            (delivery.key, delivery.idempotency_key),
        )
        row = cursor.fetchone()
    if row is None:
        return None
    if bytes(row[0]) != _identity(kind, delivery):
        raise IdempotencyConflictError
    return Receipt(row[1], row[2], repeated=True)


def _identity(kind: Kind, delivery: Delivery) -> bytes:
    """Bytes that must be the same in a re-send. After decompression: no two gzips of one body are alike."""
    return hashlib.sha256(kind.name.encode() + b"\n" + delivery.sha256).digest()


def _claim(bodies: Sequence[PendingBody]) -> list[bool]:
    """Take the Idempotency-Keys; false where one was taken before. Waits for a concurrent claim to end."""
    claims = [_claim_row(body) for body in bodies if body.delivery.idempotency_key is not None]
    if not claims:
        return [True] * len(bodies)
    places = ",".join([f"({','.join(['%s'] * len(claims[0]))})"] * len(claims))
    claims.sort(key=lambda claim: claim[:2])  # or two groups with the same keys could wait in a circle
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO telemetry_idempotency"
            " (key_name, idempotency_key, sha256, receipt, accepted, created_at)"
            f" VALUES {places} ON CONFLICT DO NOTHING RETURNING receipt::text",
            list(itertools.chain.from_iterable(claims)),
        )
        claimed = {receipt for (receipt,) in cursor.fetchall()}
    return [body.delivery.idempotency_key is None or body.receipt.id in claimed for body in bodies]


def _claim_row(body: PendingBody) -> tuple[Any, ...]:
    delivery, receipt = body.delivery, body.receipt
    return (
        delivery.key, delivery.idempotency_key, _identity(body.kind, delivery), receipt.id, receipt.accepted,
        datetime.now(UTC),
    )  # fmt: skip


def _record(bodies: Sequence[PendingBody], rows: Sequence[tuple[Kind, Sequence[bytes]]]) -> None:
    """The events, each body's in a stream of its own, and the receipts that say where they stand in the log, after the
    rows of up to one kind."""
    now = datetime.now(UTC)
    pieces = [(body, piece) for body in bodies for piece in body.pieces]
    beginnings = [_beginning(body, now) for body in bodies]
    events = [event for beginning in beginnings for event in beginning.events]
    receipts = (
        plain_array(str(piece.number) for _, piece in pieces),
        plain_array(body.receipt.id for body, _ in pieces),
        plain_array(body.kind.name for body, _ in pieces),
        plain_array(str(piece.region_id) for _, piece in pieces),
        plain_array(str(piece.rows) for _, piece in pieces),
        plain_array(event.body["first"] for event in events),
        plain_array(event.body["last"] for event in events),
    )

    with (
        begin_through("telemetry_record", beginnings, receipts) as (sql, values),
        connection.cursor() as cursor,
    ):
        for kind, encoded in rows:
            copy_encoded(cursor, table(kind), columns(kind), encoded, then=cursor.mogrify(sql, values))
        if not rows:
            cursor.execute(sql, values)
    finished = [piece.number for body, piece in pieces if body.encoded is None]
    if finished:
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM telemetry_unfinished WHERE number = ANY(%s)", (finished,))


def _beginning(body: PendingBody, now: datetime) -> NewStream:
    delivery = body.delivery
    events = [NewEvent(RECEIVED.name, _receipt_body(body, piece), now) for piece in body.pieces]
    return NewStream(
        f"receipt/{body.receipt.id}", events, Context(f"key:{delivery.key}", trace=delivery.trace)
    )


def _receipt_body(body: PendingBody, piece: Piece) -> dict[str, object]:
    return {
        "kind": body.kind.name,
        "region": piece.region,
        "rows": piece.rows,
        "bytes": body.delivery.size,
        "sha256": body.delivery.sha256.hex(),
        "first": _text(piece.first),
        "last": _text(piece.last),
        "key": body.delivery.key,
    }


def _text(at: int) -> str:
    return time_text(moment(at)).replace("+00:00", "Z")


SIGNATURE = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
TRAILER = b"\xff\xff"
TO_2000 = 946_684_800_000_000
"""Microseconds from 1970, where our times begin, to 2000, where those of Postgres do."""

_WIRE = {
    "timestamptz": ">i8",
    "bigint": ">i8",
    "integer": ">i4",
    "double precision": ">f8",
    "boolean": "u1",
    "uuid": "V16",
}
LIST = "double precision[]"
_FLOAT8 = 701  # the type's number in pg_type
Columns = Mapping[str, NDArray[np.generic] | Numbers]


@functools.cache
def layout_of(columns: tuple[tuple[str, str], ...]) -> np.dtype[np.void]:
    parts: list[tuple[str, str]] = [("fields", ">i2")]
    for name, type_ in columns:
        parts += [(f"{name} width", ">i4"), (name, _WIRE[type_])]
    return np.dtype(parts)


def encode(columns: Sequence[tuple[str, str]], values: Columns) -> bytes:
    """The body of a binary COPY; `columns` are names and SQL types, times are microseconds since 1970."""
    fixed = tuple(one for one in columns if one[1] != LIST)
    layout = layout_of(fixed)
    rows = np.empty(len(values[columns[0][0]]), layout)
    rows["fields"] = len(columns)
    for name, type_ in fixed:
        rows[f"{name} width"] = layout[name].itemsize
        column = values[name]
        rows[name] = column - TO_2000 if type_ == "timestamptz" else column  # type: ignore[operator]
    if len(fixed) == len(columns):
        return b"".join((SIGNATURE, rows.data, TRAILER))
    lists = [_lists(one) for name, _ in columns[len(fixed) :] if isinstance(one := values[name], Numbers)]
    width, packed = layout.itemsize, rows.tobytes()
    heads = (packed[place : place + width] for place in range(0, len(packed), width))
    joined = itertools.chain.from_iterable(zip(heads, *lists, strict=True))
    return b"".join(itertools.chain((SIGNATURE,), joined, (TRAILER,)))


def _lists(column: Numbers) -> Iterator[bytes]:
    """Each row's list as Postgres' binary array: dimensions, no nulls, type, length, lower bound, elements."""
    elements = np.empty(len(column.values), [("width", ">i4"), ("value", ">f8")])
    elements["width"], elements["value"] = 8, column.values
    packed, size = elements.tobytes(), elements.itemsize
    empty = struct.pack(">iiii", 12, 0, 0, _FLOAT8)
    for start, end in itertools.pairwise(column.indptr.tolist()):
        if start == end:
            yield empty
        else:
            body = packed[start * size : end * size]
            yield struct.pack(">iiiiii", 20 + len(body), 1, 0, _FLOAT8, end - start, 1) + body


def copy_in(table: str, columns: tuple[tuple[str, str], ...], values: Columns) -> None:
    """Append rows to a table."""
    with connection.cursor() as cursor:
        copy_encoded(cursor, table, columns, [encode(columns, values)])


def copy_encoded(
    cursor: CursorWrapper,
    table: str,
    columns: tuple[tuple[str, str], ...],
    bodies: Sequence[bytes],
    then: bytes = b"",
) -> None:
    """Append the rows of several encoded bodies to a table with one COPY.

    `then` is a statement that follows in the same journey. Postgres takes what comes in one message for one
    transaction, if none is open: both are committed when this returns, or neither is.
    https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-MULTI-STATEMENT
    """
    joined = bodies[0] if len(bodies) == 1 else _joined(bodies)
    with cursor.db.wrap_database_errors:
        cursor.copy_expert(_copy(table, columns) + then, io.BytesIO(joined), PIECE)


@functools.cache
def _copy(table: str, columns: tuple[tuple[str, str], ...]) -> bytes:
    listed = ", ".join(f'"{name}"' for name, _ in columns)
    return f"COPY {table} ({listed}) FROM STDIN (FORMAT binary);".encode()


def _joined(bodies: Sequence[bytes]) -> bytes:
    rows = [body[len(SIGNATURE) : -len(TRAILER)] for body in bodies]
    return b"".join((SIGNATURE, *rows, TRAILER))


def copy_out(
    query: str, parameters: Sequence[object], columns: Sequence[tuple[str, str]]
) -> dict[str, NDArray[np.generic]]:
    """The result of a query whose columns have these names and types and no nulls; arrays in native byte
    order."""
    block = io.BytesIO()
    with connection.cursor() as cursor, connection.wrap_database_errors:
        written = cursor.mogrify(query, parameters).decode()
        cursor.copy_expert(f"COPY ({written}) TO STDOUT (FORMAT binary)", block, PIECE)
    layout = layout_of(tuple(columns))
    body = block.getbuffer()[len(SIGNATURE) : -len(TRAILER)]
    if len(body) % layout.itemsize:
        raise ValueError("a column of the query has another width than was said, or holds nulls")
    rows = np.frombuffer(body, layout)
    return {name: _native(rows[name], type_) for name, type_ in columns}


def _native(column: NDArray[np.generic], type_: str) -> NDArray[np.generic]:
    if type_ == "uuid":
        return column
    native = column.astype(column.dtype.newbyteorder("="))
    return native + np.int64(TO_2000) if type_ == "timestamptz" else native
