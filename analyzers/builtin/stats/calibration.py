"""Calibration of log-odds by penalised logistic regression (Platt, 1999), and what goes with it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

_FLOOR = 1e-4


def calibration(
    predicted: Floats, happened: Mask, *, centre: float = 0.0, steepest: float = float("inf")
) -> tuple[float, float]:
    """Shift and slope of log-odds by penalised maximum likelihood (Newton), near (0, 1) where there is little data.

    The penalty is on the shift at log-odds `centre`. A slope above `steepest` is that, with the shift that fits it.
    """
    x = logit(predicted) - centre
    found = _newton(np.stack([np.ones_like(x), x], axis=1), centre, happened, (0.0, 1.0))
    slope = max(0.0, float(found[1]))
    if slope > steepest:
        slope = steepest
        found = _newton(np.ones((len(x), 1)), centre + slope * x, happened, (0.0,))
    return float(centre + found[0] - slope * centre), slope


def _newton(design: Floats, offset: Floats | float, happened: Mask, start: tuple[float, ...]) -> Floats:
    prior, precision = np.array(start), np.diag([1 / 0.5**2, 1 / 0.25**2][: len(start)])
    beta = prior.copy()
    for _ in range(25):
        p = logistic(offset + design @ beta)
        gradient = design.T @ (happened - p) - precision @ (beta - prior)
        hessian = (design * (p * (1 - p))[:, None]).T @ design + precision
        step = np.linalg.solve(hessian, gradient)
        beta = beta + step
        if float(np.abs(step).max()) < 1e-9:
            break
    return beta


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
