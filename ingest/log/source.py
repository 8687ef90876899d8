"""Events out of the parts of the log, wherever these lie: in Postgres, or in files (`ingest.log.cold`).

Old parts are moved into files from the oldest on, so that one number divides the log: events below it are read from
files, the others from Postgres. A process knows that number for REMEMBERED seconds at most, and Postgres keeps a part
that is in files for READERS_GONE_AFTER, so that every reader finds each event in one of the two, once.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.backends.utils import CursorWrapper

from ingest.db import database
from ingest.log.types import Position

REMEMBERED = 60.0
"""Seconds until a process looks again which parts are closed or in files; one that was closed since is read in vain."""
READERS_GONE_AFTER = timedelta(minutes=10)
"""Time until a part that is in files leaves Postgres."""
_TRUSTED = READERS_GONE_AFTER.total_seconds() / 2
"""Seconds for which what a query of Postgres was based on is surely true."""

COLUMNS = (
    "stream", "version", "type", "schema", "body", "actor", "cause", "trace", "occurred_at", "recorded_at", "hash",
    "epoch", "txid", "seq",
)  # fmt: skip
"""Columns of an event."""
LINK = ("stream", "version", "hash", "epoch", "txid", "seq")
"""Columns that seals are about."""
BELOW_WATERMARK = "(epoch, txid, seq) < (log_live_epoch(), pg_snapshot_xmin(pg_current_snapshot()), 0)"
IN_ORDER = "ORDER BY log_event.epoch, log_event.txid, log_event.seq"

Row = tuple[Any, ...]


# Parts (`parts` makes and closes them, `move` moves them)
# ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Part:
    """Numbers from `first` on, below `until`. Once it is closed, `last` is its last position, and no event up to there
    has a higher number than `reach`. `file` is where it lies once it has been moved."""

    first: int
    until: int
    last: Position | None
    reach: int
    file: str | None = None

    @property
    def table(self) -> str:
        return f"log_event_p{self.first}"


@dataclass(frozen=True, slots=True)
class _Parts:
    """The closed parts from the first of the log on, the first numbers of all parts, and when somebody looked. Below
    `hot` they are in files."""

    closed: tuple[Part, ...] = ()
    firsts: tuple[int, ...] = ()
    looked: float = float("-inf")
    hot: int = 0

    @property
    def cold(self) -> tuple[Part, ...]:
        return tuple(part for part in self.closed if part.file is not None)


def parts() -> list[Part]:
    """All of them, the oldest first."""
    return _look()[0]


def _look() -> tuple[list[Part], float]:
    """All parts, and the time of which that is true."""
    now = time.monotonic()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT log_part.first, until, last_epoch, last_txid::text, last_seq, reach,"
            " CASE WHEN state <> 'writing' THEN file END,"
            " extract(epoch FROM clock_timestamp() - transaction_timestamp())::float8"
            " FROM log_part LEFT JOIN log_cold ON log_cold.first = log_part.first ORDER BY log_part.first"
        )
        rows = cursor.fetchall()
    found = [
        Part(first, until, None if reach is None else Position(epoch, int(txid), seq), reach or 0, file)
        for first, until, epoch, txid, seq, reach, file, _ in rows
    ]
    # A transaction may see all as it was when it began.
    return found, now - (rows[0][-1] if rows else 0.0)


_known: dict[str, _Parts] = {}  # by database


def _parts() -> _Parts:
    known = _known.get(database.name())
    if known is None or time.monotonic() - known.looked > REMEMBERED:
        known = _refreshed()
    return known


def _refreshed() -> _Parts:
    found, looked = _look()
    closed = list[Part]()
    hot = 0
    for part in found:
        if part.last is None or part.first != (closed[-1].until if closed else 0):
            break
        closed.append(part)
        if part.file is not None:
            hot = part.until
    known = _known[database.name()] = _Parts(tuple(closed), tuple(part.first for part in found), looked, hot)
    return known


def forget() -> None:
    """Look again, next time, which parts are closed and which are in files."""
    _known.clear()


def hot_from() -> int:
    """Number below which all events are in files."""
    return _parts().hot


@dataclass(frozen=True, slots=True)
class Stretch:
    """A piece of the total order, from a position up to `end` (inclusive; None: to the end of the log): its events have
    numbers from `low` to `high`."""

    low: int
    high: int | None
    end: Position | None


def stretch(after: Position) -> Stretch:
    """The piece that follows a position."""
    low = 0
    for part in _parts().closed:
        if part.last is not None and part.last > after:
            return Stretch(low, part.reach, part.last)
        low = part.until
    return Stretch(low, None, None)


def floor(after: Position) -> int:
    """A number below which no event stands after this position."""
    return stretch(after).low


def is_cold(after: Position) -> bool:
    """Whether the next event after a position is in a file."""
    return stretch(after).low < hot_from()


# Events
# ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Query:
    """Events for which all of this holds. `settled`: below the watermark. Numbers lie from `low` to `high`."""

    streams: Sequence[str] | None = None
    versions: Sequence[int] | None = None
    after_version: int = 0
    after: Position | None = None
    upto: Position | None = None
    types: Collection[str] | None = None
    settled: bool = False
    low: int = 0
    high: int | None = None


def of_streams(columns: Sequence[str], query: Query, numbers: tuple[int, int] | None = None) -> list[Row]:
    """Events of the streams that the query names, by stream and version.

    Only those parts are read that may hold events of the streams: a condition on the number, written out, spares
    Postgres even the look at the others. `numbers` are the bounds, by default what the heads of the streams say.
    `columns` name the stream where the query names several.
    """
    if (bounds := numbers or _numbers_of(query.streams or ())) is None:
        return []
    first, last = bounds
    while True:
        known = _parts()
        hot = list[Row]()
        if last >= known.hot:
            where, values = _conditions(query)
            where += f" AND seq BETWEEN {max(first, known.hot)} AND {last}"
            sql = f"SELECT {_named(columns)} FROM log_event WHERE {where} ORDER BY stream, version"
            hot = _executed(sql, values)
        found = list[Row]()
        if first < known.hot and not _begins(hot, columns, query):
            found = _streams_in_files(known, columns, query, (first, last))
        # Each stream goes on in Postgres where it ends in the files.
        found += hot
        if hot and len(found) > len(hot) and len(query.streams or ()) > 1:
            place = columns.index("stream")
            found.sort(key=lambda row: row[place])
        if _is_true(known):
            return found


def _begins(found: Sequence[Row], columns: Sequence[str], query: Query) -> bool:
    """Whether events of one stream begin with the lowest version that is wanted: no older part has more of them."""
    if "version" not in columns or len(query.streams or ()) != 1:
        return False
    place, lowest = columns.index("version"), min(query.versions or (), default=query.after_version + 1)
    return any(row[place] == lowest for row in found)


EVERYWHERE = (0, 2**63 - 1)
"""Numbers of all events."""


def _numbers_of(streams: Sequence[str]) -> tuple[int, int] | None:
    """The lowest and the highest number of the events of these streams."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT min(first_seq), max(seq) FROM log_stream WHERE stream = ANY(%s)", (list(streams),)
        )
        first, last = cursor.fetchone()
    return None if first is None else (first, last)


