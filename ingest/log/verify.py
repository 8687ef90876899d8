"""Check the log: the chain of every stream, then every seal. Memory does not grow with the log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from ingest.log import canonical, seals
from ingest.log.noted import newest as newest_noted
from ingest.log.types import Body, Head, Position

UNSEALED = 600.0
"""Seconds within which an event is sealed, and its seal is noted outside."""


@dataclass(frozen=True, slots=True)
class Sound:
    """What was checked and found good. `newest_seal` is its id and hash, worth keeping somewhere else."""

    events: int
    streams: int
    seals: int
    newest_seal: str | None


class BadLog(Exception):
    """The log was tampered with or damaged; the message begins with the id of the first bad event."""

    def __init__(self, event_id: str, what: str) -> None:
        super().__init__(f"{event_id}: {what}")
        self.event_id = event_id


def verify(expected_seal: str | None = None, *, noted: Path | None = None) -> Sound:
    """Check everything, against one snapshot. Raises BadLog at the first event that is wrong.

    `expected_seal` is a seal noted earlier (as in `Sound.newest_seal`): it must still be there. `noted` is the file of
    seals noted outside of the database (`ingest.log.noted`): the newest must still be there, and cover all events but
    those of the last UNSEALED seconds.
    """
    with transaction.atomic():
        if not connection.savepoint_ids:  # the outermost block: nothing was read before
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        events, streams = _verify_chains()
        count, newest = _verify_seals()
        if expected_seal is not None:
            expect(expected_seal)
        if noted is not None:
            _expect_noted(noted)
    return Sound(events, streams, count, newest)


def _rows(cursor: CursorWrapper, batch: int) -> Iterator[tuple[Any, ...]]:
    while rows := cursor.fetchmany(batch):
        yield from rows


def _verify_chains() -> tuple[int, int]:
    events = streams = 0
    stream, head = "", Head.NEW
    with connection.chunked_cursor() as cursor:
        cursor.execute(
            "SELECT stream, version, type, schema, body, actor, cause, trace, occurred_at, recorded_at, hash"
            " FROM log_event ORDER BY stream, version"
        )
        for (
            name,
            version,
            type_,
            schema,
            body,
            actor,
            cause,
            trace,
            occurred_at,
            recorded_at,
            hash_,
        ) in _rows(cursor, 500):
            if name != stream:
                stream, head, streams = name, Head.NEW, streams + 1
            if version != head.version + 1:
                raise BadLog(
                    f"{stream}@{head.version + 1}", f"is missing, though {stream}@{version} is there"
                )
            occurred, recorded = canonical.time_text(occurred_at), canonical.time_text(recorded_at)
            right = canonical.chain(
                head.hash, stream, version, type_, schema, body, actor, cause, trace, occurred, recorded
            )
            if right != bytes(hash_):
                raise BadLog(
                    f"{stream}@{version}", "its content does not match its hash, or was not chained here"
                )
            head = Head(version, right)
            events += 1
    return events, streams


def _verify_seals() -> tuple[int, str | None]:
    root, upto, count, newest = "", Position.START, 0, None
    with connection.chunked_cursor() as cursor:
        cursor.execute(
            "SELECT version, body, hash FROM log_event WHERE stream = %s ORDER BY version", (seals.STREAM,)
        )
        for version, text, hash_ in _rows(cursor, 10):
            body: Body = canonical.read_body(text)
            seal_id = f"{seals.STREAM}@{version}"
            if body["from"] != str(upto):
                raise BadLog(seal_id, f"begins at {body['from']}, but the seal before ends at {upto}")
            upto = Position.parse(body["upto"])
            _verify_seal(seal_id, body, root)
            root, count, newest = body["root"], count + 1, f"{seal_id}:{bytes(hash_).hex()}"
    return count, newest


def _verify_seal(seal_id: str, body: Body, root: str) -> None:
    begin, upto = Position.parse(body["from"]), Position.parse(body["upto"])
    # One more than was sealed is enough to see that there are too many.
    found = list(seals.links(begin, upto, body["events"] + 1))
    cover = seals.Cover(root)
    cover.add(found)
    if (cover.root, cover.events, cover.heads) == (body["root"], body["events"], body["heads"]):
        return
    for stream, (version, digest) in body["heads"].items():
        there, other = cover.heads.get(stream, (0, ""))
        if there < version:
            raise BadLog(f"{stream}@{version}", f"is missing, though {seal_id} sealed it")
        if there > version:
            raise BadLog(f"{stream}@{there}", f"was put among events that {seal_id} had sealed")
        if other != digest:
            raise BadLog(f"{stream}@{version}", f"was written anew after {seal_id} had sealed it")
    for stream, (version, _) in cover.heads.items():
        if stream not in body["heads"]:
            raise BadLog(f"{stream}@{version}", f"was put among events that {seal_id} had sealed")
    raise BadLog(seal_id, f"the order of the {body['events']} events it sealed was changed, or their number")


def _expect_noted(file: Path) -> None:
    seal = newest_noted(file)
    if seal is not None:
        expect(seal)
    covered = 0 if seal is None else int(seal.partition(":")[0].partition("@")[2])
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT body FROM log_event WHERE stream = %s AND version = %s", (seals.STREAM, covered)
        )
        row = cursor.fetchone()
        upto = Position.parse(canonical.read_body(row[0])["upto"]) if row else Position.START
        cursor.execute(
            "SELECT stream || '@' || version FROM log_event"
            " WHERE (epoch, txid, seq) > (%s, %s::xid8, %s) AND stream <> %s"
            " AND recorded_at < clock_timestamp() - %s * interval '1 second' ORDER BY epoch, txid, seq LIMIT 1",
            (upto.epoch, str(upto.txid), upto.seq, seals.STREAM, UNSEALED),
        )
        late = cursor.fetchone()
    if late is not None:
        last = (
            f"the newest seal in {file} is {seal.partition(':')[0]}" if seal else f"no seal stands in {file}"
        )
        raise BadLog(late[0], f"is covered by no seal that was noted outside of the database ({last})")


def expect(expected: str) -> None:
    """Raises BadLog where a seal noted earlier is missing, or is another one."""
    seal_id, _, digest = expected.partition(":")
    stream, _, version = seal_id.partition("@")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT encode(hash, 'hex') FROM log_event WHERE stream = %s AND version = %s",
            (stream, int(version) if version.isdecimal() else 0),
        )
        row = cursor.fetchone()
    if row is None:
        raise BadLog(seal_id, "is missing, though it was noted earlier")
    if row[0] != digest:
        raise BadLog(seal_id, "has another hash than was noted earlier")
