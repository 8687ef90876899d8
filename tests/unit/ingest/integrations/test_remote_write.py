"""Remote write: what becomes a row, what is refused alone, and what no bytes can do."""

from __future__ import annotations

import json
import math
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.integrations.remote_write import parse
from ingest.integrations.remote_write.messages import V1, V2
from ingest.integrations.remote_write.parse import Version, Written, unpack
from ingest.integrations.samples import FARTHEST
from ingest.telemetry.decode.columns import Bounds
from ingest.telemetry.errors import BodyTooLargeError, InvalidBodyError
from tests.unit.ingest.integrations.otlp_cases import samples
from tests.unit.ingest.integrations.remote_write_cases import (
    AT,
    BOUNDS,
    LOAD,
    STALE_NAN,
    Series,
    message,
    packed,
    series,
)

VERSIONS = get_args(Version)
both = pytest.mark.parametrize("version", VERSIONS)


def written(version: Version, *told: Series) -> Written:
    return parse.rows(message(version, *told), version, "eu", BOUNDS)


@both
def test_a_sample_becomes_a_row(version: Version) -> None:
    found = written(
        version, series(LOAD, (1.5, AT), (0.0, AT + 1)), series((("__name__", "up"),), (-1.0, AT))
    )
    assert sorted(samples(found.rows)) == [
        ("load", '{"host":"a"}', 0.0),
        ("load", '{"host":"a"}', 1.5),
        ("up", "{}", -1.0),
    ]
    assert set(found.rows.times.tolist()) == {AT * 1000, (AT + 1) * 1000}
    assert (found.samples, found.histograms, found.refusals.total) == (3, 0, 0)


@both
def test_a_label_without_a_value_is_none(version: Version) -> None:
    found = written(version, series((*LOAD, ("zone", "")), (1.0, AT)))
    assert samples(found.rows)[0][1] == '{"host":"a"}'


@both
def test_of_a_native_histogram_count_and_sum_are_kept(version: Version) -> None:
    told = [{"count_int": 3, "sum": 6.0, "timestamp": AT}, {"count_float": 1.5, "sum": 2.0, "timestamp": AT}]
    found = written(version, series((("__name__", "t"),), histograms=told))
    assert samples(found.rows) == [
        ("t_count", "{}", 3.0),
        ("t_sum", "{}", 6.0),
        ("t_count", "{}", 1.5),
        ("t_sum", "{}", 2.0),
    ]
    assert (found.samples, found.histograms) == (0, 2)


@both
def test_what_is_no_number_is_left_out_and_said(version: Version) -> None:
    found = written(version, *(series(LOAD, (value, AT)) for value in (STALE_NAN, math.nan, math.inf, 7.0)))
    assert found.left_out == {"staleness markers": 1, "samples that are no finite number": 2}
    assert (found.samples, found.refusals.total) == (1, 0)
    assert [value for _, _, value in samples(found.rows)] == [7.0]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (series((("host", "a"),), (1.0, AT)), "the series has no label __name__"),
        (series((*LOAD, ("host", "b")), (1.0, AT)), "a label is given twice"),
        (series((*LOAD, ("", "b")), (1.0, AT)), "a label has no name"),
        (series((*LOAD, ("x", "y" * 3000)), (1.0, AT)), "labels is longer than 2000 bytes"),
        (series((("__name__", "a\0b"),), (1.0, AT)), "control characters"),
        (series(LOAD, (1.0, 5)), "time is older than what is kept"),
        (series(LOAD, (1.0, -(2**63))), "time is older than what is kept"),
        (series(LOAD, (1.0, AT + 10**6)), "time lies in the future"),
        (series(LOAD, (1.0, 2**63 - 1)), "time lies in the future"),
    ],
)
@both
def test_a_wrong_series_is_refused_alone(version: Version, wrong: Series, reason: str) -> None:
    found = written(version, series(LOAD, (7.0, AT)), wrong, series((("__name__", "up"),), (8.0, AT)))
    assert sorted(value for _, _, value in samples(found.rows)) == [7.0, 8.0]
    assert (found.samples, found.refusals.total) == (2, 1)
    assert reason in found.refusals.sentence()


