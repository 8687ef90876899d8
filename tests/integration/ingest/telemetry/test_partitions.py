"""Partitions are there when rows come, also late ones, and go when retention says so; nobody waits for
either."""

from __future__ import annotations

import itertools
import re
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from django.db import connection, connections, transaction
from pytest_django import Settings

from ingest.log.read import watermark_age
from ingest.queries import Position, read_all, read_window
from ingest.telemetry.decode.builder import Assembly
from ingest.telemetry.decode.columns import Bounds, Rows
from ingest.telemetry.kinds import KINDS, Kind
from ingest.telemetry.store import tables, write
from ingest.telemetry.store import write as storing
from ingest.telemetry.store.tables import columns, create_sql, existing, maintain, missing, table
from ingest.telemetry.store.write import Delivery, receive
from ingest.telemetry.windows.reductions import Count, Input, Reduction

pytestmark = pytest.mark.usefixtures("log_database")

NOW = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
FAILURE = KINDS["unit_failure"]
FAILURES = Input("failures", (Reduction("n", "unit_failure", (), {"n": Count()}),))


def made(kind: str, rows: list[Mapping[str, Any]]) -> Rows:
    assembly = Assembly(KINDS[kind], "default")
    values = {field.name: [row.get(field.name) for row in rows] for field in KINDS[kind].all_fields}
    assembly.add(values, np.arange(1, len(rows) + 1))
    return assembly.rows(Bounds())


def fail(*times: datetime) -> None:
    receive(
        made("unit_failure", [{"time": at, "unit": "vm/1"} for at in times]), Delivery("test", bytes(32), 1)
    )


