"""How likely so many hits are where the share is known."""

from __future__ import annotations

import numpy as np
import scipy  # scipy.special takes a third of a second to load, and does when it is first used
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def at_least(hits: Floats, trials: Floats, share: float | Floats) -> Floats:
    """The probability of so many hits or more: the upper tail of the binomial distribution by the regularized
    incomplete beta function (Abramowitz and Stegun 1964, 26.5.24). Shapes as they broadcast.

    scipy.stats has it too, and takes a second to load.
    """
    inside = scipy.special.betainc(np.maximum(hits, 1), np.maximum(trials - hits + 1, 1), share)
    return np.asarray(np.where(hits <= 0, 1.0, np.where(hits > trials, 0.0, inside)), dtype=np.float64)