def _streams_in_files(
    known: _Parts, columns: Sequence[str], query: Query, numbers: tuple[int, int]
) -> list[Row]:
    from ingest.log import cold  # brings pyarrow

    wanted = tuple(dict.fromkeys((*columns, *LINK)))
    streams, upto = query.streams or (), query.upto
    found = list[Row]()
    for part in reversed(known.cold):
        if part.file is not None and part.first <= numbers[1] and part.until > numbers[0]:
            found += cold.of_streams(part.file, wanted, streams, query.versions, query.after_version)
            if _begins(found, wanted, query):
                break
    places = [wanted.index(name) for name in ("stream", "version", "epoch", "txid", "seq")]
    found.sort(key=lambda row: (row[places[0]], row[places[1]]))
    if upto is not None or query.after is not None:
        after = query.after or Position(-1, 0, 0)
        epoch, txid, seq = places[2:]
        found = [
            row
            for row in found
            if after < (at := Position(row[epoch], int(row[txid]), row[seq])) and (upto is None or at <= upto)
        ]
    return [row[: len(columns)] for row in found]


def in_order(columns: Sequence[str], query: Query, limit: int) -> list[Row]:
    """Events, up to `limit` of them, in the total order; read one `stretch` after the other. `columns` end with those
    of a position."""
    found: list[Row] = []
    after, upto = query.after or Position.START, query.upto
    while True:
        piece = stretch(after)
        end = upto if piece.end is None or (upto is not None and upto <= piece.end) else piece.end
        # Numbers written out spare Postgres the look at other parts of the log.
        part = replace(query, after=after, upto=end, low=piece.low, high=piece.high)
        found += _in_piece(columns, part, limit - len(found))
        if len(found) == limit or end == upto:
            return found
        after = end or after


