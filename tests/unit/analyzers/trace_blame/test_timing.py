"""Own times and ways, against what a person would add up span by span."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from analyzers.builtin.trace_blame.spans import LOST, Spans, Timing, spans_of, timing_of
from analyzers.contract import Sums, Window

START = datetime(2026, 1, 5, tzinfo=UTC)
ZERO = int(START.timestamp()) * 1_000_000

Row = tuple[str, str, str, str, int, int]
"""Span, parent, service, operation, start and duration in microseconds; the instance is service-0."""


def window_of(rows: list[Row], minutes: int = 1) -> Window:
    ordered = sorted(rows)
    keys: dict[str, Any] = {
        "trace": ("t",) * len(rows),
        "span": tuple(row[0] for row in ordered),
        "parent": tuple(row[1] for row in ordered),
        "service": tuple(row[2] for row in ordered),
        "instance": tuple(f"{row[2]}-0" for row in ordered),
        "operation": tuple(row[3] for row in ordered),
        "time": np.array([ZERO + row[4] for row in ordered], dtype=np.int64),
        "error": np.zeros(len(rows), dtype=np.int64),
    }
    values: dict[str, Any] = {
        "duration_us": np.array([row[5] for row in ordered], dtype=np.float64),
        "rows": np.ones(len(rows), dtype=np.int64),
    }
    sums = {"spans": Sums(keys, values, len(rows))}
    return Window(START, START + timedelta(minutes=minutes), "default", "span", sums)


def timed(rows: list[Row]) -> tuple[Spans, Timing]:
    spans = spans_of(window_of(rows))
    return spans, timing_of(spans)


def own_of(rows: list[Row], operation: str) -> float:
    spans, timing = timed(rows)
    names = [name for _, name in spans.operations]
    (row,) = np.flatnonzero(spans.operation == names.index(operation)).tolist()
    return float(timing.own[row])


def test_time_in_which_children_overlap_is_taken_off_once() -> None:
    rows = [("a", "", "web", "page", 0, 100), ("b", "a", "web", "x", 10, 50), ("c", "a", "web", "y", 40, 40)]
    assert own_of(rows, "page") == 30


def test_a_child_that_outlives_its_parent_takes_no_more_than_the_parent_had() -> None:
    rows = [("a", "", "web", "page", 0, 100), ("b", "a", "web", "later", 80, 500)]
    assert own_of(rows, "page") == 80


def test_the_way_of_a_call_is_what_its_caller_waits_longer_than_the_called_works() -> None:
    rows = [("a", "", "web", "call", 0, 100), ("b", "a", "cart", "get", 30, 60)]
    spans, timing = timed(rows)
    (caller,) = np.flatnonzero(spans.parent == -1).tolist()
    assert timing.way[caller] == 40


@pytest.mark.parametrize("ahead", [-5_000_000, 0, 70_000_000])
def test_the_clock_of_the_called_does_not_matter(ahead: int) -> None:
    rows = [
        ("a", "", "web", "page", 0, 1000),
        ("b", "a", "cart", "get", 100 + ahead, 300),
        ("c", "a", "web", "own", 500, 200),
    ]
    assert own_of(rows, "page") == 500


def test_a_handler_beside_the_call_it_waits_for_has_no_time_of_its_own() -> None:
    rows = [
        ("a", "", "gate", "in", 0, 1000),
        ("b", "a", "gate", "handler", 10, 980),
        ("c", "a", "gate", "call", 20, 960),
        ("d", "c", "shop", "buy", 30, 900),
    ]
    assert own_of(rows, "handler") == 20


def test_a_span_whose_parent_is_missing_is_told_from_a_root() -> None:
    spans, _ = timed([("a", "", "web", "page", 0, 10), ("b", "gone", "cart", "get", 1, 5)])
    assert sorted(spans.parent.tolist()) == [LOST, -1]


def test_a_span_that_came_twice_counts_once() -> None:
    window = window_of([("a", "", "web", "page", 0, 10)])
    sums = window.sums["spans"]
    twice = Sums(sums.keys, {"duration_us": np.array([20.0]), "rows": np.array([2])}, 1)
    spans = spans_of(Window(window.start, window.end, "default", "span", {"spans": twice}))
    assert spans.duration.tolist() == [10]


def test_what_had_not_ended_with_the_window_is_not_whole() -> None:
    _, timing = timed([("a", "", "web", "page", 0, 90_000_000)])
    assert not timing.whole.any()


def test_spans_on_a_circle_of_parents_do_no_harm() -> None:
    rows = [("a", "b", "web", "x", 0, 10), ("b", "a", "web", "y", 0, 10), ("c", "", "web", "z", 0, 10)]
    _, timing = timed(rows)
    assert (timing.own >= 0).all()


def slow_own(rows: list[Row], span: str) -> int:
    """Microseconds in which the span is open and none of its local children is, one by one."""
    mine = next(row for row in rows if row[0] == span)
    children = [row for row in rows if row[1] == span]
    inside = range(mine[4], mine[4] + mine[5])
    return sum(not any(child[4] <= at < child[4] + child[5] for child in children) for at in inside)


@pytest.mark.parametrize("seed", range(5))
def test_own_times_agree_with_counting_microseconds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows: list[Row] = [("s0", "", "web", "o0", 0, 60)]
    for number in range(1, 12):
        parent = f"s{int(rng.integers(0, number))}"
        rows.append(
            (f"s{number}", parent, "web", f"o{number}", int(rng.integers(0, 60)), int(rng.integers(0, 30)))
        )
    for number in range(12):
        assert own_of(rows, f"o{number}") == slow_own(rows, f"s{number}")
