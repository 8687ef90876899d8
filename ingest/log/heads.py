"""Heads of streams (`log_stream`), which repeat what the events say: compared with them, and written anew."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from itertools import groupby, repeat
from typing import Any

from django.db import connection, transaction

from ingest.log import source
from ingest.log.verify import LogIntegrityError

_HEADS = """
SELECT stream, max(version) AS version, (array_agg(hash ORDER BY version DESC))[1] AS hash,
    (array_agg(epoch ORDER BY version DESC))[1] AS epoch, (array_agg(txid ORDER BY version DESC))[1] AS txid,
    max(seq) AS seq, min(seq) AS first_seq
FROM log_event {} GROUP BY stream
"""
_DIFFERING = f"""
SELECT coalesce(event.stream, head.stream), event.version, head.version
FROM ({_HEADS.format("")}) AS event FULL JOIN log_stream AS head ON head.stream = event.stream
WHERE (event.version, event.hash, event.epoch, event.txid, event.seq, event.first_seq)
    IS DISTINCT FROM (head.version, head.hash, head.epoch, head.txid, head.seq, head.first_seq)
ORDER BY 1
"""


def check_heads() -> int:
    """Number of streams. Raises LogIntegrityError for the first whose head is not that of its last event."""
    for stream, version, known in _differing():
        if version is None:
            raise LogIntegrityError(f"{stream}@{known}", "is missing, though it is the head of its stream")
        raise LogIntegrityError(f"{stream}@{version}", "is the last of its stream, but not its head")
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM log_stream")
        return int(cursor.fetchone()[0])


def rebuild_heads() -> bool:
    """Write those heads anew that differ from their events; whether any did. Appends go on."""
    streams = [stream for stream, *_ in _differing()]
    return sum(map(_rebuild, streams)) > 0


def _differing() -> Iterator[tuple[str, int | None, int | None]]:
    """Streams whose head is not what their events say, with the version of their last event and that of their head."""
    if files := source.cold_files():
        yield from _differing_with_files(files)
        return
    with connection.cursor() as cursor:
        cursor.execute(_DIFFERING)
        yield from cursor.fetchall()


def _differing_with_files(files: Sequence[str]) -> Iterator[tuple[str, int | None, int | None]]:
    """As `_differing`: heads by the files, by Postgres and as they are known, side by side in the order of streams."""
    from ingest.log import cold  # brings pyarrow

    with transaction.atomic(), connection.chunked_cursor() as events, connection.chunked_cursor() as known:
        hot = f"WHERE seq >= {source.hot_from()}"
        columns = ", ".join(cold.HEADS)
        events.execute(f'SELECT {columns} FROM ({_HEADS.format(hot)}) AS hot ORDER BY stream COLLATE "C"')
        known.execute(f'SELECT {columns} FROM log_stream ORDER BY stream COLLATE "C"')
        sides = (cold.heads(files), source.fetched(events), source.fetched(known))
        marked = [zip(repeat(side), rows) for side, rows in enumerate(sides)]
        together = heapq.merge(*marked, key=lambda one: (one[1][0], one[0]))
        for stream, rows in groupby(together, key=lambda one: one[1][0]):
            by_side = {side: _comparable(row) for side, row in rows}
            first, second, head = (by_side.get(side) for side in range(3))
            combined = (*second[:-1], first[-1]) if first and second else second or first
            if combined != head:
                yield stream, combined[1] if combined else None, head[1] if head else None


def _comparable(row: Sequence[Any]) -> tuple[Any, ...]:
    stream, version, digest, epoch, txid, seq, first_seq = row
    return stream, version, bytes(digest), epoch, str(txid), seq, first_seq


@transaction.atomic
def _rebuild(stream: str) -> bool:
    with connection.cursor() as cursor:
        # Whoever appends to the stream waits; what was appended meanwhile is in the head, and read with it.
        columns = "stream, version, hash, epoch, txid::text, seq, first_seq"
        cursor.execute(f"SELECT {columns} FROM log_stream WHERE stream = %s FOR UPDATE", (stream,))
        before = cursor.fetchone()
        rows = source.of_streams(source.LINK, source.Query(streams=[stream]), source.EVERYWHERE)
        after = (*rows[-1], min(row[-1] for row in rows)) if rows else None
        cursor.execute("DELETE FROM log_stream WHERE stream = %s", (stream,))
        if after is not None:
            cursor.execute(
                "INSERT INTO log_stream (stream, version, hash, epoch, txid, seq, first_seq)"
                " VALUES (%s, %s, %s, %s, %s::text::xid8, %s, %s)",
                after,
            )
        return (before and _comparable(before)) != (after and _comparable(after))
