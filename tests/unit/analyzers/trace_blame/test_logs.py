"""Log records beside spans: what they show, whose they are, and that spans alone still decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from analyzers.builtin.trace_blame import ANALYZER
from analyzers.builtin.trace_blame.logs import VARIANTS, merged_texts
from analyzers.contract import Sums, Window
from analyzers.runner import judge

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
REQUESTS = 60
Record = tuple[str, str, str, int]
"""Instance, template, severity and how many a minute."""

USUAL: tuple[Record, ...] = (
    ("shop-0", "page <*> requested", "info", REQUESTS),
    ("shop-0", "page <*> served", "info", REQUESTS),
    ("cart-0", "get <*> received", "info", REQUESTS),
    ("cart-0", "get <*> completed", "info", REQUESTS),
    ("store-0", "read <*>", "info", REQUESTS),
    ("store-0", "cache missed", "info", 9),
)


def spans(minute: int, rng: np.random.Generator) -> Sums:
    """A shop asks a cart, which asks a store; each call is two spans. Times vary, and nothing is ever wrong."""
    rows = []
    for number in range(REQUESTS):
        at = int((START + minute * MINUTE).timestamp() * 1e6) + number * 900_000
        own, trace = np.exp(rng.normal(8, 0.3, 5)).astype(int).tolist(), f"{minute:08x}{number:08x}"
        lasts = [sum(own[place:]) for place in range(5)]
        chain = (
            ("shop", "page"),
            ("shop", "call get"),
            ("cart", "get"),
            ("cart", "call read"),
            ("store", "read"),
        )
        for place, (service, operation) in enumerate(chain):
            span, parent = f"{place + 1:016x}", f"{place:016x}" if place else ""
            rows.append(
                (trace, span, parent, service, f"{service}-0", operation, at + place * 100, 0, lasts[place])
            )
    columns = list(zip(*sorted(rows), strict=True))
    texts = ("trace", "span", "parent", "service", "instance", "operation")
    return Sums(
        keys={
            **dict(zip(texts, columns[:6], strict=True)),
            "time": np.array(columns[6]),
            "error": np.array(columns[7]),
        },
        values={
            "duration_us": np.array(columns[8], dtype=np.float64),
            "rows": np.ones(len(rows), dtype=np.int64),
        },
        rows=len(rows),
    )


def logs(minute: int, records: Sequence[Record], rng: np.random.Generator) -> Sums:
    at = int((START + minute * MINUTE).timestamp() * 1e6)
    rows = sorted(
        (f"instance/{instance}", template, severity, at + 15_000_000 * quarter, int(count))
        for instance, template, severity, often in records
        for quarter, count in enumerate(rng.multinomial(often, [0.25] * 4))
        if count
    )
    component, template, severity, time, count = zip(*rows, strict=True) if rows else ((),) * 5
    return Sums(
        keys={
            "component": component,
            "template": template,
            "severity": severity,
            "time": np.array(time, dtype=np.int64),
        },
        values={"count": np.array(count, dtype=np.int64)},
        rows=len(rows),
    )


def window(now: Sequence[Record] | None, history: int = 4, past: Sequence[Record] = USUAL) -> Window:
    """A minute after `history` usual ones; without records where `now` is None."""
    rng = np.random.default_rng(7)

    def one(minute: int, records: Sequence[Record] | None) -> Window:
        sums = {"spans": spans(minute, rng)}
        if records is not None:
            sums["logs"] = logs(minute, records, rng)
        start = START + minute * MINUTE
        return Window(start, start + MINUTE, "default", "span" if records is None else "spans_and_logs", sums)

    before = tuple(one(minute, None if now is None else past) for minute in range(history))
    return replace(one(history, now), history=before)


def suspects(now: Sequence[Record] | None, **more: Any) -> list[str]:
    return [one["component"] for one in judge(ANALYZER, window(now, **more))["suspects"]]


def without(template: str, left: int = 0) -> list[Record]:
    return [
        (one, text, severity, left if text == template else count) for one, text, severity, count in USUAL
    ]


FAILED: Record = ("cart-0", "get <*> failed: NullPointerException", "error", 30)


def test_usual_records_blame_nobody() -> None:
    assert suspects(USUAL) == []


def test_spans_that_show_nothing_blame_nobody() -> None:
    assert suspects(None) == []


def test_an_exception_that_only_logs_show_is_found() -> None:
    verdict = judge(ANALYZER, window([*USUAL, FAILED]))
    assert verdict["suspects"][0]["component"] == "service/cart"
    assert "NullPointerException" in verdict["suspects"][0]["summary"]


def test_steps_that_are_skipped_are_found_by_the_records_that_are_missing() -> None:
    verdict = judge(ANALYZER, window(without("get <*> completed")))
    assert verdict["suspects"][0]["component"] == "service/cart"
    assert "0 of 60 expected" in verdict["suspects"][0]["summary"]


def test_what_a_caller_logs_of_it_does_not_blame_the_caller() -> None:
    told: Record = ("shop-0", "cart answered with an error", "error", 30)
    assert suspects([*without("get <*> completed", 20), FAILED, told]) == ["service/cart"]


@pytest.mark.simulated
def test_records_that_are_rare_or_follow_what_is_asked_blame_nobody() -> None:
    assert suspects([*USUAL, ("store-0", "compaction of <*> began", "info", 2)]) == []
    assert suspects(without("cache missed", 1)) == []


TIMEOUT = "get <*> failed: timeout"


@pytest.mark.simulated
def test_more_errors_that_were_always_there_blame_who_finishes_less_too() -> None:
    past = [*USUAL, ("cart-0", TIMEOUT, "error", 3)]
    assert suspects(past, past=past) == []
    fewer = [*without("get <*> completed", 20), ("cart-0", TIMEOUT, "error", 40)]
    assert suspects(fewer, past=past) == ["service/cart"]


def test_a_burst_of_known_errors_that_no_request_feels_blames_nobody() -> None:
    past = [*USUAL, ("store-0", "client closed the request after <*> ms", "error", 5)]
    burst = [*USUAL, ("store-0", "client closed the request after <*> ms", "error", 57)]
    assert suspects(burst, past=past) == []


def test_records_of_windows_without_records_are_not_new() -> None:
    """Logs that begin to be sent are no fault."""
    assert suspects([*USUAL, FAILED], past=()) == []


def test_records_of_nobody_who_has_spans_are_passed_over() -> None:
    assert suspects([*USUAL, ("ghost-0", "fatal error", "fatal", 60)]) == []


def test_words_that_take_many_values_vary_and_words_that_say_what_happened_do_not() -> None:
    people = [f"user {name} logged in" for name in ("ann", "bea", "cid", "dan", "eve")]
    steps = ["read received", "read completed"]
    assert set(merged_texts(people[:VARIANTS]).values()) == {"user <*> logged in"}
    assert merged_texts([*people[: VARIANTS - 1], *steps]) == {
        one: one for one in [*people[: VARIANTS - 1], *steps]
    }


def test_the_order_of_records_means_nothing() -> None:
    texts = [f"user {name} in {city}" for name in "abcdefg" for city in ("rome", "oslo")]
    assert merged_texts(texts) == merged_texts(texts[::-1])


@pytest.mark.simulated
@pytest.mark.parametrize("history", [1, 2])
def test_a_short_history_is_said_and_lowers_what_is_stated(history: int) -> None:
    short, long = (judge(ANALYZER, window([*USUAL, FAILED], history=windows)) for windows in (history, 4))
    unmet = [one["name"] for one in short["assumptions"] if not one["holds"]]
    assert unmet == ["noise"]
    assert short["suspects"][0]["score"] < long["suspects"][0]["score"]
    assert all(one["holds"] for one in long["assumptions"])


@pytest.mark.simulated
@pytest.mark.parametrize("history", [1, 2])
def test_a_short_history_in_which_nobody_stands_out_decides_nothing(history: int) -> None:
    """Recorded faults beside one fault-free minute were `quiet`, changed returns among them."""
    short, long = (judge(ANALYZER, window([*USUAL], history=windows)) for windows in (history, 4))
    assert (short["status"], long["status"]) == ("inconclusive", "quiet")
    assert "Needed: 3 windows of history" in short["reason"]
