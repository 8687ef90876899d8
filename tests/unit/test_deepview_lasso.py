"""The published method: the same optimum as scikit-learn's, from failing rows alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.linear_model import Lasso

from analyzers.builtin.deepview import ANALYZER, lasso, published
from analyzers.contract import Paths
from analyzers.params import check_params
from analyzers.simulators.deepview import INDEPENDENT, Fault, background, strike, with_history
from analyzers.simulators.fleet import S, build
from analyzers.simulators.tables import paths_of

Floats = NDArray[np.float64]


def tree(seed: int, tors: int = 12, storage: int = 5) -> Paths:
    """Nested columns: a ToR in a cluster, and one component that is on every path."""
    rng = np.random.default_rng(seed)
    sets = [
        (f"tor/{t}", f"compute_cluster/{t // 4}", f"storage_cluster/{s}", "t3/all")
        for t in range(tors)
        for s in range(storage)
        if rng.random() < 0.9
    ]
    return paths_of(sets)


def dense(paths: Paths) -> Floats:
    matrix = np.zeros((len(paths), len(paths.names)))
    for row in range(len(paths)):
        matrix[row, paths.indices[paths.indptr[row] : paths.indptr[row + 1]]] = 1.0
    return matrix


def objective(paths: Paths, z: Floats, theta: Floats, alpha: float) -> float:
    residual = z - dense(paths) @ theta
    return float(residual @ residual / (2 * len(paths)) + alpha * theta.sum())


def outcomes(paths: Paths, seed: int, share: float = 0.3) -> Floats:
    rng = np.random.default_rng(seed)
    return np.where(rng.random(len(paths)) < share, rng.exponential(0.1, len(paths)), 0.0)


def solved(paths: Paths, z: Floats, alpha: float) -> tuple[Floats, lasso.Solution]:
    failing = np.flatnonzero(z).astype(np.int32)
    solution = lasso.solve(lasso.Plan.of(paths), failing, z[failing], alpha)
    theta = np.zeros(len(paths.names))
    theta[solution.support] = solution.theta
    return theta, solution


@pytest.mark.parametrize("alpha", [1e-2, 1e-3, 1e-4, 1e-5])
@pytest.mark.parametrize("seed", range(4))
def test_the_objective_is_that_of_scikit_learn(seed: int, alpha: float) -> None:
    paths = tree(seed)
    z = outcomes(paths, seed)
    peer = Lasso(alpha=alpha, positive=True, fit_intercept=False, tol=1e-12, max_iter=200_000)
    peer.fit(dense(paths), z)
    theta, solution = solved(paths, z, alpha)
    best = objective(paths, z, peer.coef_, alpha)
    assert solution.objective == pytest.approx(best, rel=1e-6)
    assert objective(paths, z, theta, alpha) == pytest.approx(best, rel=1e-6)


@given(st.integers(0, 10_000), st.floats(1e-5, 1e-1))
@settings(max_examples=40, deadline=None)
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
    plan = lasso.Plan.of(paths)
    z = np.zeros(len(paths))
    z[0] = 1.0
    lasso.solve(plan, np.array([0], dtype=np.int32), z[:1], 1e-4)
    assert {paths.names[j] for j in plan.gram} <= set(paths[0])


def test_the_gram_block_is_that_of_the_matrix() -> None:
    paths = tree(3)
    columns = np.array([0, 2, 5, len(paths.names) - 1])
    block = lasso.Plan.of(paths).gram_block(columns)
    matrix = dense(paths)[:, columns]
    assert np.array_equal(block, matrix.T @ matrix)


def test_cross_validation_is_that_of_refitting_every_fold() -> None:
    paths = tree(4)
    z = outcomes(paths, 4)
    failing = np.flatnonzero(z).astype(np.int32)
    alpha, _, _ = published.cross_validated(lasso.Plan.of(paths), failing, z[failing], 5)
    assert alpha == pytest.approx(slow_choice(paths, z, 5), rel=1e-6)


def slow_choice(paths: Paths, z: Floats, folds: int) -> float:
    matrix = dense(paths)
    most = float((matrix.T @ z).max()) / len(paths)
    grid = np.geomspace(most, most / 1000, published.GRID)
    fold_of = np.random.default_rng(20180411).permutation(len(paths)) % folds
    errors = []
    for alpha in grid:
        error = 0.0
        for fold in range(folds):
            held = fold_of == fold
            peer = Lasso(alpha=alpha, positive=True, fit_intercept=False, tol=1e-12, max_iter=200_000)
            peer.fit(matrix[~held], z[~held])
            error += float(((z[held] - peer.predict(matrix[held])) ** 2).sum())
        errors.append(error)
    return float(grid[int(np.argmin(errors))])


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
