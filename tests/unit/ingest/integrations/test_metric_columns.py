"""Tables with a column per series become rows of `metric`; what cannot be read is named by line and column."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ingest.integrations.metric_columns import InvalidColumnsError, parse, rows

FLAT = b"time,cart_cpu,cart_latency-50,front-end_error,queue\n1700000000,0.5,,0,3\n1700000001,nan,0.02,1,4\n"
STACKED = (
    b"microservice,PetSite,Pet Search\nmetric,latency,requests\nstatistic,p99,Sum\nunix_timestamp,,\n"
    b"1681853520.0,0.09,12\n"
)


def test_columns_are_a_service_and_a_metric() -> None:
    table = parse(FLAT)
    assert list(rows(table))[:2] == [
        {"time": 1_700_000_000 * 10**9, "name": "cpu", "labels": {"service": "cart"}, "value": 0.5},
        {"time": 1_700_000_000 * 10**9, "name": "error", "labels": {"service": "front-end"}, "value": 0.0},
    ]
    assert table.left_out == ("queue",)
    assert len(list(rows(table))) == 4  # an empty cell and nan have no row


def test_three_lines_of_names_have_a_statistic() -> None:
    first, second = rows(parse(STACKED))
    assert first == {
        "time": 1_681_853_520 * 10**9,
        "name": "latency",
        "labels": {"service": "PetSite", "statistic": "p99"},
        "value": 0.09,
    }
    assert second["labels"]["service"] == "Pet Search"


@pytest.mark.parametrize(
    "text", ["1700000000", "1700000000000", "1700000000000000", "1700000000000000000", "2023-11-14T22:13:20Z"]
)
def test_times_are_told_apart_by_their_size(text: str) -> None:
    (row,) = rows(parse(f"time,a_cpu\n{text},1\n".encode()))
    assert row["time"] == 1_700_000_000 * 10**9


def test_rows_can_be_shifted() -> None:
    (row,) = rows(parse(b"time,a_cpu\n1700000000,1\n"), timedelta(hours=-1))
    assert row["time"] == (1_700_000_000 - 3600) * 10**9


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        (b"", "is empty"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"a_cpu\n1\n", "no column of times"),
        (b"time,cpu\n1,2\n", "no column is named <service>_<metric>"),
        (b"time,a_cpu\n", "no values"),
        (b"time,a_cpu\nnoon,2\n", "line 2: 'noon' is no time"),
        (b"time,a_cpu\n1,2\n2,much\n", "line 3, column a_cpu: 'much' is no number"),
        (b"time,a_cpu,b_cpu\n1,2,3\n2,4\n", "line 3: has 2 of 3 columns: is the file cut off"),
        (b"time,a_cpu,a_cpu\n1,2,3\n", "column a_cpu is there twice"),
        (b"time,a_cpu\n1,\n2,nan\n3,inf\n", "no values"),
        (b"microservice,a\nstatistic,p50\n", "line 2: begins with 'statistic'"),
    ],
)
def test_what_cannot_be_read_is_named(payload: bytes, said: str) -> None:
    with pytest.raises(InvalidColumnsError, match=said):
        parse(payload)
