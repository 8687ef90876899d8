"""Recorded spans as rows of the kind `span`."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ingest.integrations.span_rows import MINUTE_NS, put_before, service_of, span_rows
from ingest.integrations.spans import Span, instant


@pytest.mark.parametrize(
    ("pod", "service"),
    [
        ("checkoutservice-578fcf4766-9csqn", "checkoutservice"),
        ("ts-price-service-76846864d9-nmjz7", "ts-price-service"),
        ("ts-station-food-service-dc4d75dd-k65k2", "ts-station-food-service"),
        ("postgres-0", "postgres"),
        ("frontend", "frontend"),
        ("cart-service", "cart-service"),
    ],
)
def test_the_service_of_a_pod_is_its_name_without_what_kubernetes_adds(pod: str, service: str) -> None:
    assert service_of(pod) == service


def span(number: int, start: int, lasts: float = 5.0, parent: str | None = None) -> Span:
    return Span("t", f"s{number}", parent, "web-5b67c48447-fj8b7", "get", start, lasts, False)


def test_a_row_says_what_the_span_said() -> None:
    (row,) = span_rows([span(1, 1_700_000_000_123_456_789, parent="s0")])
    assert row == {
        "time": "2023-11-14T22:13:20.123456Z",
        "trace": "t",
        "span": "s1",
        "parent": "s0",
        "service": "web",
        "instance": "web-5b67c48447-fj8b7",
        "operation": "get",
        "duration_us": 5.0,
        "error": False,
    }


def test_a_root_has_no_parent() -> None:
    (row,) = span_rows([span(1, 10**18)])
    assert "parent" not in row


def test_of_a_span_that_came_twice_the_earlier_is_kept() -> None:
    rows = span_rows([span(1, 2 * 10**18), span(1, 10**18)])
    assert [row["time"] for row in rows] == [instant(10**18).isoformat().replace("+00:00", "Z")]


def test_a_span_that_ends_before_it_starts_is_left_out() -> None:
    assert span_rows([span(1, 10**18, lasts=-1.0)]) == []


def test_normal_minutes_are_put_one_after_the_other_up_to_the_minute_of_the_first_span() -> None:
    fault = [100 * MINUTE_NS + 30 * 10**9]
    first, second = [500 * MINUTE_NS], [7 * MINUTE_NS + 1]
    assert put_before([first, second], fault) == [timedelta(minutes=98 - 500), timedelta(minutes=99 - 7)]
