"""The selector with the library of survival analysis that it uses: slow to import, so that it is no unit test."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from analyzers.builtin.selector import ANALYZER
from analyzers.builtin.selector.episodes import Episodes
from analyzers.builtin.selector.hazard import fit
from analyzers.testing import Case, check_analyzer
from tests.unit.selector_cases import drawn_episodes, fleet, row, verdict_of, window_of


def plain_likelihood(beta: NDArray[np.float64], told: Episodes) -> float:
    """Cox's partial likelihood, one incident after the other, for durations without ties."""
    entry, leave = told.start - told.origin, told.stop - told.origin
    score = told.covariates @ beta
    total = 0.0
    for i in np.flatnonzero(told.event):
        at_risk = (entry < leave[i]) & (leave >= leave[i])
        total += score[i] - np.log(np.exp(score[at_risk]).sum())
    return -total


def test_hazard_ratios_maximise_the_plain_partial_likelihood() -> None:
    told = drawn_episodes(1)
    best = minimize(plain_likelihood, np.zeros(2), args=(told,)).x
    model = fit(told, 10)
    assert np.log([one.ratio for one in model.effects]) / model.scale == pytest.approx(best, abs=0.06)


def test_a_probability_is_reached_when_it_is_said_to_be() -> None:
    told = drawn_episodes(3)
    model, since = fit(told, 10), np.array([0.0, 30.0, 150.0])
    due = model.due(told.covariates[:3], since, 0.2, 5_000)
    for node in range(3):
        rows, at = told.covariates[node : node + 1], since[node : node + 1]
        assert model.chance(rows, at, float(due[node]))[0] == pytest.approx(0.2, abs=1e-3)


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
    assert titles >= {"Do the probabilities hold?", "Next in line", "What makes incidents likelier"}


def test_no_more_are_recommended_than_can_be_taken_out_of_work() -> None:
    verdict = verdict_of(fleet(3), target_probability=0.0001, most_nodes=4)
    assert len(verdict["suspects"]) == 4
    assert verdict["measures"]["above_target"] > 4


def test_unknown_covariates_are_left_out_and_told() -> None:
    rows = fleet(4, "n07")
    for one in rows[::2]:
        one["covariates"].pop("heat", None)
    rows = [one for one in rows if one["kind"] == "gpu_failure" or int(one["node"][-2:]) % 3]
    only_some = [{**one, "covariates": {}} if int(one["node"][-2:]) % 2 else one for one in rows]
    (effects,) = (one for one in verdict_of(only_some)["evidence"] if one["title"].startswith("What makes"))
    assert "heat" in effects["text"]


def test_without_covariates_the_time_since_the_last_incident_still_tells() -> None:
    rows = [{**one, "covariates": {}} for one in fleet(5)]
    verdict = verdict_of(rows, target_probability=0.9)
    assert verdict["status"] == "quiet"
    assert verdict["measures"]["expected_incidents"] > 0


def test_incidents_of_all_nodes_at_once_do_not_break_it() -> None:
    rows = [row(f"n{n}", hour, kind) for n in range(20) for hour, kind in ((0, "observed"), (5, "ecc"))]
    assert verdict_of(rows, 48, target_probability=0.9)["status"] in ("quiet", "named")
