"""Check the log: the chain of every stream, then every seal. Memory does not grow with the log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.db import connection, transaction

from ingest.db import database
from ingest.log import dating, inclusion, noted_seals, seals, source, timestamps, types
from ingest.log.copies import check_copies
from ingest.log.types import Body, Head, Position

SEALS = 20
"""Seals in memory; one has up to 80 kB."""
UNSEALED = 600.0
"""Seconds within which an event is sealed, and its seal is noted outside."""


@dataclass(frozen=True, slots=True)
class VerificationReport:
    """Counts of what was checked and found good. `newest_seal` is its id and hash, worth keeping somewhere else.

    `copies` counts the entries, by table, that were compared with their events; `timestamps` those of seals. `remarks`
    tell what is no proof of anything and deserves a look; `unknown` what could not be checked.
    """

    events: int
    streams: int
    seals: int
    newest_seal: str | None
    copies: dict[str, int] = field(default_factory=dict)
    timestamps: list[timestamps.Timestamp] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


class LogIntegrityError(Exception):
    """The log was tampered with or damaged; the message begins with the id of the first bad event."""

    def __init__(self, event_id: str, what: str, *, is_missing: bool = False) -> None:
        super().__init__(f"{event_id}: {what}")
        self.event_id, self.what, self.is_missing = event_id, what, is_missing


def verify(
    expected_seal: str | None = None, *, noted_in: Path | None = None, trusted: Path | None = None
) -> VerificationReport:
    """Check everything, against one snapshot. Raises LogIntegrityError at the first event that is wrong.

    `expected_seal` is a seal noted earlier (as in `VerificationReport.newest_seal`): it must still be there.
    `noted_in` is the file of seals noted outside of the database (`ingest.log.noted_seals`): the newest must still be
    there, and cover all events but those of the last UNSEALED seconds. `trusted` is a PEM file of authorities that
    timestamps in it are checked against, by default the public ones.
    """
    with transaction.atomic():
        if not connection.savepoint_ids:  # the outermost block: nothing was read before
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        events, streams = _verify_chains()
        count, newest = _verify_seals()
        if expected_seal is not None:
            expect(expected_seal)
        stamps = list[timestamps.Timestamp]()
        if noted_in is not None:
            _expect_noted(noted_in)
            stamps = _verify_timestamps(noted_in, trusted)
        copies = check_copies()
        remarks = dating.remarks()
    return VerificationReport(
        events, streams, count, newest, copies, stamps, remarks, _unknown(noted_in, bool(stamps))
    )


def _unknown(noted_in: Path | None, is_stamped: bool) -> list[str]:
    if noted_in is None:
        return ["Not compared with seals noted outside: a cut or emptied log would not be noticed."]
    if noted_seals.newest(noted_in) is None:
        return [f"No seal stands in {noted_in}: a log that was cut or emptied would look the same."]
    if not is_stamped:
        return [
            f"No seal in {noted_in} has a timestamp of an authority, so a writer of both could replace both."
        ]
    return []


_CHAINED = (
    "stream", "version", "type", "schema", "body", "actor", "cause", "trace", "occurred_at", "recorded_at", "hash"
)  # fmt: skip


def _verify_chains() -> tuple[int, int]:
    events = streams = 0
    stream, head = "", Head.NEW
    with source.by_stream(_CHAINED) as rows:
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
        ) in rows:
            if name != stream:
                stream, head, streams = name, Head.NEW, streams + 1
            if version != head.version + 1:
                raise LogIntegrityError(
                    f"{stream}@{head.version + 1}", f"is missing, though {stream}@{version} is there"
                )
            occurred, recorded = types.time_text(occurred_at), types.time_text(recorded_at)
            right = types.chain(
                head.hash, stream, version, type_, schema, body, actor, cause, trace, occurred, recorded
            )
            if right != bytes(hash_):
                raise LogIntegrityError(
                    f"{stream}@{version}", "its content does not match its hash, or was not chained here"
                )
            head = Head(version, right)
            events += 1
    return events, streams


def _verify_seals() -> tuple[int, str | None]:
    root, upto, count, newest = "", Position.START, 0, None
    while rows := _stored_seals(("version", "body", "hash"), range(count + 1, count + 1 + SEALS)):
        for version, text, hash_ in rows:
            body: Body = types.read_body(text)
            seal_id = f"{inclusion.STREAM}@{version}"
            if body["from"] != str(upto):
                raise LogIntegrityError(
                    seal_id, f"begins at {body['from']}, but the seal before ends at {upto}"
                )
            upto = Position.parse(body["upto"])
            _verify_seal(seal_id, body, root)
            root, count, newest = body["root"], count + 1, f"{seal_id}:{bytes(hash_).hex()}"
    return count, newest


def _stored_seals(columns: Sequence[str], versions: Sequence[int]) -> list[tuple[Any, ...]]:
    """Seals by version, wherever the head of their stream says that they lie."""
    query = source.Query(streams=[inclusion.STREAM], versions=versions)
    return source.of_streams(columns, query, source.EVERYWHERE)


def _verify_seal(seal_id: str, body: Body, root: str) -> None:
    begin, upto = Position.parse(body["from"]), Position.parse(body["upto"])
    # One more than was sealed is enough to see that there are too many.
    found = list(seals.links(begin, upto, body["events"] + 1))
    cover = inclusion.Cover(root)
    cover.add(found)
    if (cover.root, cover.events, cover.heads) == (body["root"], body["events"], body["heads"]):
        return
    for stream, (version, digest) in body["heads"].items():
        there, other = cover.heads.get(stream, (0, ""))
        if there < version:
            raise LogIntegrityError(f"{stream}@{version}", f"is missing, though {seal_id} sealed it")
        if there > version:
            raise LogIntegrityError(f"{stream}@{there}", f"was put among events that {seal_id} had sealed")
        if other != digest:
            raise LogIntegrityError(f"{stream}@{version}", f"was rewritten after {seal_id} sealed it")
    for stream, (version, _) in cover.heads.items():
        if stream not in body["heads"]:
            raise LogIntegrityError(f"{stream}@{version}", f"was put among events that {seal_id} had sealed")
    raise LogIntegrityError(
        seal_id, f"the order of the {body['events']} events it sealed was changed, or their number"
    )


def _expect_noted(file: Path) -> None:
    seal = noted_seals.newest(file)
    if seal is not None:
        try:
            expect(seal)
        except LogIntegrityError as bad:
            hint = f"; if the log was replaced on purpose, move {file} away" if bad.is_missing else ""
            raise LogIntegrityError(bad.event_id, f"{bad.what} in {file}{hint}") from None
    covered = 0 if seal is None else int(seal.partition(":")[0].partition("@")[2])
    rows = _stored_seals(("body",), [covered])
    upto = Position.parse(types.read_body(rows[0][0])["upto"]) if rows else Position.START
    late = _first_late(upto)
    if late is not None:
        last = (
            f"the newest seal in {file} is {seal.partition(':')[0]}" if seal else f"no seal stands in {file}"
        )
        raise LogIntegrityError(late, f"is not covered by any seal noted outside the database ({last})")


def _first_late(after: Position) -> str | None:
    """Id of the first event after a position that is no seal and was recorded more than UNSEALED ago."""
    until = database.now() - timedelta(seconds=UNSEALED)
    columns = ("stream", "version", "recorded_at", "epoch", "txid", "seq")
    while rows := source.in_order(columns, source.Query(after=after), seals.COVER):
        for stream, version, recorded_at, *_ in rows:
            if stream != inclusion.STREAM and recorded_at < until:
                return f"{stream}@{version}"
        after = source.position_of(rows[-1])
    return None


def _verify_timestamps(file: Path, trusted: Path | None) -> list[timestamps.Timestamp]:
    found = noted_seals.timestamped(file)
    roots = timestamps.authorities(trusted) if found else []
    checked = []
    for seal, answer in found:
        seal_id = seal.partition(":")[0]
        try:
            stamp = timestamps.check(answer, seal, roots)
        except timestamps.InvalidTimestampError as bad:
            raise LogIntegrityError(seal_id, f"has a timestamp in {file} that is invalid: {bad}") from None
        recorded = expect(seal)
        if recorded - stamp.at > timedelta(seconds=UNSEALED):
            raise LogIntegrityError(
                seal_id,
                f"says that it was recorded at {recorded:%FT%TZ}, after its timestamp of {stamp.at:%FT%TZ}",
            )
        checked.append(stamp)
    return checked


def expect(expected: str) -> datetime:
    """Time of the record of a seal that was noted earlier. Raises LogIntegrityError where it is missing, or is
    another one."""
    seal_id, _, digest = expected.partition(":")
    stream, _, version = seal_id.partition("@")
    versions = [int(version) if version.isdecimal() and len(version) < 10 else 0]
    query, last = source.Query(streams=[stream], versions=versions), source.EVERYWHERE[1]
    # A seal that was noted of late lies in Postgres: files, all of them, are for one that is not there.
    for numbers in ((source.hot_from(), last), source.EVERYWHERE):
        if rows := source.of_streams(("hash", "recorded_at"), query, numbers):
            break
    else:
        raise LogIntegrityError(seal_id, "is missing, though it was noted earlier", is_missing=True)
    if bytes(rows[0][0]).hex() != digest:
        raise LogIntegrityError(seal_id, "has another hash than was noted earlier")
    recorded: datetime = rows[0][1]
    return recorded