def counted(start: datetime = NOW - timedelta(days=99), end: datetime = NOW + timedelta(days=1)) -> int:
    sums = read_window(FAILURES, "default", start, end)["n"]
    return int(sums.values["n"].sum())


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_the_migrations_made_the_table_that_the_kind_declares(kind: Kind) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT column_name,
                CASE data_type WHEN 'timestamp with time zone' THEN 'timestamptz'
                    WHEN 'ARRAY' THEN replace(udt_name, '_float8', 'double precision[]') ELSE data_type END
            FROM information_schema.columns
            WHERE table_name = %s AND is_nullable = 'NO' AND column_name <> 'id' ORDER BY ordinal_position
            """,
            (table(kind),),
        )
        there = tuple(cursor.fetchall())
    assert there == columns(kind), f"write a migration; for a new kind:\n{create_sql(kind)}"


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_the_migrations_made_the_indexes_that_the_kind_declares(kind: Kind) -> None:
    declared = re.findall(r"CREATE INDEX (\w+) ON \w+ (.*);", create_sql(kind).replace('"', ""))
    with connection.cursor() as cursor:
        cursor.execute("SELECT indexname, indexdef FROM pg_indexes WHERE tablename = %s", (table(kind),))
        there = {
            name: definition.replace('"', "").partition(" USING ")[2]
            for name, definition in cursor.fetchall()
        }
    assert there == {
        name: on.removeprefix("USING ") if on.startswith("USING") else f"btree {on}" for name, on in declared
    }


def test_gaps_between_partitions_are_found() -> None:
    assert missing([(0, 10), (20, 30)], [(5, 15), (15, 35)]) == [(10, 15), (15, 20), (30, 35)]
    assert missing([], [(0, 1)]) == [(0, 1)]
    assert missing([(0, 100)], [(5, 15)]) == []


def test_rows_of_any_time_find_a_partition() -> None:
    fail(NOW, NOW - timedelta(days=3), NOW - timedelta(hours=1))
    assert counted() == 3
    assert len(existing(FAILURE)) == 3


def test_partitions_of_another_length_fill_the_gaps(settings: Settings) -> None:
    fail(NOW)
    settings.TELEMETRY_PARTITION_INTERVAL = timedelta(minutes=7)
    fail(NOW, NOW - timedelta(minutes=31), NOW + timedelta(minutes=29))
    spans = existing(FAILURE)
    assert counted() == 4
    assert all(a_end <= b_start for (_, a_end), (b_start, _) in itertools.pairwise(spans))


def test_partitions_are_made_ahead_once() -> None:
    assert maintain(NOW)["made"] > 0
    assert maintain(NOW)["made"] == 0
    assert existing(FAILURE)[-1][1] >= NOW.timestamp() + 3 * 3600


def test_half_a_year_of_a_sparse_kind_needs_few_partitions() -> None:
    change = KINDS["change"]
    times = [NOW - timedelta(hours=3 * hours) for hours in range(8 * 182)]
    rows: list[Mapping[str, Any]] = [
        {"time": at, "change": f"CHG-{at:%m%d%H}", "kind": "deploy", "targets": []} for at in times
    ]
    receive(made("change", rows), Delivery("test", bytes(32), 1))
    assert len(existing(change)) <= 8
    counted = Input("changes", (Reduction("n", "change", (), {"n": Count()}),))
    sums = read_window(counted, "default", NOW - timedelta(days=200), NOW + timedelta(days=1))["n"]
    assert int(sums.values["n"].sum()) == len(rows)
    maintain(NOW)
    assert len(existing(change)) <= 8 + tables.AHEAD


def test_retention_drops_whole_partitions() -> None:
    fail(NOW - timedelta(days=31, hours=1), NOW - timedelta(days=29))
    assert maintain(NOW)["dropped"] == 1
    assert counted() == 1


def test_rows_for_a_partition_that_was_dropped_elsewhere_are_stored_all_the_same() -> None:
    old = NOW - timedelta(days=31)
    fail(old)
    known = dict(tables._known)
    maintain(NOW)
    tables._known.update(known)  # as in a process that did not see it go
    fail(old)
    assert counted() == 1


def test_retention_does_not_wait_for_writers_nor_they_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "PATIENCE", "200ms")
    fail(NOW - timedelta(days=31), NOW)

    def keep() -> None:
        maintain(NOW)
        connections.close_all()

    started = time.monotonic()
    with transaction.atomic(), connection.cursor() as cursor:
        # A writer in the middle of a long transaction holds the table's lock.
        cursor.execute("INSERT INTO telemetry_unit_failure SELECT * FROM telemetry_unit_failure")
        keeper = threading.Thread(target=keep)
        keeper.start()
        keeper.join(20)
        assert not keeper.is_alive()
    assert time.monotonic() - started < 20
    fail(NOW)
    maintain(NOW)  # what had to be left is done now
    assert existing(FAILURE)[0][0] > (NOW - timedelta(days=31)).timestamp()


def place(at: datetime, unit: str, host: str, *, active: bool = True) -> None:
    row = {"time": at, "unit": unit, "components": [host], "active": active}
    receive(made("placement", [row]), Delivery("test", bytes(32), 1))


def test_retention_keeps_the_states_still_in_force() -> None:
    place(NOW - timedelta(days=50), "vm/1", "host/1")
    place(NOW - timedelta(days=40), "vm/1", "host/2")
    place(NOW - timedelta(days=40), "vm/2", "host/1")
    place(NOW - timedelta(days=39), "vm/2", "host/1", active=False)
    maintain(NOW)
    with connection.cursor() as cursor:
        cursor.execute(
            'SELECT n.name, "time" FROM telemetry_placement p JOIN telemetry_name n ON n.id = p.unit'
        )
        assert cursor.fetchall() == [("vm/1", NOW - timedelta(days=40))]


def test_a_large_body_is_seen_whole_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "AT_ONCE", 10)
    monkeypatch.setattr(write, "MOST_ROWS", 10)
    seen: list[tuple[int, int]] = []

    copy_in = write.copy_in

    def watched(*arguments: Any) -> None:
        copy_in(*arguments)
        seen.append((counted(), len(read_all(Position.START, 10))))

    monkeypatch.setattr(write, "copy_in", watched)
    fail(*[NOW] * 35)
    assert seen == [(0, 0)] * 4
    assert counted() == 35


def test_an_upload_that_died_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "AT_ONCE", 10)
    monkeypatch.setattr(write, "MOST_ROWS", 10)

    def dies(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(storing, "_record", dies)
    now = datetime.now(UTC)
    with pytest.raises(KeyboardInterrupt):
        fail(*[now] * 35)
    assert counted(now - timedelta(days=1), now + timedelta(days=1)) == 0
    assert maintain(now + timedelta(hours=2))["deleted"] == 35
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT number FROM telemetry_unfinished UNION SELECT receipt FROM telemetry_unit_failure"
        )
        assert cursor.fetchall() == []


def test_a_large_upload_does_not_hold_back_the_log() -> None:
    """The watermark of the log may lag by a slice of the upload, not by the upload."""
    count = 1_500_000
    rows = made("unit_failure", [{"time": NOW, "unit": f"vm/{i % 1000}"} for i in range(1000)])
    rows = rows.take(np.resize(np.arange(1000), count))
    ages: list[float] = []
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            ages.append(watermark_age())
            time.sleep(0.005)
        connections.close_all()

    watcher = threading.Thread(target=watch)
    watcher.start()
    started = time.monotonic()
    receive(rows, Delivery("test", bytes(32), 1))
    took = time.monotonic() - started
    done.set()
    watcher.join()
    assert len(ages) > 10
    assert max(ages) < took / 3, f"the log stood still for {max(ages):.2f} s of {took:.2f} s"


def test_short_partitions_of_an_older_version_take_rows_and_are_dropped_by_retention(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    kind, hours = KINDS["change"], (1.0, 2.0, 9.0, 500.0, 700.0)
    changes = Input("changes", (Reduction("n", "change", (), {"n": Count()}),))

    def change(*hours_ago: float) -> None:
        rows: list[Mapping[str, Any]] = [
            {"time": NOW - timedelta(hours=ago), "change": f"CHG-{ago}", "kind": "deploy", "targets": []}
            for ago in hours_ago
        ]
        receive(made("change", rows), Delivery("test", bytes(32), 1))

    monkeypatch.setattr(tables, "SPARSE", timedelta(hours=1))
    change(*hours)
    short = existing(kind)
    assert {end - start for start, end in short} == {3600}
    monkeypatch.undo()
    tables.forget()
    between = (1.1, 3.0, 499.0, 501.0, 1500.0)
    change(*between)
    assert set(short) < set(existing(kind))
    sums = read_window(changes, "default", NOW - timedelta(days=99), NOW)["n"]
    assert sums.values["n"].sum() == len(hours) + len(between)
    settings.TELEMETRY_RETENTION = settings.TELEMETRY_SPARSE_RETENTION = timedelta(days=1)
    maintain(NOW + timedelta(days=62))
    assert not set(short) & set(existing(kind))
