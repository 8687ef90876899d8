"""Every kind through the endpoint to a window; intervals that are told of again, that come late and that grow old."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from django.db import connection
from django.test import Client

from ingest.api import keys
from ingest.queries import Position, data_clock, late_rows, read_window, watermark
from ingest.telemetry.kinds import KINDS
from ingest.telemetry.store import write
from ingest.telemetry.store.tables import maintain
from ingest.telemetry.windows import sql
from ingest.telemetry.windows.reductions import STILL_GOING, Count, Each, Input, Reduction

pytestmark = pytest.mark.usefixtures("log_database")

NOW = datetime.now(UTC).replace(microsecond=0)
START, END = NOW - timedelta(hours=1), NOW
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
Row = Mapping[str, Any]
Send = Callable[..., Any]


def at(minutes: float) -> str:
    """Minutes after the window's start."""
    return (START + timedelta(minutes=minutes)).isoformat()


GOOD: dict[str, Row] = {
    "probe": {"time": at(5), "src": "host/1", "dst": "host/2", "sent": 3, "lost": 0, "rtt_us": [1.5, 2.5, 1.5],
        "hops": ["tor/1", "link/a~b"]},
    "outage": {"start": at(-5), "device": "tor/1", "end": at(5), "cause": "soft"},
    "uptime": {"start": at(-5), "unit": "vm/1", "end": at(5), "state": "down", "hops_class": "near"},
    "benchmark": {"time": at(5), "node": "node/1", "benchmark": "gemm", "metric": "fp16", "values": [-1.0, 2.0]},
    "node_incident": {"time": at(5), "node": "node/1", "kind": "ecc", "covariates": {"age": 2.0}},
    "observation": {"time": at(5), "observer": "a/1", "subject": "b/1", "context": "put", "status": "unhealthy"},
    "span": {"time": at(5), "trace": "4BF92F3577B34DA6A3CE929D0E0E4736", "span": "00f067aa0ba902b7",
        "service": "cart", "instance": "cart-1", "operation": "GET", "duration_us": 3.5, "error": True},
    "log_count": {"time": at(5), "component": "instance/cart-1", "template": "took <*> ms", "severity": "warn",
        "count": 7},
    "metric": {"time": at(5), "name": "temperature", "labels": {"zone": "b"}, "value": -3.5},
    "endpoint": {"time": at(-5), "endpoint": "endpoint/j-0-r1", "job": "j", "host": "host/1", "nic": "nic/1-1",
        "rail": 1},
    "nic_traffic": {"time": at(5), "job": "j", "host": "host/1", "nic": "nic/1-1", "rail": 1, "tx_bytes": 3e9},
    "flow_rule": {"time": at(5), "element": "vswitch/1", "match": "vport/2", "layer": "nic"},
    "collective": {"time": at(5), "job": "j", "communicator": "dp0", "seq": 7, "op": "send", "rank": 3, "src": 3,
        "dst": 4, "bytes": 5e9, "state": "started", "node": "node/1"},
    "function_profile": {"time": at(5), "job": "j", "worker": "worker/3", "role": "pp0", "function": "gemm",
        "cls": "compute", "beta": 0.5, "mu": 0.9, "sigma": 0.05},
    "change": {"time": at(5), "change": "CHG-1", "kind": "config", "targets": ["service/cart"], "team": "shop",
        "settings": {"ttl": "30"}, "measures": {"rollout": 0.5}},
    "change_outcome": {"time": at(5), "change": "CHG-1", "outcome": "incident", "incident": "17"},
    "job_attempt": {"end": at(5), "job": "j", "nodes": ["node/1", "node/2"], "start": at(-99), "outcome": "failed"},
}  # fmt: skip
LISTED = ("numbers",)


