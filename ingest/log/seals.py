"""Seals: what makes a cut tail visible.

A stream's own chain shows what was changed or taken out of its middle, but a stream that lost its last
events is still a good chain. So every so often `log.sealed` is appended to the stream `log`. It covers all
events between the previous seal's end and the watermark and holds

- `root`: sha256 over the previous seal's root and, for each event covered and in the total order, its
  position, id and hash, one line each;
- `heads`: for each stream covered, the newest version and the first 16 hex digits of its hash, so that what
  is missing can be called by name;
- `from` and `upto` (positions, the first exclusive), `events` (how many) and `previous` (id of the seal
  before).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any

from django.db import connection, transaction

from ingest.db import database
from ingest.log import append, read
from ingest.log.events import SEALED
from ingest.log.types import Body, Context, Event, Head, NewEvent, Position, StreamVersionError

STREAM = "log"
COVER = 1000
"""Events under one seal, which bounds the size of its `heads` (about 80 bytes a stream)."""
SHORT = 16

Link = tuple[str, int, bytes, Position]
"""Stream, version, hash and position of an event: all that a seal is about."""


@dataclass(slots=True)
class Cover:
    """The running sum of a seal."""

    root: str
    events: int = 0
    heads: dict[str, list[Any]] = field(default_factory=dict)

    def add(self, links: Iterable[Link]) -> None:
        digest = sha256(self.root.encode())
        for stream, version, hash_, position in links:
            digest.update(f"\n{position} {stream}@{version} {hash_.hex()}".encode())
            self.events += 1
            if version > self.heads.get(stream, (0,))[0]:
                self.heads[stream] = [version, hash_.hex()[:SHORT]]
        self.root = digest.hexdigest()


def seal(actor: str = "system:log") -> list[Event]:
    """Seal all events up to the watermark that no seal covers yet; the seals appended, none if nothing is
    new.

    Meant to be called every minute or so by one process; where two meet, one of them does nothing.
    """
    mark = read.watermark()
    sealed: list[Event] = []
    try:
        while True:
            with transaction.atomic():
                event = _seal_next(mark, actor)
            if event is None:
                return sealed
            sealed.append(event)
    except StreamVersionError:
        return sealed


def _seal_next(mark: Position, actor: str) -> Event | None:
    newest = newest_seal()
    begin = Position.parse(newest.body["upto"]) if newest else Position.START
    found = list(links(begin, mark, COVER))
    if all(stream == STREAM for stream, *_ in found):
        return None
    cover = Cover(newest.body["root"] if newest else "")
    cover.add(found)
    body: Body = {
        "from": str(begin), "upto": str(found[-1][3]), "events": cover.events, "root": cover.root,
        "heads": cover.heads, "previous": newest.id if newest else None,
    }  # fmt: skip
    new = NewEvent(SEALED.name, body, database.now())
    return append.append(STREAM, [new], newest.head if newest else Head.NEW, Context(actor))[0]


def newest_seal() -> Event | None:
    """The last seal. Keep its id and hash outside of the database to notice that the seals themselves were
    cut."""
    at = read.head(STREAM).version
    return read.read_stream(STREAM, after_version=at - 1)[0] if at else None


def unsealed_since() -> datetime | None:
    """When the oldest event that no seal covers was recorded; None where all are covered."""
    newest = newest_seal()
    upto = Position.parse(newest.body["upto"]) if newest else Position.START
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT recorded_at FROM log_event WHERE (epoch, txid, seq) > (%s, %s::xid8, %s) AND stream <> %s"
            f" {read.IN_ORDER} LIMIT 1",
            (upto.epoch, str(upto.txid), upto.seq, STREAM),
        )
        row = cursor.fetchone()
    return row[0] if row else None


def links(after: Position, upto: Position, limit: int) -> Iterator[Link]:
    """Up to `limit` events in the total order, after one position and up to another."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT stream, version, hash, epoch, txid::text AS txid_text, seq FROM log_event"
            " WHERE (epoch, txid, seq) > (%s, %s::xid8, %s) AND (epoch, txid, seq) <= (%s, %s::xid8, %s)"
            f" {read.IN_ORDER} LIMIT %s",
            (after.epoch, str(after.txid), after.seq, upto.epoch, str(upto.txid), upto.seq, limit),
        )
        for stream, version, hash_, epoch, txid, seq in cursor.fetchall():
            yield stream, version, bytes(hash_), Position(epoch, int(txid), seq)
