"""Files of PyTorch over HTTP: dumps of the flight recorder and traces of the profiler become rows, all or none."""

from __future__ import annotations

import gzip
import json
import pickle
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from pytest_django import Settings

from ingest.api import keys
from tests.integration.ingest.telemetry.test_api import count
from tests.unit.ingest.integrations.test_collectives import dump, entry
from tests.unit.ingest.integrations.test_profiler_trace import kernel, trace

pytestmark = pytest.mark.usefixtures("log_database")
NOW_NS = int((datetime.now(UTC) - timedelta(minutes=5)).timestamp() * 1e9)
Send = Callable[..., Any]


@pytest.fixture
def send() -> Send:
    """Sends files by their names to a format's address, with a good key."""
    secret = keys.create("trainer", ["telemetry"])

    def sent(path: str, **files: bytes) -> Any:
        form = {"file": [SimpleUploadedFile(f"nccl_trace_{name}", body) for name, body in files.items()]}
        return Client(headers={"Authorization": f"Bearer {secret}"}).post(f"/api/v1/telemetry/{path}", form)

    return sent


def operation(number: int, **more: Any) -> dict[str, Any]:
    return entry(number, **{"time_created_ns": NOW_NS + number * 10**6, **more})


DUMPS, TRACES = "collective/flight-recorder?job=j", "function_profile/profiler-trace?job=j"


def test_dumps_of_all_ranks_are_stored_once_under_one_receipt(send: Send) -> None:
    files = {f"rank_{rank}": dump(operation(0), operation(1)) for rank in range(2)}
    answer = send(DUMPS, **files)
    assert (answer.status_code, answer.json()["accepted"]) == (202, 4)
    again = send(DUMPS, **files)
    assert (again.status_code, again.json()["receipt"]) == (202, answer.json()["receipt"])
    assert count("telemetry_collective") == 4
    # Packed, and a dump that was sent before among others that are new.
    assert send(DUMPS, **{"rank_0.json.gz": gzip.compress(dump(operation(7)))}).status_code == 202
    assert count("telemetry_collective") == 5


BAD: list[tuple[dict[str, bytes], str]] = [
    ({"rank_0": dump(operation(0))[:-9]}, "nccl_trace_rank_0: is not whole JSON"),
    ({"rank_5": dump(operation(0))}, "rank 5 (by the name of the file) is none of the 2 ranks"),
    ({"rank_0": dump(operation(0), operation(0))}, "sequence number 1 of nccl:all_reduce comes twice"),
    (
        {"rank_0": dump(operation(0), operation(1, time_created_ns=NOW_NS - 10**10))},
        "time_created_ns is 10.0 s before the record before; the clock stepped",
    ),
    ({"rank_0": pickle.dumps({"version": "2.9"})}, "is a pickle, which can run code"),
    ({"rank_0": dump(operation(0)), "rank_1": b"{}"}, "nccl_trace_rank_1: is no dump"),
    ({"name": dump(operation(0))}, "does not end in the rank"),
    (
        {"rank_0": dump(operation(0)), "rank_1": dump(operation(0), ranks="[0, 1, 2]")},
        "nccl_trace_rank_1: process group '0' has 3 ranks here and 2 in another dump",
    ),
    ({"rank_0": trace(kernel("gemm", 10, 30))}, "is no dump of the flight recorder"),
    ({"rank_0": b""}, "is not whole JSON (0 bytes)"),
    ({"rank_0.gz": gzip.compress(dump(operation(0)))[:-9]}, "is not a whole gzip file"),
]


def test_a_bad_dump_has_one_clear_error_and_stores_nothing(send: Send, settings: Settings) -> None:
    for files, said in BAD:
        answer = send(DUMPS, **files)
        assert answer.status_code == 400, said
        assert answer.json()["detail"].startswith("Nothing was stored: ")
        assert said in answer.json()["detail"]
    many = {f"rank_{number}": b"{}" for number in range(101)}
    assert "rank_0: is no dump" in send(DUMPS, **many).json()["detail"]
    settings.DATA_UPLOAD_MAX_NUMBER_FILES = 100
    assert "more than 100 files" in send(DUMPS, **many).json()["detail"]
    assert count("telemetry_collective") == 0


def test_a_trace_is_stored_as_functions_of_its_worker_and_a_bad_one_is_refused(
    send: Send, settings: Settings
) -> None:
    whole = trace(kernel("gemm", 10, 30), kernel("ncclAllReduce", 40, 10), baseTimeNanoseconds=NOW_NS)
    assert send(TRACES, **{"a.json": whole}).json()["accepted"] == 2
    assert count("telemetry_function_profile") == 2
    for body, said in (
        (whole[:-40], "a.json: ends in the middle after item 1: "),
        (b'{"spans": []}', "has no list traceEvents"),
        (dump(operation(0)), "has no list traceEvents: it is no Chrome trace"),
        (pickle.dumps({}), "is not JSON, as export_chrome_trace writes it: "),
        (trace(kernel("gemm", 10, -5), baseTimeNanoseconds=NOW_NS), "ends before it begins (dur -5)."),
        (gzip.compress(whole)[:-9], "a.json: "),
    ):
        answer = send(TRACES, **{"a.json": body})
        assert answer.status_code == 400, body[:20]
        assert said in answer.json()["detail"]
    assert count("telemetry_function_profile") == 2
    assert send("function_profile/profiler-trace", a=whole).json()["detail"].endswith("missing: ?job=NAME.")
    assert send("collective/speedscope?job=j", a=whole).status_code == 404
    settings.UPLOAD_MAX_BODY = 1024
    assert send(TRACES, a=whole * 3).status_code == 413
    assert Client().post(f"/api/v1/telemetry/{DUMPS}").status_code == 401


def test_one_bad_row_refuses_the_body_and_says_which() -> None:
    secret = keys.create("rows", ["telemetry"])
    row = {"time": NOW_NS, "job": "j", "communicator": "0", "seq": 1, "op": "all_reduce", "rank": 0}
    row |= {"state": "completed", "start_ns": NOW_NS, "end_ns": NOW_NS + 10**6}

    def posted(*bodies: bytes) -> Any:
        return Client(headers={"Authorization": f"Bearer {secret}"}).post(
            "/api/v1/telemetry/collective", b"\n".join(bodies), content_type="application/x-ndjson"
        )

    good = json.dumps(row).encode()
    for bad, said in (
        (json.dumps({**row, "end_ns": NOW_NS - 10**9}).encode(), "row 2, start_ns: is more than end_ns"),
        (json.dumps({**row, "state": "done"}).encode(), "row 2, state: 'done' is not scheduled"),
        (good[:-9], "row 2: is not JSON: "),
        (b'{"traceEvents": []}', "row 2, communicator: is missing"),
        (pickle.dumps(row), "row 2: is not valid UTF-8"),
    ):
        answer = posted(good, bad)
        assert answer.status_code == 400, said
        assert answer.json()["detail"].startswith(f"Nothing was stored: {said}")
    assert count("telemetry_collective") == 0
    assert posted(good).status_code == 202
