"""SuperBench's files become benchmark rows."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from ingest.integrations.superbench import (
    InvalidResultsError,
    MetricName,
    benchmark_rows,
    is_monitor,
    is_summary,
    monitor_rows,
    parse_results,
    split_name,
)

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def lines(*objects: object) -> bytes:
    return "\n".join(json.dumps(one) for one in objects).encode()


def converted(*objects: object, sku: str = "") -> list[dict[str, Any]]:
    return benchmark_rows(parse_results(lines(*objects)), AT, sku)


@pytest.mark.parametrize(
    ("key", "parts"),
    [
        ("kernel-launch/event_time:0", MetricName("kernel-launch", "event_time:0")),
        ("nccl-bw:nvlink/allreduce_8_busbw", MetricName("nccl-bw:nvlink", "allreduce_8_busbw")),
        ("nccl-bw/3/allreduce_8_busbw:1", MetricName("nccl-bw", "allreduce_8_busbw:1", 3)),
        ("gpt_models/pytorch-gpt2/fp16_time", MetricName("gpt_models/pytorch-gpt2", "fp16_time")),
        ("8/time", MetricName("8", "time")),
        ("lonely", MetricName("lonely", "lonely")),
    ],
)
def test_a_key_is_taken_apart(key: str, parts: MetricName) -> None:
    assert split_name(key) == parts


def test_a_metric_of_a_node_is_a_row_with_its_rank() -> None:
    (row,) = converted({"node": "sb-01", "mem-bw/h2d_bw:3": 25.6}, sku="NDv4")
    assert row == {
        "time": "2026-03-01T12:00:00Z",
        "node": "node/sb-01",
        "benchmark": "mem-bw",
        "metric": "h2d_bw:3",
        "values": [25.6],
        "sku": "NDv4",
    }


def test_runs_of_a_metric_are_one_sample() -> None:
    (row,) = converted({"node": "a", "gemm/0/fp16_flops": 9, "gemm/1/fp16_flops": 8})
    assert row["values"] == [9, 8]


def test_what_was_not_measured_gives_no_row() -> None:
    payload = b'{"node": "a", "x/y": NaN, "x/z": null, "x/w": 1}'
    assert [row["metric"] for row in benchmark_rows(parse_results(payload), AT)] == ["w"]


def test_monitor_samples_keep_their_times_in_utc() -> None:
    sample = {"time": "2021-12-06 04:19:35", "gpu_power:0": 63}
    (row,) = monitor_rows(lines(sample), "sb-01")
    assert (row["time"], row["benchmark"], row["metric"]) == (
        "2021-12-06T04:19:35Z",
        "monitor",
        "gpu_power:0",
    )


def test_files_are_told_apart_by_their_first_line() -> None:
    row = {"time": 1, "node": "node/a", "benchmark": "x", "metric": "y", "values": [1]}
    payloads = [
        lines({"node": "a", "x/y": 1}),
        lines({"time": "2021-12-06", "x": 1}),
        lines(row),
        b"{",
        b"[1]",
    ]
    assert [is_summary(one) for one in payloads] == [True, False, False, False, False]
    assert [is_monitor(one) for one in payloads] == [False, True, False, False, False]


@pytest.mark.parametrize(
    ("payload", "complaint"),
    [
        (b"", "line 1: there are no results"),
        (b'\n{"node": "a"', "line 2: is not JSON"),
        (b"[]", "line 1: is not a JSON object"),
        (b'{"x/y": 1}', "line 1, node: None is not a node's name"),
        (b'{"node": "a b"}', "line 1, node: 'a b' is not a node's name"),
        (b'{"node": "a", "x/y": "1"}', "line 1, x/y: '1' is not a number"),
        (b'{"node": "a", "x/y": true}', "line 1, x/y: True is not a number"),
        (b'{"node": "a", "x/y": Infinity}', "line 1, x/y: is infinite"),
        (b'{"node": "a"}\n\xff', "line 2: is not UTF-8"),
    ],
)
def test_what_is_wrong_is_named_by_line_and_key(payload: bytes, complaint: str) -> None:
    with pytest.raises(InvalidResultsError) as raised:
        parse_results(payload)
    assert str(raised.value).startswith(complaint)


def test_a_sample_without_a_time_is_refused() -> None:
    with pytest.raises(InvalidResultsError, match=r"line 1, time: 'noon' is not a time"):
        monitor_rows(lines({"time": "noon", "x": 1}), "a")
