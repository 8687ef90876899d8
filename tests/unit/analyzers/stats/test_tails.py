"""Tails: the distance from normal that the healthy may have by chance."""

import numpy as np
import pytest
from scipy.stats import norm, t

from analyzers.builtin.nodes.defects import Metric, beyond_chance
from analyzers.builtin.stats.tails import Better, learn


def of(values: np.ndarray) -> Better:
    return Better(tuple(f"node/{i}" for i in range(len(values))), values)


def half(rng: np.random.Generator, members: int, freedom: float | None) -> np.ndarray:
    drawn = rng.standard_normal(members) if freedom is None else rng.standard_t(freedom, members)
    return np.asarray(0.01 * -drawn[drawn <= 0])


def chances(better: list[np.ndarray], off: np.ndarray) -> list[np.ndarray]:
    learnt = learn([of(one) for one in better], 0.0005)
    return [learnt.chance(at, off) for at in range(len(better))]


def test_normal_members_have_normal_tails() -> None:
    rng = np.random.default_rng(1)
    found = np.mean(chances([half(rng, 400, None) for _ in range(20)], np.array([0.02, 0.04])), axis=0)
    assert found[0] == pytest.approx(norm.sf(2), rel=0.2)
    assert norm.sf(4) < found[1] < 10 * norm.sf(4)  # what is not known of the tails counts for health


def test_heavy_tails_are_known_by_those_that_are_better() -> None:
    rng = np.random.default_rng(1)
    found = np.mean(chances([half(rng, 400, 5) for _ in range(20)], np.array([0.04, 0.08])), axis=0)
    assert found == pytest.approx(t(5).sf([4, 8]), rel=1.0)


def test_members_that_are_all_alike_differ_by_the_least_width() -> None:
    (found,) = chances([np.zeros(100)], np.array([0.0001, 0.05]))
    assert found[0] > 0.4
    assert found[1] < 1e-4


@pytest.mark.parametrize("better", [1, 10])
def test_members_better_for_a_reason_of_their_own_do_not_widen_what_is_normal(better: int) -> None:
    rng = np.random.default_rng(3)
    metrics = [half(rng, 60, None) for _ in range(6)]
    plain = chances(metrics, np.array([0.06]))
    odd = [f"node/odd-{i}" for i in range(better)]
    spoilt = learn(
        [Better((*odd, *of(one).members), np.concatenate([np.full(better, 0.08), one])) for one in metrics],
        0.0005,
    )
    for at, before in enumerate(plain):
        assert spoilt.chance(at, np.array([0.06]))[0] < 3 * before[0] + 1e-6


def test_one_odd_member_of_a_single_metric_counts_little() -> None:
    rng = np.random.default_rng(4)
    one = np.append(half(rng, 120, None), 0.16)
    assert chances([one], np.array([0.08]))[0][0] < 1e-3


def test_two_members_are_judged_by_what_other_fleets_are_like() -> None:
    (found,) = chances([np.array([0.004])], np.array([0.1]))
    assert found[0] < 1e-3


def metric(off: np.ndarray) -> Metric:
    never = np.zeros(len(off), dtype=bool)
    names = tuple(f"node/{i}" for i in range(len(off)))
    return Metric(names, off > 0.04, never, off, np.full(len(off), np.nan), np.zeros(len(off)), never)


@pytest.mark.simulated
def test_of_healthy_fleets_few_accuse_anyone() -> None:
    rng = np.random.default_rng(2)
    accused = 0
    for _ in range(60):
        metrics = []
        for _ in range(4):
            off = 0.01 * rng.standard_t(5, 100)
            metrics.append(metric(off))
        places = learn([of(-one.off[one.off <= 0]) for one in metrics], 0.0005)
        accused += any(one.apart.any() for one in beyond_chance(metrics, places, 0.05, 0.05, 0.0005))
    assert accused <= 6


def test_nothing_asked_is_nothing_answered() -> None:
    assert beyond_chance([], learn([], 0.0005), 0.05, 0.05, 0.0005) == []
    (answer,) = beyond_chance([metric(np.zeros(3))], learn([of(np.zeros(2))], 0.0005), 0.05, 0.05, 0.0005)
    assert not answer.apart.any()
    assert np.isnan(answer.by_chance).all()
