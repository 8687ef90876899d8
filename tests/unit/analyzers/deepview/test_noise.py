"""Noise that history teaches, beside what counting alone explains."""

import numpy as np
import pytest

from analyzers.builtin.deepview.baseline import Cells, learn

NAMES = tuple(f"tor/t{number:02d}" for number in range(40))


def learnt(seed: int, uneven: float) -> float:
    """The mean noise of racks with more than 100 expected failures, among others with few."""
    rng = np.random.default_rng(seed)
    expected = np.tile(np.exp(rng.uniform(np.log(2), np.log(300), len(NAMES))), (12, 1))
    failed = rng.poisson(expected * np.exp(uneven * rng.standard_normal(expected.shape)))
    table = Cells(failed.astype(np.float64), expected, np.zeros_like(expected))
    return float(learn(table, NAMES, np.ones(len(NAMES))).noise[expected[0] > 100].mean())


@pytest.mark.parametrize("seed", range(3))
def test_counts_of_components_that_fail_seldom_teach_no_noise(seed: int) -> None:
    assert learnt(seed, uneven=0.0) < 0.1


@pytest.mark.parametrize("seed", range(3))
def test_rates_that_move_teach_their_noise(seed: int) -> None:
    assert 0.3 < learnt(seed, uneven=0.3) < 0.45
