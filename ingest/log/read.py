"""Reading the log, by plain SQL through Django's connection: streams, positions, and followers.

Order. Every event carries (epoch, txid, seq): the stay in a cluster, the 64-bit id of its transaction, and
a number from a sequence. Transactions commit in another order than they got their ids, so a reader that
remembered the highest id it saw would skip what commits late. `read_all` therefore stays below the
watermark: the oldest transaction id still at work (`pg_snapshot_xmin`). All below it is settled for ever.

Followers see every event of some types once, in the total order. A follower's place is a row. `run_once` takes its
lock, reads on from it below the watermark, hands the events over and writes the new place, all in one transaction:
effects in this database happen exactly once. A handler that raises keeps its place and is tried again later; others
go on. Any number of processes may run the same followers: whoever finds one taken passes by.

A handler's transaction holds the watermark back while it runs, as every writing transaction does: keep it
short, and reach the outside world (mail, HTTP) from elsewhere.
"""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, islice
from typing import Any

import structlog
from django.db import DatabaseError, InterfaceError, connection, transaction
from prometheus_client import Counter

from ingest import heartbeat
from ingest.db import database
from ingest.log import source, takeover
from ingest.log.append import CHANNEL
from ingest.log.types import Event, Head, Position, find, read_body, upcast

# Streams and positions
# ----------------------------------------------------------------------------------------------------------
_AGE = """
SELECT extract(epoch FROM greatest(
    (SELECT max(clock_timestamp() - xact_start) FROM pg_stat_activity WHERE backend_xid IS NOT NULL),
    (SELECT max(clock_timestamp() - prepared) FROM pg_prepared_xacts),
    (SELECT clock_timestamp() - recorded_at FROM log_event
     WHERE (epoch, txid, seq) >= (log_live_epoch(), pg_snapshot_xmin(pg_current_snapshot()), 0)
     ORDER BY epoch, txid, seq LIMIT 1)
))
"""


def head(stream: str) -> Head:
    """Head of the stream; `Head.NEW` when it has no event."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT version, hash FROM log_stream WHERE stream = %s", (stream,))
        row = cursor.fetchone()
    return Head(row[0], bytes(row[1])) if row else Head.NEW


def heads(streams: Sequence[str]) -> dict[str, Head]:
    """As `head`, of several streams with one statement."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT stream, version, hash FROM log_stream WHERE stream = ANY(%s)", (list(streams),)
        )
        found = {stream: Head(version, bytes(digest)) for stream, version, digest in cursor.fetchall()}
    return {stream: found.get(stream, Head.NEW) for stream in streams}


def read_stream(stream: str, after_version: int = 0, upto: Position | None = None) -> list[Event]:
    """The events of one stream in order of version, as committed (and as this transaction sees them)."""
    query = source.Query(streams=[stream], after_version=after_version, upto=upto)
    return [_event(row) for row in source.of_streams(source.COLUMNS, query)]


