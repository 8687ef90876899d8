"""Chrome traces of the PyTorch profiler as rows of `function_profile`."""

from __future__ import annotations

import gzip
import io
import json
import random
import tracemalloc
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from ingest.integrations import profiler_trace
from ingest.integrations.profiler_trace import InvalidTraceError, Profile
from ingest.telemetry.decode.body import decode_array
from ingest.telemetry.decode.columns import Bounds
from ingest.telemetry.kinds import KINDS

BASE = 1_772_366_400_000_000_000
Json = dict[str, Any]
MAIN, LOADER, STREAM = 1, 2, 7


def event(cat: str, name: str, ts: float, dur: float, tid: int = STREAM, **args: Any) -> Json:
    return {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": tid, "ts": ts, "dur": dur, "args": args}


def kernel(name: str, ts: float, dur: float, **args: Any) -> Json:
    return event("kernel", name, ts, dur, **args)


def call(name: str, ts: float, dur: float, tid: int = MAIN) -> Json:
    return event("python_function", name, ts, dur, tid)


def trace(*events: Json, **more: Any) -> bytes:
    head = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "H100"}], "displayTimeUnit": "ms",
        "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8}, "baseTimeNanoseconds": BASE}  # fmt: skip
    return json.dumps({**head, **more, "traceEvents": list(events), "traceName": "t"}).encode()


def read(body: bytes) -> Profile:
    told = profiler_trace.head(io.BytesIO(body))
    made = profiler_trace.profile(io.BytesIO(body), told, "j", f"worker/{told.rank}", "pp0")
    decode_array(KINDS["function_profile"], json.dumps(made.rows).encode(), "default", Bounds())
    return made


def shares(*events: Json) -> dict[str, float]:
    return {row["function"]: row["beta"] for row in read(trace(*events)).rows}


def test_a_row_has_the_time_of_the_profile_and_the_rank_of_the_trace() -> None:
    gemm = {"est. achieved occupancy %": 40}
    (row,) = read(trace(kernel("gemm", 10, 30, **gemm), kernel("gemm", 60, 10, **gemm))).rows
    assert row == {
        "time": BASE + 10_000, "job": "j", "worker": "worker/3", "role": "pp0", "function": "gemm", "cls": "compute",
        "beta": round(40 / 60, 6), "mu": 0.4, "sigma": 0.0, "window_s": 6e-05,
    }  # fmt: skip


def test_the_class_of_highest_priority_is_on_the_critical_path() -> None:
    assert shares(
        kernel("gemm", 0, 40),
        event("gpu_memcpy", "Memcpy HtoD", 30, 20),
        kernel("ncclDevKernel_AllReduce", 20, 50, tid=9),
        call("train.py(1): step", 0, 100),
    ) == {"gemm": 0.4, "train.py(1): step": 0.3, "ncclDevKernel_AllReduce": 0.2, "Memcpy HtoD": 0.1}


def test_a_call_counts_while_it_is_the_innermost() -> None:
    outer, inner = call("outer", 0, 100), call("inner", 20, 50)
    assert shares(outer, inner, call("leaf", 30, 10)) == {"outer": 0.5, "inner": 0.4, "leaf": 0.1}


def test_calls_of_threads_that_launch_nothing_do_not_count() -> None:
    launch = event("cuda_runtime", "cudaLaunchKernel", 1, 1, MAIN)
    assert shares(launch, call("step", 0, 50), call("wait", 0, 100, LOADER)) == {"step": 0.5}


def test_the_use_of_each_resource_is_weighted_by_time() -> None:
    fast: Json = {"memory bandwidth (GB/s)": 12.0}
    slow: Json = {"memory bandwidth (GB/s)": 4.0}
    sent = {"In msg nelems": 1_000_000, "dtype": "BFloat16", "Collective name": "allreduce"}
    rows = read(trace(
        event("gpu_memcpy", "copy", 0, 10, **fast),
        event("gpu_memcpy", "copy", 10, 30, **slow),
        kernel("ncclDevKernel", 100, 20, **sent), kernel("gemm", 200, 1),
    )).rows  # fmt: skip
    assert {row["function"]: (row["cls"], row["mu"], row["sigma"]) for row in rows} == {
        "copy": ("memory", 6.0, 3.464102), "ncclDevKernel": ("collective", 100.0, 0.0), "gemm": ("compute", 0.0, 0.0)
    }  # fmt: skip


def test_functions_with_the_smallest_shares_are_left_out_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiler_trace, "MOST_FUNCTIONS", 2)
    made = read(trace(*(kernel(f"k{n}", 100 * n, n) for n in range(1, 5))))
    assert ([row["function"] for row in made.rows], made.left_out) == (["k4", "k3"], 2)


def test_a_name_that_is_too_long_is_cut_and_stays_different() -> None:
    assert len(shares(kernel("k" * 2000 + "a", 0, 1), kernel("k" * 2000 + "b", 5, 1))) == 2


