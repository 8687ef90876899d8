"""The published method: the optimum, from failing rows alone (beside scikit-learn's: tests/integration)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzers.builtin.deepview import ANALYZER, published
from analyzers.contract import check_params
from analyzers.simulators.deepview import INDEPENDENT, Fault, background, strike, with_history
from analyzers.simulators.fleet import S, build
from tests.unit.analyzers.deepview.lasso_cases import dense, outcomes, solved, tree


@pytest.mark.simulated
@given(st.integers(0, 10_000), st.floats(1e-5, 1e-1))
def test_the_solution_satisfies_the_conditions_of_optimality(seed: int, alpha: float) -> None:
    paths = tree(seed, tors=8, storage=3)
    z = outcomes(paths, seed)
    theta, _ = solved(paths, z, alpha)
    gradient = dense(paths).T @ (dense(paths) @ theta - z) / len(paths) + alpha
    assert np.all(theta >= 0)
    assert np.all(gradient >= -1e-7)
    assert np.all(np.abs(gradient[theta > 0]) < 1e-7)


def test_a_heavy_penalty_blames_no_one() -> None:
    paths = tree(1)
    theta, _ = solved(paths, outcomes(paths, 1), 10.0)
    assert not theta.any()


def test_the_plan_makes_only_the_columns_that_can_enter() -> None:
    paths = tree(2)
    plan = published.Plan.of(paths)
    z = np.zeros(len(paths))
    z[0] = 1.0
    published.solve(plan, np.array([0], dtype=np.int32), z[:1], 1e-4)
    assert {paths.names[j] for j in plan.gram} <= set(paths[0])


def test_the_gram_block_is_that_of_the_matrix() -> None:
    paths = tree(3)
    columns = np.array([0, 2, 5, len(paths.names) - 1])
    block = published.Plan.of(paths).gram_block(columns)
    matrix = dense(paths)[:, columns]
    assert np.array_equal(block, matrix.T @ matrix)


@pytest.mark.simulated
@pytest.mark.parametrize("test", ["z_mean", "refit"])
def test_a_stopped_cluster_is_blamed_as_published(test: str) -> None:
    rng = np.random.default_rng(5)
    fleet = build(S, rng)
    fault = Fault("compute_cluster/d1-c2", 0.7, 60, 120)
    failures = background(fleet, rng, INDEPENDENT, 0, 120).plus(strike(fleet, rng, fault))
    params = check_params(ANALYZER, {"method": "lasso", "test": test})
    verdict = ANALYZER.analyze(with_history(fleet, failures, 120, past=1), params)
    assert verdict.suspects[0].component == fault.component
    assert verdict.suspects[0].score is None


def test_the_mean_hides_five_equal_faults_of_thirty_one() -> None:
    """With k equal faults of N, t = sqrt((N - k)(N - 1) / (k N)): five of 31 stay below the cut."""
    four, five = np.zeros(31), np.zeros(31)
    four[:4], five[:5] = 0.5, 0.5
    assert np.all(published.p_values_of_mean(four)[:4] < 0.01)
    assert np.all(published.p_values_of_mean(five)[:5] > 0.01)
