"""In which minutes a fault showed: since when, until when, and whether it lasted. Pure numpy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.pingmesh.observed import Observed

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PEAK_MINUTES = 3
SHARE_OF_PEAK = 0.5


@dataclass(frozen=True, slots=True)
class Minutes:
    """The first and the last minute (numbers within the window) that show the fault, and in how many minutes what
    happened lies: `spread` is (sum e)^2 / sum e^2, 1 if all was in one minute.
    """

    first: int
    last: int
    spread: float

    def lasted(self, least: float) -> bool:
        """Whether it was spread over so many minutes, give or take half of one."""
        return self.spread >= least - 0.5


def minutes_of(seen: Observed, measure: str, members: Ints, peers: Ints | None = None) -> Minutes:
    """By what the members sent and had answered late, or for what is silent or lost: what was lost to or from them.

    `peers` are servers like them that nothing is said against: what these see on average is taken off, because it is
    the doing of others (a podset with a storm makes every other one late at times).
    """
    if measure in ("slow", "dropped"):
        by_server = seen.quick[:, :, 1 if measure == "slow" else 2]
        events = by_server[members].sum(axis=0)
        if peers is not None and len(peers):
            events = np.maximum(0.0, events - len(members) * by_server[peers].mean(axis=0))
    else:
        pair, minute, lost = seen.lost_at
        inside = np.zeros(len(seen.servers), dtype=bool)
        inside[members] = True
        touched = inside[seen.src[pair]] | inside[seen.dst[pair]]
        events = np.bincount(minute[touched], lost[touched], minlength=seen.minutes)
    return spread_of(events)


def spread_of(events: Floats) -> Minutes:
    """From the number of events in each minute."""
    total = float(events.sum())
    if total == 0:
        return Minutes(0, len(events) - 1, 0.0)
    peak = float(np.sort(events)[-PEAK_MINUTES:].mean())
    struck = np.flatnonzero(events >= max(SHARE_OF_PEAK * peak, 1e-9))
    return Minutes(int(struck[0]), int(struck[-1]), total**2 / float((events**2).sum()))
