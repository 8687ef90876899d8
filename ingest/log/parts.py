"""The parts of the log: `log_event` is partitioned by the number of an event.

Parts are made ahead, so that no writer waits for one. The total order is (epoch, txid, seq), and numbers are drawn
while transactions run, so a part does not end where the next begins: a transaction may draw a number of an old part and
commit late. A part is closed when all of its numbers are drawn and no transaction is at work that may have drawn one;
then its last position is noted, and the highest number up to there. Whoever reads on in the order needs the parts of
one `stretch` at a time: those before it have no later event, those behind it no earlier one.
"""

from __future__ import annotations

from django.conf import settings
from django.db import connection, transaction

SIZE = 10_000_000
"""Numbers of a part, unless DOSSIER_LOG_PART says otherwise: about 10 GB of alerts and incidents."""
AHEAD = 2
"""Empty parts behind the one that is being written."""


def size() -> int:
    """Numbers of a part that is made now."""
    return int(getattr(settings, "LOG_PART", SIZE))


def maintain() -> int:
    """Make parts ahead and close those that are full; how many were made. Not inside a transaction."""
    made = make()
    _close()
    return made


def make(ahead: int = AHEAD) -> int:
    """Make parts until so many are empty; how many were made."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT log_make_parts(%s, %s)", (size(), ahead))
        return int(cursor.fetchone()[0])


def _close() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT last_value FROM log_event_number")
        (reached,) = cursor.fetchone()
        # A statement of its own: each writer with a number up to there has its id in this snapshot or is done.
        cursor.execute(
            "UPDATE log_part SET full_epoch = log_live_epoch(), full_at = pg_snapshot_xmax(pg_current_snapshot())"
            " WHERE full_at IS NULL AND until <= %s + 1",
            (reached,),
        )
        cursor.execute(
            "UPDATE log_part SET (last_epoch, last_txid, last_seq) = (SELECT epoch, txid, seq FROM ("
            " SELECT epoch, txid, seq FROM log_event WHERE seq >= first AND seq < until"
            " UNION ALL SELECT 0, '0'::xid8, 0) AS event ORDER BY epoch DESC, txid DESC, seq DESC LIMIT 1)"
            " WHERE last_seq IS NULL"
            " AND (full_epoch, full_at) <= (log_live_epoch(), pg_snapshot_xmin(pg_current_snapshot()))"
        )
        cursor.execute(
            "UPDATE log_part SET reach = greatest(until - 1, (SELECT max(seq) FROM log_event WHERE seq >= until"
            " AND (epoch, txid, seq) <= (last_epoch, last_txid, last_seq)))"
            " WHERE last_seq IS NOT NULL AND reach IS NULL"
        )


def empty() -> int:
    """Number of parts that have not been begun."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM log_part, log_event_number WHERE first > last_value")
        return int(cursor.fetchone()[0])
