"""Fits of the selector on fleets whose hazards are known."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import spearmanr

from analyzers.builtin.selector import ANALYZER
from analyzers.builtin.selector.analysis import assumptions, correction
from analyzers.builtin.selector.episodes import episodes
from analyzers.builtin.selector.hazard import Model, State, fit, state_of
from analyzers.builtin.selector.trial import Bin, Trial
from analyzers.testing import Case, check_analyzer
from tests.unit.analyzers.selector.cases import fleet, row, verdict_of, window_of

HOURS = 2_400.0


def worn(seed: int, nodes: int = 300, every: float = 24.0) -> list[dict[str, Any]]:
    """Nodes sighted every `every` hours whose hazard is that of their wear, from .3 to 3 incidents in 1,000 hours."""
    rng, rows = np.random.default_rng(seed), []
    for node in range(nodes):
        wear = float(rng.uniform(0, 1))
        rows += [row(f"n{node:03d}", float(at), wear=round(wear, 3)) for at in np.arange(0, HOURS, every)]
        at = float(rng.exponential(1_000 / (0.3 * 10**wear)))
        while at < HOURS:
            rows.append(row(f"n{node:03d}", at + 0.01, "gpu_failure"))
            at += float(rng.exponential(1_000 / (0.3 * 10**wear)))
    return rows


def model_of(rows: list[dict[str, Any]], horizon: float = 24.0) -> tuple[Model, State, NDArray[np.float64]]:
    """The model, the nodes at the end, and the probability that each really has."""
    told = episodes(window_of(rows, HOURS), frozenset({"observed"}), frozenset())
    now = told.only(np.flatnonzero(np.append(told.node[1:] != told.node[:-1], True)))
    state = state_of(told, now, float(told.stop.max()))
    truth = -np.expm1(-0.0003 * 10 ** now.covariates[:, told.names.index("wear")] * horizon)
    return fit(told, horizon, 10), state, truth


@pytest.mark.parametrize("every", [24.0, 168.0])
def test_what_is_stated_is_true_however_often_nodes_are_sighted(every: float) -> None:
    model, state, truth = model_of(worn(1, every=every))
    stated = model.chance(state, 24.0)
    assert stated.mean() == pytest.approx(truth.mean(), rel=0.1)
    riskier = truth > np.quantile(truth, 0.8)
    assert stated[riskier].mean() == pytest.approx(truth[riskier].mean(), rel=0.2)


def test_nodes_are_ranked_as_a_regression_on_the_two_columns_that_matter_ranks_them() -> None:
    model, state, truth = model_of(worn(2))
    assert spearmanr(model.chance(state, 24.0), truth).statistic > 0.9


def test_nodes_that_differ_for_no_known_reason_are_ranked_by_their_own_past() -> None:
    rows = [{**one, "covariates": {}} for one in worn(3)]
    told = episodes(window_of(worn(3), HOURS), frozenset({"observed"}), frozenset())
    now = told.only(np.flatnonzero(np.append(told.node[1:] != told.node[:-1], True)))
    blind = episodes(window_of(rows, HOURS), frozenset({"observed"}), frozenset())
    end = float(blind.stop.max())
    state = state_of(blind, blind.only(np.flatnonzero(blind.stop >= end)), end)
    stated = fit(blind, 24.0, 10).chance(state, 24.0)
    assert spearmanr(stated, now.covariates[:, told.names.index("wear")]).statistic > 0.5


def test_what_is_stated_of_the_few_nodes_that_fail_most_days_is_true() -> None:
    rng, rows = np.random.default_rng(5), list[dict[str, Any]]()
    for node in range(300):
        rate = 0.06 if node < 3 else 0.01 if node < 20 else 0.0002
        rows += [row(f"n{node:03d}", float(at)) for at in np.arange(0, HOURS, 96)]
        hours = np.cumsum(rng.exponential(1 / rate, int(3 * rate * HOURS) + 10))
        rows += [row(f"n{node:03d}", float(at) + 0.01, "gpu_failure") for at in hours[hours < HOURS]]
    told = episodes(window_of(rows, HOURS), frozenset({"observed"}), frozenset())
    now = told.only(np.flatnonzero(np.append(told.node[1:] != told.node[:-1], True)))
    stated = fit(told, 24.0, 10).chance(state_of(told, now, float(told.stop.max())), 24.0)
    few = np.array([told.nodes[node] < "node/n003" for node in now.node.tolist()])
    assert stated[few].mean() == pytest.approx(1 - np.exp(-0.06 * 24), abs=0.1)
    assert stated[~few].mean() == pytest.approx((17 * 0.21 + 280 * 0.0048) / 297, abs=0.005)


def test_a_probability_is_reached_when_it_is_said_to_be() -> None:
    model, state, _ = model_of(worn(4))
    due = model.due(state, 0.2, 50_000)
    for node in range(3):
        assert model.chance(state, float(due[node]))[node] == pytest.approx(0.2, abs=1e-3)


def test_it_is_a_good_analyzer() -> None:
    def make(seed: int, faulty: bool) -> Case:
        seen = window_of(fleet(seed, "n07" if faulty else ""), 12 * 168)
        return Case(seen, ("node/n07",) if faulty else ())

    check_analyzer(ANALYZER, make, {"target_probability": 0.1, "horizon_hours": 48.0}, seeds=(1,))


def test_the_hot_node_is_recommended_with_its_reason_and_without_a_score() -> None:
    verdict = verdict_of(fleet(2, "n07"), target_probability=0.1, horizon_hours=48)
    (suspect,) = verdict["suspects"]
    assert suspect["component"] == "node/n07"
    assert "heat 4.5, 1 incident so far. Validate it before its next job." in suspect["summary"]
    assert suspect["score"] is None
    assert (suspect["sure"], suspect["forecast"]) == (False, True)


def test_the_evidence_shows_whether_probabilities_hold_and_who_is_next() -> None:
    titles = {one["title"] for one in verdict_of(fleet(2, "n07"), target_probability=0.1)["evidence"]}
    assert titles >= {"Do the probabilities hold?", "Next in line", "Factors of incident probability"}


def test_no_more_are_recommended_than_can_be_taken_out_of_work() -> None:
    verdict = verdict_of(fleet(3), target_probability=0.0001, most_nodes=4)
    assert len(verdict["suspects"]) == 4
    assert verdict["measures"]["above_target"] > 4


def test_covariates_of_some_nodes_are_used_with_what_is_unknown() -> None:
    rows = fleet(4, "n07")
    for one in rows[::2]:
        one["covariates"].pop("heat", None)
    rows = [one for one in rows if one["kind"] == "gpu_failure" or int(one["node"][-2:]) % 3]
    only_some = [{**one, "covariates": {}} if int(one["node"][-2:]) % 2 else one for one in rows]
    (effects,) = (one for one in verdict_of(only_some)["evidence"] if one["title"].startswith("Factors of"))
    assert {"heat", "heat_unknown"} & {name for name, *_ in effects["rows"]}


def test_without_covariates_the_time_since_the_last_incident_still_tells() -> None:
    rows = [{**one, "covariates": {}} for one in fleet(5)]
    verdict = verdict_of(rows, target_probability=0.9)
    assert verdict["status"] == "quiet"
    assert verdict["measures"]["expected_incidents"] > 0


def test_incidents_of_all_nodes_at_once_do_not_break_it() -> None:
    rows = [row(f"n{n}", hour, kind) for n in range(20) for hour, kind in ((0, "observed"), (5, "ecc"))]
    assert verdict_of(rows, 48, target_probability=0.9)["reason"].startswith("No probability: no moment")


def test_predictions_that_do_not_come_true_are_corrected_and_told() -> None:
    tried = Trial(1_000, 100, 0.1, 0.1, None, (Bin(1_000, 0.02, 0.1),))
    learnt = replace(tried, bins=(Bin(1_000, 0.045, 0.1),))
    assert correction(tried, learnt) == pytest.approx(105 / 50)
    assert correction(replace(tried, incidents=22), learnt) == 1.0
    state = State(np.ones((3, 2)), np.ones(3), np.ones(3), np.zeros(3, dtype=np.int64))
    history, sampling = assumptions(tried, 2.1, state)
    assert (history.holds, sampling.holds) == (False, True)
    assert "hazards are multiplied by 2.1" in history.detail


def test_a_change_of_all_hazards_is_counted_once() -> None:
    rng, rows, change = np.random.default_rng(6), list[dict[str, Any]](), 1_850.0
    for node in range(150):
        rows += [row(f"n{node:03d}", float(at)) for at in np.arange(0, HOURS, 96)]
        hours = [*rng.uniform(0, HOURS, rng.poisson(1.2)), *rng.uniform(change, HOURS, rng.poisson(0.9))]
        rows += [row(f"n{node:03d}", float(at) + 0.01, "gpu_failure") for at in hours]
    verdict = verdict_of(rows, HOURS, target_probability=0.9, horizon_hours=24)
    (history, _) = verdict["assumptions"]
    assert not history["holds"]
    truth = 150 * -np.expm1(-24 * (1.2 / HOURS + 0.9 / (HOURS - change)))
    assert verdict["measures"]["expected_incidents"] == pytest.approx(truth, rel=0.3)