def test_times_since_1970_need_no_base() -> None:
    assert read(trace(kernel("k", BASE / 1000, 5), baseTimeNanoseconds=0)).rows[0]["time"] == BASE


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            trace(kernel("k", 0, 5), kernel("k", 9, 5))[:-90],
            "ends in the middle after item 1: parse error: premature EOF$",
        ),
        (b'{"version": "2.9", "entries": []}', "has no list traceEvents"),
        (b"[1, 2]", "has no list traceEvents"),
        (
            b"PK\x03\x04",
            "is not JSON, as export_chrome_trace writes it: lexical error: invalid char in json text$",
        ),
        (trace(), "has no kernel and no call"),
        (trace(kernel("k", 0, -5)), "event 1, 'k': ends before it begins"),
        (trace(kernel("k", 0, 5), {**kernel("k", 0, 5), "ts": "7"}), "event 2: lacks a name, or ts"),
        (trace(kernel("k", 5, 5), baseTimeNanoseconds=0), "has no baseTimeNanoseconds"),
    ],
)
def test_a_wrong_trace_gets_one_reason(body: bytes, reason: str) -> None:
    with pytest.raises(InvalidTraceError, match=reason) as refused:
        read(body)
    assert "\n" not in str(refused.value)


def test_memory_follows_the_number_of_events_and_not_the_size_of_the_trace(tmp_path: Path) -> None:
    stacks = "x" * 20_000
    path = tmp_path / "t.json"
    path.write_bytes(trace(*(kernel(f"k{n % 7}", n, 1, stack=stacks) for n in range(600))))
    profiler_trace.convert(lambda: path.open("rb"), "j", "", "pp0")

    tracemalloc.start()
    try:
        made = profiler_trace.convert(lambda: path.open("rb"), "j", "", "pp0")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert made.events == 600
    assert path.stat().st_size > 12_000_000
    assert peak < 2_000_000


def nested(chance: random.Random, name: str, start: float, length: float, tid: int) -> list[Json]:
    """A call that calls others, one after the other, some of them as long as itself."""
    calls, at = [call(f"{name}{chance.randrange(5)}", start, length, tid)], start
    while length > 2 and chance.random() < 0.7 and at < start + length:
        inner = chance.choice([length, chance.uniform(0, length)])
        inner = min(inner, start + length - at)
        calls += nested(chance, name, at, inner if inner < length else length - 1, tid)
        at += inner + 1
    return calls


def test_the_critical_path_is_the_same_in_stretches_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(3)
    events = [one for tid in (1, 2) for n in range(9) for one in nested(chance, "f", 100 * n, 90, tid)]
    for kind in ("kernel", "gpu_memcpy"):
        events += [
            event(kind, f"{kind}{n % 4}", chance.uniform(0, 900), chance.uniform(0, 40)) for n in range(60)
        ]
    whole = read(trace(*events)).rows
    monkeypatch.setattr(profiler_trace, "AT_ONCE", 7)
    parts = {(row["cls"], row["function"]): row for row in read(trace(*events)).rows}
    assert len(parts) == len(whole) > 10
    for row in whole:
        found = parts[row["cls"], row["function"]]
        assert (found["beta"], found["mu"]) == pytest.approx((row["beta"], row["mu"]), abs=2e-6)


def test_more_events_than_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiler_trace, "MOST_EVENTS", 3)
    with pytest.raises(InvalidTraceError, match="has more than 3 kernels and calls"):
        read(trace(*(kernel("k", n, 1) for n in range(4))))


def test_the_command_converts_plain_and_compressed_traces(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, packed, out = tmp_path / "a.json", tmp_path / "b.json.gz", tmp_path / "out.ndjson"
    plain.write_bytes(trace(kernel("gemm", 0, 5)))
    packed.write_bytes(gzip.compress(trace(kernel("gemm", 0, 5), distributedInfo={"rank": 4})))
    call_command(
        "convert", "profiler-trace", str(plain), str(packed), "--job", "j", "--role", "pp0", "--out", str(out)
    )
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(row["worker"], row["job"], row["role"]) for row in rows] == [
        ("worker/3", "j", "pp0"),
        ("worker/4", "j", "pp0"),
    ]
    assert capsys.readouterr().err.startswith("note: worker/3: 1 functions of 1 kernels and calls")


def test_the_command_names_the_file_of_a_wrong_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packed = tmp_path / "b.json.gz"
    packed.write_bytes(gzip.compress(trace(kernel("gemm", 0, 5)))[:-20])
    with pytest.raises(SystemExit):
        call_command("convert", "profiler-trace", str(packed))
    assert capsys.readouterr().err.startswith(f"{packed}: ")


def test_bytes_that_were_changed_are_read_or_refused() -> None:
    good, chance = trace(kernel("gemm", 0, 5), call("step", 0, 9)), random.Random(1)
    for _ in range(200):
        body = bytearray(good[: chance.randrange(1, len(good) + 1)])
        body[chance.randrange(len(body))] = chance.randrange(256)
        with suppress(InvalidTraceError):
            read(bytes(body))
