"""A window of one region reads the rows of that region, and a run at a position the receipts of its time."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import psycopg2
import pytest
from django.db import connection

from ingest.queries import Position, read_window
from ingest.telemetry.decode.builder import Assembly
from ingest.telemetry.decode.columns import Bounds
from ingest.telemetry.kinds import KINDS
from ingest.telemetry.store import tables
from ingest.telemetry.store.write import Delivery, receive
from ingest.telemetry.windows import sql
from ingest.telemetry.windows.reductions import Count, Input, Reduction, plan

pytestmark = pytest.mark.usefixtures("log_database")

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
END = START + timedelta(hours=1)
UNITS = Reduction("n", "unit_failure", ("unit",), {"n": Count()})
REGIONS, BODIES, ROWS = 20, 2, 2_000


def fail(region: str, rows: int = ROWS, at: datetime = START) -> None:
    assembly = Assembly(KINDS["unit_failure"], region)
    values: dict[str, list[Any]] = {
        "time": [at + timedelta(milliseconds=i) for i in range(rows)],
        "unit": [f"vm/{i % 10}" for i in range(rows)],
    }
    assembly.add({**values, "symptom": [None] * rows, "region": [None] * rows}, np.arange(1, rows + 1))
    receive(assembly.rows(Bounds()), Delivery("test", bytes(32), 1))


@pytest.fixture
def filled(log_database: str) -> None:  # noqa: ARG001
    for body in range(BODIES):
        for region in range(REGIONS):
            fail(f"region-{region}", at=START + timedelta(minutes=body))


def scans(upto: Position | None = None) -> list[dict[str, Any]]:
    """The nodes of the plan that ran for a window of one region."""
    chosen = plan(UNITS)
    region = sql.region_number("region-7")
    rows = sql._joined_rows(chosen, region, START, END, upto)
    query = sql._query(chosen, sql._columns(chosen), rows, START)
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT json) {query.text}", query.parameters)
        found = cursor.fetchone()[0]
    pending, nodes = [(found if isinstance(found, list) else json.loads(found))[0]["Plan"]], []
    while pending:
        nodes.append(pending.pop())
        pending += nodes[-1].get("Plans", [])
    return nodes


@pytest.mark.usefixtures("filled")
def test_a_window_reads_the_rows_of_its_region_and_few_others() -> None:
    read_window(Input("failures", (UNITS,)), "region-7", START, END)  # brings the index up to date
    (scan,) = [node for node in scans() if node["Node Type"] == "Bitmap Heap Scan"]
    assert scan["Actual Rows"] == BODIES * ROWS
    assert scan["Rows Removed by Index Recheck"] <= 2 * BODIES * ROWS  # of 20 regions


@pytest.mark.usefixtures("filled")
def test_a_window_at_a_position_finds_later_receipts_by_an_index() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO telemetry_receipt SELECT -i, gen_random_uuid(), kind, region, 1, first, last, received_at,"
            " epoch, txid, seq FROM telemetry_receipt, generate_series(1, 20000) AS i WHERE number ="
            " (SELECT max(number) FROM telemetry_receipt)"
        )
        cursor.execute("ANALYZE telemetry_receipt")
        cursor.execute(
            "SELECT epoch, txid::text, seq FROM telemetry_receipt ORDER BY epoch, txid DESC LIMIT 1"
        )
        epoch, txid, seq = cursor.fetchone()
    reads = [
        n for n in scans(Position(epoch, int(txid), seq)) if n.get("Relation Name") == "telemetry_receipt"
    ]
    assert [node["Node Type"] for node in reads] == ["Index Only Scan"]


@pytest.mark.usefixtures("filled")
def test_partitions_that_are_older_than_the_index_get_it_one_by_one() -> None:
    fail("region-7", at=START - timedelta(hours=3))
    kind = KINDS["unit_failure"]
    with connection.cursor() as cursor:
        cursor.execute("DROP INDEX telemetry_unit_failure_place")
        cursor.execute(
            f"CREATE INDEX telemetry_unit_failure_place ON ONLY telemetry_unit_failure {tables.PLACE}"
        )
    for missing in (1, 0):
        tables._index_partitions(kind)
        with connection.cursor() as cursor:
            cursor.execute(tables._PARTITIONS, ("telemetry_unit_failure",))
            assert len(cursor.fetchall()) == len(tables.existing(kind)) - missing
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indisvalid FROM pg_index WHERE indexrelid = 'telemetry_unit_failure_place'::regclass"
        )
        assert cursor.fetchone() == (True,)


@pytest.mark.usefixtures("filled")
def test_a_partition_that_is_locked_is_read_without_waiting(log_database: str) -> None:
    with closing(psycopg2.connect(log_database)) as other, other.cursor() as cursor:
        for start, end in tables.existing(KINDS["unit_failure"]):
            name = f"telemetry_unit_failure_p{start}_{end - start}"
            cursor.execute(f"LOCK TABLE {name} IN SHARE ROW EXCLUSIVE MODE")
        sums = read_window(Input("failures", (UNITS,)), "region-7", START, END)["n"]
    assert int(sums.values["n"].sum()) == BODIES * ROWS
