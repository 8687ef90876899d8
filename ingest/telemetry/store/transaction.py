"""The transaction that holds the rows of one or several bodies, their receipts, their idempotency keys and the
events `telemetry.received`. Everything that can be done before it was done before it.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from ingest.db import database
from ingest.log.append import NewStream, begin_through
from ingest.log.canonical import time_text
from ingest.log.encode import plain_array
from ingest.log.types import Context, NewEvent
from ingest.telemetry.decode.validate import moment
from ingest.telemetry.events import RECEIVED
from ingest.telemetry.kinds import Kind
from ingest.telemetry.store.copy import copy_encoded
from ingest.telemetry.store.schema import columns, table


class IdempotencyConflictError(Exception):
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
    """What must be the same in a re-send. After decompression: no two gzips of one body are alike."""
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

    def send(cursor: CursorWrapper, statement: bytes) -> None:
        for kind, encoded in rows:
            copy_encoded(cursor, table(kind), columns(kind), encoded, then=statement)
        if not rows:
            cursor.execute(statement.decode())

    begin_through("telemetry_record", beginnings, receipts, send)
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
