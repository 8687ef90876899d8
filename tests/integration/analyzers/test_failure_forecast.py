"""Forecast of node failures: what is announced is named with its kind, what nothing announces is not, and too little is
no forecast."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from analyzers.builtin.failure_forecast import ANALYZER
from analyzers.builtin.failure_forecast.causes import Network, network
from analyzers.builtin.failure_forecast.days import days_of, node_of
from analyzers.builtin.failure_forecast.model import Trial, calibrated, ceiling_of, groups_of
from analyzers.builtin.stats.intervals import HOUR, microseconds
from analyzers.runner import judge
from analyzers.simulators.forecasts.nodes import AT_RISK, KINDS, Rates, fleet, rows_of
from analyzers.testing import Case, check_analyzer
from tests.benchmarks.failure_forecast import window_of

PARAMS = {"alarms": 25.0}
NAMED = f"node/gpu-{AT_RISK}"


@cache
def rows(announced: bool = True) -> dict[str, list[dict[str, Any]]]:
    rates = Rates(nodes=80, days=42, rate=0.012, benign=0.0, announced=announced)
    return rows_of(fleet(rates, np.random.default_rng([3, 47]), AT_RISK if announced else None))


def test_it_is_a_good_analyzer() -> None:
    """A fleet that is small and fails often: ten windows are learnt from."""

    def make(_seed: int, faulty: bool) -> Case:
        rates = Rates(nodes=26, days=22, rate=0.05, benign=0.0, announced=faulty)
        made = fleet(rates, np.random.default_rng([1, 47]), AT_RISK if faulty else None)
        return Case(window_of(rows_of(made)), (NAMED,) if faulty else ())

    check_analyzer(ANALYZER, make, {"alarms": 40.0}, seeds=range(1), names={"labels.node": "node"})


def test_a_node_at_risk_is_named_with_symptoms_and_kind() -> None:
    verdict = judge(ANALYZER, window_of(rows()), PARAMS)
    first = verdict["suspects"][0]
    assert (first["component"], first["score"], first["forecast"]) == (NAMED, None, True)
    assert "xid_63" in first["indicator"]
    assert f"Probable kind: {KINDS[0]}" in first["summary"]
    (checked,) = verdict["assumptions"]
    assert checked["holds"]
    assert "later days of other nodes" in checked["detail"]
    held_out = next(one for one in verdict["evidence"] if one["title"].startswith("Area under"))
    areas = dict(held_out["rows"])
    assert max(areas.values()) > 5 * areas["always no"]


def test_without_signs_or_with_too_little_there_is_no_forecast() -> None:
    blind = judge(ANALYZER, window_of(rows(False)), PARAMS)
    assert (blind["status"], blind["suspects"]) == ("inconclusive", [])
    assert "no better than chance" in blind["reason"]
    few = judge(ANALYZER, window_of({**rows(), "node_incident": rows()["node_incident"][:9]}), {})
    assert few["reason"].startswith("No forecast: 9 incidents in ")


def test_the_last_day_says_nothing_of_what_follows_it() -> None:
    days = days_of(window_of(rows()), frozenset(), "")
    failing = days.failing(24 * HOUR)
    node, at, _ = days.incidents[len(days.incidents) // 2]
    day = int(np.searchsorted(days.ends, at, side="right")) - 1
    assert failing[node, day]
    assert days.ends[day] <= at < days.ends[day] + 24 * HOUR
    later = replace(days, incidents=tuple(one for one in days.incidents if one[1] < days.ends[day]))
    np.testing.assert_array_equal(later.values, days.values)


def test_groups_depend_on_figures_and_not_on_the_order_of_nodes() -> None:
    values = np.random.default_rng(1).normal(size=(12, 5, 3))
    order = np.random.default_rng(2).permutation(12)
    np.testing.assert_array_equal(groups_of(values)[order], groups_of(values[order]))
    assert np.bincount(groups_of(values)).tolist() == [3, 3, 3, 3]


def test_the_network_is_the_rule_of_bayes() -> None:
    made = Network(
        ("a", "b"), ("s", "t"), np.array([0.75, 0.25]), np.array([[0.2, 0.5], [0.8, 0.5]]), (30, 10)
    )
    there = np.array([True, False])
    joint = np.array([0.75 * 0.2 * 0.5, 0.25 * 0.8 * 0.5])
    np.testing.assert_allclose(made.posterior(there), joint / joint.sum())
    cause = made.cause(there)
    assert (cause.kind, cause.symptoms) == ("b", (("s", 0.8, 0.2),))
    none = days_of(window_of({**rows(), "node_incident": rows()["node_incident"][:3]}), frozenset(), "")
    assert network(none, microseconds(window_of(rows()).end)) is None


def test_alarms_of_one_incident_are_not_counted_as_many() -> None:
    trial = Trial(1000, 60, 10, 3, (), 0.0, 1)
    assert trial.holds
    assert not replace(trial, days=5).holds


def test_names_of_slots_and_exporters_are_those_of_nodes() -> None:
    assert [node_of(one) for one in ("slot/g1:3", "g1:9400", "g1", "host/g1")] == ["node/g1"] * 3 + [
        "host/g1"
    ]


def test_no_probability_is_stated_above_the_share_of_the_surest_held_out_days_that_failed() -> None:
    stated = np.array([0.1] * 500 + [0.95] * 100)
    failed = np.array([True] * 500 + [True, True, True, False] * 25)
    assert np.isclose(ceiling_of(stated, failed), 0.75)
    assert ceiling_of(stated, np.ones(600, dtype=bool)) > 0.95
    assert ceiling_of(stated, np.zeros(600, dtype=bool)) < 0.2
    odds = np.array([-4.0, 0.0, 9.0])
    assert np.allclose(calibrated(odds, 0.0, 1.0, 0.75), [1 / (1 + np.exp(4)), 0.5, 0.75])
