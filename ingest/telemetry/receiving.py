"""Store the rows of one body and say so in the log. Bodies are decoded and names numbered before this begins.

One transaction holds the rows, their receipt and the event `telemetry.received`. A transaction that writes
holds back every reader of the log, so a large body is copied in several beforehand: until its receipt is
there, its number stands in `telemetry_unfinished` and readers pass over its rows.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from django.db import IntegrityError, connection, transaction
from numpy.typing import NDArray

from ingest.log.store import append
from ingest.log.types import Context, Event, Head, NewEvent
from ingest.telemetry import interning, partitions, schema
from ingest.telemetry.check import moment
from ingest.telemetry.columns import Names, Numbers, Rows, Sets
from ingest.telemetry.copying import Columns, copy_in
from ingest.telemetry.events import RECEIVED
from ingest.telemetry.faults import BadBody
from ingest.telemetry.ids import as_bytes
from ingest.telemetry.kinds import Kind
from ingest.telemetry.numbering import draw
from ingest.telemetry.schema import columns, table

AT_ONCE = 100_000
"""Rows copied in one transaction, well under a tenth of a second of work."""
MOST_REGIONS = 100
TRIES = 3
NO_PARTITION = "23514"  # Postgres: no partition of the table takes the row


class IdempotencyConflict(Exception):
    """The Idempotency-Key was used before, for another body."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """How a body came: the key's name, its size as sent, the SHA-256 of what it was after decompression."""

    key: str
    sha256: bytes
    size: int
    trace: str | None = None
    idempotency_key: str | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a body was accepted as: the receipt's id and the number of rows."""

    id: str
    accepted: int
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class _Piece:
    """The rows of one region."""

    number: int
    region: str
    region_id: int
    rows: int
    first: int
    last: int


def receive(rows: Rows, delivery: Delivery) -> Receipt:
    """Store rows, all or none, durably. Raises BadBody, IdempotencyConflict, django.db.Error.

    A body that came before under the same Idempotency-Key gets its first receipt and is not stored again.
    """
    values = _numbered(rows)
    for attempt in range(TRIES):
        partitions.ensure(rows.kind, rows.times)
        try:
            return _store(rows, values, delivery)
        except IntegrityError as error:
            # Retention, in another process, dropped a partition that this one knew.
            if getattr(error.__cause__, "pgcode", None) != NO_PARTITION or attempt + 1 == TRIES:
                raise
            partitions.forget()
    raise AssertionError("unreachable")


def find_repeated(kind: Kind, delivery: Delivery) -> Receipt | None:
    """The receipt that the Idempotency-Key already stands for. Raises IdempotencyConflict."""
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
        raise IdempotencyConflict
    return Receipt(row[1], row[2], repeated=True)


def _identity(kind: Kind, delivery: Delivery) -> bytes:
    """What must be the same in a re-send. After decompression: no two gzips of one body are alike."""
    return hashlib.sha256(kind.name.encode() + b"\n" + delivery.sha256).digest()


Stored = NDArray[np.generic] | Numbers


def _numbered(rows: Rows) -> dict[str, Stored]:
    """The columns as the table takes them."""
    values: dict[str, Stored] = {}
    for name, column in rows.columns.items():
        if isinstance(column, Names) and rows.kind.field(name).type == "id":
            values[name] = as_bytes(column.names)[column.codes]
        elif isinstance(column, Names):
            values[name] = interning.name_column(column)
        elif isinstance(column, Sets):
            values[name] = interning.set_column(column)
        else:
            values[schema.column(rows.kind, name)] = column
    return values


def _store(rows: Rows, values: dict[str, Stored], delivery: Delivery) -> Receipt:
    receipt = Receipt(str(uuid.uuid4()), rows.count)
    pieces, numbers = _pieces(rows)
    values = {**values, "receipt": numbers}
    early = rows.count > AT_ONCE and not connection.in_atomic_block
    if early:
        _begin(rows, pieces)
        for start in range(0, rows.count, AT_ONCE):
            copy_in(table(rows.kind), columns(rows.kind), _part(values, start, start + AT_ONCE))
    with transaction.atomic():
        first = _claim(rows.kind, receipt, delivery)
        if first is None:
            if not early:
                copy_in(table(rows.kind), columns(rows.kind), values)
            _record(rows, pieces, receipt, delivery, finishes=early)
    if first is not None:
        for piece in pieces if early else ():
            partitions.discard(piece.number, rows.kind.name, moment(piece.first), moment(piece.last))
        return first
    return receipt


