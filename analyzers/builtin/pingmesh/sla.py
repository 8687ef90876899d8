"""Drop rate, P50 and P99 of what is sent from each server, pod, podset and data centre, and alerts. Pure numpy.

The published alert is a drop rate above 1e-3 or a P99 above 5 ms. A handful of probes is above by chance now and then,
so an alert also needs a binomial tail, corrected for the number of scopes of its level.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.pingmesh.bins import FINE_DROPPED, percentile
from analyzers.builtin.pingmesh.limits import Measure, tail
from analyzers.builtin.pingmesh.observed import Observed

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEVELS = ("data centre", "podset", "pod", "server")


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """What the servers of one place sent; times in microseconds, None without answers. `broken` is the measure that is
    above its limit by more than chance, if any.
    """

    level: str
    name: str
    place: int
    answers: float
    dropped: float
    p50: float | None
    p99: float | None
    broken: str | None
    p: float

    @property
    def drop_rate(self) -> float:
        return self.dropped / self.answers if self.answers else 0.0


def scopes(seen: Observed, compared: tuple[Measure, ...], alpha: float) -> list[Scope]:
    """Of all levels, the largest first; within a level those further above a limit first."""
    where = seen.places
    grouped = (
        (where.dc_of(), where.dcs),
        (where.podset_of(), where.podsets),
        (where.pod, where.pods),
        (np.arange(len(seen.servers)), seen.servers),
    )
    out: list[Scope] = []
    for level, (of, names) in zip(LEVELS, grouped, strict=True):
        out += _level(seen, level, of, names, compared, alpha)
    return out


def _level(
    seen: Observed, level: str, of: Ints, names: tuple[str, ...], compared: tuple[Measure, ...], alpha: float
) -> list[Scope]:
    size = len(names)
    if not size:
        return []
    members = np.flatnonzero(of >= 0)
    fine = np.zeros((size, seen.fine.shape[1]))
    np.add.at(fine, of[members], seen.fine[members])
    quick = np.zeros((size, 3))
    np.add.at(quick, of[members], seen.quick[members].sum(axis=1))
    answers = fine.sum(axis=1)
    struck = {"dropped": fine[:, FINE_DROPPED].sum(axis=1), "slow": quick[:, 1]}
    p = np.stack([tail(struck[one.name], answers, one.limit) for one in compared])
    excess = np.stack([struck[one.name] / np.maximum(answers, 1.0) / one.limit for one in compared])
    above = p <= alpha / (len(compared) * size)
    found = [
        Scope(
            level,
            names[one],
            one,
            float(answers[one]),
            float(struck["dropped"][one]),
            percentile(fine[one], 0.5),
            percentile(fine[one], 0.99),
            compared[int((excess[:, one] * above[:, one]).argmax())].name if above[:, one].any() else None,
            float(p[:, one].min()),
        )
        for one in np.lexsort((-answers, -excess.max(axis=0))).tolist()
    ]
    return [one for one in found if one.answers]