def of_transaction(columns: Sequence[str], epoch: int, txid: int) -> list[Row]:
    """Events that one transaction recorded, in order. `columns` end with those of a position."""
    after, upto = Position(epoch, txid, -1), Position(epoch, txid, 2**63 - 1)
    return _in_piece(columns, Query(after=after, upto=upto, low=floor(after)), None)


def _in_piece(columns: Sequence[str], query: Query, limit: int | None) -> list[Row]:
    if tuple(columns[-3:]) != ("epoch", "txid", "seq"):
        raise ValueError("the last columns are to be epoch, txid, seq")
    while True:
        known = _parts()
        found = list[Row]()
        if query.low < known.hot:
            found = _order_in_files(known, columns, query, limit)
        if query.high is None or query.high >= known.hot:
            hot = _order_in_postgres(known, columns, query, limit)
            found = sorted([*found, *hot], key=_position)[:limit] if found else hot
        if _is_true(known):
            return found


def _order_in_postgres(known: _Parts, columns: Sequence[str], query: Query, limit: int | None) -> list[Row]:
    """One statement, with one snapshot, in which each part is read for itself: along its index, as far as the limit.

    Of several parts at once Postgres expects few events after a position (it counts epochs only), so it would fetch
    and sort all that follow.
    """
    where, values = _conditions(query)
    low = max(query.low, known.hot)
    begins = [low]
    if limit is not None:
        begins += [one for one in known.firsts if low < one and (query.high is None or one <= query.high)]
    limited = "" if limit is None else f" LIMIT {limit:d}"
    reads = list[str]()
    for begin, end in zip(begins, [*(one - 1 for one in begins[1:]), query.high], strict=True):
        bounds = f" AND seq >= {begin}" + ("" if end is None else f" AND seq <= {end}")
        reads.append(f"(SELECT {_named(columns)} FROM log_event WHERE {where}{bounds} {IN_ORDER}{limited})")
    found = _executed(" UNION ALL ".join(reads), values * len(reads))
    return found if len(reads) == 1 else sorted(found, key=_position)[:limit]


def _position(row: Row) -> tuple[int, int, int]:
    return row[-3], int(row[-2]), row[-1]


def _order_in_files(known: _Parts, columns: Sequence[str], query: Query, limit: int | None) -> list[Row]:
    from ingest.log import cold  # brings pyarrow

    found = list[Row]()
    for part in known.cold:
        if (
            part.file is None
            or part.until <= query.low
            or (query.high is not None and part.first > query.high)
        ):
            continue
        if query.after is not None and part.last is not None and part.last <= query.after:
            continue
        span = cold.Span(query.after, query.upto, query.low, query.high)
        rows = cold.in_order(part.file, columns, span, limit, query.types)
        found = sorted([*found, *rows], key=_position)[:limit] if found and rows else found or rows
    return found


def _conditions(query: Query) -> tuple[str, list[Any]]:
    conditions, values = list[str](), list[Any]()

    def hold(condition: str, *own: Any) -> None:
        conditions.append(condition)
        values.extend(own)

    if query.streams is not None:
        if len(query.streams) == 1:
            hold("stream = %s", query.streams[0])
        else:
            # Not written out: Postgres would estimate each of a thousand streams, and sort what its index has in order.
            hold("stream = ANY((SELECT %s::text[])::text[])", list(query.streams))
    if query.versions is not None:
        hold("version = ANY(%s)", list(query.versions))
    if query.after_version:
        hold("version > %s", query.after_version)
    if query.after is not None:
        hold("(epoch, txid, seq) > (%s, %s::xid8, %s)", *_texts(query.after))
    if query.upto is not None:
        hold("(epoch, txid, seq) <= (%s, %s::xid8, %s)", *_texts(query.upto))
    if query.settled:
        hold(BELOW_WATERMARK)
    if query.types is not None:
        hold("type = ANY(%s)", list(query.types))
    return " AND ".join(conditions) or "true", values


def _texts(position: Position) -> tuple[int, str, int]:
    return position.epoch, str(position.txid), position.seq


def _named(columns: Sequence[str]) -> str:
    # The text of txid is never called txid: ORDER BY would sort by the text, and "9999" stands after "10000".
    return ", ".join("txid::text AS txid_text" if name == "txid" else name for name in columns)


def _executed(sql: str, values: Sequence[Any]) -> list[Row]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall())


def _is_true(known: _Parts) -> bool:
    """Whether Postgres held every part that it was asked for: a process may have stood still in between."""
    return time.monotonic() - known.looked < _TRUSTED or _refreshed().hot == known.hot


