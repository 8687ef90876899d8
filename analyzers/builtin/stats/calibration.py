"""Calibration of log-odds by penalised logistic regression (Platt, 1999), and what goes with it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

_FLOOR = 1e-4


def calibration(predicted: Floats, happened: Mask) -> tuple[float, float]:
    """Shift and slope of log-odds by penalised maximum likelihood (Newton), near (0, 1) where there is little data."""
    x = logit(predicted)
    design = np.stack([np.ones_like(x), x], axis=1)
    prior, precision = np.array([0.0, 1.0]), np.diag([1 / 0.5**2, 1 / 0.25**2])
    beta = prior.copy()
    for _ in range(25):
        p = logistic(design @ beta)
        gradient = design.T @ (happened - p) - precision @ (beta - prior)
        hessian = (design * (p * (1 - p))[:, None]).T @ design + precision
        step = np.linalg.solve(hessian, gradient)
        beta = beta + step
        if float(np.abs(step).max()) < 1e-9:
            break
    return float(beta[0]), max(0.0, float(beta[1]))


def log_loss(predicted: Floats, happened: Mask) -> float:
    """Mean over what was predicted; infinite for nothing."""
    tested = np.isfinite(predicted)
    if not tested.any():
        return float("inf")
    p = np.clip(predicted[tested], _FLOOR, 1 - _FLOOR)
    return float(-np.mean(np.where(happened[tested], np.log(p), np.log1p(-p))))


def logit(p: Floats) -> Floats:
    p = np.clip(p, _FLOOR, 1 - _FLOOR)
    return np.asarray(np.log(p / (1 - p)))


def logistic(x: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(x, -50, 50))))
