"""Rows of an Arrow stream are those that JSON would give, and what is wrong with them is said by row and field."""

from __future__ import annotations

import contextlib
import io
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ingest.telemetry.decode.arrow import decode_stream
from ingest.telemetry.decode.columns import Rows, microseconds
from ingest.telemetry.errors import BadRow, InvalidBodyError, InvalidRowsError
from ingest.telemetry.kinds import KINDS
from tests.unit.ingest.telemetry.test_decode import BOUNDS, GOOD, NOW, TIME, faults, lines, listed, ndjson


def arrow(table: pa.Table, kind: str = "path_outcome") -> Rows:
    return decode_stream(KINDS[kind], stream(table), "default", BOUNDS)


def stream(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return sink.getvalue()


def columns(rows: int = 3, **change: Any) -> pa.Table:
    names = {
        "time": pa.array([NOW] * rows, pa.timestamp("us", "UTC")),
        "components": pa.array([GOOD["components"]] * rows),
        "attempts": pa.array([5] * rows, pa.int32()),
        "failures": pa.array([1] * rows, pa.uint8()),
    }
    return pa.table({name: column for name, column in (names | change).items() if column is not None})


def test_arrow_and_json_give_the_same_rows() -> None:
    assert listed(arrow(columns())) == listed(ndjson(lines(*[GOOD] * 3)))


@pytest.mark.parametrize(
    "time",
    [
        pa.array([NOW], pa.timestamp("us")),
        pa.array([NOW], pa.timestamp("ns", "Europe/Helsinki")),
        pa.array([microseconds(NOW) * 1000], pa.int64()),
        pa.array([microseconds(NOW) * 1000], pa.uint64()),
        pa.array([TIME]),
        pa.array([TIME]).dictionary_encode(),
    ],
    ids=str,
)
def test_arrow_times_come_in_many_types(time: pa.Array) -> None:
    assert arrow(columns(1, time=time)).times.tolist() == [microseconds(NOW)]


@pytest.mark.parametrize(
    "components",
    [
        pa.array([["a/1", "b/2"]], pa.list_(pa.string())),
        pa.array([["a/1", "b/2"]], pa.large_list(pa.large_string())),
        pa.array([["a/1", "b/2"]], pa.list_(pa.string(), 2)),
        pa.ListArray.from_arrays([0, 2], pa.array(["a/1", "b/2"]).dictionary_encode()),
    ],
    ids=str,
)
def test_arrow_lists_come_in_many_types(components: pa.Array) -> None:
    assert listed(arrow(columns(1, components=components)))[0]["components"] == ("a/1", "b/2")


def test_sliced_arrow_columns_are_read_from_where_they_begin() -> None:
    table = columns(3, components=pa.array([["a/1"], ["b/1", "c/1"], ["d/1"]])).slice(1)
    assert [row["components"] for row in listed(arrow(table))] == [("b/1", "c/1"), ("d/1",)]


def test_arrow_labels_may_be_maps() -> None:
    labels = pa.array([[("b", "2"), ("a", "1")]], pa.map_(pa.string(), pa.string()))
    table = pa.table({"time": pa.array([NOW]), "component": pa.array(["tor/1"]), "labels": labels})
    assert listed(arrow(table, "topology"))[0]["labels"] == '{"a":"1","b":"2"}'


@pytest.mark.parametrize(
    ("field", "column"),
    [
        ("attempts", pa.array([5.0])),
        ("attempts", pa.array([True])),
        ("attempts", pa.array([None], pa.int64())),
        ("attempts", pa.array([2**64 - 1], pa.uint64())),
        ("attempts", None),
        ("components", pa.array([["a/1", None]])),
        ("components", pa.array([None], pa.list_(pa.string()))),
        ("components", pa.array([[]], pa.list_(pa.string()))),
        ("components", pa.array(["a/1"])),
        ("weight", pa.array([float("nan")])),
        ("time", pa.array([2**62], pa.timestamp("s"))),
        ("time", pa.array(["noon"])),
        ("region", pa.DictionaryArray.from_arrays(pa.array([0]), pa.array(["a\x00"]))),
        ("colour", pa.array(["red"])),
    ],
    ids=str,
)
def test_a_wrong_arrow_column_is_named(field: str, column: pa.Array | None) -> None:
    assert faults(lambda: arrow(columns(1, **{field: column})))[0].field == field


def test_a_null_in_a_dictionary_is_a_missing_value() -> None:
    unit = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["vm/1", None]))
    table = pa.table({"time": pa.array([NOW, NOW]), "unit": unit})
    assert faults(lambda: arrow(table, "unit_failure")) == [BadRow(2, "unit", "is missing")]


@pytest.mark.parametrize("row", [0, 1, 4])
def test_a_row_of_arrow_that_is_not_utf_8_is_named(row: int) -> None:
    texts = [b"a/\xff" if place == row else b"a/b" for place in range(5)]
    broken = pa.array(texts, pa.binary()).view(pa.string())
    table = pa.Table.from_arrays([pa.array([NOW] * 5), broken], ["time", "unit"])
    (fault,) = faults(lambda: arrow(table, "unit_failure"))
    assert (fault.row, fault.field) == (row + 1, "unit")


def test_buffers_that_are_compressed_one_by_one_are_refused() -> None:
    for codec in ("lz4", "zstd"):
        with pytest.raises(InvalidBodyError, match="Content-Encoding"):
            decode_stream(KINDS["path_outcome"], stream(columns(500), compression=codec), "default", BOUNDS)


@pytest.mark.parametrize("seed", range(8))
def test_a_broken_arrow_stream_is_refused_or_read_and_never_crashes(seed: int) -> None:
    chance = random.Random(seed)
    whole = stream(columns(20, region=pa.array(["x", "y"] * 10).dictionary_encode()))
    for _ in range(150):
        body = bytearray(whole)
        for _ in range(chance.randint(1, 6)):
            body[chance.randrange(len(body))] = chance.choice((0, 127, 128, 255, chance.randrange(256)))
        cut = chance.randrange(len(body)) if chance.random() < 0.2 else len(body)
        with contextlib.suppress(InvalidRowsError, InvalidBodyError):
            rows = decode_stream(KINDS["path_outcome"], bytes(body[:cut]), "default", BOUNDS)
            assert rows.count == len(np.asarray(rows.columns["attempts"]))
