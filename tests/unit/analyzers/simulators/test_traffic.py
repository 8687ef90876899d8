"""Composed arrivals: the mean that was asked for, clients that are unequal and bursty, and Poisson beside them."""

from __future__ import annotations

import numpy as np
import pytest

from analyzers.simulators.traffic import Arrivals, Plan, composed, poisson, queued


def drawn(seed: int, **fields: float) -> tuple[Arrivals, Arrivals]:
    plan, rng = Plan(**{"seconds": 1800.0, **fields}), np.random.default_rng(seed)  # type: ignore[arg-type]
    made = composed(plan, rng)
    return made, poisson(plan, rng, made)


@pytest.mark.simulated
def test_the_mean_rate_is_that_of_the_plan() -> None:
    rates = [len(drawn(seed)[0].at) / 1800 for seed in range(8)]
    assert abs(np.mean(rates) - 20) < 1


def test_clients_with_times_between_arrivals_like_poisson_s_are_poisson() -> None:
    made, _ = drawn(1, cv=1.0, cv_spread=0.0, wander=0.0, daily=0.0)
    assert 0.8 < made.dispersion(1.0) < 1.25


def test_bursty_clients_are_more_dispersed_than_poisson_of_the_same_mean() -> None:
    made, plain = drawn(2)
    assert len(made.at) == len(plain.at)
    assert made.size.sum() == plain.size.sum()
    assert made.top_share(10) == plain.top_share(10) > 0.4
    assert made.dispersion(1.0) > 2 > 1.2 > plain.dispersion(1.0)


def test_times_are_in_order_within_the_span() -> None:
    for one in drawn(3):
        assert (np.diff(one.at) >= 0).all()
        assert 0 <= one.at[0] <= one.at[-1] < 1800


def test_a_queue_of_one_server_is_that_of_the_recursion() -> None:
    arrivals = Arrivals(np.array([0.0, 1.0, 1.5, 9.0]), np.zeros(4, np.int64), np.array([2, 1, 3, 1]))
    found = queued(arrivals, per_row=1.0, per_arrival=0.5, most=4)
    assert found.refused == 1  # 2 + 1 wait when 3 more come
    assert found.waits.tolist() == [0.0, 1.5, 0.0]
    assert found.peak == 3


@pytest.mark.parametrize("wrong", [{"clients": 0}, {"rate": 0.0}, {"seconds": 1e9}, {"size": 0.5}])
def test_a_plan_that_makes_no_sense_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"at least 1|arrivals"):
        Plan(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["seconds", "rate", "cv", "size"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_plan_of_no_finite_number_is_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        Plan(**{name: value})  # type: ignore[arg-type]
