"""The interval of a share that was counted. Without numpy, so that whoever shows a share need not load it."""

from __future__ import annotations

import math

_Z = 1.959963984540054


def wilson(hits: int, trials: int) -> tuple[float, float]:
    """The 95 % interval of `hits` in `trials` (Wilson, 1927); everything from 0 to 1 without a trial."""
    if trials == 0:
        return 0.0, 1.0
    share = hits / trials
    centre = share + _Z * _Z / (2 * trials)
    width = _Z * math.sqrt(share * (1 - share) / trials + _Z * _Z / (4 * trials**2))
    scale = 1 + _Z * _Z / trials
    return max(0.0, min(share, (centre - width) / scale)), min(1.0, max(share, (centre + width) / scale))
