"""Whether an episode is a process that stopped, and may be restarting, rather than one that serves badly.

A process that is restarted is gone altogether for some seconds: neither callers nor probes reach it. While that lasts,
it reports nothing itself; once it is back, that is not asked. A gray failure is the opposite, because some view of it
stays well. A stop is given the time that a restart takes before anybody is blamed; bad service is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.panorama.episodes import Episode
from analyzers.builtin.panorama.likelihood import OBSERVER, PLACE
from analyzers.builtin.panorama.observed import Observed

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

LEFT = 0.1
"""Share of good answers, and of a process's own usual reports, up to which it is gone; of failures, when it is not."""

BEFORE, AFTER = 1, 2
"""Steps around a stop in which some calls fail already, or still: answers are told when they come."""


@dataclass(frozen=True, slots=True)
class Stop:
    """A process was gone from step `first` to step `last`, once in this window; `still` if it is at the end."""

    first: int
    last: int
    still: bool

    @property
    def steps(self) -> int:
        return self.last - self.first + 1


def component_of(seen: Observed, one: Episode) -> int:
    """The component that an episode is about."""
    return int(seen.place_subject[one.who]) if one.sort == PLACE else one.who


def stops_of(seen: Observed, probe: Bools, episodes: Sequence[Episode]) -> dict[int, Stop]:
    """By component the stop that explains its episodes; one that stopped twice has none: it was not restarted."""
    found = {}
    for component in {component_of(seen, one) for one in episodes if one.sort != OBSERVER}:
        stop = stop_of(seen, probe, component)
        if stop is not None:
            found[component] = stop
    return found


def stop_of(seen: Observed, probe: Bools, component: int) -> Stop | None:
    """When the component was gone, if it was just once. `probe` of shape (cells,) marks the cells that probe."""
    about, own = seen.subject == component, seen.observer == component
    said = (seen.healthy[own] + seen.unhealthy[own] + seen.pending[own]).sum(axis=0)
    silent = said <= LEFT * said.max(initial=0)
    answered, asked = np.zeros(seen.steps), np.zeros(seen.steps)
    ill = np.zeros(seen.steps, dtype=bool)
    unreached = np.ones(seen.steps, dtype=bool)
    for view in (about & ~probe, about & probe):
        good = seen.healthy[view].sum(axis=0)
        bad = (seen.unhealthy[view] + seen.pending[view]).sum(axis=0)
        ill |= bad > 0
        unreached &= good <= LEFT * (good + bad)
        answered += good
        asked += good + bad
    gone = np.flatnonzero(ill & unreached)
    if not len(gone):
        return None
    first, last = int(gone[0]), int(gone[-1])
    if answered[first : last + 1].sum() > LEFT * asked[first : last + 1].sum():
        return None
    still = bool(unreached[last + 1 :].all())
    if still and not silent[first + AFTER : last + 1].all():
        return None
    return Stop(first, last, still)


def explains(seen: Observed, stop: Stop, one: Episode) -> bool:
    """Whether all is well in the episode's cells before the stop and after it."""
    around = np.ones(seen.steps, dtype=bool)
    around[max(0, stop.first - BEFORE) : stop.last + AFTER + 1] = False
    ill = int(seen.unhealthy[one.cells][:, around].sum())
    return ill <= LEFT * (ill + int(seen.healthy[one.cells][:, around].sum()))
