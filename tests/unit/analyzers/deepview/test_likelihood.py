"""The likelihood: agrees with a slow, obvious reference, and only failing rows cost anything."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import Bounds, minimize

from analyzers.builtin.deepview.binomial import tail
from analyzers.builtin.deepview.selection import CEILING, Model, log_expm1
from analyzers.builtin.stats.probability import q_values

Floats = NDArray[np.float64]


class Plain:
    """Every path, healthy ones too, and the log-likelihood as it is written in books."""

    def __init__(self, seed: int, paths: int = 40, components: int = 6) -> None:
        rng = np.random.default_rng(seed)
        self.members = rng.random((paths, components)) < 0.4
        self.attempts = rng.integers(1, 200, paths)
        self.base = 0.001
        truth = np.where(rng.random(components) < 0.4, rng.uniform(0.01, 2.0, components), 0.0)
        self.failures = rng.binomial(self.attempts, 1 - np.exp(-(self.base + self.members @ truth)))

    def loglik(self, theta: Floats, columns: list[int]) -> float:
        eta = self.base + self.members[:, columns] @ theta
        return float(np.sum(self.failures * np.log(-np.expm1(-eta)) - (self.attempts - self.failures) * eta))

    def model(self) -> Model:
        failing = np.flatnonzero(self.failures)
        row, column = np.nonzero(self.members[failing])
        carried = (self.members.T @ self.attempts).astype(float)
        return Model(
            row, column, self.failures[failing].astype(float), carried, self.attempts.sum(), self.base
        )

    def slow(self, columns: list[int]) -> tuple[Floats, float]:
        """The optimum by scipy, from several starts."""

        def worth(theta: Floats) -> float:
            return -self.loglik(theta, columns)

        bounds = Bounds(np.zeros(len(columns)), np.full(len(columns), CEILING))
        starts = [np.full(len(columns), start) for start in (0.01, 0.5)]
        options: Any = {"ftol": 1e-14, "gtol": 1e-10, "maxiter": 5000}
        found = [minimize(worth, x, method="L-BFGS-B", bounds=bounds, options=options) for x in starts]
        best = min(found, key=lambda one: float(one.fun))
        return np.asarray(best.x), -float(best.fun)


@pytest.mark.simulated
@pytest.mark.parametrize("seed", range(6))
def test_a_joint_fit_is_that_of_scipy(seed: int) -> None:
    plain, columns = Plain(seed), [0, 1, 2, 4]
    model = plain.model()
    theta, value = model.fit(columns)
    best, best_value = plain.slow(columns)
    none = plain.loglik(np.zeros(4), columns) - model.loglik([], np.zeros(0))
    assert value + none == pytest.approx(best_value, abs=1e-6 * (1 + abs(best_value)))
    assert theta == pytest.approx(best, abs=2e-4)


@pytest.mark.simulated
@pytest.mark.parametrize("seed", range(3))
def test_single_steps_are_those_of_scipy(seed: int) -> None:
    plain = Plain(seed)
    model = plain.model()
    steps = model.steps(model.eta([], np.zeros(0)))
    for component, gain in zip(steps.component.tolist(), steps.gain.tolist(), strict=True):
        _, best = plain.slow([component])
        assert gain == pytest.approx(best - plain.loglik(np.zeros(1), [component]), abs=1e-5)


@given(st.integers(0, 10_000))
def test_no_step_loses_likelihood(seed: int) -> None:
    model = Plain(seed, paths=20, components=4).model()
    steps = model.steps(model.eta([], np.zeros(0)))
    assert np.all(steps.gain >= 0)
    assert np.all((steps.theta >= 0) & (steps.theta <= CEILING))


def test_the_profile_touches_the_maximum_at_the_estimate() -> None:
    model = Plain(3).model()
    theta, value = model.fit([0, 1, 2])
    assert model.profile(1, float(theta[1]), [0, 2], theta[[0, 2]]) == pytest.approx(value, abs=1e-6)
    assert model.profile(1, float(theta[1]) + 0.5, [0, 2], theta[[0, 2]]) < value


def test_a_component_that_fails_all_its_units_has_a_finite_estimate() -> None:
    row, column = np.array([0, 0]), np.array([0, 1])
    model = Model(row, column, np.array([50.0]), np.array([50.0, 5000.0]), 5000.0, 1e-4)
    theta, value = model.fit([0])
    assert 10 < theta[0] <= CEILING
    assert np.isfinite(value)


def test_a_background_that_is_not_known_is_fitted_with_the_rest() -> None:
    row, column = np.arange(30), np.repeat([0, 1, 2], 10)
    weight = np.where(column == 0, 20.0, 1.0)
    model = Model(row, column, weight, np.full(3, 10_000.0), 30_000.0, 1e-9)
    base, theta, _ = model.fit_base([0])
    assert base == pytest.approx(0.001, rel=0.01)
    assert theta[0] == pytest.approx(0.0192, rel=0.02)


@pytest.mark.simulated
@given(st.floats(1e-12, 30))
def test_log_expm1_is_exact_for_small_and_large(x: float) -> None:
    expected = np.log(np.expm1(np.longdouble(x)))
    assert float(log_expm1(np.array([x]))[0]) == pytest.approx(float(expected), rel=1e-9, abs=1e-9)


def test_a_tail_is_half_a_chi_square() -> None:
    assert tail(0.0) == pytest.approx(0.5)
    assert tail(1.3527) == pytest.approx(0.05, rel=1e-3)  # half the 90 % point of chi-square with one degree


def test_q_values_follow_benjamini_and_hochberg() -> None:
    assert q_values(np.array([0.02, 0.001]), tests=10) == pytest.approx([0.1, 0.01])
    assert q_values(np.array([0.9]), tests=10) == [1.0]
