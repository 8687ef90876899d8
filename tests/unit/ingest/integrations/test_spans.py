"""Spans become `path_outcome` rows: one a trace, failed if it had an error or was slower than normal."""

import contextlib
import gzip
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.integrations.spans import (
    Holes,
    InvalidSpansError,
    Operations,
    Span,
    Trace,
    failed,
    learn,
    operation_of,
    parse,
    path_outcomes,
    traces,
)

HEADER = "TraceID,SpanID,ParentID,PodName,OperationName,StartTimeUnixNano,EndTimeUnixNano,Duration"
NOON = 1_772_366_400_000_000_000  # 2026-03-01T12:00:00Z


def span(
    name: str,
    parent: str | None = None,
    *,
    trace: str = "t1",
    on: str = "web-1",
    operation: str = "GET /",
    after_ms: int = 0,
    ms: float = 10,
    error: bool = False,
) -> Span:
    return Span(trace, name, parent, on, operation, NOON + after_ms * 1_000_000, ms * 1000, error)


def one(*spans: Span) -> Trace:
    (found,) = traces(spans, Holes())
    return found


def calm(*durations_ms: float, operation: str = "GET /") -> list[Trace]:
    return [one(span("r", trace=str(i), ms=ms, operation=operation)) for i, ms in enumerate(durations_ms)]


def csv(*rows: str, header: str = HEADER) -> bytes:
    return "\n".join((header, *rows, "")).encode()


def test_a_row_of_the_csv_is_a_span() -> None:
    payload = csv(f"t1,s1,root,web-1,GET /,{NOON},{NOON + 10_000_000},10000")
    assert parse(payload) == [span("s1")]


def test_windows_line_ends_and_a_byte_order_mark_change_nothing() -> None:
    payload = csv(f"t1,s1,root,web-1,GET /,{NOON},{NOON + 10_000_000},10000")
    assert parse(b"\xef\xbb\xbf" + payload.replace(b"\n", b"\r\n")) == parse(payload)


def test_an_error_column_is_read_where_there_is_one() -> None:
    payload = csv(f"t1,s1,,web-1,GET /,{NOON},{NOON},0,true", header=HEADER + ",Error")
    assert parse(payload)[0].error


@pytest.mark.parametrize(
    ("row", "field", "reason"),
    [
        ("t1,s1,root,web-1,GET /,noon,1,1", "StartTimeUnixNano", "'noon' is not a time in epoch nanoseconds"),
        ("t1,s1,root,web-1,GET /,1,-1,1", "EndTimeUnixNano", "'-1' is not a time in epoch nanoseconds"),
        ("t1,s1,root,web-1,GET /,1,1,nan", "Duration", "'nan' is not a number of microseconds"),
        (",s1,root,web-1,GET /,1,1,1", "TraceID", "is empty"),
        ("t1,s1,root,web 1,GET /,1,1,1", "PodName", "'web 1' has white space in it"),
        ("t1,s1,root,web-1", "OperationName", "the row ends after 4 of 8 columns"),
    ],
)
def test_a_bad_row_is_named_with_field_and_reason(row: str, field: str, reason: str) -> None:
    good = "t1,s1,root,web-1,GET /,1,1,1"
    with pytest.raises(InvalidSpansError) as refused:
        parse(csv(good, row))
    assert (refused.value.row, refused.value.field, refused.value.reason) == (2, field, reason)


def test_a_missing_column_is_named() -> None:
    with pytest.raises(InvalidSpansError, match=r"header, field PodName: the column is missing"):
        parse(csv(header=HEADER.replace("PodName", "Pod")))


def test_what_is_not_text_is_refused() -> None:
    with pytest.raises(InvalidSpansError, match=r"is not UTF-8 text"):
        parse(gzip.compress(b"anything"))


def test_a_trace_becomes_one_row_with_the_instances_it_passed() -> None:
    trace = one(span("r"), span("c", "r", on="cart-1"), span("d", "c", on="cart-1"))
    (row,) = path_outcomes([trace], learn(calm(20)), Holes())
    assert row == {
        "time": "2026-03-01T12:00:00Z",
        "components": ["instance/cart-1", "instance/web-1"],
        "attempts": 1,
        "failures": 0,
    }


def test_the_normal_limit_is_the_shortest_that_99_of_100_do_not_exceed() -> None:
    assert learn(calm(*range(1, 101)), "root").limit_us == {("GET /",): 99_000}


def test_with_few_normal_traces_the_longest_is_the_limit() -> None:
    assert learn(calm(5, 30, 8), "root").limit_us == {("GET /",): 30_000}


