"""The component whose metrics changed is named with its metric and its onset; what only looks like one is not."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
import pytest

from analyzers.builtin.changepoint import ANALYZER
from analyzers.builtin.paths import texts
from analyzers.contract import Sums, Window
from analyzers.runner import judge
from analyzers.simulators.changes.metrics import EPOCH, EVENTS, FAULTS, MINUTE, Fleet, fleet, window_of
from analyzers.testing import Case, check_analyzer

Verdict = Mapping[str, Any]
BY_THE_CLOCK = ("diurnal", "nightly_job")
"""Events that take a day of history to be known as usual."""


def made(kind: str = "", event: str = "", seed: int = 1, **more: Any) -> Fleet:
    return fleet(np.random.default_rng([seed, 7]), kind, event, **{"services": 5, "hours": 7, **more})


def judged(one: Fleet, **params: Any) -> Verdict:
    return judge(ANALYZER, window_of(one), params)


def named(verdict: Verdict) -> list[str]:
    return [one["component"] for one in verdict["suspects"]]


def onset_of(verdict: Verdict) -> tuple[datetime, datetime]:
    (table,) = [one for one in verdict["evidence"] if one["title"] == "Onsets"]
    first = table["rows"][0]
    return datetime.fromisoformat(first[2]), datetime.fromisoformat(first[4])


@pytest.mark.simulated
def test_it_is_a_good_analyzer() -> None:
    def make(seed: int, faulty: bool) -> Case:
        one = made("step" if faulty else "", seed=seed, services=4, hours=5)
        return Case(window_of(one), (f"service/{one.name(one.at)}",) if faulty else ())

    check_analyzer(ANALYZER, make, seeds=range(1), names={"labels.service": "service"})


@pytest.mark.simulated
@pytest.mark.parametrize("kind", [one for one in FAULTS if one != "small_step"])
def test_a_component_that_changed_is_named_with_its_onset(kind: str) -> None:
    one = made(kind)
    verdict = judged(one)
    assert named(verdict) == [f"service/{one.name(one.at)}"]
    low, high = onset_of(verdict)
    assert low <= EPOCH + one.onset * MINUTE <= high
    assert verdict["suspects"][0]["score"] is None


@pytest.mark.simulated
@pytest.mark.parametrize("event", ["", *EVENTS])
def test_what_is_no_change_of_one_component_names_nobody(event: str) -> None:
    hours = 26 if event in BY_THE_CLOCK else 7
    assert named(judged(made(event=event, hours=hours, services=4))) == []


def test_a_change_of_all_is_said_and_names_nobody() -> None:
    verdict = judged(made(event="fleet_shift"))
    assert verdict["status"] == "inconclusive"
    assert "requests_total changed alike on 5 of 5 components" in verdict["reason"]


@pytest.mark.simulated
def test_a_fault_beside_a_change_of_all_is_named() -> None:
    one = made("replica_lost", "fleet_shift")
    assert named(judged(one)) == [f"service/{one.name(one.at)}"]


def test_a_change_for_the_better_is_cleared() -> None:
    one = made()
    one.values["latency_seconds"][2, one.onset :] /= 3
    verdict = judged(one)
    assert named(verdict) == []
    (cleared,) = [each for each in verdict["evidence"] if each["title"] == "Looked into and cleared"]
    assert cleared["rows"][0][0] == "service/s02"


def test_a_change_that_is_over_says_until_when() -> None:
    one = made()
    end = one.minutes - 10
    one.values["cpu_usage"][3, end - 25 : end] += 0.3
    verdict = judged(one)
    assert named(verdict) == ["service/s03"]
    over = datetime.fromisoformat(verdict["suspects"][0]["last_failure"])
    assert abs(over - (EPOCH + end * MINUTE)) <= 2 * MINUTE


def test_without_history_the_first_third_is_what_is_usual() -> None:
    one = made("step", hours=2, window=120)
    assert named(judged(one)) == [f"service/{one.name(one.at)}"]


def test_series_that_are_too_short_are_not_judged() -> None:
    verdict = judged(made("step", hours=1, window=30))
    assert verdict["status"] == "inconclusive"
    assert re.search(
        r"has 30 minutes with samples in the [0-9,]+ minutes before what is judged", verdict["reason"]
    )
    assert "give more history" in verdict["reason"]


def test_a_window_without_metrics_is_inconclusive() -> None:
    one = window_of(made())
    none = Sums({"name": (), "labels": (), "slice": np.empty(0, np.int64)}, _nothing(), 0)
    empty = replace(one, sums={"series": none}, history=())
    assert judge(ANALYZER, empty, {})["reason"] == "There are no metrics in this window."


@pytest.mark.simulated
def test_a_label_that_names_no_component_is_said_and_can_be_named() -> None:
    one = made("step")
    window = _relabelled(window_of(one), "shard")
    assert "No label of 25 series names a component" in judge(ANALYZER, window, {})["reason"]
    assert named(judge(ANALYZER, window, {"component_label": "shard"})) == [f"shard/{one.name(one.at)}"]


def _nothing() -> dict[str, Any]:
    return {"total": np.empty(0), "samples": np.empty(0, np.int64)}


def _relabelled(window: Window, label: str) -> Window:
    sums = window.sums["series"]
    keys = dict(sums.keys)
    named_by = (json.loads(str(one))["service"] for one in texts(sums, "labels"))
    keys["labels"] = tuple(json.dumps({label: one}) for one in named_by)
    history = tuple(_relabelled(one, label) for one in window.history)
    return replace(window, sums={"series": replace(sums, keys=keys)}, history=history)
