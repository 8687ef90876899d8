"""Choices, ids, lists of numbers, measures and intervals: the three formats agree on them, and what is wrong is
named."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzers import offline
from analyzers.contract import STILL_GOING, Count, Input, Reduction
from ingest.telemetry.decode.arrow import decode_stream
from ingest.telemetry.decode.body import decode_array, decode_ndjson
from ingest.telemetry.decode.builder import as_bytes, as_texts, canonical_id, canonical_ids
from ingest.telemetry.decode.columns import Bounds, Numbers, Rows, Sets, numbers_of
from ingest.telemetry.errors import InvalidRowsError
from ingest.telemetry.kinds import KINDS, Field, Kind
from ingest.telemetry.kinds.declare import MAX_NUMBERS, TIME
from ingest.telemetry.windows.offline import reduce

NOW = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
AT = NOW.isoformat()
BOUNDS = Bounds.around(NOW, timedelta(days=30), timedelta(minutes=5))
Row = dict[str, Any]


def later(minutes: float) -> str:
    return (NOW + timedelta(minutes=minutes)).isoformat()


GOOD: dict[str, Row] = {
    "probe": {"time": AT, "src": "host/1", "dst": "host/2", "sent": 3, "lost": 1, "rtt_us": [3.5, 250.0],
        "hops": ["link/a~b", "tor/1"], "layer": "overlay"},
    "outage": {"start": AT, "device": "tor/1", "end": later(2), "cause": "soft", "planned": True},
    "uptime": {"start": AT, "unit": "vm/1", "end": later(1), "state": "down", "cause": "disk",
        "hops_class": "near"},
    "benchmark": {"time": AT, "node": "node/1", "benchmark": "gemm", "metric": "fp16", "values": [-1.5, 0.0],
        "sku": "a"},
    "node_incident": {"time": AT, "node": "node/1", "kind": "ecc", "covariates": {"b": 1.5, "a": 2.0}},
    "observation": {"time": AT, "observer": "process/1", "subject": "process/2", "context": "put",
        "status": "pending", "score": 0.5},
    "span": {"time": AT, "trace": "4BF92F3577B34DA6A3CE929D0E0E4736", "span": "00f067aa0ba902b7",
        "parent": "request 7", "service": "cart", "instance": "cart-1", "operation": "GET /",
        "duration_us": 12.5, "error": True},
    "log_count": {"time": AT, "component": "instance/cart-1", "template": "took <*> ms", "severity": "warn",
        "count": 7},
    "metric": {"time": AT, "name": "temperature", "labels": {"zone": "b", "host": "a"}, "value": -3.5},
    "endpoint": {"time": AT, "endpoint": "endpoint/j-0-r1", "job": "j", "host": "host/1", "nic": "nic/1-1", "rail": 1,
        "container": "c0", "tenant": "7", "active": False},
    "nic_traffic": {"time": AT, "job": "j", "host": "host/1", "nic": "nic/1-1", "rail": 1, "tx_bytes": 3e9,
        "rx_bytes": 2e9},
    "flow_rule": {"time": AT, "element": "vswitch/1", "match": "vport/2", "next": "tunnel/2", "layer": "nic"},
    "collective": {"time": AT, "job": "j", "communicator": "dp0", "seq": 7, "op": "send", "rank": 3, "src": 3, "dst": 4,
        "bytes": 5e9, "start_ns": 1_772_366_400_000_000_000, "end_ns": 1_772_366_400_001_000_000,
        "state": "completed", "ranks": 8, "node": "node/1"},
    "function_profile": {"time": AT, "job": "j", "worker": "worker/3", "role": "pp0", "function": "gemm",
        "cls": "compute", "beta": 0.5, "mu": 0.9, "sigma": 0.05, "window_s": 20.0},
    "change": {"time": AT, "change": "CHG-1", "kind": "config", "targets": ["service/cart"], "author": "alice",
        "team": "shop", "settings": {"b.ttl": "30", "a": ""}, "measures": {"rollout": 0.5, "lines": 12.0}},
    "change_outcome": {"time": AT, "change": "CHG-1", "outcome": "rolled_back", "incident": "17"},
    "job_attempt": {"end": AT, "job": "j", "nodes": ["node/1", "node/2"], "start": later(-99), "outcome": "failed"},
}  # fmt: skip


def ndjson(kind: str, *rows: Row | str) -> Rows:
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    return decode_ndjson(KINDS[kind], "\n".join(lines).encode(), "default", BOUNDS)


def arrow(kind: str, row: Row, **columns: pa.Array) -> Rows:
    table = pa.table(
        {name: pa.array([value]) for name, value in row.items() if name not in columns} | columns
    )
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return decode_stream(KINDS[kind], sink.getvalue(), "default", BOUNDS)


def shown(rows: Rows) -> list[Row]:
    def values(column: Any) -> list[Any]:
        if isinstance(column, Sets):
            return [column.members(code) for code in column.codes]
        if isinstance(column, Numbers):
            return [column[row : row + 1].values.tolist() for row in range(len(column))]
        return column.tolist() if isinstance(column, np.ndarray) else list(column)

    columns = {name: values(column) for name, column in rows.columns.items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def required(kind: str) -> Row:
    return {field.name: GOOD[kind][field.name] for field in KINDS[kind].fields if not field.optional}


@pytest.mark.parametrize("kind", GOOD)
def test_the_three_formats_agree(kind: str) -> None:
    for row in (GOOD[kind], required(kind)):
        by_line = shown(ndjson(kind, row))
        assert shown(decode_array(KINDS[kind], json.dumps([row]).encode(), "default", BOUNDS)) == by_line
        assert shown(arrow(kind, row)) == by_line


def test_what_is_left_out_takes_its_default() -> None:
    assert shown(ndjson("probe", required("probe")))[0] | {"time": 0} == {
        "time": 0, "src": "host/1", "dst": "host/2", "sent": 3, "lost": 1, "rtt_us": [], "hops": (),
        "layer": "underlay", "region": "default",
    }  # fmt: skip


def test_an_outage_without_an_end_is_still_going() -> None:
    started = required("outage")
    rows = ndjson("outage", started, started | {"end": None}, started | {"end": later(1)})
    assert (rows.ends == STILL_GOING).tolist() == [True, True, False]
    assert rows.latest.tolist()[:2] == rows.times.tolist()[:2]


def test_a_list_holds_as_many_numbers_as_are_taken_and_no_negative_zero() -> None:
    rows = ndjson("benchmark", GOOD["benchmark"] | {"values": [-0.0] * MAX_NUMBERS})
    column = rows.columns["values"]
    assert isinstance(column, Numbers)
    assert (len(column.values), bool(np.signbit(column.values).any())) == (MAX_NUMBERS, False)


@pytest.mark.parametrize(
    ("kind", "change", "field", "reason"),
    [
        ("probe", {"rtt_us": [1, 2, 3, 4]}, "rtt_us", "has more numbers than sent says"),
        ("probe", {"rtt_us": [1.0] * (MAX_NUMBERS + 1)}, "rtt_us", "has more than 10000 numbers"),
        ("probe", {"rtt_us": [1, [2]]}, "rtt_us", "holds a list (item 2), not a number"),
        ("probe", {"rtt_us": ["1"]}, "rtt_us", "holds a text (item 1), not a number"),
        ("probe", {"rtt_us": [True]}, "rtt_us", "holds true or false (item 1), not a number"),
        ("probe", {"rtt_us": [None]}, "rtt_us", "holds null (item 1), not a number"),
        ("probe", {"rtt_us": [-1]}, "rtt_us", "holds a number below 0"),
        ("probe", {"rtt_us": [10**400]}, "rtt_us", "is out of range"),
        ("probe", {"rtt_us": 1}, "rtt_us", "is an integer, not a list of numbers"),
        ("probe", {"hops": ["tor/1", 2]}, "hops", "holds an integer (item 2), not a component"),
        ("probe", {"layer": "Overlay"}, "layer", "'Overlay' is not underlay or overlay"),
        ("probe", {"layer": ""}, "layer", "'' is not underlay or overlay"),
        ("probe", {"sent": 0, "lost": 0, "rtt_us": []}, "sent", "is below 1"),
        ("benchmark", {"values": []}, "values", "is empty"),
        ("outage", {"end": AT}, "end", "is not later than start"),
        ("outage", {"end": later(-1)}, "end", "is not later than start"),
        ("outage", {"end": later(6)}, "end", "lies in the future: later than 2026-03-01T12:05:00Z"),
        ("outage", {"end": ""}, "end", "'' is not an RFC 3339 time with a zone, or integer nanoseconds"),
        ("outage", {"time": AT}, "time", "is not a field of outage"),
        ("uptime", {"state": "UP"}, "state", "'UP' is not up or down"),
        ("uptime", {"state": None}, "state", "is null, not up or down"),
        ("uptime", {"end": None}, "end", "is null, not an RFC 3339 time"),
        ("uptime", {"hops_class": "mid"}, "hops_class", "'mid' is not near or far"),
        ("observation", {"status": "ok"}, "status", "'ok' is not healthy, unhealthy or pending"),
        ("observation", {"score": -0.5}, "score", "is below 0"),
        ("node_incident", {"covariates": {"a": "1"}}, "covariates", "gives 'a' as a text, not a number"),
        ("node_incident", {"covariates": {"a": None}}, "covariates", "gives 'a' as null, not a number"),
        ("node_incident", {"covariates": {"a": 10**400}}, "covariates", "is out of range"),
        ("node_incident", {"covariates": []}, "covariates", "is a list, not an object of numbers"),
        ("node_incident", {"covariates": {"x" * 2000: 1}}, "covariates", "is longer than 2000 bytes"),
        ("node_incident", {"covariates": {"\ud800": 1}}, "covariates", "half a surrogate pair"),
        ("span", {"trace": ""}, "trace", "is empty or all zeros"),
        ("span", {"span": "0" * 16}, "span", "is empty or all zeros"),
        ("span", {"span": 7}, "span", "is an integer, not a text"),
        ("span", {"error": 0}, "error", "is an integer, not true or false"),
        ("metric", {"name": ""}, "name", "is empty or holds control characters"),
        ("metric", {"value": None}, "value", "is null, not a number"),
        ("metric", {"value": 10**400}, "value", "is out of range"),
        ("metric", {"labels": {"host": 1}}, "labels", "gives 'host' as an integer, not a text"),
        ("collective", {"end_ns": 1.0}, "start_ns", "is more than end_ns"),
        ("collective", {"src": -2}, "src", "is below -1"),
        ("collective", {"state": "done"}, "state", "'done' is not scheduled, started or completed"),
        ("function_profile", {"beta": 50}, "beta", "is above 1"),
        ("change", {"settings": {"ttl": 30}}, "settings", "gives 'ttl' as an integer, not a text"),
        ("change_outcome", {"outcome": "bad"}, "outcome", "'bad' is not good, incident, rolled_back or harmless"),
        ("job_attempt", {"start": AT}, "end", "is not later than start"),
        ("job_attempt", {"nodes": []}, "nodes", "is empty"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_named(kind: str, change: Row, field: str, reason: str) -> None:
    with pytest.raises(InvalidRowsError) as refused:
        ndjson(kind, GOOD[kind], GOOD[kind] | change)
    (bad,) = refused.value.rows
    assert (bad.row, bad.field) == (2, field)
    assert reason in bad.reason


@pytest.mark.parametrize(
    ("kind", "field"), [("probe", "rtt_us"), ("node_incident", "covariates"), ("metric", "value")]
)
@pytest.mark.parametrize("number", ["1e400", "-1e400"])
def test_a_number_that_no_float_holds_is_refused(kind: str, field: str, number: str) -> None:
    value = {"rtt_us": f"[{number}]", "covariates": f'{{"a": {number}}}', "value": number}[field]
    with pytest.raises(InvalidRowsError, match=f"row 1, {field}: .* not (a )?finite( number)?$"):
        ndjson(
            kind,
            json.dumps({k: v for k, v in required(kind).items() if k != field})[:-1]
            + f', "{field}": {value}}}',
        )


@pytest.mark.parametrize(
    ("kind", "field", "column", "reason"),
    [
        ("probe", "rtt_us", pa.array([[1.0, None]]), "holds null, not a number"),
        ("probe", "rtt_us", pa.array([[float("nan")]]), "holds a number that is not finite"),
        ("probe", "rtt_us", pa.array([[[1.0]]]), "is a column of list<item: list<item: double>>, not lists of"),
        ("probe", "rtt_us", pa.array([["1"]]), "is a column of list<item: string>, not lists of numbers"),
        ("benchmark", "values", pa.array([None], pa.list_(pa.float64())), "is missing"),
        ("uptime", "state", pa.array(["Down"]).dictionary_encode(), "'Down' is not up or down"),
        ("uptime", "state", pa.array([None], pa.string()), "is missing"),
        ("span", "trace", pa.array([b"\x01" * 16]), "is a column of binary, not texts"),
        ("outage", "end", pa.array(["soon"]), "'soon' is not an RFC 3339 time with a zone"),
        ("node_incident", "covariates", pa.array([{"a": "x"}]), "not maps from text to number"),
        ("node_incident", "covariates", pa.array([{"a": float("inf")}]), "holds a number that is not finite"),
        ("node_incident", "covariates", pa.array([[("a", 1.0), ("a", 2.0)]], pa.map_(pa.string(), pa.float64())),
            "gives 'a' twice"),
    ],
)  # fmt: skip
def test_a_wrong_arrow_column_is_named(kind: str, field: str, column: pa.Array, reason: str) -> None:
    with pytest.raises(InvalidRowsError) as refused:
        arrow(kind, GOOD[kind], **{field: column})
    assert refused.value.rows[0].field == field
    assert reason in refused.value.rows[0].reason


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[1, 2]], pa.list_(pa.uint64())),
        pa.array([[1, 2]], pa.large_list(pa.float32())),
        pa.array([[1, 2]], pa.list_(pa.float64(), 2)),
        pa.array([[9.0], [1.0, 2.0]]).slice(1),
    ],
    ids=str,
)
def test_arrow_lists_of_numbers_come_in_many_types(column: pa.Array) -> None:
    assert shown(arrow("probe", GOOD["probe"], rtt_us=column))[0]["rtt_us"] == [1.0, 2.0]


def test_a_measure_that_is_null_in_arrow_is_not_there() -> None:
    rows = arrow("node_incident", GOOD["node_incident"], covariates=pa.array([{"a": None, "b": -0.0}]))
    assert shown(rows)[0]["covariates"] == '{"b":0.0}'


# Intervals
# ----------------------------------------------------------------------------------------------------------
DAY = 24 * 60


@pytest.mark.parametrize("end", [None, later(-1)])
def test_an_interval_may_have_begun_before_what_is_kept(end: str | None) -> None:
    assert ndjson("outage", GOOD["outage"] | {"start": later(-400 * DAY), "end": end}).count == 1


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"start": later(-60 * DAY), "end": later(-31 * DAY)}, "end"),
        ({"start": 1_772_366_400, "end": None}, "start"),  # seconds
        ({"start": 1_772_366_400_000_000, "end": None}, "start"),  # microseconds
    ],
)
def test_an_interval_that_was_over_long_ago_or_never_was_is_refused(change: Row, field: str) -> None:
    with pytest.raises(InvalidRowsError, match=rf"row 1, {field}: is older than what is kept"):
        ndjson("outage", GOOD["outage"] | change)


def test_an_attempt_that_ends_now_may_have_begun_before_what_is_kept() -> None:
    assert ndjson("job_attempt", GOOD["job_attempt"] | {"start": later(-40 * DAY)}).count == 1


def test_an_operation_without_an_end_has_no_end_to_compare_its_start_with() -> None:
    started = {name: value for name, value in GOOD["collective"].items() if name != "end_ns"}
    assert shown(ndjson("collective", started))[0]["end_ns"] == 0


OUTAGES = Input("outages", (Reduction("outages", "outage", ("device",), {"n": Count()}),))


def test_offline_windows_reach_from_the_first_start_to_the_last_known_end() -> None:
    rows = ndjson("outage", GOOD["outage"], GOOD["outage"] | {"start": later(1), "end": None})
    (span,) = offline.spans({"outage": rows}, None)
    assert (span.start, span.end) == (NOW, NOW + timedelta(minutes=2, microseconds=1))


def test_an_outage_is_in_every_hour_that_it_overlaps() -> None:
    rows = ndjson("outage", GOOD["outage"] | {"start": later(-90), "end": later(1)})
    spans = offline.spans({"outage": rows}, timedelta(hours=1))
    found = [reduce(OUTAGES, {"outage": rows}, span.start, span.end)["outages"].rows for span in spans]
    assert found == [1, 1, 1]


# Ids
# ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("00f067aa0ba902b7", "00f067aa0ba902b7"),
        ("F067AA0BA902B7", "00f067aa0ba902b7"),
        ("4BF92F3577B34DA6A3CE929D0E0E4736", "4bf92f3577b34da6a3ce929d0e0e4736"),
        ("0" * 16 + "4bf92f3577b34da6", "4bf92f3577b34da6"),
        ("0", ""),
        ("", ""),
        ("0" * 32, ""),
        ("request 7", "5b6ebef4ded8cc72e59cf7b6db14fb0b"),
    ],
)
def test_an_id_is_written_in_one_way(text: str, canonical: str) -> None:
    assert canonical_id(text) == canonical


HEX = st.text("0123456789abcdefABCDEF", max_size=34)
IDS = st.lists(
    HEX | st.text(max_size=3) | HEX.map(lambda text: text.lower().rjust(32, "0")[-32:]), max_size=6
)


@given(IDS)
def test_ids_come_back_from_the_bytes_that_are_stored(texts: list[str]) -> None:
    ids = canonical_ids(texts)
    assert ids == [canonical_id(text) for text in texts] == canonical_ids(ids)
    assert as_texts(as_bytes(ids)) == tuple(ids)


# Columns and declarations
# ----------------------------------------------------------------------------------------------------------
@given(st.lists(st.lists(st.floats(allow_nan=False), max_size=3), max_size=6), st.data())
def test_rows_of_lists_are_taken_and_cut(lists: list[list[float]], data: st.DataObject) -> None:
    column = numbers_of(lists)
    chosen = data.draw(st.lists(st.sampled_from(range(len(lists))), max_size=8)) if lists else []
    start, end = data.draw(st.integers(0, 7)), data.draw(st.integers(0, 7))

    def unpacked(numbers: Numbers) -> list[list[float]]:
        return [part.tolist() for part in np.split(numbers.values, numbers.indptr[1:-1])][: len(numbers)]

    assert unpacked(column.take(np.array(chosen, np.intp))) == [lists[row] for row in chosen]
    assert unpacked(column[start:end]) == lists[start:end]


def test_only_a_choice_has_choices() -> None:
    for field in (Field("state", "choice", ""), Field("state", "text", "", choices=("up",))):
        with pytest.raises(ValueError, match="kind odd: choices are what a choice has"):
            Kind("odd", "", (TIME, field))
