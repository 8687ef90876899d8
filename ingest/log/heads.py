"""Heads of streams (`log_stream`), which repeat what the events say: compared with them, and written anew."""

from __future__ import annotations

from django.db import connection, transaction

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
    with connection.cursor() as cursor:
        cursor.execute(f"{_DIFFERING} LIMIT 1")
        if (differing := cursor.fetchone()) is not None:
            stream, version, known = differing
            if version is None:
                raise LogIntegrityError(
                    f"{stream}@{known}", "is missing, though it is the head of its stream"
                )
            raise LogIntegrityError(f"{stream}@{version}", "is the last of its stream, but not its head")
        cursor.execute("SELECT count(*) FROM log_stream")
        return int(cursor.fetchone()[0])


def rebuild_heads() -> bool:
    """Write those heads anew that differ from their events; whether any did. Appends go on."""
    with connection.cursor() as cursor:
        cursor.execute(_DIFFERING)
        streams = [stream for stream, *_ in cursor.fetchall()]
    return sum(map(_rebuild, streams)) > 0


@transaction.atomic
def _rebuild(stream: str) -> bool:
    with connection.cursor() as cursor:
        # Whoever appends to the stream waits; what was appended meanwhile is in the head, and read with it.
        columns = "version, hash, epoch, txid::text, seq, first_seq"
        cursor.execute(f"SELECT {columns} FROM log_stream WHERE stream = %s FOR UPDATE", (stream,))
        before = cursor.fetchone()
        cursor.execute("DELETE FROM log_stream WHERE stream = %s", (stream,))
        cursor.execute(
            "INSERT INTO log_stream (stream, version, hash, epoch, txid, seq, first_seq)"
            f" {_HEADS.format('WHERE stream = %s')} RETURNING {columns}",
            (stream,),
        )
        return bool(cursor.fetchone() != before)
