"""Lemon scores on fleets of known truth; seeds are fixed, sizes small. Figures: `tests/benchmarks/lemons.py`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats

from incidents.domain.lemons import rates
from incidents.domain.lemons.attempts import Attempts
from incidents.domain.lemons.score import Counted, Fleet, score_fleet

PARTS = [f"gpu/{n:03}" for n in range(120)]


def attempts_of(nodes: Sequence[Sequence[int]], failed: Sequence[bool], width: int) -> Attempts:
    sizes = [len(one) for one in nodes]
    return Attempts(
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.concatenate([np.asarray(one) for one in nodes]).astype(np.int64),
        np.ones(len(nodes)),
        np.asarray(failed, dtype=float),
        width,
    )


def fleet(
    seed: int, times: dict[int, float], labels: dict[str, list[str]] | None = None, spread: float = 0.3
) -> Fleet:
    """Counts of parts whose rates scatter, over unequal exposures; `times` multiplies the rate of some parts."""
    random = np.random.default_rng(seed)
    rate = random.gamma(1 / spread, spread, len(PARTS))
    for part, factor in times.items():
        rate[part] = factor
    exposure = random.uniform(0.2, 3.0, len(PARTS))
    source = Counted(random.poisson(4 * rate * exposure).astype(float), exposure)
    return score_fleet("gpu", PARTS, {"incident": source}, labels or {})


def test_the_tail_is_that_of_the_negative_binomial() -> None:
    counts, mean, spread = np.arange(12.0), np.full(12, 3.5), 0.4
    reference = stats.nbinom(1 / spread, (1 / spread) / (1 / spread + 3.5))
    assert rates.at_least(counts, mean, spread) == pytest.approx(reference.sf(counts - 1))
    assert np.exp(rates.log_mass(counts, mean, spread)) == pytest.approx(reference.pmf(counts))
    assert rates.quantile(0.9, mean, spread)[0] == reference.ppf(0.9)


@pytest.mark.simulated
def test_the_spread_of_the_fleet_is_learnt_beside_lemons() -> None:
    random = np.random.default_rng(3)
    exposure = random.uniform(3, 12, 300)
    rate = random.gamma(1 / 0.3, 0.3, 300)
    rate[:30] *= 8
    null = rates.fit_null(random.poisson(rate * exposure).astype(float), exposure)
    assert 0.1 < null.spread < 0.6  # .3; with the lemons in the fit it is about 3
    assert 0.8 < null.rate < 1.2


def test_lemons_are_named_and_busy_parts_are_not() -> None:
    found = fleet(5, {7: 6.0, 50: 5.0})
    assert {one.name for one in found.parts if one.lemon} == {"gpu/007", "gpu/050"}
    assert all(one.low <= one.ratio <= one.high for one in found.parts)


@pytest.mark.simulated
def test_nothing_is_named_in_healthy_fleets() -> None:
    assert sum(len(fleet(seed, {}).lemons) for seed in range(20, 23)) == 0


def test_a_bad_batch_is_named_and_one_lemon_in_a_batch_is_not() -> None:
    labels = {
        "batch A": PARTS[:15],
        "batch B": PARTS[15:30],
        "batch C": PARTS[30:60],
        "firmware 2": PARTS[:15],
        "firmware 1": PARTS[15:],
    }
    found = fleet(9, dict.fromkeys(range(15), 2.6) | {20: 9.0}, labels)
    (group,) = [one for one in found.groups if one.lemon]
    assert (group.name, group.alike, group.members) == ("batch A", ("firmware 2",), 15)
    assert "gpu/020" in {one.name for one in found.parts if one.lemon}


@pytest.mark.simulated
def test_a_node_beside_a_lemon_in_its_jobs_is_not_named() -> None:
    random = np.random.default_rng(1)
    jobs, failed = [], []
    for _ in range(2500):
        start, size = int(random.integers(0, 40)), int(random.choice([1, 2, 4]))
        nodes = sorted({(start + n) % 40 for n in range(size)})
        jobs.append(nodes)
        failed.append(bool(random.random() < 0.03 + 0.4 * (9 in nodes)))
    names = [f"node/{n}" for n in range(40)]
    found = score_fleet("node", names, {"job_attempt": attempts_of(jobs, failed, 40)}, {})
    assert [one.name for one in found.parts if one.lemon] == ["node/9"]


def test_too_little_data_is_not_compared() -> None:
    few = Counted(np.ones(12), np.ones(12))
    quiet = Counted(np.eye(1, 60)[0], np.ones(60))
    assert score_fleet("nic", PARTS[:12], {"incident": few}, {}).thin == {
        "incident": "12 failures of the 20 that a comparison needs"
    }
    found = score_fleet("nic", PARTS[:60], {"incident": quiet}, {})
    assert (found.judged, found.lemons) == (0, ())
