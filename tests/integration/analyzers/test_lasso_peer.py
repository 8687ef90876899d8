"""The published method and scikit-learn come to the same optimum. Here because importing scikit-learn takes seconds."""

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from analyzers.builtin.deepview import published
from analyzers.contract import Paths
from tests.unit.analyzers.deepview.lasso_cases import Floats, dense, objective, outcomes, solved, tree


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


def test_cross_validation_is_that_of_refitting_every_fold() -> None:
    paths = tree(4)
    z = outcomes(paths, 4)
    failing = np.flatnonzero(z).astype(np.int32)
    alpha, _, _ = published.cross_validated(published.Plan.of(paths), failing, z[failing], 5)
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
