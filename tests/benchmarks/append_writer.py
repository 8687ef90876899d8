"""One worker of `append.py`: a writer or a reader of the log, or of a naive table. Obeys lines on stdin.

A writer answers `BATCH SECONDS` with `[events, seconds]`; a reader begins at `follow` and says at `end` how
many different events it was given since.
"""

from __future__ import annotations

import json
import select
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import django
from django.conf import settings

STREAM_LENGTH = 10  # appends
BODY = {
    "component": "storage_cluster/s7", "title": "Disks of storage cluster s7 fail more often than usual",
    "severity": "error", "team": "storage", "rule": "storage_cluster/*", "opened_by": "finding",
    "region": "dc1", "labels": {"site": "dc1", "tier": "3"},
    "dedup_key": "deepview/storage_cluster/s7/2026-01-02T03",
    "summary": "412 of 19,803 attempts that depended on it failed, 14 times the background",
}  # fmt: skip

Append = Callable[[int], None]
Poll = Callable[[], list[tuple[str, int]]]


def connect(host: str) -> None:
    database = {"ENGINE": "django.db.backends.postgresql", "NAME": "dossier", "USER": "dossier", "HOST": host}
    settings.configure(
        INSTALLED_APPS=["ingest.log"], DATABASES={"default": database}, USE_TZ=True, LOG_PART=10_000_000
    )
    django.setup()
    from ingest.log.types import EventType, register

    register(EventType("bench.opened"))


def migrate() -> None:
    from django.core.management import call_command
    from django.db import connection

    call_command("migrate", verbosity=0)
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE naive (position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
            " stream text NOT NULL, version integer NOT NULL, type text NOT NULL, schema integer NOT NULL,"
            " body text NOT NULL, actor text NOT NULL, cause text, trace text,"
            " occurred_at timestamptz NOT NULL, recorded_at timestamptz NOT NULL, UNIQUE (stream, version))"
        )


def write(append: Append) -> None:
    for line in sys.stdin:
        batch, seconds = int(line.split()[0]), float(line.split()[1])
        started, count = time.perf_counter(), 0
        while (elapsed := time.perf_counter() - started) < seconds:
            append(batch)
            count += batch
        print(json.dumps([count, elapsed]), flush=True)


def read(reader: Callable[[], Poll]) -> None:
    for _ in sys.stdin:
        poll, delivered, ending = reader(), set[tuple[str, int]](), False
        print("following", flush=True)
        while True:
            ending = ending or bool(select.select([sys.stdin], [], [], 0)[0])
            batch = poll()
            assert delivered.isdisjoint(batch), "delivered twice"
            delivered.update(batch)
            if not batch:
                if ending:
                    break
                time.sleep(0.005)
        sys.stdin.readline()
        print(len(delivered), flush=True)


def streams() -> Iterator[tuple[str, bool]]:
    """The stream of each append, and whether it is a new one."""
    while True:
        stream = f"incident/{uuid.uuid4()}"
        for turn in range(STREAM_LENGTH):
            yield stream, turn == 0


def log_writer() -> Append:
    from ingest.log.append import append
    from ingest.log.types import Context, Head, NewEvent

    places, context, head = streams(), Context("user:alice", "run/1@1", "request-1"), Head.NEW

    def write_log(batch: int) -> None:
        nonlocal head
        stream, new = next(places)
        now = datetime.now(UTC)
        events = [NewEvent("bench.opened", BODY, now) for _ in range(batch)]
        head = append(stream, events, Head.NEW if new else head, context)[-1].head

    return write_log


def naive_writer() -> Append:
    from django.db import connection

    places, version = streams(), 0

    def write_naive(batch: int) -> None:
        nonlocal version
        stream, new = next(places)
        version = 0 if new else version
        now = datetime.now(UTC)
        values: list[Any] = []
        for number in range(version + 1, version + 1 + batch):
            values += [stream, number, "bench.opened", 1, json.dumps(BODY)]
            values += ["user:alice", "run/1@1", "request-1", now, now]
        rows = ", ".join(["(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"] * batch)
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO naive (stream, version, type, schema, body, actor, cause, trace, occurred_at,"
                f" recorded_at) VALUES {rows} RETURNING position",
                values,
            )
            cursor.fetchall()
        version += batch

    return write_naive


def log_reader() -> Poll:
    from ingest.log.read import read_all, watermark

    place = watermark()

    def poll() -> list[tuple[str, int]]:
        nonlocal place
        events = read_all(place, 1000)
        place = events[-1].position if events else place
        return [(event.stream, event.version) for event in events]

    return poll


def naive_reader() -> Poll:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT coalesce(max(position), 0) FROM naive")
        (last,) = cursor.fetchone()

    def poll() -> list[tuple[str, int]]:
        nonlocal last
        with connection.cursor() as cursor:
            cursor.execute("SELECT * FROM naive WHERE position > %s ORDER BY position LIMIT 1000", (last,))
            rows = [(*row, json.loads(row[5])) for row in cursor.fetchall()]
        last = rows[-1][0] if rows else last
        return [(row[1], row[2]) for row in rows]

    return poll


def main(host: str, side: str, task: str = "write") -> None:
    connect(host)
    if side == "migrate":
        migrate()
        return
    print("ready", flush=True)
    if task == "read":
        read(log_reader if side == "log" else naive_reader)
    else:
        write(log_writer() if side == "log" else naive_writer())


if __name__ == "__main__":
    main(*sys.argv[1:])
