"""Worth of a dissent: nothing without a record, much where lone blames were wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incidents.domain.incident.dissent import DisputedBlame, dissent_of, lowered, weights
from incidents.domain.incident.state import fused
from tests.benchmarks.worlds_fusion import learnt, without_record
from tests.worlds.fusion import USUAL, make


def blames(
    right: int, wrong: int, *dissenters: str, kind: str = "link", score: float = 0.7, several: bool = False
) -> list[DisputedBlame]:
    names = dissenters or ("voting",)
    return [DisputedBlame(kind, score, several, names, n < right) for n in range(right + wrong)]


def test_without_a_record_a_dissent_is_worth_nothing() -> None:
    assert weights([], "link") == {}


def test_lone_blames_that_were_confirmed_make_a_dissent_worth_nothing() -> None:
    assert weights(blames(35, 0, score=0.93), "link") == {"voting": 0.0}


def test_a_lone_blame_is_stated_as_often_as_such_blames_were_confirmed() -> None:
    worth = weights(blames(18, 82), "link")["voting"]
    assert lowered(0.7, worth) == pytest.approx(0.18, abs=0.03)


def test_one_wrong_blame_lowers_the_next_by_no_more_than_two_nats() -> None:
    assert 0 < weights(blames(0, 1), "link")["voting"] < 2


def test_two_dissenters_share_what_their_dissent_is_worth() -> None:
    worth = weights(blames(18, 82, "voting", "pingmesh"), "link")
    assert worth["voting"] == pytest.approx(worth["pingmesh"], abs=0.05)
    assert lowered(0.7, sum(worth.values())) == pytest.approx(0.18, abs=0.03)


def test_the_record_of_a_kind_of_component_counts_before_that_of_others() -> None:
    record = [*blames(1, 60, kind="link"), *blames(60, 0, kind="node")]
    assert weights(record, "link")["voting"] > 2 > 0.5 > weights(record, "node")["voting"]


def test_blames_by_several_analyzers_have_a_record_of_their_own() -> None:
    record = [*blames(1, 60), *blames(60, 0, several=True)]
    worth = dissent_of("voting", record, "link")
    assert worth.one > 2 > worth.several == 0
    assert (worth.against(1), worth.against(2)) == (worth.one, worth.several)


def test_a_kind_without_a_record_has_that_of_the_others() -> None:
    record = blames(5, 60, kind="link")
    assert weights(record, "rack") == weights(record, "")


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans(), st.booleans()), max_size=40))
def test_weights_are_finite_and_never_speak_for_a_blame(found: list[tuple[float, bool, bool]]) -> None:
    record = [
        DisputedBlame("link", score, False, ("a", "b") if two else ("a",), right)
        for score, right, two in found
    ]
    for worth in weights(record, "link").values():
        assert 0 <= worth < 50
        assert (fused([0.8], dissent=worth) or 0) <= 0.8 + 1e-12


@pytest.mark.simulated
@pytest.mark.parametrize("case", sorted(USUAL))
def test_what_is_stated_of_lone_blames_is_true_with_the_record_of_the_history(case: str) -> None:
    """Opinions of a generator that shares no code with any of ours; without a record .60 was true of a fifth."""
    before, after = list[tuple[float, bool]](), list[tuple[float, bool]]()
    for seed in range(40, 52):
        told = make(seed, case)
        rule = learnt(told)
        for moment in told.judged:
            before += [(score, name in moment.culprits) for name, score in without_record(moment).items()]
            after += [(score, name in moment.culprits) for name, score in rule(moment).items()]
    assert excess(before) > 0.1
    assert excess(after) < 0.05


def excess(stated: list[tuple[float, bool]]) -> float:
    """The most that is stated above the truth in a bin of 50 or more."""
    bins = ((low, low + 0.1) for low in (0.5, 0.6, 0.7, 0.8, 0.9))
    inside = ([(p, right) for p, right in stated if low <= p < high] for low, high in bins)
    return max(sum(p - right for p, right in one) / len(one) for one in inside if len(one) >= 50)
