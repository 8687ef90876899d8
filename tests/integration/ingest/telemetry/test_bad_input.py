"""A thousand bad bodies: each is refused with a reason, none is stored, none breaks the endpoint."""

from __future__ import annotations

import gzip
import io
import json
import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from django.db import connection
from django.test import Client

from ingest.api import keys
from ingest.telemetry.kinds import KINDS, Field

pytestmark = pytest.mark.usefixtures("log_database")

NOW = datetime.now(UTC)
TIME = NOW.isoformat()
NDJSON, ARRAY, ARROW = "application/x-ndjson", "application/json", "application/vnd.apache.arrow.stream"
SOON = (NOW + timedelta(minutes=1)).isoformat()
GOOD: dict[str, dict[str, Any]] = {
    "path_outcome": {"time": TIME, "components": ["tor/1", "store/1"], "attempts": 5, "failures": 1},
    "placement": {"time": TIME, "unit": "vm/1", "components": ["host/1"]},
    "unit_failure": {"time": TIME, "unit": "vm/1", "symptom": "disk"},
    "topology": {"time": TIME, "component": "tor/1", "parents": ["dc/1"], "labels": {"row": "1"}},
    "probe": {
        "time": TIME,
        "src": "host/1",
        "dst": "host/2",
        "sent": 3,
        "lost": 0,
        "rtt_us": [1.5],
        "hops": ["tor/1"],
        "layer": "overlay",
    },
    "outage": {"start": TIME, "device": "tor/1", "end": SOON, "cause": "soft", "planned": False},
    "uptime": {"start": TIME, "unit": "vm/1", "end": SOON, "state": "down", "cause": "", "hops_class": "far"},
    "benchmark": {
        "time": TIME,
        "node": "node/1",
        "benchmark": "gemm",
        "metric": "fp16",
        "values": [1.5],
        "sku": "",
    },
    "log_count": {
        "time": TIME,
        "component": "instance/cart-1",
        "template": "took <*> ms",
        "severity": "warn",
        "count": 7,
    },
    "node_incident": {"time": TIME, "node": "node/1", "kind": "ecc", "covariates": {"age": 2}},
    "observation": {
        "time": TIME,
        "observer": "a/1",
        "subject": "b/1",
        "context": "put",
        "status": "healthy",
        "score": 1,
    },
    "span": {
        "time": TIME,
        "trace": "ab",
        "span": "cd",
        "parent": "ef",
        "service": "cart",
        "instance": "cart-1",
        "operation": "GET",
        "duration_us": 3.5,
        "error": False,
    },
    "metric": {"time": TIME, "name": "load", "labels": {"host": "a"}, "value": -1.5},
    "endpoint": {
        "time": TIME,
        "endpoint": "endpoint/1",
        "job": "j",
        "host": "host/1",
        "nic": "nic/1",
        "rail": 1,
        "container": "c",
        "tenant": "7",
        "active": True,
    },
    "nic_traffic": {
        "time": TIME,
        "job": "j",
        "host": "host/1",
        "nic": "nic/1",
        "rail": 1,
        "tx_bytes": 3.0,
        "rx_bytes": 2.0,
    },
    "flow_rule": {"time": TIME, "element": "vswitch/1", "match": "vport/2", "next": "", "layer": "nic"},
    "collective": {
        "time": TIME,
        "job": "j",
        "communicator": "dp0",
        "seq": 7,
        "op": "send",
        "rank": 3,
        "src": 3,
        "dst": 4,
        "bytes": 5.0,
        "start_ns": 1.0,
        "end_ns": 2.0,
        "state": "started",
        "ranks": 8,
        "node": "node/1",
    },
    "function_profile": {
        "time": TIME,
        "job": "j",
        "worker": "worker/3",
        "role": "pp0",
        "function": "gemm",
        "cls": "compute",
        "beta": 0.5,
        "mu": 0.9,
        "sigma": 0.05,
        "window_s": 20,
    },
    "change": {
        "time": TIME,
        "change": "CHG-1",
        "kind": "config",
        "targets": ["service/a"],
        "author": "alice",
        "team": "shop",
        "settings": {"ttl": "30"},
        "measures": {"rollout": 0.5},
    },
    "change_outcome": {"time": TIME, "change": "CHG-1", "outcome": "good", "incident": "17"},
    "job_attempt": {"end": SOON, "job": "j", "nodes": ["node/1"], "start": TIME, "outcome": "failed"},
}
LONG_AGO = (NOW - timedelta(days=99)).isoformat()
WRONG: tuple[Any, ...] = (
    None, True, -1, 1.5, 10**30, "", "x", "\x00", "a/\x00", "\ud800", [], [[]], [None], ["x"], {}, {"a": 1},
    {"a": {}}, (NOW + timedelta(hours=1)).isoformat(), LONG_AGO, "x" * 5000, [1] * 2000,
    [1e308, "1"], {"a": "1"}, "Healthy",
)  # fmt: skip
Bad = tuple[str, bytes, str, dict[str, str]]  # kind, body, media type, headers


def fits(field: Field, value: Any) -> bool:
    """Whether the value is after all a good one for the field."""
    if value is None:
        return field.optional
    text: bool = isinstance(value, str) and "\x00" not in value and "\ud800" not in value
    match field.type:
        case "name":
            return text and 0 < len(value) <= 512
        case "text":
            return text and len(value) <= 512
        case "choice":
            return bool(value == "" == field.default)
        case "id":
            return isinstance(value, str) and (value != "" or field.optional)
        case "flag" | "amount":
            return (
                type(value) is bool
                if field.type == "flag"
                else (type(value) in (int, float) and bool(value >= 0 or field.signed))
            )
        case "count":
            return value is not True and value == field.low == -1
        case "components":
            return bool(value == []) and field.may_be_empty
        case "numbers":
            return bool(value == [1] * 2000 if field.signed else value == [])
        case "labels" | "measures":
            return value in ({}, {"a": "1"} if field.type == "labels" else {"a": 1})
    return field.name == "start" and value == LONG_AGO  # what lasts may have begun before what is kept


