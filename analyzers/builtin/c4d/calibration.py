"""The score: how often a place that is so far above its bar was at fault, in simulations.

`SCORES` are read cautiously off `python -m tests.benchmarks.c4d --calibrate` on tuning seeds (below
`FIRST_REPORTING_SEED` of the simulator), the bars lowered so that doubtful places are seen too: of 53 jobs, each judged
at three moments, 12 of 12 ranks that never launched, 27 of 27 transfers without progress, 13 of 13 mismatches, 43 of 43
delays above the usual bar and none of 3 below it, 10 of 10 late arrivals were right. Late arrivals just above the bar
are stated lower: ranks of healthy jobs came as late on the second generator where rows are lost. A point is the
logarithm of how many times the bar is exceeded (seconds of a stall, excess of a delay, share of the time that others
wait) and a probability.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

from analyzers.builtin.stats.probability import Points, probability_at

SCORES: Mapping[str, Points] = MappingProxyType(
    {
        "hang": ((0.0, 0.95),),
        "hang_transfer": ((0.0, 0.95),),
        "mismatch": ((0.0, 0.9),),
        "delay": ((-0.3, 0.5), (0.0, 0.9), (0.7, 0.95)),
        "arrival": ((0.0, 0.7), (0.4, 0.85), (1.0, 0.95)),
    }
)
LOST_NATS, ALIKE = 1.0, 0.05
"""Discounts: of lost rows from the log odds, and of every further member of an ambiguous group from the score."""


def probability(indicator: str, above: float, alike: int = 0, *, lost: bool = False) -> float:
    """The probability that a place is at fault which is `above` times its bar, with `alike` places that explain as
    much; at least .5."""
    stated = probability_at(SCORES[indicator], math.log(max(above, 1e-3)))
    if lost:
        stated = 1 / (1 + math.exp(LOST_NATS - math.log(stated / (1 - stated))))
    return round(max(0.5, stated - ALIKE * alike), 4)