def _part(values: Columns, start: int, end: int) -> Columns:
    return {name: column[start:end] for name, column in values.items()}


def _pieces(rows: Rows) -> tuple[list[_Piece], NDArray[np.int64]]:
    """The body by region, and every row's receipt number."""
    names, codes, times = rows.names("region").names, rows.names("region").codes, rows.times
    latest = rows.latest
    present = [0] if len(names) == 1 else np.unique(codes).tolist()
    if len(present) > MOST_REGIONS:
        raise BadBody(f"the body holds rows of more than {MOST_REGIONS} regions")
    drawn = draw(len(present))
    by_code = np.zeros(len(names), np.int64)
    by_code[present] = drawn
    pieces = []
    for code, number in zip(present, drawn, strict=True):
        mine = slice(None) if len(present) == 1 else codes == code
        region_id = int(interning.name_ids([names[code]])[0])
        first, last = int(times[mine].min()), int(latest[mine].max())
        pieces.append(_Piece(number, names[code], region_id, len(times[mine]), first, last))
    return pieces, by_code[codes]


def _begin(rows: Rows, pieces: Sequence[_Piece]) -> None:
    now = datetime.now(UTC)
    with connection.cursor() as cursor:
        for piece in pieces:
            cursor.execute(
                "INSERT INTO telemetry_unfinished (number, kind, first, last, begun_at)"
                " VALUES (%s, %s, %s, %s, %s)",
                (piece.number, rows.kind.name, moment(piece.first), moment(piece.last), now),
            )


def _claim(kind: Kind, receipt: Receipt, delivery: Delivery) -> Receipt | None:
    """Take the Idempotency-Key for this receipt, or say whose it is. Waits for a concurrent claim to end."""
    if delivery.idempotency_key is None:
        return None
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO telemetry_idempotency"
            " (key_name, idempotency_key, sha256, receipt, accepted, created_at)"
            " VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
            (
                delivery.key, delivery.idempotency_key, _identity(kind, delivery),
                receipt.id, receipt.accepted, datetime.now(UTC),
            ),
        )  # fmt: skip
        return None if cursor.rowcount else find_repeated(kind, delivery)


def _record(
    rows: Rows, pieces: Sequence[_Piece], receipt: Receipt, delivery: Delivery, *, finishes: bool
) -> None:
    now = datetime.now(UTC)
    news = [NewEvent(RECEIVED.name, _body(rows, piece, delivery), now) for piece in pieces]
    context = Context(actor=f"key:{delivery.key}", trace=delivery.trace)
    recorded = append(f"receipt/{receipt.id}", news, Head.NEW, context)
    with connection.cursor() as cursor:
        for piece, event in zip(pieces, recorded, strict=True):
            cursor.execute(_INSERT_RECEIPT, _receipt_row(rows, piece, receipt, event))
        if finishes:
            numbers = [piece.number for piece in pieces]
            cursor.execute("DELETE FROM telemetry_unfinished WHERE number = ANY(%s)", (numbers,))


_INSERT_RECEIPT = """
INSERT INTO telemetry_receipt (number, receipt, kind, region, rows, first, last, received_at, epoch, txid,
seq) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s::xid8, %s)
"""


def _receipt_row(
    rows: Rows, piece: _Piece, receipt: Receipt, event: Event
) -> tuple[str | int | datetime, ...]:
    place = event.position
    return (
        piece.number, receipt.id, rows.kind.name, piece.region_id, piece.rows, moment(piece.first),
        moment(piece.last), event.recorded_at, place.epoch, str(place.txid), place.seq,
    )  # fmt: skip


def _body(rows: Rows, piece: _Piece, delivery: Delivery) -> dict[str, object]:
    return {
        "kind": rows.kind.name,
        "region": piece.region,
        "rows": piece.rows,
        "bytes": delivery.size,
        "sha256": delivery.sha256.hex(),
        "first": _text(piece.first),
        "last": _text(piece.last),
        "key": delivery.key,
    }


def _text(at: int) -> str:
    return moment(at).isoformat(timespec="microseconds").replace("+00:00", "Z")