def wrong_values(chance: random.Random) -> Bad | None:
    kind = chance.choice(list(GOOD))
    row = dict(GOOD[kind])
    field, value = chance.choice(list(row)), chance.choice(WRONG)
    if fits(KINDS[kind].field(field), value):
        return None
    row[field] = value
    rows = [GOOD[kind]] * chance.randrange(3) + [row]
    if chance.random() < 0.5:
        return kind, json.dumps(rows).encode(), ARRAY, {}
    return kind, "\n".join(map(json.dumps, rows)).encode(), NDJSON, {}


def wrong_fields(chance: random.Random) -> Bad:
    kind = chance.choice(list(GOOD))
    row = dict(GOOD[kind])
    if chance.random() < 0.5:
        row["colour"] = "red"
        return kind, json.dumps(row).encode(), NDJSON, {}
    del row[KINDS[kind].time]
    return kind, json.dumps([row]).encode(), ARRAY, {}


def repeated_keys(chance: random.Random) -> Bad:
    kind = chance.choice(list(GOOD))
    text = json.dumps(GOOD[kind])
    return kind, f'{text[:-1]}, "{KINDS[kind].time}": "{TIME}"}}'.encode(), NDJSON, {}


def broken_text(chance: random.Random) -> Bad:
    kind = chance.choice(list(GOOD))
    body = bytearray(json.dumps(GOOD[kind]).encode())
    if chance.random() < 0.5:
        return kind, bytes(body[: chance.randrange(1, len(body))]), NDJSON, {}
    body[chance.randrange(len(body))] = chance.choice((0xFF, 0xC0, 0x00))
    return kind, bytes(body), chance.choice((NDJSON, ARRAY)), {}


def broken_gzip(chance: random.Random) -> Bad:
    body = gzip.compress(json.dumps(GOOD["unit_failure"]).encode())
    return "unit_failure", body[: chance.randrange(1, len(body))], NDJSON, {"Content-Encoding": "gzip"}


def broken_zstd(chance: random.Random) -> Bad:
    return "unit_failure", chance.randbytes(50), NDJSON, {"Content-Encoding": "zstd"}


def broken_arrow(chance: random.Random) -> Bad:
    table = pa.table({"time": pa.array([NOW]), "unit": pa.array(["vm/1"]).dictionary_encode()})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    body = sink.getvalue()
    return "unit_failure", body[: chance.randrange(1, len(body) - 300)], ARROW, {}


def large(chance: random.Random) -> Bad:
    line = chance.choice(
        (
            json.dumps(GOOD["unit_failure"] | {"symptom": "x" * 10_000_000}),
            " " * 10_000_000 + json.dumps(GOOD["unit_failure"]),
        )
    )
    return "unit_failure", line.encode(), NDJSON, {}


def many_components(chance: random.Random) -> Bad:
    row = GOOD["path_outcome"] | {"components": [f"tor/{i}" for i in range(1_000_000)]}
    return (
        "path_outcome",
        json.dumps(row if chance.random() < 0.5 else [row]).encode(),
        chance.choice((NDJSON, ARRAY)),
        {},
    )


def bomb(chance: random.Random) -> Bad:
    size = 300 * 2**20
    return (
        "unit_failure",
        gzip.compress(b"\n" * size),
        chance.choice((NDJSON, ARRAY)),
        {"Content-Encoding": "gzip"},
    )


OFTEN: list[Callable[[random.Random], Bad | None]] = [
    wrong_values, wrong_values, wrong_fields, repeated_keys, broken_text, broken_gzip, broken_zstd,
    broken_arrow,
]  # fmt: skip
SELDOM: list[Callable[[random.Random], Bad | None]] = [large, large, many_components, many_components, bomb]


def bad_bodies(count: int) -> Iterator[Bad]:
    chance = random.Random(7)
    for make in SELDOM:
        if (bad := make(chance)) is not None:
            yield bad
    made = len(SELDOM)
    while made < count:
        if (bad := chance.choice(OFTEN)(chance)) is not None:
            made += 1
            yield bad


def counts() -> list[int]:
    tables = [f"telemetry_{kind}" for kind in GOOD]
    tables += [
        "telemetry_receipt",
        "telemetry_unfinished",
        "telemetry_idempotency",
        "telemetry_name",
        "log_event",
    ]
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(f"SELECT count(*) FROM {table}" for table in tables))
        return [number for (number,) in cursor.fetchall()]


def test_hundreds_of_bad_bodies_are_refused_and_nothing_of_them_is_stored() -> None:
    secret = keys.create("feeder", ["telemetry"])
    client = Client(headers={"Authorization": f"Bearer {secret}"})
    before = counts()
    for number, (kind, body, media_type, headers) in enumerate(bad_bodies(300)):
        answer = client.post(f"/api/v1/telemetry/{kind}", body, content_type=media_type, headers=headers)
        what = f"body {number} for {kind}: {body[:300]!r} {answer.content[:300]!r}"
        assert answer.status_code in (400, 413), what
        problem = answer.json()
        assert problem["detail"], what
        for error in problem.get("errors", ()):
            assert error["row"] >= 1, what
            assert error["reason"], what
    assert counts() == before