def test_slower_than_normal_is_a_failure_and_as_slow_is_not() -> None:
    normal = learn(calm(30))
    assert failed(one(span("r", ms=30.001)), normal) is True
    assert failed(one(span("r", ms=30)), normal) is False


def test_an_error_anywhere_in_the_trace_is_a_failure() -> None:
    assert failed(one(span("r", ms=1), span("c", "r", error=True)), learn(calm(30))) is True


def test_an_erroneous_trace_is_not_normal() -> None:
    assert learn([*calm(5), one(span("r", ms=900, error=True))], "root").limit_us == {("GET /",): 5000}


def test_an_operation_without_a_normal_is_judged_by_errors_alone() -> None:
    holes = Holes()
    unknown = one(span("r", operation="POST /new", ms=5000))
    (row,) = path_outcomes([unknown], learn(calm(30)), holes)
    assert (row["failures"], holes.unjudged) == (0, 1)


def through(entry: str, name: str, ms: float) -> Trace:
    root = span("r", trace=name, on="gateway-1", operation="/*", ms=ms)
    return one(root, span("e", "r", trace=name, on="shop-1", operation=entry, after_ms=1, ms=ms))


@pytest.mark.parametrize(("seen", "expected"), [(20, True), (19, False)])
def test_an_entry_that_was_seen_often_enough_has_a_limit_of_its_own(seen: int, expected: bool) -> None:
    quick = [through("GET /quick", f"q{i}", ms=5) for i in range(seen)]
    slow = [through("GET /slow", f"s{i}", ms=800) for i in range(20)]
    assert failed(through("GET /quick", "now", ms=300), learn([*quick, *slow])) is expected


@pytest.mark.parametrize(("operations", "name"), [("root", ("/*",)), ("entry", ("/*", "POST /pay"))])
def test_the_first_operation_away_from_the_root_tells_requests_through_a_gateway_apart(
    operations: Operations, name: tuple[str, ...]
) -> None:
    trace = one(
        span("r", on="gateway-1", operation="/*"),
        span("f", "r", on="gateway-1", operation="filter", after_ms=1),
        span("p", "f", on="pay-1", operation="POST /pay", after_ms=2),
    )
    assert operation_of(trace, operations) == name


def test_a_trace_without_a_root_is_left_out_and_counted() -> None:
    holes = Holes()
    assert traces([span("c", "gone")], holes) == []
    assert holes.sentences() == ["1 traces without a root were left out: nobody knows how long they took"]


def test_a_root_that_ends_before_it_starts_is_left_out_and_counted() -> None:
    holes = Holes()
    payload = csv(f"t1,s1,root,web-1,GET /,{NOON},{NOON - 1},10")
    assert traces(parse(payload), holes) == []
    assert holes.backward == 1


def test_an_orphan_counts_as_passed() -> None:
    holes = Holes()
    (trace,) = traces([span("r"), span("c", "gone", on="cart-1")], holes)
    assert (trace.instances, holes.orphans) == (("cart-1", "web-1"), 1)


def test_a_repeated_span_counts_once() -> None:
    holes = Holes()
    (trace,) = traces([span("r"), span("r")], holes)
    assert (len(trace.spans), holes.repeated) == (1, 1)


def test_a_skewed_clock_is_counted_and_makes_no_trace_slow() -> None:
    holes = Holes()
    (trace,) = traces([span("r"), span("c", "r", on="cart-1", after_ms=-3_600_000)], holes)
    assert (failed(trace, learn([trace])), holes.early) == (False, 1)


def test_of_several_roots_the_earliest_counts() -> None:
    trace = one(span("late", after_ms=5, ms=900), span("first", ms=10))
    assert trace.root.span == "first"


def test_times_can_be_shifted() -> None:
    shift = datetime(2026, 3, 2, tzinfo=UTC) - datetime(2026, 3, 1, tzinfo=UTC) + timedelta(microseconds=1)
    (row,) = path_outcomes([one(span("r"))], learn(calm(30)), Holes(), shift)
    assert row["time"] == "2026-03-02T12:00:00.000001Z"


@given(
    st.permutations([span("r"), span("a", "r", on="a-1"), span("b", "r", on="b-1"), span("x", trace="t2")])
)
def test_the_order_of_spans_means_nothing(shuffled: list[Span]) -> None:
    in_order = sorted(shuffled, key=lambda one: (one.trace, one.span))
    assert traces(shuffled, Holes()) == traces(in_order, Holes())


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: csv(text)))
def test_any_bytes_are_read_or_refused_by_name(payload: bytes) -> None:
    with contextlib.suppress(InvalidSpansError):
        parse(payload)