def newest(columns: Sequence[str], streams: Sequence[str], upto: Position | None) -> list[Row]:
    """The newest event of each of these streams, up to a position, of those that have one. `columns` begin with the
    stream."""
    if (bounds := _numbers_of(streams)) is None:
        return []
    first, last = bounds
    while True:
        known = _parts()
        where, values = _conditions(Query(streams=streams, upto=upto))
        found = _executed(
            f"SELECT DISTINCT ON (stream) {_named(columns)} FROM log_event WHERE {where}"
            f" AND seq BETWEEN {max(first, known.hot)} AND {last} ORDER BY stream, version DESC",
            values,
        )
        if first < known.hot and (rest := sorted(set(streams).difference(row[0] for row in found))):
            places = _streams_in_files(known, LINK, Query(streams=rest, upto=upto), (first, last))
            versions = {row[0]: row[1] for row in places}
            old = Query(streams=list(versions), versions=sorted(set(versions.values())))
            wanted = tuple(dict.fromkeys((*columns, "version")))
            version = wanted.index("version")
            found += [
                row[: len(columns)]
                for row in _streams_in_files(known, wanted, old, (first, last))
                if versions[row[0]] == row[version]
            ]
        if _is_true(known):
            return found


def last(
    columns: Sequence[str], upto: Position | None = None, recorded_until: datetime | None = None
) -> Row | None:
    """The last event up to a position, or recorded up to a moment. `columns` end with those of a position.

    Looks backwards from there: the time it takes grows with the events recorded since.
    """
    while True:
        known = _parts()
        where, values = _conditions(Query(upto=upto))
        if recorded_until is not None:
            where += " AND recorded_at <= %s"
            values.append(recorded_until)
        rows = _executed(
            f"SELECT {_named(columns)} FROM log_event WHERE {where} AND seq >= {known.hot}"
            " ORDER BY epoch DESC, log_event.txid DESC, seq DESC LIMIT 1",
            values,
        )
        found = rows[0] if rows else None
        for part in reversed(known.cold):
            if found is None or (part.last is not None and part.last > position_of(found)):
                found = max(
                    (
                        row
                        for row in (found, _last_in_file(part, columns, upto, recorded_until))
                        if row is not None
                    ),
                    key=_position,
                    default=None,
                )
        if _is_true(known):
            return found


def _last_in_file(
    part: Part, columns: Sequence[str], upto: Position | None, recorded_until: datetime | None
) -> Row | None:
    from ingest.log import cold  # brings pyarrow

    return None if part.file is None else cold.last(part.file, columns, cold.Span(upto=upto), recorded_until)


def position_of(row: Row) -> Position:
    """Position of an event whose columns end with it."""
    return Position(*_position(row))


# Whole logs
# ----------------------------------------------------------------------------------------------------------
@contextmanager
def by_stream(columns: Sequence[str]) -> Iterator[Iterator[Row]]:
    """All events by stream and version; `columns` begin with these. In a transaction."""
    known = _parts()
    collation = 'COLLATE "C"' if known.hot else ""  # the order of files, which is that of bytes
    with connection.chunked_cursor() as cursor:
        cursor.execute(
            f"SELECT {_named(columns)} FROM log_event WHERE seq >= {known.hot} ORDER BY stream {collation}, version"
        )
        hot = fetched(cursor)
        if not known.hot:
            yield hot
            return
        from ingest.log import cold  # brings pyarrow

        files = [part.file for part in known.cold if part.file is not None]
        yield heapq.merge(cold.by_stream(files, columns), hot, key=lambda row: (row[0], row[1]))


def fetched(cursor: CursorWrapper) -> Iterator[Row]:
    """Rows of a cursor of the server, some at a time."""
    while rows := cursor.fetchmany(500):
        yield from rows


def cold_files() -> list[str]:
    """Files of the parts that are not in Postgres any more, the oldest first."""
    return [part.file for part in _parts().cold if part.file is not None]


def in_files(columns: Sequence[str]) -> Iterator[list[Row]]:
    """All events in files, part by part, in order within each."""
    if not (files := cold_files()):
        return
    from ingest.log import cold  # brings pyarrow

    for file in files:
        yield from cold.batches(cold.events_of(file), columns)


def of_numbers(columns: Sequence[str], numbers: Collection[int]) -> list[Row]:
    """Events in files that have these numbers, in any order."""
    if not (parts_ := _parts().cold):
        return []
    from ingest.log import cold  # brings pyarrow

    found = list[Row]()
    for part in parts_:
        if part.file is not None and (own := [one for one in numbers if part.first <= one < part.until]):
            found += cold.of_numbers(part.file, columns, own)
    return found
