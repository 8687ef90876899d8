"""The parts of the log: `log_event` is partitioned by the number of an event.

Parts are made ahead, so that no writer waits for one. The total order is (epoch, txid, seq), and numbers are drawn
while transactions run, so a part does not end where the next begins: a transaction may draw a number of an old part and
commit late. A part is closed when all of its numbers are drawn and no transaction is at work that may have drawn one;
then its last position is noted, and the highest number up to there. Whoever reads on in the order needs the parts of
one `stretch` at a time: those before it have no later event, those behind it no earlier one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from django.conf import settings
from django.db import connection, transaction

from ingest.db import database
from ingest.log.types import Position

SIZE = 10_000_000
"""Numbers of a part, unless DOSSIER_LOG_PART says otherwise: about 10 GB of alerts and incidents."""
AHEAD = 2
"""Empty parts behind the one that is being written."""
REMEMBERED = 60.0
"""Seconds until a process looks again which parts are closed; one that was closed since is read in vain."""


@dataclass(frozen=True, slots=True)
class Part:
    """Numbers from `first` on, below `until`. Once it is closed, `last` is its last position, and no event up to there
    has a higher number than `reach`."""

    first: int
    until: int
    last: Position | None
    reach: int

    @property
    def table(self) -> str:
        return f"log_event_p{self.first}"


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
        # A statement of its own: whoever drew a number up to there has its id in this snapshot or is done.
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


def parts() -> list[Part]:
    """All of them, the oldest first."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT first, until, last_epoch, last_txid::text, last_seq, reach FROM log_part ORDER BY first"
        )
        return [
            Part(first, until, None if reach is None else Position(epoch, int(txid), seq), reach or 0)
            for first, until, epoch, txid, seq, reach in cursor.fetchall()
        ]


def empty() -> int:
    """Number of parts that have not been begun."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM log_part, log_event_number WHERE first > last_value")
        return int(cursor.fetchone()[0])


_known: dict[str, tuple[float, list[Part]]] = {}  # by database


@dataclass(frozen=True, slots=True)
class Stretch:
    """A piece of the total order, from a position up to `end` (inclusive; None: to the end of the log): its events have
    numbers from `low` to `high`."""

    low: int
    high: int | None
    end: Position | None


def stretch(after: Position) -> Stretch:
    """The piece that follows a position."""
    known_as, now = database.name(), time.monotonic()
    looked, closed = _known.get(known_as, (float("-inf"), []))
    if now - looked > REMEMBERED:
        closed = [part for part in parts() if part.last is not None]
        _known[known_as] = (now, closed)
    low = 0
    for part in closed:
        if part.first != low or part.last is None:
            break
        if part.last > after:
            return Stretch(low, part.reach, part.last)
        low = part.until
    return Stretch(low, None, None)


def floor(after: Position) -> int:
    """A number below which no event stands after this position."""
    return stretch(after).low
