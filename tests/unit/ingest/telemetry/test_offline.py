"""Files become rows by their ending, and what is wrong with one is said in one line."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingest.telemetry.windows.offline import InvalidFileError, read_file, reduce
from ingest.telemetry.windows.reductions import (
    AsOf,
    Count,
    CountDistinct,
    CountWitnesses,
    Each,
    Input,
    Reduction,
    Sum,
    plan,
)
from ingest.telemetry.windows.sums import dumps, loads

START = datetime(2020, 3, 1, 12, tzinfo=UTC)
FAILURES = [{"time": (START + timedelta(minutes=i)).isoformat(), "unit": f"vm/{i % 4}"} for i in range(20)]


def table() -> pa.Table:
    times = pa.array([datetime.fromisoformat(row["time"]) for row in FAILURES], pa.timestamp("us", "UTC"))
    return pa.table({"time": times, "unit": [row["unit"] for row in FAILURES]})


def write(path: Path) -> None:
    match path.suffix:
        case ".json":
            path.write_text(json.dumps(FAILURES))
        case ".parquet":
            pq.write_table(table(), path)
        case ".arrow":
            with pa.ipc.new_file(
                path, table().schema, options=pa.ipc.IpcWriteOptions(compression="lz4")
            ) as writer:
                writer.write_table(table())
        case _:
            path.write_text("\n".join(map(json.dumps, FAILURES)))


@pytest.mark.parametrize("ending", [".ndjson", ".jsonl", ".json", ".parquet", ".arrow"])
def test_every_format_gives_the_same_rows(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"mine{ending}"
    write(path)
    rows = read_file("unit_failure", str(path))
    assert list(rows.names("unit")) == [row["unit"] for row in FAILURES]
    assert rows.times[1] - rows.times[0] == 60_000_000


def test_a_stream_in_an_arrow_file_is_read(tmp_path: Path) -> None:
    with pa.ipc.new_stream(tmp_path / "a.arrow", table().schema) as writer:
        writer.write_table(table())
    assert read_file("unit_failure", str(tmp_path / "a.arrow")).count == 20


def test_a_dash_reads_standard_input() -> None:
    stdin = io.BytesIO("\n".join(map(json.dumps, FAILURES)).encode())
    assert read_file("unit_failure", "-", stdin).count == 20


def test_a_bad_row_is_named_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "mine.ndjson").write_text('{"time": 1, "unit": "vm/1"}\n{"time": "noon", "unit": "vm/1"}\n')
    with pytest.raises(InvalidFileError, match=r"mine\.ndjson: row 2, time: 'noon' is not an RFC 3339"):
        read_file("unit_failure", str(tmp_path / "mine.ndjson"))


@pytest.mark.parametrize(
    "name", ["mine.csv", "mine", "absent.ndjson", "broken.parquet", "broken.arrow", "empty.json"]
)
def test_a_file_that_cannot_be_used_is_named_in_one_line(tmp_path: Path, name: str) -> None:
    if not name.startswith("absent"):
        (tmp_path / name).write_bytes(b"" if name.startswith("empty") else b"ARROW1nonsense")
    with pytest.raises(InvalidFileError, match=name.replace(".", r"\.")) as caught:
        read_file("unit_failure", str(tmp_path / name))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["empty.ndjson", "empty.json", "empty.parquet"])
def test_a_file_without_rows_says_that_nothing_happened(tmp_path: Path, name: str) -> None:
    if name.endswith(".parquet"):
        pq.write_table(table().slice(0, 0), tmp_path / name)
    else:
        (tmp_path / name).write_text("[]" if name.endswith(".json") else "\n")
    rows = read_file("unit_failure", str(tmp_path / name))
    assert (rows.kind.name, rows.count, rows.times.tolist()) == ("unit_failure", 0, [])


def test_an_unknown_kind_is_named() -> None:
    with pytest.raises(InvalidFileError, match="nonsense"):
        read_file("nonsense", "mine.ndjson")


@pytest.mark.parametrize(
    "reduction",
    [
        Reduction("r", "nonsense", (), {}),
        Reduction("r", "unit_failure", ("colour",), {}),
        Reduction("r", "unit_failure", (), {"n": Sum("unit")}),
        Reduction("r", "unit_failure", (), {"n": CountWitnesses()}),
        Reduction("r", "unit_failure", (), {"n": Count()}, as_of=AsOf("path_outcome", "unit")),
        Reduction("r", "placement", (), {"n": Count()}, slice=timedelta(minutes=1)),
        Reduction("r", "probe", ("rtt_us",), {"n": Count()}),
        Reduction("r", "probe", (), {"n": Count()}, each=Each("sent")),
        Reduction("r", "probe", (), {"n": Count()}, each=Each("rtt_us", (2.0, 1.0))),
        Reduction("r", "probe", (), {"n": Count()}, each=Each("rtt_us", (1.0, float("inf")))),
        Reduction("r", "probe", (), {"n": CountDistinct("rtt_us")}),
        Reduction("r", "outage", (), {"n": Count()}, slice=timedelta(minutes=1)),
        Reduction("r", "unit_failure", ("state",), {"n": Count()}, as_of=AsOf("uptime", "unit")),
        Reduction("r", "probe", ("src",), {"n": Count()}, only=("src", ("host/1",))),
        Reduction("r", "probe", ("src",), {"n": Count()}, only=("layer", ("overlays",))),
    ],
    ids=str,
)
def test_a_reduction_that_does_not_fit_its_kinds_is_refused(reduction: Reduction) -> None:
    with pytest.raises(ValueError, match=r"reduction r: "):
        plan(reduction)


def sums(order: list[int], tmp_path: Path) -> bytes:
    path = tmp_path / "mine.ndjson"
    path.write_text("\n".join(json.dumps(FAILURES[i]) for i in order))
    one = Reduction(
        "r",
        "unit_failure",
        ("unit",),
        {"n": Count(), "times": CountDistinct("time")},
        slice=timedelta(minutes=5),
    )
    tables = {"unit_failure": read_file("unit_failure", str(path))}
    return dumps(reduce(Input("i", (one,)), tables, START, START + timedelta(hours=1)))


def test_rows_in_another_order_give_the_same_bytes(tmp_path: Path) -> None:
    assert sums(list(range(20)), tmp_path) == sums(list(np.random.default_rng(1).permutation(20)), tmp_path)


def test_frozen_sums_come_back(tmp_path: Path) -> None:
    frozen = sums(list(range(20)), tmp_path)
    thawed = loads(frozen)["r"]
    units = thawed.keys["unit"]
    assert isinstance(units, tuple)
    assert (thawed.rows, units[:5]) == (16, ("vm/0",) * 4 + ("vm/1",))
    assert dumps(loads(frozen)) == frozen


def test_other_bytes_are_no_sums() -> None:
    with pytest.raises(ValueError, match="not sums"):
        loads(b"nonsense")
