"""Differences that a report states, and how spans of time are summed up."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from incidents.reports.changes import changes
from incidents.reports.incidents import spread
from tests.places import EVENTS

GOLDEN = EVENTS / "report.produced.v2.json"


def body(**response: Any) -> dict[str, Any]:
    whole: dict[str, Any] = json.loads(GOLDEN.read_text())
    whole["response"] |= response
    return whole


def sentences(now: dict[str, Any], before: dict[str, Any]) -> list[str]:
    return [line["sentence"] for line in changes(now, before)]


def test_the_same_figures_are_no_change() -> None:
    assert changes(body(), body()) == []


def test_slower_acknowledgement_is_worse() -> None:
    slower = body(acknowledged={"n": 1, "median": 600.0, "p90": 600.0})
    (line,) = changes(slower, body())
    assert (line["better"], line["sentence"]) == (False, "median time to acknowledge: 10 min, before 61 s")


def test_a_time_that_nobody_measured_is_compared_with_nothing() -> None:
    assert changes(body(acknowledged={"n": 0, "median": None, "p90": None}), body()) == []


def test_components_that_came_and_went_are_named() -> None:
    now, before = body(), body()
    now["blamed"] = [{"component": "tor/new"}]
    assert sentences(now, before) == [
        "tor/new is newly suspected",
        "storage_cluster/s7 is no longer suspected",
    ]


def test_less_availability_is_worse() -> None:
    now = body()
    now["analyses"][0]["measures"]["availability"] = 0.999
    (line,) = changes(now, body())
    assert (line["better"], line["sentence"].endswith("0.1 % of the time lost, before 7e-05 %")) == (
        False,
        True,
    )


def test_a_report_that_knew_no_response_is_compared_without_it() -> None:
    before = {**body(), "response": None}
    assert changes(body(), before) == []


@pytest.mark.parametrize(
    ("seconds", "median", "p90"), [([5], 5, 5), ([1, 3], 2, 3), ([1, 2, 100], 2, 100), (range(1, 11), 5.5, 9)]
)
def test_median_and_ninetieth_percentile(seconds: list[int], median: float, p90: float) -> None:
    found = spread(timedelta(seconds=one) for one in seconds)
    assert (found["n"], found["median"], found["p90"]) == (len(seconds), median, p90)


def test_of_nothing_there_is_no_median() -> None:
    assert spread([]) == {"n": 0, "median": None, "p90": None}
