"""How far off the healthy may be by chance."""

import numpy as np
import pytest
from scipy.stats import norm, t

from analyzers.builtin.node_doubts import Metric, beyond_chance
from analyzers.builtin.tails import Group, chances


def half(rng: np.random.Generator, members: int, freedom: float | None) -> np.ndarray:
    drawn = rng.standard_normal(members) if freedom is None else rng.standard_t(freedom, members)
    return np.asarray(0.01 * -drawn[drawn <= 0])


def test_normal_members_have_normal_tails() -> None:
    rng = np.random.default_rng(1)
    groups = [Group(half(rng, 400, None), np.array([0.02, 0.04])) for _ in range(20)]
    found = np.mean(chances(groups, 0.0005), axis=0)
    assert found[0] == pytest.approx(norm.sf(2), rel=0.2)
    assert norm.sf(4) < found[1] < 10 * norm.sf(4)  # what is not known of the tails counts for health


def test_heavy_tails_are_known_by_those_that_are_better() -> None:
    rng = np.random.default_rng(1)
    groups = [Group(half(rng, 400, 5), np.array([0.04, 0.08])) for _ in range(20)]
    found = np.mean(chances(groups, 0.0005), axis=0)
    assert found == pytest.approx(t(5).sf([4, 8]), rel=1.0)


def test_members_that_are_all_alike_differ_by_the_least_width() -> None:
    (found,) = chances([Group(np.zeros(100), np.array([0.0001, 0.05]))], 0.001)
    assert found[0] > 0.4
    assert found[1] < 1e-4


def test_of_healthy_fleets_few_accuse_anyone() -> None:
    rng = np.random.default_rng(2)
    accused = 0
    for _ in range(200):
        metrics = []
        for _ in range(4):
            off = 0.01 * rng.standard_t(5, 100)
            metrics.append(Metric(off > 0.04, off, np.full(100, np.nan), -off[off <= 0]))
        accused += any(one.apart.any() for one in beyond_chance(metrics, 0.05, 0.05, 0.0005))
    assert accused <= 20


def test_nothing_asked_is_nothing_answered() -> None:
    assert beyond_chance([], 0.05, 0.05, 0.0005) == []
    calm = Metric(np.zeros(3, dtype=bool), np.zeros(3), np.full(3, np.nan), np.zeros(2))
    (answer,) = beyond_chance([calm], 0.05, 0.05, 0.0005)
    assert not answer.apart.any()
    assert np.isnan(answer.by_chance).all()