@pytest.fixture
def send() -> Send:
    """Posts rows to a kind's endpoint, in any format, and expects them to be taken."""
    secret = keys.create("feeder", ["telemetry"])

    def post(kind: str, *rows: Row, media_type: str = "application/x-ndjson") -> Any:
        answer = Client(headers={"Authorization": f"Bearer {secret}"}).post(
            f"/api/v1/telemetry/{kind}", written(rows, media_type), content_type=media_type
        )
        assert answer.status_code == 202, answer.content
        return answer.json()

    return post


def written(rows: tuple[Row, ...], media_type: str) -> bytes:
    if media_type == "application/json":
        return json.dumps(rows).encode()
    if media_type == "application/x-ndjson":
        return "".join(json.dumps(row) + "\n" for row in rows).encode()
    table = pa.Table.from_pylist(list(rows))
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def found(reduction: Reduction, upto: Position | None = None) -> list[tuple[Any, ...]]:
    """The keys of each row of the reduction's window, and what it counts."""
    sums = read_window(Input("i", (reduction,)), "default", START, END, upto)[reduction.name]
    columns = [
        key.tolist() if isinstance(key, np.ndarray) else [key[row] for row in range(sums.rows)]
        for key in (*sums.keys.values(), *sums.values.values())
    ]
    return list(zip(*columns, strict=True))


@pytest.mark.parametrize("kind", GOOD)
def test_a_row_of_every_kind_comes_back_from_every_format(send: Send, kind: str) -> None:
    whole = tuple(field.name for field in KINDS[kind].fields if field.type not in LISTED)
    reduction = Reduction("all", kind, whole, {"n": Count()})
    for times, media_type in enumerate(
        ("application/x-ndjson", "application/json", "application/vnd.apache.arrow.stream"), 1
    ):
        send(kind, GOOD[kind], media_type=media_type)
        (row,) = found(reduction)
        assert row[-1] == (times if KINDS[kind].is_event else 1)


def test_lists_of_numbers_come_back_one_by_one(send: Send) -> None:
    send("probe", GOOD["probe"], {**GOOD["probe"], "rtt_us": []})
    send("benchmark", GOOD["benchmark"])
    assert found(Reduction("r", "probe", (), {"n": Count()}, each=Each("rtt_us"))) == [(1.5, 2), (2.5, 1)]
    bins = Reduction("b", "benchmark", ("node",), {"n": Count()}, each=Each("values", (-1.0, 2.0)))
    assert found(bins) == [("node/1", 1, 1), ("node/1", 2, 1)]


def test_ids_are_never_numbered(send: Send) -> None:
    send("span", {**GOOD["span"], "parent": "request 7"})
    with connection.cursor() as cursor:
        cursor.execute("SELECT name FROM telemetry_name ORDER BY name")
        assert [name for (name,) in cursor.fetchall()] == ["GET", "cart", "cart-1", "default"]
    assert found(Reduction("r", "span", ("trace", "span", "parent"), {})) == [
        ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", "5b6ebef4ded8cc72e59cf7b6db14fb0b")
    ]


def test_a_body_of_long_lists_is_copied_in_parts(send: Send, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "AT_ONCE", 10)
    monkeypatch.setattr(write, "MOST_ROWS", 10)
    parts: list[int] = []

    copy_in = write.copy_in

    def watched(table: str, columns: Any, values: Any) -> None:
        parts.append(len(values["time"]))
        copy_in(table, columns, values)

    monkeypatch.setattr(write, "copy_in", watched)
    row = GOOD["benchmark"]
    send("benchmark", *({**row, "values": [float(i)] * 30} for i in range(5)), {**row, "values": [9.0] * 300})
    assert parts == [2, 3, 1]
    counted = Reduction("r", "benchmark", (), {"n": Count()}, each=Each("values"))
    assert found(counted) == [(float(i), 30) for i in range(5)] + [(9.0, 300)]


# Intervals
# ----------------------------------------------------------------------------------------------------------
OUTAGES = Reduction("outages", "outage", ("device", "start", "end"), {})


def out(minute: float, end: float | None = None, device: str = "tor/1") -> Row:
    ended = {} if end is None else {"end": at(end)}
    return {"start": at(minute), "device": device, "cause": "soft"} | ended


