"""Telemetry by region on the nodes of Citus: no key and no statement that Citus refuses, and no window that misses rows
of which the log tells. The first two are read off the schema and the statements that are sent to any Postgres; for the
third a table stands in for the node, which commits later than the coordinator.

`CITUS_TEST_URL` (a database with Citus and its workers, whose content is deleted) runs them on a real one.
"""

from __future__ import annotations

import itertools
import os
import queue
import random
import re
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections, transaction
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as trials
from hypothesis import strategies as st
from pytest_django import DjangoDbBlocker, Settings

from analyzers import registry
from deploy import env
from deploy.observability import cures
from ingest.log.read import watermark
from ingest.queries import Position, read_window
from ingest.telemetry.cold.move import move_old
from ingest.telemetry.kinds import KINDS, Kind
from ingest.telemetry.store import sharding, tables, write
from ingest.telemetry.windows.late_rows import late_rows
from ingest.telemetry.windows.offline import reduce
from ingest.telemetry.windows.outages import outages_of
from ingest.telemetry.windows.pair_grid import Steps
from ingest.telemetry.windows.part_rows import (
    benchmark_results,
    other_attempts,
    part_attempts,
    probed_paths,
)
from ingest.telemetry.windows.path_sums import path_sums
from ingest.telemetry.windows.reductions import Count, Input, Reduction
from ingest.telemetry.windows.sql import data_clock, regions
from ingest.telemetry.windows.sums import dumps
from ingest.topology.read import component, placed_names, topology_at
from ingest.topology.slots import slots_of
from ingest.topology.upstream import dependencies_of
from tests.integration.ingest.telemetry.test_readers import (
    END,
    EVERYTHING,
    START,
    World,
    store,
    table,
    worlds,
)

LATER = datetime.now(UTC) + timedelta(hours=2)
FAILURE = KINDS["unit_failure"]
FAILURES = Input("failures", (Reduction("n", "unit_failure", (), {"n": Count()}),))
regions_used = itertools.count()


@pytest.fixture(params=["postgres", "citus"])
def sharded(request: pytest.FixtureRequest, settings: Settings, tmp_path: Path) -> Iterator[str]:
    settings.TELEMETRY_COLD = str(tmp_path / "cold")
    settings.TELEMETRY_RETENTION = timedelta(days=3650)
    settings.TELEMETRY_PARTITION_INTERVAL = timedelta(days=1)
    if request.param == "postgres":
        request.getfixturevalue("log_database")
        sharding.prepare()
        yield request.param
    else:
        yield from _citus(request.getfixturevalue("django_db_blocker"))


def _citus(blocker: DjangoDbBlocker) -> Iterator[str]:
    """The database of CITUS_TEST_URL, emptied, migrated and distributed."""
    if not (url := os.environ.get("CITUS_TEST_URL")):
        pytest.skip("no Citus here: CITUS_TEST_URL names a database whose content may be deleted")
    before = dict(connection.settings_dict)
    with blocker.unblock():
        connections.close_all()
        connection.settings_dict.update(env.database(url))
        try:
            with connection.cursor() as cursor:
                cursor.execute("DROP SCHEMA public CASCADE")
                cursor.execute("CREATE SCHEMA public")
            call_command("migrate", verbosity=0)
            call_command("shard_telemetry", verbosity=0)
            yield "citus"
        finally:
            connections.close_all()
            connection.settings_dict.clear()
            connection.settings_dict.update(before)


def distributed() -> list[str]:
    return [tables.SHOWN, *(tables.table(kind) for kind in KINDS.values())]


def fail(count: int = 1, region: str = "default") -> None:
    store("unit_failure", [{"time": START, "unit": "vm/1", "symptom": "disk"}] * count, region)


def counted(upto: Position | None = None, region: str = "default") -> int:
    return int(read_window(FAILURES, region, START, END, upto)["n"].values["n"].sum())


