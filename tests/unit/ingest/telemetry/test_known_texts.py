"""Texts that were met before come by their numbers, and nothing else about a body changes."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.telemetry.decode import body as decode_json
from ingest.telemetry.decode.body import decode
from ingest.telemetry.decode.builder import NONE_KNOWN, KnownTexts
from ingest.telemetry.decode.columns import Bounds, Known, Names, Rows
from ingest.telemetry.errors import InvalidRowsError
from ingest.telemetry.kinds import KINDS

UNITS = [f"vm/{number}" for number in range(6)]
SYMPTOMS = ["", "disk_timeout", "host_down"]
NDJSON, ARRAY, ARROW = "application/x-ndjson", "application/json", "application/vnd.apache.arrow.stream"
TIME = "2026-05-04T10:00:00Z"


def ids(texts: list[str], first: int = 100) -> dict[str, int]:
    return {text: number for number, text in enumerate(texts, first)}


def body(media_type: str, rows: list[dict[str, Any]]) -> bytes:
    if media_type == ARRAY:
        return json.dumps(rows).encode()
    if media_type == NDJSON:
        return "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    table = pa.Table.from_pylist(rows)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    return sink.getvalue()


def read(media_type: str, sent: bytes, known: KnownTexts, kind: str = "unit_failure") -> Rows:
    return decode(media_type, KINDS[kind], sent, "default", Bounds(), known)


def texts(rows: Rows, field: str, known: KnownTexts) -> list[str]:
    column = rows.columns[field]
    if isinstance(column, Known):
        back = {number: text for text, number in known[rows.kind.field(field).type].items()}
        return [back[number] for number in column.ids.tolist()]
    assert isinstance(column, Names)
    return list(column)


@given(
    st.lists(
        st.tuples(st.sampled_from(UNITS), st.sampled_from(SYMPTOMS) | st.none()), min_size=1, max_size=8
    ),
    st.sets(st.sampled_from(UNITS)),
    st.sets(st.sampled_from(SYMPTOMS)),
    st.sampled_from([NDJSON, ARRAY, ARROW]),
)
def test_rows_are_the_same_whatever_is_known(
    rows: list[tuple[str, str | None]], units: set[str], symptoms: set[str], media_type: str
) -> None:
    sent = body(media_type, [{"time": TIME, "unit": unit, "symptom": symptom} for unit, symptom in rows])
    known = {"name": ids(sorted(units)), "text": ids(sorted(symptoms), 200)}
    mine, plain = read(media_type, sent, known), read(media_type, sent, NONE_KNOWN)
    for field in ("unit", "symptom", "region"):
        assert texts(mine, field, known) == texts(plain, field, known)
    np.testing.assert_array_equal(mine.times, plain.times)
    if units >= {unit for unit, _ in rows} and symptoms >= {symptom or "" for _, symptom in rows}:
        assert isinstance(mine.columns["unit"], Known)


@pytest.mark.parametrize("media_type", [NDJSON, ARRAY, ARROW])
def test_what_is_good_in_one_type_of_field_is_not_taken_in_another(media_type: str) -> None:
    row = {"time": TIME, "observer": "no component", "subject": "svc/a", "context": "c", "status": "healthy"}
    known = {"name": ids(["no component"]), "component": ids(["svc/a"])}
    with pytest.raises(InvalidRowsError, match="observer"):
        read(media_type, body(media_type, [row]), known, "observation")


def test_a_text_that_is_not_known_late_in_a_large_body_is_read_as_any_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(decode_json, "CHUNK", 200)
    sent = body(NDJSON, [{"time": TIME, "unit": unit} for unit in (*UNITS, "vm/new")])
    rows = read(NDJSON, sent, {"name": ids(UNITS)})
    assert list(rows.names("unit")) == [*UNITS, "vm/new"]


def test_what_a_dictionary_holds_and_no_row_has_is_left_out() -> None:
    units = pa.DictionaryArray.from_arrays(pa.array([1, 1]), pa.array(["nobody looked at\0", "vm/1", "vm/2"]))
    table = pa.table({"time": pa.array([TIME, TIME]), "unit": units})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    assert read(ARROW, sink.getvalue(), NONE_KNOWN).names("unit").names == ("vm/1",)