def read_last(stream: str) -> Event | None:
    """The newest event of one stream, None when it has none. Reads at its number: no older part is looked into."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT version, seq FROM log_stream WHERE stream = %s", (stream,))
        if (row := cursor.fetchone()) is None:
            return None
    version, seq = row
    found = source.of_streams(source.COLUMNS, source.Query(streams=[stream], versions=[version]), (seq, seq))
    return _event(found[0])


def read_versions(stream: str, versions: Sequence[int]) -> list[Event]:
    """Some events of one stream, in order of version; versions that it has not are left out."""
    query = source.Query(streams=[stream], versions=versions)
    return [_event(row) for row in source.of_streams(source.COLUMNS, query)]


def read_streams(streams: Sequence[str], upto: Position | None = None) -> dict[str, list[Event]]:
    """The events of several streams (up to a position), each in order of version; those without any are left out."""
    rows = source.of_streams(source.COLUMNS, source.Query(streams=streams, upto=upto))
    read = map(_event, rows)
    return {stream: list(events) for stream, events in groupby(read, key=lambda event: event.stream)}


def begun(streams: Sequence[str], upto: Position) -> set[str]:
    """Those of the streams that had begun at a position."""
    rows = source.of_streams(("stream",), source.Query(streams=streams, versions=[1], upto=upto))
    return {stream for (stream,) in rows}


def read_newest(streams: Sequence[str], upto: Position | None = None) -> list[Event]:
    """The newest event of each of these streams, up to a position, of those that have one; in the total order."""
    rows = source.newest(source.COLUMNS, streams, upto)
    return sorted(map(_event, rows), key=lambda event: event.position)


# Events in the total order
# ----------------------------------------------------------------------------------------------------------
def read_transaction(epoch: int, txid: int) -> list[Event]:
    """All that one transaction recorded, in order; also above the watermark."""
    return [_event(row) for row in source.of_transaction(source.COLUMNS, epoch, txid)]


def read_all(
    after: Position, limit: int, types: Collection[str] | None = None, upto: Position | None = None
) -> list[Event]:
    """Up to `limit` events after a position, in the total order, only from below the watermark.

    Going on from the last event's position never skips or repeats one, whatever commits in between.
    """
    query = source.Query(after=after, upto=upto, types=types, settled=True)
    return [_event(row) for row in source.in_order(source.COLUMNS, query, limit)]


def _event(row: Sequence[Any]) -> Event:
    (
        stream, version, name, schema, text, actor, cause, trace, occurred_at, recorded_at,
        digest, epoch, txid, seq,
    ) = row  # fmt: skip
    newest = find(name).schema
    body = read_body(text)
    if schema != newest:
        body = upcast(name, schema, body)
    return Event(
        stream, version, name, newest, body, actor, cause, trace, occurred_at, recorded_at,
        Position(epoch, int(txid), seq), bytes(digest),
    )  # fmt: skip


def watermark() -> Position:
    """All events below are settled: no event will ever be added there. Readers see what lies below, no
    more."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT log_live_epoch(), pg_snapshot_xmin(pg_current_snapshot())::text")
        epoch, txid = cursor.fetchone()
    return Position(epoch, int(txid), 0)


def watermark_age() -> float:
    """Seconds since the oldest writing transaction of the cluster began, or since the oldest event that
    readers cannot see yet was recorded, whichever is longer; 0 when the log is settled to its end.

    Transactions of other roles show only to members of pg_monitor; the second term needs no privilege.
    """
    with connection.cursor() as cursor:
        cursor.execute(_AGE)
        (seconds,) = cursor.fetchone()
    return max(0.0, float(seconds or 0))


def moment_of(position: Position) -> datetime | None:
    """Time of the record of the last event up to a position; None where there is none."""
    row = source.last(("recorded_at", "epoch", "txid", "seq"), upto=position)
    return row[0] if row else None


def position_at(moment: datetime) -> Position:
    """The position of the last event recorded up to `moment`; `Position.START` when there is none.

    Looks backwards from the end of the log: the time it takes grows with the events recorded since.
    """
    row = source.last(("epoch", "txid", "seq"), recorded_until=moment)
    return source.position_of(row) if row else Position.START


# Followers
# ----------------------------------------------------------------------------------------------------------
FIRST_RETRY = 1.0  # seconds; doubles with each failure
LONGEST_RETRY = 300.0
POLL = 1.0  # seconds between looks when nothing wakes us: the back-stop for a lost notification
ALERT = 0.5  # seconds after a sign of life in which we look again every ALERT_POLL
ALERT_POLL = 0.02
LONGEST_PAUSE = 30.0  # seconds between attempts to reach the database
LONGEST_ERROR = 4000  # characters
BATCH = 500
"""Events of a batch."""
MOST_TOGETHER = 2_000
"""Events of a batch of which no more than BATCH are of other types than those that are handled together."""
LONGEST_BATCH = 120.0  # seconds for one batch, after which this loop counts as hanging

log = structlog.get_logger("follow")
HANDLED = Counter("dossier_log_handled_events", "Events handled by followers in this process", ["follower"])
FAILED = Counter("dossier_log_follower_failures", "Failed runs of followers in this process", ["follower"])


@dataclass(frozen=True, slots=True)
class Follower:
    """`handle` gets events of `types`, in order, at most a batch at a time, inside a transaction.

    `together`: types of which it handles many in about as many statements as one; a batch takes MOST_TOGETHER of them.
    """

    name: str
    types: frozenset[str]
    handle: Callable[[list[Event]], None]
    together: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Place:
    """Position of a follower. `attempts` counts its failures since it last moved."""

    name: str
    position: Position
    moved_at: datetime
    attempts: int
    error: str | None
    retry_at: datetime | None


class FollowerError(Exception):
    """Events could not be read, or the handler raised; the transaction is rolled back. The cause is what was raised.

    They are up to `count` events; `first` is the id of the first one, None where it could not be read.
    """

    def __init__(self, count: int, first: str | None) -> None:
        super().__init__(f"failed on {count} events from {first or 'one that cannot be read'}")
        self.count = count
        self.first = first


