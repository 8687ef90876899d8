"""Problems for the Lasso over paths, and its objective written out with the whole matrix."""

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.deepview import published
from analyzers.contract import Paths
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


def solved(paths: Paths, z: Floats, alpha: float) -> tuple[Floats, published.Solution]:
    failing = np.flatnonzero(z).astype(np.int32)
    solution = published.solve(published.Plan.of(paths), failing, z[failing], alpha)
    theta = np.zeros(len(paths.names))
    theta[solution.support] = solution.theta
    return theta, solution