# The schema
# ----------------------------------------------------------------------------------------------------------
@pytest.mark.usefixtures("sharded")
def test_every_unique_key_of_a_sharded_table_holds_the_region() -> None:
    fail()  # a partition
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT indrelid::regclass::text FROM pg_index JOIN pg_class ON pg_class.oid = indrelid
            WHERE indisunique AND (relname = ANY(%s) OR relname ~ %s) AND NOT EXISTS (
                SELECT 1 FROM pg_attribute WHERE attrelid = indrelid AND attname = %s
                AND attnum = ANY((indkey::smallint[])[0:indnkeyatts - 1]))
            """,
            (distributed(), r"^telemetry_.*_p-?\d+_\d+$", sharding.COLUMN),
        )
        assert cursor.fetchall() == []
        cursor.execute(
            "SELECT attrelid::regclass::text FROM pg_attribute WHERE attname = %s AND attnotnull"
            " AND attrelid = ANY(%s::regclass[])",
            (sharding.COLUMN, distributed()),
        )
        assert {name for (name,) in cursor.fetchall()} == set(distributed())


@pytest.mark.usefixtures("sharded")
def test_a_sharded_table_has_no_trigger_no_foreign_key_and_one_level_of_partitions() -> None:
    fail()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgrelid = ANY(%s::regclass[])",
            (distributed(),),
        )
        assert cursor.fetchall() == []
        cursor.execute(
            "SELECT conname FROM pg_constraint WHERE contype = 'f' AND (conrelid = ANY(%s::regclass[])"
            " OR confrelid = ANY(%s::regclass[]))",
            (distributed(), distributed()),
        )
        assert cursor.fetchall() == []
        cursor.execute(
            "SELECT inhrelid::regclass::text FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid"
            " WHERE inhparent = ANY(%s::regclass[]) AND relkind <> 'r'",
            (distributed(),),
        )
        assert cursor.fetchall() == []


# The statements
# ----------------------------------------------------------------------------------------------------------
_TABLE = rf"\"?(?:{'|'.join([tables.SHOWN, *(f'telemetry_{name}' for name in KINDS)])})"
_PARTITION = r"(?:_p-?\d+_\d+|_moved_\d+)\b"
_READ = re.compile(rf"\b(?:FROM|JOIN)\s+{_TABLE}(?:{_PARTITION}|\b)", re.IGNORECASE)
_NAMED = re.compile(rf"\b{_TABLE}(?:{_PARTITION}|\b)")
_BOUND = re.compile(r"\bregion\s*=\s*(?:\d+|ANY|%|\w+\.region)")
_WHOLE = re.compile(rf"^SELECT (?:1|count\(\*\)) FROM {_TABLE}{_PARTITION}(?: LIMIT 1)?$")
_REFUSED = re.compile(
    r"DETACH PARTITION \S+\s+(?:CONCURRENTLY|FINALIZE)|WITH RECURSIVE|FOR (?:NO KEY )?(?:UPDATE|SHARE)\b"
    r"|TABLESAMPLE|GROUPING SETS|LOCK TABLE ONLY|CREATE TRIGGER|REFERENCES",
    re.IGNORECASE,
)


def refusal(statement: str) -> str | None:
    """Reason why Citus refuses a statement, or reads it from all nodes."""
    if not _NAMED.search(statement):
        return None
    if found := _REFUSED.search(statement):
        return f"refuses {found[0]}"
    if _WHOLE.match(statement.strip()):
        return None
    reads = len(_READ.findall(statement))
    if re.match(r"\s*DELETE FROM", statement):
        reads -= 1  # rows of all regions are deleted where they lie
    if reads > len(_BOUND.findall(statement)):
        return f"{reads} sharded tables are read, {len(_BOUND.findall(statement))} by region"
    return None


def test_what_citus_refuses_is_noticed() -> None:
    assert refusal("ALTER TABLE telemetry_span DETACH PARTITION telemetry_span_p0_3600 CONCURRENTLY")
    assert refusal('SELECT count(*) FROM telemetry_probe WHERE "time" > now()')
    assert refusal("SELECT 1 FROM telemetry_probe WHERE region = 3 UNION SELECT 1 FROM telemetry_metric")
    assert refusal("SELECT 1 FROM telemetry_probe WHERE region = 3 FOR UPDATE")
    assert refusal("SELECT 1 FROM telemetry_probe_p0_60 WHERE region = 3") is None
    assert refusal("SELECT count(*) FROM telemetry_probe_p0_60") is None
    assert refusal("SELECT 1 FROM telemetry_receipt") is None


@pytest.mark.usefixtures("sharded")
def test_no_statement_of_the_telemetry_path_is_one_that_citus_refuses(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write, "AT_ONCE", 50)
    with CaptureQueriesContext(connection) as sent:
        _all_paths(settings)
    statements = [_text(query["sql"]) for query in sent.captured_queries]
    named = {name for one in statements for name in _NAMED.findall(one)}
    assert {re.sub(_PARTITION, "", name) for name in named} == set(distributed())  # all were written and read
    for shape in ("COPY telemetry_", "COPY (SELECT", "DETACH PARTITION", "ATTACH PARTITION", "DELETE FROM"):
        assert any(shape in one for one in statements), shape
    found = {refusal(one): one for one in statements if refusal(one)}
    assert found == {}


def _text(sql: str | bytes) -> str:
    return sql.decode() if isinstance(sql, bytes) else sql


def _all_paths(settings: Settings) -> None:
    """Writes, windows of every analyzer, pages, retention, moves into files."""
    region = "east"
    for kind in KINDS.values():
        store(kind.name, [_row(kind)], region)
    fail(120, region)  # copied in several transactions
    tables.discard(1, "unit_failure", START, END)
    position = watermark()
    fail(2, region)
    read_window(EVERYTHING, region, START, END)
    for one in (EVERYTHING, *(one for analyzer in registry.installed().values() for one in analyzer.inputs)):
        read_window(one, region, START, END, position)
    for again in (False, True):
        late_rows(KINDS, region, START, END, position)
        steps = Steps(START, timedelta(minutes=30), 2)
        path_sums(region, "placement", steps)
        path_sums(region, "path_outcome", steps)
        for kind_name in ("path_outcome", "job_attempt"):
            part_attempts(kind_name, region, ["host/1"], START, END)
            other_attempts(kind_name, region, ["host/1"], START, END)
        benchmark_results(region, ["host/1"], START, END)
        probed_paths(region, ["host/1"], START, END)
        outages_of(region, "host/1", START, END)
        topology_at(region, END)
        component("host/1", END, region)
        dependencies_of(region, ["host/1"], END, 2)
        placed_names(region, "host")
        slots_of("host/1", region, END)
        data_clock(region, KINDS)
        regions()
        if not again:
            tables.maintain(START)
            assert move_old(LATER, timedelta(hours=1)).files > 0
            read_window(EVERYTHING, region, START, END, position)
    fail(1, region)
    settings.TELEMETRY_RETENTION = settings.TELEMETRY_SPARSE_RETENTION = timedelta(hours=1)
    assert tables.maintain(LATER)["dropped"] > 0


def _row(kind: Kind) -> dict[str, Any]:
    values: dict[str, Any] = {
        "time": START, "component": "host/1", "components": ["host/1"], "count": 1, "amount": 1.0, "flag": True,
        "labels": {"a": "b"}, "measures": {"a": 1.0}, "numbers": [1.0], "name": "host/1", "text": "x", "id": "1",
    }  # fmt: skip
    row: dict[str, Any] = {f.name: f.choices[0] if f.choices else values.get(f.type) for f in kind.all_fields}
    if "start" in row:
        row["start"] = START - timedelta(minutes=1)
    if kind.end is not None:
        row[kind.end] = START + timedelta(minutes=1)
    return row


# Windows
# ----------------------------------------------------------------------------------------------------------
@pytest.mark.usefixtures("sharded")
@trials(
    max_examples=2,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(world=worlds, cut=st.integers(0, 25))
def test_sharded_windows_have_the_bytes_of_the_other_reader(world: World, cut: int) -> None:
    region = f"region {next(regions_used)}"
    for kind, rows in world.items():
        store(kind, rows[:cut], region)
    position = watermark()
    first = dumps(read_window(EVERYTHING, region, START, END))
    for kind, rows in world.items():
        store(kind, rows[cut:], region)
    assert dumps(read_window(EVERYTHING, region, START, END, position)) == first
    found = {kind: table(kind, rows, region) for kind, rows in world.items()}
    assert dumps(read_window(EVERYTHING, region, START, END)) == dumps(reduce(EVERYTHING, found, START, END))


def test_receipts_of_before_are_shown_and_those_that_retention_deletes_are_hidden(
    log_database: str,  # noqa: ARG001
    settings: Settings,
) -> None:
    settings.TELEMETRY_RETENTION = timedelta(days=3650)
    fail(3)
    sharding.prepare()
    assert counted() == 3
    settings.TELEMETRY_RETENTION = settings.TELEMETRY_SPARSE_RETENTION = timedelta(hours=1)
    tables.maintain(LATER + timedelta(hours=1))
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {tables.SHOWN}")
        assert cursor.fetchone() == (0,)


def test_a_database_without_citus_is_left_as_it_is(log_database: str) -> None:  # noqa: ARG001
    with pytest.raises(CommandError, match="has no Citus"):
        call_command("shard_telemetry")
    assert not tables.is_sharded()


# Visibility
# ----------------------------------------------------------------------------------------------------------
@pytest.fixture
def late_node(log_database: str, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    """Rows and shown receipts do not come with the commit of their event, but by `node_commits`, together."""
    sharding.prepare()
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE pending_rows (LIKE {tables.table(FAILURE)})")
        cursor.execute(f"CREATE TABLE pending_receipts (LIKE {tables.SHOWN})")
        cursor.execute("SELECT pg_get_functiondef('telemetry_show_receipts'::regproc)")
        cursor.execute(cursor.fetchone()[0].replace(tables.SHOWN, "pending_receipts"))
    monkeypatch.setattr(write, "table", lambda _: "pending_rows")
    monkeypatch.setattr(sharding, "PAUSE", 0.0002)


def node_commits() -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        for source, target in (
            ("pending_rows", tables.table(FAILURE)),
            ("pending_receipts", tables.SHOWN),
        ):
            cursor.execute(
                f"WITH moved AS (DELETE FROM {source} RETURNING *) INSERT INTO {target} SELECT * FROM moved"
            )


def _read_in(pauses: int) -> list[int]:
    """Rows of windows at the watermark, each read while the event of three more rows is committed and they are not."""
    dice, reading = random.Random(pauses), queue.Queue[bool]()

    def commit_late() -> None:
        try:
            while reading.get():
                time.sleep(dice.random() * 0.003)
                node_commits()
        finally:
            connections.close_all()

    node = threading.Thread(target=commit_late)
    node.start()
    found = []
    try:
        for _ in range(pauses):
            fail(3)
            position = watermark()
            reading.put(True)
            found.append(counted(position))
            sharding.wait_until(lambda: not _waiting_rows())
    finally:
        reading.put(False)
        node.join()
    return found


def _waiting_rows() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pending_rows LIMIT 1")
        return cursor.fetchone() is not None


@pytest.mark.usefixtures("late_node")
@pytest.mark.parametrize(
    "pauses", [60, pytest.param(1000, marks=[pytest.mark.soak, pytest.mark.timeout(1200)])]
)
def test_no_window_misses_a_row_of_which_the_log_tells(pauses: int) -> None:
    assert _read_in(pauses) == [3 * count for count in range(1, pauses + 1)]


@pytest.mark.usefixtures("late_node")
def test_without_waiting_windows_would_be_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharding, "shows_all", lambda *_: True)
    assert _read_in(30) != [3 * count for count in range(1, 31)]


@pytest.mark.usefixtures("late_node")
def test_a_window_is_refused_while_its_node_is_away_and_read_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sharding, "PATIENCE", 0.05)
    fail(2)
    with pytest.raises(sharding.TelemetryNotVisibleError):
        counted()
    assert counted(region="elsewhere") == 0  # a region that has all is read
    node_commits()
    assert counted() == 2


@pytest.mark.usefixtures("late_node")
def test_a_window_holds_no_row_that_its_node_shows_beyond_the_position() -> None:
    fail(2)
    node_commits()
    position = watermark()
    fail(5)
    node_commits()
    assert (counted(position), counted()) == (2, 7)


@pytest.mark.usefixtures("log_database")
def test_doctor_tells_of_tables_and_settings_that_do_not_fit_several_nodes(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    settings.TELEMETRY_PARTITION_INTERVAL = timedelta(hours=1)
    assert cures.sharding() == []
    sharding.prepare()
    (line,) = cures.sharding()
    assert line == "sharding: this database is prepared for Citus and has none"
    monkeypatch.setattr(sharding, "has_citus", lambda: True)
    with connection.cursor() as cursor:
        cursor.execute("SHOW max_connections")
        (most,) = cursor.fetchone()
        cursor.execute(
            "CREATE TABLE pg_dist_partition AS SELECT unnest(%s::text[])::regclass AS logicalrelid",
            (
                [
                    *sharding.REFERENCES,
                    tables.SHOWN,
                    *(f"telemetry_{name}" for name in KINDS if name != "probe"),
                ],
            ),
        )
    found = cures.sharding()
    assert found == [
        "sharding: tables are on the coordinator only: telemetry_probe",
        f"sharding: max_prepared_transactions is 0, below max_connections ({most})",
        "sharding: DOSSIER_TELEMETRY_PARTITION_INTERVAL is below a day, and each partition has 32 shards",
    ]
    assert len({cures.cure(one) for one in (line, *found)}) == 4
