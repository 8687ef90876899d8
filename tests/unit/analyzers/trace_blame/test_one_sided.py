"""Spans that stopped arriving: what is lost telemetry, and what is a fault all the same."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from analyzers.builtin.trace_blame import ANALYZER
from analyzers.runner import judge
from analyzers.simulators.trace_rows import window
from analyzers.simulators.traces import Fault, Operation, SpanColumns, System, record

SHOP, CART = 0, 1
CARTS = ("cart-a", "cart-b")
SYSTEM = System(
    services=("shop", "cart", "bank"),
    replicas=(("shop-a",), CARTS, ("bank-a",)),
    operations=(
        Operation(SHOP, "page", 3000.0, 0.3, ((1, 1.0), (2, 1.0))),
        Operation(CART, "items", 2000.0, 0.3, ()),
        Operation(2, "pay", 4000.0, 0.3, ()),
    ),
    entries=((0, 120.0),),
    way_us=(800.0, 800.0, 800.0),
)


@cache
def past() -> tuple[Any, ...]:
    rng = np.random.default_rng(5)
    return tuple(window(record(SYSTEM, rng, minute), minute) for minute in range(3))


def told(recorded: SpanColumns) -> dict[str, Any]:
    return judge(ANALYZER, window(recorded, 3, past()))


def minute(fault: Fault | None = None) -> SpanColumns:
    return record(SYSTEM, np.random.default_rng(6), 3, fault)


def without(recorded: SpanColumns, pods: tuple[str, ...]) -> SpanColumns:
    return recorded.only(~np.isin(recorded.columns["pod"], pods))


def unanswered(recorded: SpanColumns) -> Any:
    columns = recorded.columns
    return (columns["operation"] == "call items") & ~np.isin(columns["span"], columns["parent"])


def silent_rows(verdict: dict[str, Any]) -> list[Any]:
    return [
        row
        for one in verdict["evidence"]
        if one["title"] == "Spans that stopped arriving"
        for row in one["rows"]
    ]


@pytest.mark.simulated
@pytest.mark.parametrize("pods", [CARTS[:1], CARTS, ("bank-a",), ("shop-a",)])
def test_spans_that_are_lost_while_calls_succeed_blame_nobody(pods: tuple[str, ...]) -> None:
    assert told(without(minute(), pods))["status"] == "quiet"


def test_whose_spans_stopped_and_what_callers_saw_is_evidence() -> None:
    (row,) = silent_rows(told(without(minute(), CARTS[:1])))
    assert row[0] == "instance/cart-a"
    assert row[-1] == "its spans stopped arriving, its callers saw no failures: lost telemetry"


def test_a_silent_entry_is_known_by_the_calls_that_it_made() -> None:
    (row,) = silent_rows(told(without(minute(), ("shop-a",))))
    assert (row[0], row[4]) == ("instance/shop-a", 0)
    assert "what it calls is still called" in row[-1]


def test_an_instance_that_is_called_no_more_is_not_taken_for_silent() -> None:
    drained = replace(SYSTEM, replicas=(("shop-a",), CARTS[1:], ("bank-a",)))
    assert silent_rows(told(record(drained, np.random.default_rng(6), 3))) == []


def test_a_service_that_is_gone_and_whose_callers_see_errors_is_named() -> None:
    recorded = without(minute(), CARTS)
    failing = SpanColumns({**recorded.columns, "error": unanswered(recorded)})
    verdict = told(failing)
    assert [one["component"] for one in verdict["suspects"]] == ["service/cart"]
    assert "of these calls failed" in silent_rows(verdict)[0][-1]


def test_a_service_that_is_slow_and_loses_its_spans_is_named() -> None:
    verdict = told(without(minute(Fault("network_delay", CART, None, 300_000.0)), CARTS))
    named = {verdict["suspects"][0]["component"], *verdict["suspects"][0]["ambiguous_with"]}
    assert named & {"service/cart", "service/shop"}
    assert verdict["suspects"][0]["phrase"].startswith("is slow")
    assert verdict["suspects"][0]["estimate"]["failure_rate"] > 0.9


def test_calls_that_come_back_too_fast_to_have_been_served_still_count() -> None:
    recorded = without(minute(), CARTS)
    fast = np.where(unanswered(recorded), 50.0, recorded.columns["duration_us"])
    verdict = told(SpanColumns({**recorded.columns, "duration_us": fast}))
    assert verdict["status"] == "named"


def test_a_title_says_how_many_times_the_normal_time() -> None:
    says = told(minute(Fault("cpu_contention", CART, None, 12.0)))["suspects"][0]["phrase"]
    assert "times its normal time (" in says
    assert "%" not in says


def test_a_title_says_which_share_ends_in_errors() -> None:
    says = told(minute(Fault("exception", SHOP, None, 0.6)))["suspects"][0]["phrase"]
    assert says.startswith("fails: ")
    assert says.endswith("end in errors that none had before")
