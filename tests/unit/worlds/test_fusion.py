from __future__ import annotations

import pytest

from tests.worlds.fusion import CASES, USUAL, make


def test_the_same_seed_gives_the_same_opinions() -> None:
    assert make(5, "crossed") == make(5, "crossed")
    assert make(5, "crossed").moments != make(6, "crossed").moments


@pytest.mark.parametrize("case", CASES)
def test_opinions_are_of_components_of_the_topology(case: str) -> None:
    told = make(2, case)
    known = {*told.true_parents, *told.true_parents.values()}

    assert known >= {one.component for moment in told.moments for one in moment.opinions}
    assert all(0 <= one.probability <= 1 for moment in told.moments for one in moment.opinions)
    assert all(len(told.judged) > 0 and moment.culprits <= known for moment in told.moments)


@pytest.mark.parametrize("case", sorted(USUAL))
def test_a_calibrated_analyzer_states_what_is_true(case: str) -> None:
    stated = pairs(case, range(20))
    for low in (0.3, 0.5, 0.7):
        inside = [(score, right) for score, right in stated if low <= score < low + 0.2]
        assert abs(sum(score - right for score, right in inside) / len(inside)) < 0.05


def test_an_over_confident_analyzer_states_too_much() -> None:
    high = [(score, right) for score, right in pairs("over_confident", range(10)) if score >= 0.9]

    assert sum(score - right for score, right in high) / len(high) > 0.1


def test_analyzers_of_the_same_rows_agree_and_the_others_do_not() -> None:
    assert agreement("same_rows") > 0.85
    assert agreement("calibrated") < 0.6


def test_a_twentieth_of_the_edges_leads_elsewhere() -> None:
    told = make(1, "crossed")
    wrong = [name for name, parent in told.parents.items() if told.true_parents[name] != parent]

    assert len(wrong) == round(0.05 * len(told.true_parents))
    assert make(1, "levels").parents == make(1, "levels").true_parents


def pairs(case: str, seeds: range) -> list[tuple[float, bool]]:
    return [
        (one.probability, one.component in moment.culprits)
        for seed in seeds
        for moment in make(seed, case).moments
        for one in moment.opinions
    ]


def agreement(case: str) -> float:
    """The share of windows in which the first two analyzers blame the same."""
    same = [
        {one.component for one in moment.opinions if one.analyzer == "a0"}
        == {one.component for one in moment.opinions if one.analyzer == "a1"}
        for moment in make(3, case).moments
        if moment.opinions
    ]
    return sum(same) / len(same)