def ends(upto: Position | None = None) -> list[float | None]:
    """Ends of the outages in the window, in minutes after its start; None for one that lasts."""
    began = START.timestamp() * 1e6
    return [None if end == STILL_GOING else (end - began) / 60e6 for _, _, end in found(OUTAGES, upto)]


def test_an_outage_lasts_until_its_end_is_told(send: Send) -> None:
    send("outage", out(-30))
    send("outage", out(10))
    send("outage", out(10, 20), out(-30, -20))
    assert ends() == [20.0]


def test_a_window_read_at_a_position_does_not_know_the_end_yet(send: Send) -> None:
    send("outage", out(-30))
    then = watermark()
    send("outage", out(-30, -20))
    assert (ends(then), ends()) == ([None], [])


def test_an_outage_that_is_told_of_twice_in_one_body_ends_as_was_said_last(send: Send) -> None:
    send("outage", out(10, 30), out(10, 40))
    assert ends() == [40.0]


def test_intervals_of_which_statistics_know_nothing_are_not_compared_each_with_each(send: Send) -> None:
    send("outage", *(out(10 + n / 100, 50, f"tor/{n}") for n in range(300)))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE telemetry_outage")
        query = sql._overlapping(KINDS["outage"], 0, START, END, None)
        cursor.execute("EXPLAIN SELECT * FROM " + query.text, query.parameters)
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "newer" in plan
    assert "Anti Join" not in plan


@pytest.mark.parametrize(
    ("rows", "listed"),
    [
        ([out(10, 20)], 1),
        ([out(-30, 20)], 1),
        ([out(-30)], 1),
        ([out(-30, -20, "tor/9")], 1),  # it seemed to last into the window
        ([out(-30, -20, "tor/8")], 0),  # it was over before the window, as was known
        ([out(60.5, 61)], 0),
    ],
)
def test_what_changes_a_window_late_is_listed(send: Send, rows: list[Row], listed: int) -> None:
    send("outage", out(-30, None, "tor/9"), out(-30, -25, "tor/8"))
    then = watermark()
    send("outage", *rows)
    assert [late.rows for late in late_rows(["outage"], "default", START, END, then)] == [1] * listed


def test_the_data_clock_moves_with_ends_that_are_known(send: Send) -> None:
    send("outage", out(5))
    assert data_clock("default", ["outage"]).latest == START + timedelta(minutes=5)
    send("outage", out(5, 25))
    assert data_clock("default", ["outage"]).latest == START + timedelta(minutes=25)


def kept() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            'SELECT name FROM telemetry_outage JOIN telemetry_name AS n ON n.id = device ORDER BY name, "time"'
        )
        return [name for (name,) in cursor.fetchall()]


def test_retention_deletes_what_was_over_before_the_horizon_and_keeps_what_lasts(send: Send) -> None:
    send("outage", out(-90, None, "tor/closed"), out(-90, None, "tor/open"), out(-90, 5, "tor/long"))
    send("outage", out(-90, -60, "tor/closed"), out(-90, -60, "tor/short"), out(10, 20, "tor/new"))
    maintain(START + timedelta(days=400))
    assert kept() == ["tor/long", "tor/new", "tor/open"]


def test_an_outage_is_still_there_when_its_month_is_reported(send: Send) -> None:
    send("outage", out(-90, -60))
    maintain(START + timedelta(days=60))
    assert kept() == ["tor/1"]


def test_an_end_that_is_deleted_does_not_bring_its_outage_back(send: Send) -> None:
    send("outage", out(-90))
    send("outage", out(-90, -60))
    maintain(START + timedelta(days=400))
    assert (kept(), ends()) == ([], [])


def test_an_outage_of_last_year_that_lasts_is_in_the_window_and_stays(send: Send) -> None:
    send("outage", out(-300 * 24 * 60))
    maintain(NOW)
    assert ends() == [None]
