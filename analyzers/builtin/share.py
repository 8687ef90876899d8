"""Shares: how likely so many hits are where the share is known, and the interval of one that was seen."""

from __future__ import annotations

import math

import numpy as np
import scipy  # scipy.special takes a third of a second to load, and does when it is first used
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_Z = 1.959963984540054


def wilson(hits: int, trials: int) -> tuple[float, float]:
    """The 95 % interval of `hits` in `trials` (Wilson, 1927). Raises ZeroDivisionError without a trial."""
    share = hits / trials
    centre = share + _Z * _Z / (2 * trials)
    width = _Z * math.sqrt(share * (1 - share) / trials + _Z * _Z / (4 * trials**2))
    scale = 1 + _Z * _Z / trials
    return max(0.0, min(share, (centre - width) / scale)), min(1.0, max(share, (centre + width) / scale))


def at_least(hits: Floats, trials: Floats, share: float | Floats) -> Floats:
    """The probability of so many hits or more: the upper tail of the binomial distribution by the regularized
    incomplete beta function (Abramowitz and Stegun 1964, 26.5.24). Shapes as they broadcast.

    scipy.stats has it too, and takes a second to load.
    """
    inside = scipy.special.betainc(np.maximum(hits, 1), np.maximum(trials - hits + 1, 1), share)
    return np.asarray(np.where(hits <= 0, 1.0, np.where(hits > trials, 0.0, inside)), dtype=np.float64)
