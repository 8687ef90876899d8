"""Store the rows of one body and say so in the log. Bodies are decoded and names numbered before this begins.

One transaction holds the rows, their receipt and the event `telemetry.received`. A transaction that writes
holds back every reader of the log, so a large body is copied in several beforehand: until its receipt is
there, its number stands in `telemetry_unfinished` and readers pass over its rows.
"""

from __future__ import annotations

import itertools
import os
import threading
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
from django.db import DatabaseError, IntegrityError, OperationalError, connection
from numpy.typing import NDArray

from ingest.db import database
from ingest.db.group_commit import GroupCommit, GroupCommitError
from ingest.log.types import StreamVersionError, UnrecordableEventError
from ingest.telemetry.decode.columns import Known, Names, Numbers, Rows, Sets
from ingest.telemetry.decode.ids import as_bytes
from ingest.telemetry.decode.validate import moment
from ingest.telemetry.errors import InvalidBodyError
from ingest.telemetry.store import dictionary, partitions, schema
from ingest.telemetry.store.copy import Columns, copy_in, encode
from ingest.telemetry.store.schema import columns, table
from ingest.telemetry.store.transaction import (
    Delivery,
    IdempotencyConflictError,
    PendingBody,
    Piece,
    Receipt,
    find_repeated,
    store,
)

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
    partitions.ensure(rows.kind, rows.times)
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
            partitions.forget()
            partitions.ensure(rows.kind, rows.times)
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
    """Which of them are stored. The others must be tried alone: whatever is wrong then meets only the guilty one."""
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
        partitions.discard(piece.number, rows.kind.name, moment(piece.first), moment(piece.last))
    return find_repeated(rows.kind, delivery)


def _prepared(rows: Rows, values: Columns, delivery: Delivery, *, early: bool = False) -> PendingBody:
    receipt = Receipt(str(uuid.uuid4()), rows.count)
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
    """What the rows up to and with each weigh, in rows without lists; shape (rows,)."""
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
            values[name] = dictionary.text_column(column, rows.kind.field(name).type)
        elif isinstance(column, Known):
            values[name] = column.ids
        elif isinstance(column, Sets):
            values[name] = dictionary.set_column(column)
        else:
            values[schema.column(rows.kind, name)] = column
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
