"""Healthy spells of a fault that comes and goes, and the rows after which the next one is over. Pure.

A run of rows without a failure is a healthy spell where the failures outside such runs make it unlikely (`UNLIKELY`
over all runs, failures independent of each other). With n spells of S rows in total, of exponential length whatever
their mean, the next one is longer than t with a probability of (1 + t / S)^-n: both sums are gamma variables, and the
mean cancels. That is exact from n = 1 on, but useless for few: 99 S rows for one spell at 1 %. Below `LEAST` spells
`TIMES` the longest one is demanded, which an exponential spell exceeds after one seen with 1 / (TIMES + 1), after two
with 2 / ((TIMES + 1) (TIMES + 2)); after a run that had not ended, with a probability that nobody knows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

UNLIKELY: Final = 0.05
LEAST: Final = 3
TIMES: Final = 9
_ROUNDS: Final = 20


@dataclass(frozen=True, slots=True)
class Spells:
    """Healthy spells of a part while it had the fault, in rows."""

    ended: tuple[int, ...] = ()
    """Those with a failure at both ends."""
    open: tuple[int, ...] = ()
    """Those that reach the beginning or the end of the rows: the spell itself was longer."""

    @property
    def longest(self) -> int:
        return max((*self.ended, *self.open), default=0)

    @property
    def is_bounded(self) -> bool:
        """Whether enough spells were seen to bound the length of the next."""
        return len(self.ended) >= LEAST

    def demanded(self, wrong: float) -> int:
        """Rows to be seen before a repair is proved; `wrong` bounds the probability that a spell is longer."""
        if not self.is_bounded:
            return TIMES * self.longest
        rows = sum(self.ended) + sum(self.open)
        return math.ceil(rows * (math.pow(wrong, -1 / len(self.ended)) - 1))


def spells(failing: Sequence[bool]) -> Spells:
    """Of rows in the order of time; all of them are one open spell where none fails."""
    places = [place for place, fails in enumerate(failing) if fails]
    if not places:
        return Spells(open=(len(failing),) if failing else ())
    inner = [later - before - 1 for before, later in pairwise(places)]
    ends = [places[0], len(failing) - 1 - places[-1]]
    longest_usual = _longest_usual([*inner, *ends])
    return Spells(
        tuple(run for run in inner if run > longest_usual), tuple(run for run in ends if run > longest_usual)
    )


def _longest_usual(runs: Sequence[int]) -> float:
    """The run that failures of one rate would exceed with `UNLIKELY`.

    The rate is that of the runs which are not longer, begun with the median run, so that many spells hide nothing.
    """
    middle = sorted(runs)[len(runs) // 2]
    limit = _fitting(1 - math.pow(2, -1 / (middle + 1)), len(runs))
    for _ in range(_ROUNDS):
        usual = [run for run in runs if run <= limit]
        larger = _fitting(len(usual) / (len(usual) + sum(usual)), len(runs))
        if larger <= limit:
            break
        limit = larger
    return limit


def _fitting(rate: float, runs: int) -> float:
    return 0.0 if rate == 1 else math.log(UNLIKELY / runs) / math.log1p(-rate)
