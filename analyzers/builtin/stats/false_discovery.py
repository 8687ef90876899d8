"""The share of false ones among many that are called guilty."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def q_values(p: Floats, tests: int) -> Floats:
    """The q values of `p` (Benjamini and Hochberg, 1995), shape (len(p),); the others of `tests` count as 1."""
    order = np.argsort(p, kind="stable")
    raised = p[order] * tests / np.arange(1, len(p) + 1)
    q = np.empty(len(p))
    q[order] = np.minimum.accumulate(raised[::-1])[::-1]
    return np.minimum(q, 1.0)
