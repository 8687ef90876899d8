"""Appends to and pages of a log of many million events, beside a log that has only begun.

The large log is filled part by part, in the server: incidents of six events, receipts of telemetry and alerts, ids as
the product makes them, bodies as the golden events have them, chains of hashes as appends write them, so that
`verify_log` holds. Both logs are databases of one server; what is compared is measured in turns, by the clock and by
the processor's time of this process and of its session with each. Then old parts move into files, pages and old streams
are read again, and the whole log is verified.

    nice python -m tests.benchmarks.large_log [EVENTS [BYTES_THAT_STAY_FREE [EVENTS_MOVED_BEFORE]]]

Events that were moved before are there as far as Postgres knows of them: the heads of their streams, and their parts,
of the usual size. They have no files, so that nothing is moved or verified then.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg2
import psycopg2.extensions

from tests.benchmarks.__main__ import line
from tests.benchmarks.regions import cluster, cost
from tests.places import ROOT

EVENTS, FREE = 10_000_000, 25 * 2**30
PARTS, USUAL = 10, 10_000_000
"""Parts of the large log; events of each where others were moved before."""
BEGUN, FEW = "begun", 20_000
"""The database whose log has only begun, and its events."""
TOGETHER = 5_000
"""Events of a transaction while the log is filled."""
LIFE = (
    ("incident.opened", 2),
    ("incident.acknowledged", 1),
    ("incident.commented", 2),
    ("incident.reassigned", 1),
    ("incident.notified", 1),
    ("incident.resolved", 2),
)
SINGLES = (
    ("receipt", "telemetry.received", 1),
    ("receipt", "telemetry.received", 1),
    ("receipt", "telemetry.received", 1),
    ("alert", "alert.reported", 1),
)
"""Streams of one event for each incident: the kind of stream, and the event. The id of an alert is a hash, others begin
with the time."""
PER_ROUND = len(LIFE) + len(SINGLES)
TURNS, WRITES, PAGES, STREAMS, PAGE = 8, 100, 20, 60, 500
ACTOR = "user:alice"
GOLDEN_ID = "11111111-1111-4111-8111-111111111111"
Row = dict[str, Any]


filled: dict[str, list[tuple[int, int, int]]] = {}
"""By database the transactions that filled its log, with the first and the last number of their events."""


def main(events: int = EVENTS, free: int = FREE, moved: int = 0) -> Iterator[Row]:
    """Rows of name, value, unit, bar and a note. Takes about ten minutes for 10 million events."""
    part = USUAL if moved else max(1, events // PARTS // TOGETHER) * TOGETHER
    moved -= moved % part
    place = Path(os.environ.get("DOSSIER_HOME", ".dossier")).absolute()
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place) as files:
        settings = {"DOSSIER_LOG_PART": str(part), "DOSSIER_LOG_HOT": "2", "DOSSIER_TELEMETRY_COLD": files}
        with cluster("large_log", **settings):
            yield from _rows(events, free, part, moved)


def _rows(events: int, free: int, part: int, moved: int) -> Iterator[Row]:
    from django.db import connection

    from ingest.log import parts

    large = str(connection.settings_dict["NAME"])
    url = os.environ["DATABASE_URL"]
    connection.close()
    with closing(psycopg2.connect(url, dbname="postgres")) as session, session.cursor() as cursor:
        session.autocommit = True
        cursor.execute(f'CREATE DATABASE {BEGUN} TEMPLATE "{large}"')
    began, count = time.perf_counter(), 0
    for name, wanted in ((BEGUN, FEW), (large, events)):
        began = time.perf_counter()
        with closing(psycopg2.connect(url, dbname=name)) as session:
            filler = Filler(session, part, moved if name == large else 0)
            count = filler.fill(wanted, free)
            filled[name] = filler.done
    took = time.perf_counter() - began
    for name in (BEGUN, large):
        cost(name)
        with connection.cursor() as cursor:
            cursor.execute("VACUUM (FREEZE, ANALYZE)")
            cursor.execute("CHECKPOINT")
            cursor.execute("SELECT pg_database_size(current_database())")
            (size,) = cursor.fetchone()
    note = f"{size / count:.0f} bytes each, filled at {count / took:,.0f} a second"
    if moved:
        note += f"; {moved:,} more were moved before"
    yield _row("events of the large log", count, "", None, note)
    for name in (BEGUN, large):
        cost(name)
        parts.maintain()  # as the sealing does each minute: full parts are closed, and read one at a time
    yield from _compared(large)
    cost(large)
    if moved:
        return
    yield from _moved()
    yield from _compared(large, " with old parts in files")
    cost(large)
    yield _verified(count)


# Filling
# ----------------------------------------------------------------------------------------------------------
@dataclass(slots=True)
class Filler:
    """Writes events into the parts of a log that nobody else writes to, on the server."""

    session: psycopg2.extensions.connection
    part: int
    moved: int = 0
    """Events that were moved into files before, a multiple of `part`."""
    at: datetime = field(default_factory=lambda: datetime.now(UTC) - timedelta(days=400))
    """Time of the last event; so long ago that no receipts of telemetry are kept."""
    done: list[tuple[int, int, int]] = field(default_factory=list)
    """Transactions, with the first and the last number of their events."""

    def fill(self, wanted: int, free: int) -> int:
        """Number of events written: fewer than wanted where the disk would have less than `free` bytes."""
        self._run(
            "SELECT log_enter_epoch()", "SET synchronous_commit = off", "SET maintenance_work_mem = '1GB'"
        )
        self._run("ALTER TABLE log_stream DROP CONSTRAINT log_stream_pkey")
        if self.moved:
            self._run(*self._moved())
        for first in range(self.moved, self.moved + wanted, self.part):
            if shutil.disk_usage(ROOT).free < free:
                break
            version = f"log_event_p{first}_version"
            self._run(f"SELECT log_make_parts({self.part}, 2)", f"DROP INDEX {version}")
            for begin in range(first, min(first + self.part, self.moved + wanted), TOGETHER):
                self._write(max(begin, PER_ROUND), begin + TOGETHER)  # no event has number 0
            self._run(f"CREATE UNIQUE INDEX {version} ON log_event_p{first} (stream, version)")
            print(f"{self.written:,} events, {shutil.disk_usage(ROOT).free >> 30} GB free", flush=True)
        self._run("ALTER TABLE log_stream ADD PRIMARY KEY (stream)")
        return self.written

    @property
    def written(self) -> int:
        return sum(last - first + 1 for _, first, last in self.done)

    def _moved(self) -> Iterator[str]:
        """Statements that leave of old events what Postgres has of them when they are in files."""
        from ingest.log.types import time_text

        yield (
            "DO $$ DECLARE part record; BEGIN FOR part IN SELECT first FROM log_part LOOP"
            " EXECUTE 'DROP TABLE log_event_p' || part.first; END LOOP; DELETE FROM log_part; END $$"
        )
        last = f"first + {self.part} - 1"
        yield (
            f"INSERT INTO log_part SELECT first, first + {self.part}, 1, '1', 1, '1', {last}, {last}"
            f" FROM generate_series(0, {self.moved} - 1, {self.part}) AS first"
        )
        yield (
            "INSERT INTO log_cold SELECT first, 'moved', 'log/not-there-' || first, until - first, 0, now()"
            " FROM log_part"
        )
        yield f"SELECT setval('log_event_number', {self.moved} - 1)"
        singles = "".join(
            f", ({place}, 1, '{kind}')" for place, (kind, *_) in enumerate(SINGLES, start=len(LIFE))
        )
        began = time_text(self.at - timedelta(days=400))
        yield f"""
        INSERT INTO log_stream (stream, version, hash, epoch, txid, seq, first_seq)
        SELECT stream, version, sha256(convert_to(stream, 'UTF8')), 1, '1', first + version - 1, first FROM (
            SELECT kind || '/' || {_id("kind", "n", began)} AS stream, version,
                greatest(1, n * {PER_ROUND} + place) AS first
            FROM generate_series(0, {self.moved // PER_ROUND} - 1) AS n,
                (VALUES (0, {len(LIFE)}, 'incident'){singles}) AS life (place, version, kind) OFFSET 0
        ) AS heads
        """

    def _run(self, *statements: str) -> None:
        with self.session, self.session.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def _write(self, first: int, until: int) -> None:
        """All events of one transaction, recorded at one time."""
        from ingest.log.types import time_text

        self.at += timedelta(minutes=1)
        with self.session, self.session.cursor() as cursor:
            cursor.execute(
                _filling(time_text(self.at)), {"first": first, "rounds": (until - first) // PER_ROUND}
            )
            cursor.execute("SELECT pg_current_xact_id()::text, setval('log_event_number', %s)", (until - 1,))
            (txid, _) = cursor.fetchone() or ("0", 0)
        self.done.append((int(txid), first, until - 1))


def _filling(at: str) -> str:
    """The statement that writes rounds of events: each an incident, and the bodies and alerts that came meanwhile."""
    steps = (
        "SELECT n, 'incident/' || id AS stream, id, convert_to('incident/' || id, 'UTF8') AS named FROM round"
    )
    rows = list[str]()
    for version, (name, schema) in enumerate(LIFE, start=1):
        previous = f"hash{version - 1} || " if version > 1 else ""
        body = f"replace({_quoted(_golden(name, schema))}, '{GOLDEN_ID}', id)"
        hashed = (
            f"sha256({previous}named || {_fields(version, name, schema, at)} || convert_to({body}, 'UTF8'))"
        )
        # OFFSET 0: each hash is computed once, and not within those that follow.
        steps = f"SELECT *, {hashed} AS hash{version} FROM ({steps}) AS step{version} OFFSET 0"
        rows.append(f"({version}, '{name}', {schema}, {body}, hash{version})")
    length = len(LIFE)
    singles = ", ".join(
        f"({length + place}, '{kind}', '{name}', {schema}, {_quoted(_golden(name, schema))},"
        f" {_fields(1, name, schema, at)})"
        for place, (kind, name, schema) in enumerate(SINGLES)
    )
    return f"""
    WITH round AS MATERIALIZED (
        SELECT n, {_id("'incident'", "n", at)} AS id FROM generate_series(0, %(rounds)s - 1) AS n
    ),
    incident AS MATERIALIZED ({steps}),
    single AS MATERIALIZED (
        SELECT n, place, stream, type, schema, body,
            sha256(convert_to(stream, 'UTF8') || fields || convert_to(body, 'UTF8')) AS hash
        FROM (SELECT n, place, kind || '/' || {_id("kind", "n", at)} AS stream, type, schema, body, fields
            FROM round, (VALUES {singles}) AS single (place, kind, type, schema, body, fields) OFFSET 0) AS named
    ),
    written AS (
        INSERT INTO log_event (seq, epoch, stream, version, type, schema, body, actor, occurred_at, recorded_at, hash)
        SELECT %(first)s + n * {PER_ROUND} + place, 1, stream, version, type, schema, body, '{ACTOR}', '{at}', '{at}',
            hash
        FROM (
            SELECT n, version - 1 AS place, stream, version, type, schema, body, hash FROM incident,
                LATERAL (VALUES {", ".join(rows)}) AS event (version, type, schema, body, hash)
            UNION ALL SELECT n, place, stream, 1, type, schema, body, hash FROM single
        ) AS events ORDER BY n, place
    )
    INSERT INTO log_stream (stream, version, hash, epoch, txid, seq, first_seq)
    SELECT stream, {length}, hash{length}, 1, pg_current_xact_id(), number + {length - 1}, number
    FROM incident, LATERAL (SELECT %(first)s + n * {PER_ROUND}) AS first (number)
    UNION ALL SELECT stream, 1, hash, 1, pg_current_xact_id(), number, number
    FROM single, LATERAL (SELECT %(first)s + n * {PER_ROUND} + place) AS first (number)
    """


def _id(kind: str, number: str, at: str) -> str:
    """An id as streams of a kind have it, a millisecond later for each number: see `ingest.log.types.ordered_id`."""
    later = f"timestamptz '{at}' - clock_timestamp() + {number} * interval '1 ms'"
    return f"CASE {kind} WHEN 'alert' THEN gen_random_uuid() ELSE uuidv7({later}) END::text"


def _fields(version: int, name: str, schema: int, at: str) -> str:
    """Bytes between the stream's name and the body that the hash of an event is over."""
    joined = "\0".join(("", str(version), name, str(schema), ACTOR, "", "", at, at, ""))
    return f"'\\x{joined.encode().hex()}'::bytea"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''").replace("%", "%%") + "'"


def _golden(name: str, schema: int) -> str:
    """Canonical body of an event."""
    from ingest.log.types import record_body

    return record_body(
        json.loads((ROOT / "tests" / "golden" / "events" / f"{name}.v{schema}.json").read_text())
    )[0]


# Comparison
# ----------------------------------------------------------------------------------------------------------
def _compared(large: str, when: str = "") -> Iterator[Row]:
    """Rates by the clock and by the processor's time, of the large log against the other, in turns."""
    works: dict[str, tuple[Callable[[], list[Any]], Callable[[list[Any]], int]]] = {
        "append": (lambda: _some_streams(WRITES), _append),
        "append of alerts": (lambda: [f"alert/{uuid.uuid4()}" for _ in range(2 * WRITES)], _begin),
        "pages": (lambda: _positions(PAGES), _pages),
        "old streams": (lambda: _some_streams(STREAMS), _old_streams),
    }
    for name, (choose, work) in works.items():
        clock, processor, alone = list[float](), list[float](), list[float]()
        for turn in range(TURNS + 1):
            of: dict[str, tuple[float, float, int]] = {}
            for database in (large, BEGUN) if turn % 2 else (BEGUN, large):
                cost(database)
                chosen = choose()
                used, began = cost(database), time.perf_counter()
                events = work(chosen)
                of[database] = (time.perf_counter() - began, cost(database) - used, events)
            if turn:  # the first one warms plans and caches
                rates = {database: events / seconds for database, (seconds, _, events) in of.items()}
                costs = {database: seconds / events for database, (_, seconds, events) in of.items()}
                clock.append(rates[large] / rates[BEGUN])
                processor.append(costs[BEGUN] / costs[large])
                alone.append(rates[large])
        bar = ">= 0.9" if name in ("append", "pages") else None
        note = (
            f"{min(clock):.2f} to {max(clock):.2f} in {TURNS} turns, {statistics.median(alone):,.0f} events/s;"
            f" by the processor's time {statistics.median(processor):.2f}"
        )
        yield _row(
            f"{name} of the large log{when}, against one of {FEW:,}", statistics.median(clock), "x", bar, note
        )


def _append(old: list[Any]) -> int:
    """Append to new streams and to old ones, ten events a transaction."""
    from ingest.log import read, types

    for start in range(0, WRITES, 5):
        new = [(f"incident/{types.ordered_id(datetime.now(UTC))}", types.Head.NEW) for _ in range(5)]
        _record([*new, *((stream, read.head(stream)) for stream in old[start : start + 5])])
    return 2 * WRITES


def _begin(streams: list[Any]) -> int:
    """Begin streams, ten a transaction."""
    from ingest.log import types

    for start in range(0, len(streams), 10):
        _record([(stream, types.Head.NEW) for stream in streams[start : start + 10]])
    return len(streams)


def _record(heads: list[tuple[str, Any]]) -> None:
    """An event at the end of each stream, in one transaction."""
    from django.db import transaction

    from ingest.log import append, types

    body, context = {"text": "It is the optics.", "via": None}, types.Context("user:alice")
    new = [types.NewEvent("incident.commented", body, datetime.now(UTC))]
    with transaction.atomic():
        for stream, head in heads:
            append.append(stream, new, head, context)


def _pages(places: list[Any]) -> int:
    """Pages from these places on."""
    from ingest.log import read

    return sum(len(read.read_all(position, PAGE)) for position in places)


def _old_streams(streams: list[Any]) -> int:
    """All events of these streams."""
    from ingest.log import read

    return sum(len(read.read_stream(stream)) for stream in streams)


def _some_streams(count: int) -> list[str]:
    """Different streams of incidents at random places."""
    from ingest.log import source

    found = dict[str, None]()
    while len(found) < count:
        for position in _positions(10):
            rows = source.in_order(("stream", "epoch", "txid", "seq"), source.Query(after=position), 200)
            found.update((row[0], None) for row in rows if row[0].startswith("incident/"))
    return random.sample(list(found), count)


def _positions(count: int) -> list[Any]:
    """Random places in the log that was filled."""
    from django.db import connection

    from ingest.log.types import Position

    places = random.choices(filled[str(connection.settings_dict["NAME"])], k=count)
    return [Position(1, txid, random.randint(first, last)) for txid, first, last in places]


# Files
# ----------------------------------------------------------------------------------------------------------
def _moved() -> Iterator[Row]:
    """Seal everything, and move all parts but those that stay."""
    from ingest.db import database
    from ingest.log import move, seals

    began = time.perf_counter()
    sealed = len(seals.seal())
    yield _row("seals of the large log", sealed, "", None, f"{time.perf_counter() - began:.0f} s")
    began = time.perf_counter()
    for later in (timedelta(0), timedelta(minutes=30), timedelta(hours=1)):
        move.move_old(database.now() + later)
    status = move.status()
    of_one = status.bytes / max(1, status.events)
    note = f"{status.events:,} events, {of_one:.0f} bytes each, {time.perf_counter() - began:.0f} s"
    yield _row("parts of the large log in files", status.parts, "", None, note)


def _verified(count: int) -> Row:
    from ingest.log import verify

    began = time.perf_counter()
    report = verify.verify()
    note = f"{report.streams:,} streams, {report.seals:,} seals, {time.perf_counter() - began:.0f} s"
    return _row("events verified", report.events, "", f">= {count}", note)


def _row(name: str, value: float, unit: str, bar: str | None, note: str) -> Row:
    return {"name": name, "value": round(value, 3), "unit": unit, "bar": bar, "note": note}


if __name__ == "__main__":
    for figure in main(*map(int, sys.argv[1:])):
        print(line(figure), flush=True)
