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

from collections.abc import Iterator
from datetime import datetime
from typing import cast

from django.db import transaction

from ingest.db import database
from ingest.log import append, read, source
from ingest.log.events import SEALED
from ingest.log.inclusion import MOST_LATER, STREAM, Cover, Inclusion, Line, Link, StoredEvent
from ingest.log.types import (
    Body,
    Context,
    Event,
    Head,
    NewEvent,
    Position,
    StreamVersionError,
    read_body,
    time_text,
)

COVER = 1000
"""Events under one seal, which bounds the size of its `heads` (about 80 bytes a stream)."""


def seal(actor: str = "system:log") -> list[Event]:
    """Seal all events up to the watermark that no seal covers yet; the seals appended, none if nothing is
    new.

    Meant to be called every minute or so by one process; where two meet, one of them does nothing.
    """
    mark = read.watermark()
    found: list[Event] = []
    try:
        while True:
            with transaction.atomic():
                event = _seal_next(mark, actor)
            if event is None:
                return found
            found.append(event)
    except StreamVersionError:
        return found


def _seal_next(mark: Position, actor: str) -> Event | None:
    newest = newest_seal()
    begin = Position.parse(newest.body["upto"]) if newest else Position.START
    found = list(links(begin, mark, COVER))
    # Seals of a long stretch stand in a row, so as many of them as one seal covers are covered, too: else it would end
    # there for ever.
    if len(found) < COVER and all(stream == STREAM for stream, *_ in found):
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
    return read.read_last(STREAM)


def unsealed_since() -> datetime | None:
    """Time of the record of the oldest event that no seal covers; None where all are covered."""
    newest = newest_seal()
    after = Position.parse(newest.body["upto"]) if newest else Position.START
    columns = ("stream", "recorded_at", "epoch", "txid", "seq")
    while rows := source.in_order(columns, source.Query(after=after), COVER):
        for stream, recorded_at, *_ in rows:
            if stream != STREAM:
                return cast(datetime, recorded_at)
        after = source.position_of(rows[-1])
    return None


def links(after: Position, upto: Position, limit: int) -> Iterator[Link]:
    """Up to `limit` events in the total order, after one position and up to another."""
    query = source.Query(after=after, upto=upto)
    for stream, version, hash_, epoch, txid, seq in source.in_order(source.LINK, query, limit):
        yield stream, version, bytes(hash_), Position(epoch, int(txid), seq)


class UncoveredEventError(LookupError):
    """No seal covers the event yet; the next one will."""


def prove(stream: str, version: int) -> Inclusion:
    """Proof that an event stands under a seal. Raises UncoveredEventError, and LookupError for an unknown event."""
    event, position = _stored(stream, version)
    seal, body = _seal_over(position)
    if seal is None:
        raise UncoveredEventError(f"{stream}@{version} is not sealed yet")
    before = _stored(STREAM, seal.version - 1)[0].body if seal.version > 1 else None
    lines = [
        Line(str(at), name, number, digest.hex())
        for name, number, digest, at in links(
            Position.parse(body["from"]), Position.parse(body["upto"]), body["events"]
        )
    ]
    last = min(seal.version + MOST_LATER, read.head(STREAM).version)
    later = [_stored(STREAM, number)[0] for number in range(seal.version + 1, last + 1)]
    return Inclusion(event, "" if before is None else read_body(before)["root"], lines, seal, later)


def _stored(stream: str, version: int) -> tuple[StoredEvent, Position]:
    """An event as it is stored, and where it stands."""
    query = source.Query(streams=[stream], versions=[version - 1, version])
    rows = {row[1]: row for row in source.of_streams(source.COLUMNS, query)}
    if version not in rows:
        raise LookupError(f"there is no event {stream}@{version}")
    _, _, type_, schema, body, actor, cause, trace, occurred_at, recorded_at, _, epoch, txid, seq = rows[
        version
    ]
    previous = bytes(rows[version - 1][source.COLUMNS.index("hash")]).hex() if version - 1 in rows else ""
    stored = StoredEvent(
        stream, version, type_, schema, body, actor, cause, trace, time_text(occurred_at), time_text(recorded_at),
        previous,
    )  # fmt: skip
    return stored, Position(epoch, int(txid), seq)


def _seal_over(position: Position) -> tuple[StoredEvent | None, Body]:
    """The first seal that covers a position. It stands behind it, and seldom is it not the next."""
    after = position
    while True:
        query = source.Query(after=after, types={SEALED.name})
        rows = source.in_order(("version", "body", "epoch", "txid", "seq"), query, 1)
        if not rows:
            return None, {}
        version, text, *_ = rows[0]
        body = read_body(text)
        if Position.parse(body["upto"]) >= position:
            return _stored(STREAM, version)[0], body
        after = source.position_of(rows[0])
