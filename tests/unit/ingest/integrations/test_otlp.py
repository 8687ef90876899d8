"""OTLP metrics and traces: what becomes a row, what is refused alone, and what no bytes can do."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st

from ingest.integrations.otlp import json as otlp_json
from ingest.integrations.otlp import messages, parse
from ingest.integrations.otlp.messages import JSON, PROTOBUF, SIGNALS, answer, read, status
from ingest.telemetry.decode.columns import Names
from ingest.telemetry.errors import InvalidBodyError
from tests.unit.ingest.integrations.otlp_cases import AT, BOUNDS, attribute, gauge, metrics, reread, samples


def taken(request: Any) -> parse.ParsedRequest:
    return parse.metrics(reread("metrics", request), "eu", BOUNDS)


# Metrics
# ----------------------------------------------------------------------------------------------------------
def test_a_gauge_becomes_a_sample_with_the_labels_of_point_and_resource() -> None:
    found = taken(gauge(2.5, cpu="0", n=3, on=True))
    assert samples(found.rows) == [("load", '{"cpu":"0","n":"3","on":"true","service.name":"cart"}', 2.5)]
    assert found.rows.times.tolist() == [AT // 1000]
    assert list(found.rows.names("region")) == ["eu"]


def test_an_attribute_of_a_point_stands_above_that_of_its_resource() -> None:
    request = gauge()
    attribute(
        request.resource_metrics[0].scope_metrics[0].metrics[0].gauge.data_points[0].attributes,
        "service.name",
        "x",
    )
    assert samples(taken(request).rows)[0][1] == '{"service.name":"x"}'


def test_what_only_describes_a_resource_is_no_label() -> None:
    request, told = metrics(host__name="h1", process__command_line="java -jar " + "x" * 5000)
    told.add(name="load").gauge.data_points.add(time_unix_nano=AT, as_int=7)
    assert samples(taken(request).rows) == [("load", '{"host.name":"h1"}', 7.0)]


def test_a_sum_since_the_last_export_says_so() -> None:
    request, told = metrics()
    for temporality in (1, 2):
        told.add(name="hits").sum.aggregation_temporality = temporality
        told[-1].sum.data_points.add(time_unix_nano=AT, as_int=temporality)
    assert [labels for _, labels, _ in samples(taken(request).rows)] == [
        '{"__temporality__":"delta","service.name":"cart"}', '{"service.name":"cart"}',
    ]  # fmt: skip


def histogram(counts: list[int], bounds: list[float], total: float | None = 4.5) -> Any:
    request, told = metrics(host__name="a")
    point = told.add(name="t").histogram.data_points.add(
        time_unix_nano=AT, count=sum(counts), bucket_counts=counts, explicit_bounds=bounds
    )
    if total is not None:
        point.sum = total
    return request


def test_a_histogram_becomes_cumulative_buckets_count_and_sum() -> None:
    found = taken(histogram([1, 2, 4], [0.5, 10.0]))
    assert [(name, json.loads(labels).get("le"), value) for name, labels, value in samples(found.rows)] == [
        ("t_count", None, 7.0), ("t_sum", None, 4.5),
        ("t_bucket", "0.5", 1.0), ("t_bucket", "10", 3.0), ("t_bucket", "+Inf", 7.0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("counts", "bounds", "reason"),
    [
        ([1, 2], [0.5, 1.0], "has not one bucket more than bounds"),
        ([1, 2, 3], [1.0, 0.5], "bounds do not rise"),
        ([1, 2], [float("nan")], "bounds do not rise"),
    ],
)
def test_a_histogram_that_does_not_fit_is_refused(
    counts: list[int], bounds: list[float], reason: str
) -> None:
    found = taken(histogram(counts, bounds))
    assert (found.rows.count, found.refusals.total) == (0, 1)
    assert reason in found.message


def test_a_histogram_is_refused_as_one_point() -> None:
    found = taken(histogram([1, 2], [0.5], float("inf")))
    assert (found.rows.count, found.refusals.total) == (0, 1)


def test_of_an_exponential_histogram_count_and_sum_are_kept_and_it_is_said() -> None:
    request, told = metrics()
    told.add(name="t").exponential_histogram.data_points.add(time_unix_nano=AT, count=3, sum=6.0, scale=2)
    found = taken(request)
    assert [(name, value) for name, _, value in samples(found.rows)] == [("t_count", 3.0), ("t_sum", 6.0)]
    assert found.refusals.total == 0
    assert found.message == "of 1 exponential histogram points only count and sum were kept"


def test_a_summary_becomes_quantiles_count_and_sum() -> None:
    request, told = metrics()
    point = told.add(name="t").summary.data_points.add(time_unix_nano=AT, count=2, sum=3.0)
    point.quantile_values.add(quantile=0.99, value=2.0)
    assert ("t", '{"quantile":"0.99","service.name":"cart"}', 2.0) in samples(taken(request).rows)


def test_a_point_without_a_recorded_value_is_left_out_and_not_refused() -> None:
    request = gauge()
    request.resource_metrics[0].scope_metrics[0].metrics[0].gauge.data_points[0].flags = 1
    found = taken(request)
    assert (found.rows.count, found.refusals.total) == (0, 0)
    assert "1 points say that there was no value" in found.message


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (gauge(float("nan")), "value is not a finite number"),
        (gauge(None), "the point has no value"),
        (gauge(time=0), "time is older than what is kept"),
        (gauge(time=2**64 - 1), "time lies in the future"),
        (gauge(name=""), "name is empty or holds control characters"),
        (gauge(name="a\0b"), "control characters"),
        (gauge(label="x" * 3000), "labels is longer than 2000 bytes"),
    ],
)
def test_a_bad_point_is_refused_alone(request_: Any, reason: str) -> None:
    request_.MergeFrom(gauge(7.0))
    found = taken(request_)
    assert [value for _, _, value in samples(found.rows)] == [7.0]
    assert found.refusals.total == 1
    assert reason in found.message


def test_the_name_of_a_refused_point_does_not_reach_the_database() -> None:
    request = gauge(name="a\0b")
    request.MergeFrom(gauge())
    columns = taken(request).rows.columns.values()
    assert not any("\0" in name for column in columns if isinstance(column, Names) for name in column.names)


def test_no_bad_name_of_many_gets_through() -> None:
    request = gauge()
    for number in range(50):
        request.MergeFrom(gauge(name=f"a\0{number}"))
    found = taken(request)
    assert (found.rows.count, found.refusals.total) == (1, 50)
    assert found.message == "50: name is empty or holds control characters (such as a\0" + "0)"


def test_an_attribute_that_is_none_refuses_its_point() -> None:
    body = gauge(a="b").SerializeToString().replace(b"\n\x01a\x12\x03\n\x01b", b"\xff" * 8)
    found = parse.metrics(read(SIGNALS["metrics"], body, PROTOBUF), "eu", BOUNDS)
    assert (found.rows.count, found.refusals.counts) == (0, {parse.BROKEN: 1})


def test_a_request_of_empty_parts_is_refused_before_it_costs_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "MOST_PARTS", 8)
    request = gauge()
    request.MergeFrom(gauge())
    with pytest.raises(InvalidBodyError, match="more than 8 parts"):
        taken(request)
    with pytest.raises(InvalidBodyError, match="more than 8 parts"):
        parse.traces(reread("traces", spans(*[{}] * 9)), "eu", BOUNDS)


def test_json_of_too_many_objects_is_refused_before_it_costs_much(monkeypatch: pytest.MonkeyPatch) -> None:
    body = json.dumps(in_json({"asInt": 1})).encode()
    monkeypatch.setattr(messages, "MOST_OBJECTS", 5)
    assert read(SIGNALS["metrics"], body, JSON)  # the fast way
    for signal in ("traces", "logs"):
        with pytest.raises(InvalidBodyError, match="more than 5 JSON objects"):
            read(SIGNALS[signal], body, JSON)
    monkeypatch.setattr(messages, "MOST_PARTS", 5)
    with pytest.raises(InvalidBodyError, match="more than 5 JSON objects"):
        read(SIGNALS["metrics"], body, JSON)


# Traces
# ----------------------------------------------------------------------------------------------------------
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def spans(*changes: dict[str, Any], **resource: Any) -> Any:
    request: Any = SIGNALS["traces"].request()
    told = request.resource_spans.add()
    for key, value in (resource or {"service__name": "cart", "service__instance__id": "cart-1"}).items():
        attribute(told.resource.attributes, key.replace("__", "."), value)
    scope = told.scope_spans.add()
    for change in changes:
        row: dict[str, Any] = {
            "trace_id": bytes.fromhex(TRACE), "span_id": bytes.fromhex(SPAN), "name": "GET /",
            "start_time_unix_nano": AT, "end_time_unix_nano": AT + 1_500_000,
        } | change  # fmt: skip
        scope.spans.add(**row)
    return request


def test_a_span_becomes_a_row() -> None:
    request = spans({"parent_span_id": b"\1" * 8, "status": {"code": 2}}, {"name": "PUT /"})
    rows = parse.traces(reread("traces", request), "eu", BOUNDS).rows
    told = {name: next(iter(column)) for name, column in rows.columns.items() if isinstance(column, Names)}
    assert told == {"trace": TRACE, "span": SPAN, "parent": "01" * 8, "service": "cart", "instance": "cart-1",
        "operation": "GET /", "region": "eu"}  # fmt: skip
    assert np.asarray(rows.columns["duration_us"]).tolist() == [1500.0, 1500.0]
    assert np.asarray(rows.columns["error"]).tolist() == [True, False]


@pytest.mark.parametrize(
    ("resource", "service", "instance"),
    [
        ({"service__name": "cart", "service__namespace": "shop", "host__name": "h1"}, "shop/cart", "h1"),
        ({"service__name": "cart", "k8s__pod__name": "cart-7", "host__name": "h1"}, "cart", "cart-7"),
        ({"service__name": "cart"}, "cart", "cart"),
        ({"telemetry__sdk": "x"}, "unknown_service", "unknown_service"),
    ],
)
def test_the_resource_names_service_and_instance(
    resource: dict[str, str], service: str, instance: str
) -> None:
    rows = parse.traces(reread("traces", spans({}, **resource)), "eu", BOUNDS).rows
    assert (*rows.names("service"), *rows.names("instance")) == (service, instance)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"trace_id": b"\1" * 8}, "the trace id has not 16 bytes"),
        ({"trace_id": bytes(16)}, "trace is empty or all zeros"),
        ({"span_id": b""}, "the span id not 8"),
        ({"parent_span_id": b"\1"}, "the parent's span id has not 8 bytes"),
        ({"end_time_unix_nano": AT - 1}, "the span ends before it starts"),
        ({"start_time_unix_nano": 1, "end_time_unix_nano": 2}, "time is older than what is kept"),
        ({"start_time_unix_nano": 2**64 - 1, "end_time_unix_nano": 2**64 - 1}, "time lies in the future"),
        ({"name": "x" * 513}, "operation is longer"),
    ],
)
def test_a_bad_span_is_refused_alone(change: dict[str, Any], reason: str) -> None:
    found = parse.traces(reread("traces", spans({}, change)), "eu", BOUNDS)
    assert (found.rows.count, found.refusals.total) == (1, 1)
    assert reason in found.message


# Forms
# ----------------------------------------------------------------------------------------------------------
def in_json(value: Any) -> Any:
    attributes = [{"key": "host.name", "value": {"stringValue": "h"}}]
    point = {"timeUnixNano": str(AT), "futureField": {"x": 1}, **value}
    metric = {"name": "load", "gauge": {"dataPoints": [point]}}
    return {
        "resourceMetrics": [{"resource": {"attributes": attributes}, "scopeMetrics": [{"metrics": [metric]}]}]
    }


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"asInt": "7"}, 7.0),
        ({"asInt": 7}, 7.0),
        ({"asDouble": 1.5}, 1.5),
        ({"asInt": 1, "timeUnixNano": AT}, 1.0),
    ],
)
def test_json_is_read_as_the_specification_has_it(value: Any, expected: float) -> None:
    request = read(SIGNALS["metrics"], json.dumps(in_json(value)).encode(), JSON)
    assert samples(parse.metrics(request, "eu", BOUNDS).rows) == [("load", '{"host.name":"h"}', expected)]


def everything() -> Any:
    """A request with every sort of data."""
    request = histogram([1, 2, 4], [0.5, 10.0])
    request.MergeFrom(gauge(2.5, cpu="0", n=3, on=True, parts=["a", "b"]))
    told = request.resource_metrics[0].scope_metrics[0].metrics
    told.add(name="hits").sum.aggregation_temporality = 1
    told[-1].sum.data_points.add(time_unix_nano=AT, as_int=-7, flags=0)
    told.add(name="e").exponential_histogram.data_points.add(time_unix_nano=AT, count=3, sum=6.0, scale=2)
    point = told.add(name="s").summary.data_points.add(time_unix_nano=AT, count=2, sum=3.0)
    point.quantile_values.add(quantile=0.99, value=2.0)
    told.add(name="nothing").gauge.data_points.add(time_unix_nano=AT)
    return request


def test_the_fast_way_through_json_says_what_protobuf_says() -> None:
    plain = json_format.MessageToDict(everything(), use_integers_for_enums=True)
    body = json.dumps(plain).encode()
    assert otlp_json.metrics(body).resource_metrics
    fast, slow = (
        parse.metrics(told, "eu", BOUNDS)
        for told in (read(SIGNALS["metrics"], body, JSON), reread("metrics", everything()))
    )
    assert samples(fast.rows) == samples(slow.rows)
    assert (fast.refusals.counts, fast.message) == (slow.refusals.counts, slow.message)


@pytest.mark.parametrize(
    "value",
    [{"asDouble": "NaN"}, {"asInt": None, "asDouble": 1}, {"asInt": "1e2"}, {"asInt": 1.0}, {"timeUnixNano": f"{AT} "},
     {"asInt": "x"}, {"asInt": 2**63}, {"asInt": 1, "asDouble": 2.0}, {"timeUnixNano": -1}, {"flags": 2**32}],
)  # fmt: skip
def test_what_the_fast_way_does_not_know_the_slow_one_decides(value: Any) -> None:
    with pytest.raises(ValueError):
        otlp_json.metrics(json.dumps(in_json(value)).encode())


@pytest.mark.parametrize(
    "attribute_", [{"key": 7}, {"key": "a", "value": 7}, {"key": "a", "value": {"intValue": "x"}}]
)
def test_an_attribute_in_json_that_is_none_refuses_its_point(attribute_: Any) -> None:
    body = json.dumps(in_json({"asInt": 1, "attributes": [attribute_]})).encode()
    assert parse.metrics(read(SIGNALS["metrics"], body, JSON), "eu", BOUNDS).refusals.counts == {
        parse.BROKEN: 1
    }


def test_ids_in_json_are_hexadecimal() -> None:
    span = {"traceId": TRACE.upper(), "spanId": SPAN, "parentSpanId": "", "name": "GET", "kind": 2,
        "startTimeUnixNano": AT, "endTimeUnixNano": str(AT)}  # fmt: skip
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()
    rows = parse.traces(read(SIGNALS["traces"], body, JSON), "eu", BOUNDS).rows
    assert (*rows.names("trace"), *rows.names("span"), *rows.names("parent")) == (TRACE, SPAN, "")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "not JSON"), (b"[]", "not a JSON object"), (b"{", "not JSON"), (b"[" * 100_000, "not JSON"),
        (b'{"resourceSpans": 7}', "not a ExportTraceServiceRequest in JSON"),
        (b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "xyz"}]}]}]}', "'xyz' is not hexadecimal"),
    ],
)  # fmt: skip
def test_a_body_that_is_no_request_is_refused_whole(body: bytes, reason: str) -> None:
    with pytest.raises(InvalidBodyError, match=reason):
        read(SIGNALS["traces"], body, JSON)


def test_a_full_success_leaves_partial_success_out() -> None:
    signal = SIGNALS["metrics"]
    assert (answer(signal, JSON, 0, ""), answer(signal, PROTOBUF, 0, "")) == (b"{}", b"")
    told = signal.response.FromString(answer(signal, PROTOBUF, 2, "why"))
    assert (told.partial_success.rejected_data_points, told.partial_success.error_message) == (2, "why")  # type: ignore[attr-defined]


def test_an_error_is_a_status_of_google_rpc() -> None:
    assert json.loads(status(400, "why", JSON)) == {"code": 3, "message": "why"}
    assert status(503, "ä" * 100, PROTOBUF) == b"\x08\x0e\x12\xc8\x01" + "ä".encode() * 100


@given(
    body=st.binary(max_size=200) | st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=5) | st.integers(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
            ["resourceMetrics", "resourceSpans", "resourceLogs", "scopeSpans", "spans", "scopeMetrics", "metrics",
             "gauge", "dataPoints", "traceId", "attributes", "value", "key", "kvlistValue", "name", "asInt"]
        ), inner, max_size=4),
        max_leaves=12,
    ).map(lambda plain: json.dumps(plain).encode()),
    signal=st.sampled_from(list(SIGNALS.values())),
    form=st.sampled_from([JSON, PROTOBUF]),
)  # fmt: skip
def test_any_body_becomes_rows_or_is_refused(body: bytes, signal: Any, form: str) -> None:
    try:
        request = read(signal, body, form)
    except InvalidBodyError:
        return
    if signal.name != "logs":
        made = {"metrics": parse.metrics, "traces": parse.traces}[signal.name]
        assert made(request, "eu", BOUNDS).refusals.total >= 0