def test_a_label_that_refers_to_nothing_refuses_its_series() -> None:
    request = V2["Request"](symbols=["", "__name__"])
    request.timeseries.add(labels_refs=[1, 9], samples=[V1["Sample"](timestamp=AT).SerializeToString()])
    request.timeseries.add(labels_refs=[1], samples=[V1["Sample"](timestamp=AT).SerializeToString()])
    found = parse.rows(request.SerializeToString(), "2.0", "eu", BOUNDS)
    assert found.rows.count == 0
    assert (
        found.refusals.sentence()
        == "1: a label refers to a symbol that is not there; 1: a label has no value"
    )


# The fast way through 1.0 against protobuf alone
# ----------------------------------------------------------------------------------------------------------
def slowly(body: bytes) -> list[tuple[str, str, float, int]]:
    """Samples of a request, read field by field."""
    found = []
    for told in V1["WriteRequest"].FromString(body).timeseries:
        one = V1["TimeSeries"].FromString(told)
        labels = {(label := V1["Label"].FromString(each)).name: label.value for each in one.labels}
        name = labels.pop("__name__", "")
        text = json.dumps(labels, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        for sample in map(V1["Sample"].FromString, one.samples):
            if name and math.isfinite(sample.value):
                found.append((name, text, sample.value, sample.timestamp))
    return sorted(found)


LABELS = st.sampled_from(
    [
        LOAD,
        (("__name__", "up"),),
        (("host", "a"),),
        (*LOAD, ("x", "\x12\x10" + "y" * 16)),
        (*LOAD, ("x", "\x12\x07" + "y" * 7)),
    ]
)
SAMPLES = st.tuples(
    st.floats() | st.just(0.0) | st.just(STALE_NAN),
    st.integers(AT - 10**6, AT)
    | st.integers(-(2**63), 2**63 - 1)
    | st.sampled_from([0, 2**35 - 1, 2**35, 2**42]),
)
REQUESTS = st.lists(st.tuples(LABELS, st.lists(SAMPLES, max_size=3), st.just(())), max_size=6)


@given(REQUESTS)
def test_the_fast_way_finds_what_protobuf_says(told: list[Any]) -> None:
    body = message("1.0", *told)
    rows = parse.rows(body, "1.0", "eu", Bounds(-(2**62), 2**62)).rows
    found = sorted((*row, at // 1000) for row, at in zip(samples(rows), rows.times.tolist(), strict=True))
    assert found == [
        (*row[:3], max(-FARTHEST // 1000, min(FARTHEST // 1000, row[3]))) for row in slowly(body)
    ]


# Bodies
# ----------------------------------------------------------------------------------------------------------
def test_a_block_says_how_long_it_is_before_it_is_unpacked() -> None:
    with pytest.raises(BodyTooLargeError, match="larger than 20971520 bytes after decompression"):
        unpack(b"\xff\xff\xff\xff\x0f" + b"\0" * 10)
    with pytest.raises(BodyTooLargeError, match="larger than 10 bytes"):
        unpack(packed(b"x" * 11), 10)


@pytest.mark.parametrize("body", [b"", b"\x05", b"\x05abc", packed(b"x" * 100)[:-1], b"\x80" * 20])
def test_a_broken_block_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidBodyError, match="not a snappy block"):
        unpack(body)


@both
def test_a_body_of_empty_series_is_refused_before_it_costs_much(
    version: Version, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parse, "MOST_SERIES", 10)
    with pytest.raises(InvalidBodyError, match="more than 10 series"):
        written(version, *[series(())] * 11)


@given(body=st.binary(max_size=60), cut=st.integers(0, 200), version=st.sampled_from(VERSIONS))
def test_any_bytes_become_rows_or_are_refused(body: bytes, cut: int, version: Version) -> None:
    good = message(version, series(LOAD, (1.5, AT), (0.0, AT)))
    for told in (body, good[:cut] + body + good[cut:]):
        try:
            assert unpack(packed(told)) == told
            parse.rows(told, version, "eu", BOUNDS)
        except InvalidBodyError as fault:
            assert str(fault)  # noqa: PT017
        try:
            unpack(told)
        except (InvalidBodyError, BodyTooLargeError):
            continue