_followers: dict[str, Follower] = {}


def register_follower(follower: Follower) -> Follower:
    """Have `manage.py follow` run it. Its name is permanent: its place is kept under it."""
    known = _followers.setdefault(follower.name, follower)
    if known != follower:
        raise ValueError(f"follower {follower.name} is registered twice, differently")
    return follower


def registered_followers() -> tuple[Follower, ...]:
    return tuple(_followers[name] for name in sorted(_followers))


def places() -> list[Place]:
    """Positions of all followers that ever ran, by name."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT name, epoch, txid::text AS txid_text, seq, moved_at, attempts, error, retry_at"
            " FROM log_follower ORDER BY name"
        )
        rows = cursor.fetchall()
    return [Place(name, Position(epoch, int(txid), seq), *rest) for name, epoch, txid, seq, *rest in rows]


def lags() -> dict[str, float]:
    """Seconds since the oldest event that each follower has not passed yet was recorded; 0 when there is none.

    That event is not read: it may be of a type that this version does not know.
    """
    found = dict[str, float]()
    for place in places():
        query = source.Query(after=place.position, settled=True)
        waiting = source.in_order(("recorded_at", "epoch", "txid", "seq"), query, 1)
        found[place.name] = max(0.0, (database.now() - waiting[0][0]).total_seconds()) if waiting else 0.0
    return found


def run_once(follower: Follower, limit: int | None = None) -> int:
    """Hand the follower its next batch, of up to `limit` events where that is given; the number of events it handled.

    0 when there is nothing new, when it waits for its next attempt or when another process is at it. A
    batch that fails is cut in halves until a single event fails, so that all before it are done and the
    culprit is recorded.
    """
    attempts = _due(follower)
    if attempts is None:
        return 0
    if limit is None:
        limit = MOST_TOGETHER if follower.together else BATCH
    if attempts:
        limit = 1
    while True:
        try:
            return _advance(follower, limit)
        except FollowerError as failure:
            if failure.count == 1:
                _record_failure(follower, failure)
                return 0
            limit = failure.count // 2


def _due(follower: Follower) -> int | None:
    """Number of failures since it last moved, or None when there is nothing to do. Reads only: costs no xid."""
    with connection.cursor() as cursor:
        cursor.execute(
            # No failure waits for longer than LONGEST_RETRY: the clock was set back since.
            "SELECT attempts, coalesce(NOT retry_at BETWEEN clock_timestamp()"
            " AND clock_timestamp() + %s * interval '1 second', true), epoch, txid::text, seq"
            " FROM log_follower WHERE name = %s",
            (LONGEST_RETRY + 1, follower.name),
        )
        row = cursor.fetchone()
        if row is None:
            cursor.execute(
                "INSERT INTO log_follower (name) VALUES (%s) ON CONFLICT DO NOTHING", (follower.name,)
            )
            return 0
        attempts, due, epoch, txid, seq = row
        if not due:
            return None
        place = Position(epoch, int(txid), seq)
        if source.is_cold(place):
            return int(attempts)
        # A statement of its own: the place, written out, spares Postgres the look at parts before it.
        cursor.execute(
            "SELECT EXISTS (SELECT 1 FROM log_event WHERE (epoch, txid, seq) > (%s, %s::xid8, %s)"
            f" AND {source.BELOW_WATERMARK} AND seq >= %s)",
            (epoch, txid, seq, source.floor(place)),
        )
        return int(attempts) if cursor.fetchone()[0] else None


def _advance(follower: Follower, limit: int) -> int:
    with transaction.atomic(), connection.cursor() as cursor:
        # An advisory lock, because a row lock would give the transaction its id here: what another writer commits
        # to a stream while the handler waits for it would then stand after the handler's events in the total order.
        # A statement of its own, so that the place is read as the last holder of the lock left it.
        cursor.execute(
            "SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))", (f"follower {follower.name}",)
        )
        if not cursor.fetchone()[0]:
            return 0
        cursor.execute("SELECT epoch, txid::text, seq FROM log_follower WHERE name = %s", (follower.name,))
        row = cursor.fetchone()
        if row is None:
            return 0
        place = Position(row[0], int(row[1]), row[2])
        # What the follower is not interested in is passed over too, else it would be scanned again each time.
        mark = watermark()
        with _failing(limit, None):
            waiting = read_all(place, limit, follower.types, upto=mark)
        events = _batch(waiting, follower.together)
        cut = len(waiting) == limit or len(events) < len(waiting)
        reached = events[-1].position if cut else max(mark, place)
        if events:
            with _failing(len(events), events[0].id):
                follower.handle(events)
        cursor.execute(
            "UPDATE log_follower SET epoch = %s, txid = %s::xid8, seq = %s, moved_at = clock_timestamp(),"
            " attempts = 0, error = NULL, retry_at = NULL WHERE name = %s",
            (reached.epoch, str(reached.txid), reached.seq, follower.name),
        )
    HANDLED.labels(follower.name).inc(len(events))
    return len(events)


def _batch(waiting: list[Event], together: Collection[str]) -> list[Event]:
    """The events up to the one after BATCH of types that are handled one by one."""
    alone = (place for place, event in enumerate(waiting) if event.type not in together)
    end = next(islice(alone, BATCH, None), len(waiting))
    return waiting[:end]


@contextmanager
def _failing(count: int, first: str | None) -> Iterator[None]:
    """Raises FollowerError for whatever is raised but the loss of the connection, on which the loop connects again."""
    try:
        yield
    except Exception as error:  # the shell around a handler, as a task is around its function
        if database.is_lost(error):
            raise
        raise FollowerError(count, first) from error


def _record_failure(follower: Follower, failure: FollowerError) -> None:
    cause = failure.__cause__
    error = f"{failure.first or 'the next event'}: {type(cause).__name__}: {cause}"
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE log_follower SET attempts = attempts + 1, error = %s,"
            " retry_at = clock_timestamp() + least(%s * 2 ^ least(attempts, 20), %s) * interval '1 second'"
            " WHERE name = %s",
            (error.replace("\0", "\\0")[:LONGEST_ERROR], FIRST_RETRY, LONGEST_RETRY, follower.name),
        )
    FAILED.labels(follower.name).inc()
    log.error("follower failed", follower=follower.name, event_id=failure.first, exc_info=cause)


def run_followers(
    stop: threading.Event, followers: Iterable[Follower] | None = None, poll: float = POLL
) -> None:
    """Run followers (default: all registered ones) until `stop` is set; finishes the batch at hand.

    Survives a database that goes away: it connects again, waiting longer each time.
    """
    chosen = registered_followers() if followers is None else tuple(followers)
    for follower in chosen:
        for name in follower.types:
            find(name)
    pause = FIRST_RETRY
    while not stop.is_set():
        heartbeat.progress("followers", LONGEST_BATCH)
        try:
            with _Doorbell() as doorbell:
                pause = FIRST_RETRY
                _serve(stop, chosen, poll, doorbell)
        except (DatabaseError, InterfaceError) as error:
            if not database.is_away(error):
                raise
            log.warning("database away", error=str(error).strip(), seconds=pause)
            connection.close()
            stop.wait(pause)
            pause = min(pause * 2, LONGEST_PAUSE)


def _serve(stop: threading.Event, followers: tuple[Follower, ...], poll: float, doorbell: _Doorbell) -> None:
    alert_until = time.monotonic() + ALERT
    looked = -poll
    while not stop.is_set():
        if time.monotonic() - looked >= poll:
            takeover.end_forsaken()
            looked = time.monotonic()
        handled = 0
        for follower in followers:
            heartbeat.progress("followers", LONGEST_BATCH)
            handled += 0 if stop.is_set() else run_once(follower)
        if handled:
            alert_until = time.monotonic() + ALERT
            continue
        if doorbell.wait(ALERT_POLL if time.monotonic() < alert_until else poll):
            alert_until = time.monotonic() + ALERT


class _Doorbell:
    """A connection of its own that LISTENs. Behind a transaction pooler it needs a direct way to the
    server."""

    def __enter__(self) -> _Doorbell:
        self._wrapper = connection.copy()
        self._wrapper.ensure_connection()
        self._wrapper.set_autocommit(True)
        with self._wrapper.cursor() as cursor:
            cursor.execute(f"LISTEN {CHANNEL}")
        self._listener = self._wrapper.connection
        return self

    def __exit__(self, *_: object) -> None:
        self._wrapper.close()

    def wait(self, seconds: float) -> bool:
        """Whether it rang within so many seconds."""
        if not self._listener.notifies:
            readable, _, _ = select.select([self._listener], [], [], seconds)
            if readable:
                with self._wrapper.wrap_database_errors:
                    self._listener.poll()
        rang = bool(self._listener.notifies)
        self._listener.notifies.clear()
        return rang
