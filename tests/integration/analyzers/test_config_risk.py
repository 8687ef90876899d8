"""Risk of a change: the planted rule is found and cited, its confounder is not, nothing later than a change counts."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import cache
from typing import Any

import numpy as np
import pytest

from analyzers.builtin.config_risk import ANALYZER
from analyzers.builtin.config_risk.features import TEAM_SHARE, columns_of, facts_of
from analyzers.builtin.config_risk.model import TREE, fit
from analyzers.builtin.config_risk.records import HOUR, Change, changes_in, outcome_of, settled
from analyzers.builtin.stats.calibration import calibration
from analyzers.runner import judge
from analyzers.simulators.changes.risk import EPOCH, PLANNED, Rates, history
from analyzers.testing import Case, check_analyzer
from tests.benchmarks.config_risk import window_of

RATES = Rates(changes=400, usual=0.02, wide=0.95, evening=0.02, noise=0.0)
NAMED = f"change/{PLANNED}"


@cache
def rows_of(seed: int, risky: bool) -> dict[str, list[dict[str, Any]]]:
    return history(seed, risky, RATES)[0]


def test_it_is_a_good_analyzer() -> None:
    def make(seed: int, faulty: bool) -> Case:
        return Case(window_of(rows_of(seed + 1, faulty)), (NAMED,) if faulty else ())

    check_analyzer(ANALYZER, make, seeds=range(1), names={"change": "change"})


def test_the_rule_is_cited_and_the_author_beside_it_is_not() -> None:
    verdict = judge(ANALYZER, window_of(rows_of(1, True)), {})
    (suspect,) = verdict["suspects"]
    assert suspect["component"] == NAMED
    assert suspect["score"] is None
    assert "sets network.*" in suspect["summary"]
    assert "rollout above" in suspect["summary"]
    assert "author" not in suspect["summary"]
    risks = next(one for one in verdict["evidence"] if one["title"] == "Risk of changes")
    (line,) = risks["rows"]
    assert line[3] < line[2] < line[4]


@pytest.mark.parametrize(("share", "reason"), [(0.05, "changes with a known outcome"), (1.0, "0 were bad")])
def test_too_little_history_gives_no_number(share: float, reason: str) -> None:
    rows = rows_of(1, True)
    some = rows["change"][-int(share * len(rows["change"])) :]
    told = [] if share == 1.0 else rows["change_outcome"]
    outcomes = [one for one in told if one["change"] in {each["change"] for each in some}]
    verdict = judge(ANALYZER, window_of({"change": some, "change_outcome": outcomes or _good(some)}), {})
    assert (verdict["status"], verdict["suspects"], verdict["evidence"]) == ("inconclusive", [], [])
    assert reason in verdict["reason"]


def _good(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    first = rows[0]
    return [{"time": first["time"], "change": first["change"], "outcome": "good"}]


def change(number: int, hours: float, **other: Any) -> Change:
    return Change(f"c{number}", round(hours * HOUR), "config", team="shop", **other)


def test_an_outcome_counts_from_when_it_was_known() -> None:
    bad = change(0, 0, outcome="incident", known_at=10 * HOUR)
    before, after = facts_of([bad, change(1, 9), change(2, 11)])[1:]
    assert before.figures[TEAM_SHARE] < after.figures[TEAM_SHARE]


def test_a_change_without_an_outcome_is_good_once_the_horizon_is_over() -> None:
    old, new = settled([change(0, 0), change(1, 30)], 48 * HOUR, 24 * HOUR)
    assert (old.outcome, old.known_at) == ("good", 24 * HOUR)
    assert new.outcome == ""


def test_the_last_row_of_a_change_counts_and_any_bad_outcome() -> None:
    at = [(EPOCH + timedelta(hours=hour)).isoformat() for hour in (0, 1, 2, 3)]
    row = {"change": "c", "kind": "config"}
    outcome = {"change": "c", "outcome": "good"}
    window = window_of(
        {
            "change": [{**row, "time": at[0]}, {**row, "time": at[1], "kind": "deploy"}],
            "change_outcome": [
                {**outcome, "time": at[2]},
                {**outcome, "time": at[3], "outcome": "rolled_back"},
            ],
        }
    )
    (found,) = changes_in(window)
    assert (found.kind, found.outcome, found.is_bad) == ("deploy", "rolled_back", True)


def test_many_small_effects_are_learnt_by_the_regression_and_told_as_factors() -> None:
    rng = np.random.default_rng(5)
    keys = [f"key{n}" for n in range(6)]
    made = []
    for number in range(700):
        chosen = [key for key in keys if rng.random() < 0.4]
        bad = rng.random() < 1 / (1 + np.exp(4 - 1.1 * len(chosen)))
        one = change(
            number, number, settings=dict.fromkeys(chosen, "1"), outcome="incident" if bad else "good"
        )
        made.append(replace(one, known_at=one.at))
    model = fit(made, 60, 8)
    assert model.learner != TREE
    none, many = (change(800 + n, 800, settings=dict.fromkeys(keys[:n], "1")) for n in (0, 5))
    low, high = (model.risk(facts) for facts in facts_of([*made, none, many])[-2:])
    assert low.probability < 0.1 < 0.5 < high.probability
    assert high.low < high.probability < high.high
    assert all("odds times" in one for one in high.reasons)
    assert any("sets key" in one for one in high.reasons)
    assert len(high.reasons) == 3


def test_equal_columns_are_one_that_says_both() -> None:
    some = [change(n, n, settings={"a.x": "1"} if n % 2 else {"b": "1"}) for n in range(40)]
    columns, values = columns_of(facts_of(some), fine=False)
    assert values.shape == (40, len(columns))
    (own,) = [one for one in columns if "sets a.x" in (one.name, *one.also)]
    assert own.condition(0.5, True) == "sets a.* and sets a.x"
    assert own.condition(0.5, False) == "not (sets a.* and sets a.x)"


def test_probabilities_that_are_too_bold_are_drawn_in() -> None:
    rng = np.random.default_rng(1)
    odds = rng.normal(-1, 1, 2000)
    happened = rng.random(2000) < 1 / (1 + np.exp(-odds))
    shift, slope = calibration(1 / (1 + np.exp(-2 * odds)), happened)
    assert abs(slope - 0.5) < 0.1
    assert abs(shift) < 0.3


def test_a_slope_above_the_steepest_is_that_and_keeps_the_share() -> None:
    rng = np.random.default_rng(2)
    odds = rng.normal(-2, 1, 4000)
    happened = rng.random(4000) < 1 / (1 + np.exp(-odds))
    shift, slope = calibration(1 / (1 + np.exp(-(0.5 * odds - 1))), happened, centre=-2.0, steepest=0.8)
    stated = 1 / (1 + np.exp(-(shift + slope * (0.5 * odds - 1))))
    assert slope == 0.8
    assert abs(stated.mean() - happened.mean()) < 0.01


def test_what_was_stated_of_a_past_change_is_from_changes_before_it_alone() -> None:
    window = window_of(rows_of(1, True))
    now = round(window.end.timestamp() * 1e6)
    known = [one for one in settled(changes_in(window), now, 48 * HOUR) if one.outcome]
    full = fit(known, 60, 8)
    assert np.isnan(full.stated[: len(known) // 3]).all()
    assert np.isfinite(full.stated[-50:]).all()
    last = known[-1]
    turned = replace(last, outcome="good" if last.is_bad else "incident")
    other = fit([*known[:-1], turned], 60, 8)
    raw = [(np.log(m.stated / (1 - m.stated)) - m.shift) / m.slope for m in (full, other)]
    assert np.allclose(raw[0][-20:], raw[1][-20:])


def test_harmless_withdraws_what_was_recorded_before() -> None:
    assert outcome_of([(1, "incident"), (2, "harmless")]) == ("good", 2)
    assert outcome_of([(3, "incident"), (2, "harmless"), (1, "rolled_back")]) == ("incident", 3)
    assert outcome_of([(1, "good"), (3, "rolled_back"), (2, "incident")]) == ("incident", 2)


def test_a_name_with_spaces_is_a_component() -> None:
    rows = rows_of(1, True)
    spaced = [{**one, "change": "plan 7 b"} if one["change"] == PLANNED else one for one in rows["change"]]
    verdict = judge(ANALYZER, window_of({**rows, "change": spaced}), {})
    assert [one["component"] for one in verdict["suspects"]] == ["change/plan-7-b"]


def test_a_lower_bar_names_more_and_a_higher_one_nobody() -> None:
    window = replace(window_of(rows_of(1, True)))
    assert judge(ANALYZER, window, {"least_risk": 1.0})["status"] == "quiet"
