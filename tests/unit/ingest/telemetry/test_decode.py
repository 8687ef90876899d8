"""The three formats become the same rows, and what is wrong with a body is said by row, field and reason."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.telemetry.decode import body as decode_json
from ingest.telemetry.decode.arrow import decode_stream
from ingest.telemetry.decode.body import MAX_LINE, decode_array, decode_ndjson
from ingest.telemetry.decode.columns import Bounds, Names, Rows, Sets, microseconds
from ingest.telemetry.errors import BadRow, InvalidBodyError, InvalidRowsError
from ingest.telemetry.kinds import KINDS
from ingest.telemetry.kinds.declare import MAX_COMPONENTS

NOW = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
BOUNDS = Bounds.around(NOW, timedelta(days=30), timedelta(minutes=5))
TIME = NOW.isoformat()
GOOD: dict[str, Any] = {"time": TIME, "components": ["tor/1", "storage/2"], "attempts": 5, "failures": 1}


def lines(*rows: Any) -> bytes:
    return "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows).encode()


def ndjson(body: bytes, kind: str = "path_outcome") -> Rows:
    return decode_ndjson(KINDS[kind], body, "default", BOUNDS)


def array(body: bytes, kind: str = "path_outcome") -> Rows:
    return decode_array(KINDS[kind], body, "default", BOUNDS)


def listed(rows: Rows) -> list[dict[str, Any]]:
    def values(column: Any) -> list[Any]:
        if isinstance(column, Sets):
            return [tuple(sorted(column.members(code))) for code in column.codes]
        return list(column) if isinstance(column, Names) else column.tolist()

    columns = {name: values(column) for name, column in rows.columns.items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def faults(read: Callable[[], Rows]) -> list[BadRow]:
    with pytest.raises(InvalidRowsError) as caught:
        read()
    return caught.value.rows


def first_fault(row: Any, kind: str = "path_outcome") -> tuple[int, str]:
    """Row and field of the first fault, which NDJSON and JSON arrays must agree on."""
    by_line = faults(lambda: ndjson(lines(row), kind))
    text = row if isinstance(row, str) else json.dumps(row)
    assert faults(lambda: array(f"[{text}]".encode(), kind)) == by_line
    return by_line[0].row, by_line[0].field


def test_a_row_is_read_with_its_defaults() -> None:
    (row,) = listed(ndjson(lines(GOOD)))
    assert row == {
        "time": microseconds(NOW),
        "components": ("storage/2", "tor/1"),
        "attempts": 5,
        "failures": 1,
        "weight": 1.0,
        "region": "default",
    }


def test_times_may_be_integers_of_nanoseconds() -> None:
    nanoseconds = microseconds(NOW) * 1000
    rows = ndjson(lines(GOOD | {"time": nanoseconds}, GOOD, GOOD | {"time": nanoseconds + 500}))
    assert rows.times.tolist() == [microseconds(NOW), microseconds(NOW), microseconds(NOW) + 1]


def test_components_are_a_set() -> None:
    rows = ndjson(lines(GOOD | {"components": ["b/2", "a/1"]}, GOOD | {"components": ["a/1", "b/2", "a/1"]}))
    column = rows.columns["components"]
    assert isinstance(column, Sets)
    assert column.codes.tolist() == [0, 0]


def test_null_is_absence_where_a_field_is_optional() -> None:
    assert listed(ndjson(lines(GOOD | {"weight": None, "region": None})))[0]["weight"] == 1.0


def test_empty_lines_are_passed_over_and_counted() -> None:
    body = b"\n" + lines(GOOD) + b"  \r\n" + lines(GOOD | {"failures": 9})
    assert faults(lambda: ndjson(body)) == [BadRow(4, "failures", "is more than attempts")]


def test_white_space_in_rows_is_no_fault() -> None:
    assert ndjson(json.dumps(GOOD, separators=(" , ", " : ")).encode()).count == 1


def test_rows_are_numbered_across_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode_json, "CHUNK", 500)
    body = lines(*[GOOD] * 30, GOOD | {"attempts": -1}, *[GOOD] * 30, GOOD | {"attempts": "x"})
    assert [fault.row for fault in faults(lambda: ndjson(body))] == [31, 31, 62]


def test_names_are_shared_across_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode_json, "CHUNK", 500)
    rows = ndjson(lines(*[{"time": TIME, "unit": f"vm/{i % 7}"} for i in range(100)]), "unit_failure")
    assert list(rows.names("unit")) == [f"vm/{i % 7}" for i in range(100)]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"attempts": "5"}, "attempts"),
        ({"attempts": True}, "attempts"),
        ({"attempts": 5.5}, "attempts"),
        ({"attempts": 0}, "attempts"),
        ({"attempts": None}, "attempts"),
        ({"attempts": 2**31}, "attempts"),
        ({"attempts": 2**80}, "attempts"),
        ({"failures": -1}, "failures"),
        ({"failures": 6}, "failures"),
        ({"components": []}, "components"),
        ({"components": "tor/1"}, "components"),
        ({"components": ["tor/1", None]}, "components"),
        ({"components": ["tor"]}, "components"),
        ({"components": ["/tor"]}, "components"),
        ({"components": ["tor/"]}, "components"),
        ({"components": ["tor/a\u0000b"]}, "components"),
        ({"components": ["tor/" + "x" * 600]}, "components"),
        ({"components": [f"tor/{i}" for i in range(MAX_COMPONENTS + 1)]}, "components"),
        ({"weight": -0.5}, "weight"),
        ({"weight": "heavy"}, "weight"),
        ({"time": "2026-03-01"}, "time"),
        ({"time": "2026-03-01T12:00:00"}, "time"),
        ({"time": 1.5}, "time"),
        ({"time": (NOW + timedelta(minutes=6)).isoformat()}, "time"),
        ({"time": (NOW - timedelta(days=31)).isoformat()}, "time"),
        ({"time": 1_772_366_400}, "time"),
        ({"time": 10**30}, "time"),
        ({"region": ""}, "region"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_wrong_value_is_named(change: dict[str, Any], field: str) -> None:
    assert first_fault(GOOD | change) == (1, field)


@pytest.mark.parametrize("field", ["time", "components", "attempts", "failures"])
def test_a_missing_field_is_named(field: str) -> None:
    assert first_fault({name: value for name, value in GOOD.items() if name != field}) == (1, field)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(GOOD)[:-1] + ', "attempts": 5}',
        json.dumps(GOOD, separators=(",", ":"))[:-1] + ',"failures" :1}',
    ],
)
def test_a_repeated_key_is_refused(text: str) -> None:
    assert first_fault(text)[1] in ("attempts", "failures")


def test_a_repeated_label_is_refused() -> None:
    row = f'{{"time":"{TIME}","component":"tor/1","labels":{{"a":"1","a":"2"}}}}'
    assert first_fault(row, "topology") == (1, "labels")


@pytest.mark.parametrize("symptom", [":", '":', "a : b", '\\":"', "", "\u2028"])
def test_no_text_is_taken_for_a_key(symptom: str) -> None:
    rows = ndjson(lines({"time": TIME, "unit": "vm/1", "symptom": symptom}), "unit_failure")
    assert list(rows.names("symptom")) == [symptom]


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_what_is_not_a_number_is_refused(constant: str) -> None:
    text = json.dumps(GOOD)[:-1] + f', "weight": {constant}}}'
    assert faults(lambda: ndjson(text.encode()))[0].row == 1


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[1]",
        b"null",
        b'{"time":"\xff"}',
        b"\xff\xfe",
        b'"' + b"a" * 10,
        b"[" * 100_000,
        b"1" * 10_000,
        b"\x00",
        lines(GOOD).strip() + b"x",
    ],
)
def test_what_is_not_a_row_is_refused(body: bytes) -> None:
    assert faults(lambda: ndjson(body))[0].row == 1
    good = lines(GOOD)
    assert faults(lambda: ndjson(good * 2 + body))[0].row == 3
    assert faults(lambda: array(b"[%b,%b,%b]" % (good, good, body)))[0].row in (
        3,
        4,
    )  # 4: after a row that ended


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('"a"', "is a text, not an object"),
        ("NaN", "is not JSON: NaN is not a number"),
        ('{"time"', "is not JSON: Expecting ':' delimiter"),
    ],
)
def test_it_is_said_why_something_is_not_a_row(text: str, reason: str) -> None:
    for read, body in ((ndjson, f"{text}\n"), (array, f"[{text}, {json.dumps(GOOD)}]")):
        (fault,) = faults(lambda read=read, body=body: read(body.encode()))  # type: ignore[misc]
        assert (fault.row, fault.reason.split(" (")[0]) == (1, reason)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'"a"', "the body is a text, not an array of rows"),
        (b"hello", "the body is not JSON: Expecting value"),
        (b"\xff", "the body is not valid UTF-8"),
    ],
)
def test_a_body_that_is_no_array_is_refused(body: bytes, reason: str) -> None:
    with pytest.raises(InvalidBodyError) as refused:
        array(body)
    assert str(refused.value).split(" (")[0] == reason


def test_an_array_ends_where_it_says() -> None:
    row = json.dumps(GOOD)
    assert array(f"\ufeff [ {row} , {row}\n] \n".encode()).count == 2
    assert array(f'[{row[:-1]} , "weight" : 2.0 }}]'.encode()).count == 1
    for wrong in (f"[{row}", f"[{row}] x", f"[{row} {row}]", f"[{row},]"):
        assert [fault.row for fault in faults(lambda wrong=wrong: array(wrong.encode()))] == [2]  # type: ignore[misc]


def test_a_long_line_is_refused() -> None:
    body = lines(GOOD) + b" " * (MAX_LINE + 1) + lines(GOOD)
    assert faults(lambda: ndjson(body)) == [BadRow(2, "", f"the line is longer than {MAX_LINE} bytes")]


@pytest.mark.parametrize("body", [b"", b"\n\n", b"[]"])
def test_a_body_without_rows_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidBodyError):
        (array if body == b"[]" else ndjson)(body)


def test_no_more_than_twenty_bad_rows_are_named() -> None:
    found = faults(lambda: ndjson(lines(*[GOOD] * 5, *[GOOD | {"attempts": "x"}] * 50)))
    assert [fault.row for fault in found] == list(range(6, 26))


def test_faults_of_type_and_of_value_are_named_in_order() -> None:
    body = lines(GOOD | {"failures": 9}, GOOD | {"failures": "x"}, GOOD | {"failures": 9}, GOOD)
    assert [fault.row for fault in faults(lambda: ndjson(body))] == [1, 2, 3]


def test_a_placement_that_begins_names_components_and_one_that_ends_need_not() -> None:
    row = {"time": TIME, "unit": "vm/1", "components": []}
    assert first_fault(row, "placement") == (1, "components")
    assert ndjson(lines(row | {"active": False}), "placement").count == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
FIELDS = st.sampled_from(["time", "components", "attempts", "failures", "weight", "region", "other"])


@given(
    st.lists(
        st.dictionaries(FIELDS, JSON | st.just(TIME) | st.just(1) | st.just(["a/b"]), max_size=7), max_size=4
    )
)
def test_whatever_comes_is_read_or_refused_by_row(rows: list[dict[str, Any]]) -> None:
    with contextlib.suppress(InvalidRowsError, InvalidBodyError):
        assert ndjson(lines(*rows)).count == len(rows)


@given(st.binary(max_size=300))
def test_any_bytes_are_refused_in_every_format(body: bytes) -> None:
    for decode in (decode_ndjson, decode_array, decode_stream):
        with pytest.raises((InvalidRowsError, InvalidBodyError)):
            decode(KINDS["path_outcome"], body, "default", BOUNDS)
