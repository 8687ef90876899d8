"""Components and paths that stand out of one window on their own, taken out before anything is learnt from it.

Every component is compared with the paths that avoid it, in the same window: no baseline is needed, so that a
fault in every window of the history is found as well as one in a single window. A component stands out if it
fails several times as often as the rest, as most of its paths do. The worst is taken out with its paths, and the
rest is compared again. Too much taken out costs some exposure; too little would be learnt as normal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.deepview.observed import Observed, attempts_of, exposure, holds_any

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

TIMES = 4.0
"""A component stands out that fails so many times as often as the paths without it."""

SPOKEN = 0.4
"""Least share of the paths expected to fail that must, if a component is at fault: else a few of its paths are, and
those may be recorded under the wrong component."""

_NATS = 6.0  # above log(components)
_LEAST = 4.0  # failures
_MOST = 20  # components taken out of one window
_SKEW = 0.8  # shape of the gamma law of units over paths, for how many paths are expected to fail
_HEAVY = 10.0  # times what is expected on a path, from which on its further failures say nothing of the rate


@dataclass(frozen=True, slots=True, eq=False)
class Remains:
    """A window without what stands out: `columns` were taken out, failing most of the time in `shares` of their units.

    `carried` and `total` are what is left, `weight` of shape (rows,) what failing rows still count, and `rate` the
    failures per unit of it.
    """

    columns: list[int]
    shares: list[float]
    carried: Floats
    total: float
    weight: Floats

    @property
    def rate(self) -> float:
        return float(self.weight.sum()) / self.total if self.total > 0 else 0.0


def speaking(paths_on: Floats, carried: Floats, theta: Floats) -> Floats:
    """How many of a component's paths are expected to fail at all if it fails each unit with rate theta."""
    each = theta * carried / np.maximum(paths_on, 1)
    return np.asarray(paths_on * (1 - (1 + each / _SKEW) ** -_SKEW))


def remains(seen: Observed, weight: Floats, least_share: float = 0.0) -> Remains:
    """The window without the components that stand out by failing `least_share` of their units or more."""
    carried, total, left = seen.carried.copy(), seen.total, weight.copy()
    columns: list[int] = []
    shares: list[float] = []
    while len(columns) < _MOST:
        lost = seen.per_component(left)
        worst = _worst(seen, left, lost, carried, total, least_share)
        if worst is None:
            break
        columns.append(worst)
        shares.append(float(min(1.0, lost[worst] / carried[worst])))
        left = left * seen.clear_of([worst])
        keep = ~holds_any(seen.paths, columns)
        carried, total = exposure(seen, keep), float(seen.tried[keep].sum())
    return Remains(columns, shares, carried, total, _without_strays(seen, left, total))


def _worst(
    seen: Observed, left: Floats, lost: Floats, carried: Floats, total: float, least_share: float
) -> int | None:
    """The component with most evidence against it, compared with the paths that avoid it; None if there is none."""
    outside = total - carried
    rest = (left.sum() - lost + 0.5) / np.maximum(outside, 1.0)
    usual = rest * carried
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.where(lost > usual, lost * np.log(lost / usual) - lost + usual, 0.0)
        share = np.where(carried > 0, lost / carried, 0.0)
    can = (lost >= _LEAST) & (lost > TIMES * usual) & (outside > 0.02 * total) & (share >= least_share)
    can &= gain > _NATS + np.log(len(carried))
    if not can.any():
        return None
    active = (
        left[seen.row]
        > np.maximum(0.25 * share[seen.column], 2 * rest[seen.column])
        * _mean_tried(seen, carried)[seen.column]
    )
    spoke = np.bincount(seen.column, active, minlength=len(carried))
    can &= spoke >= SPOKEN * speaking(seen.paths_on.astype(float), carried, share)
    return int(np.argmax(np.where(can, gain, -1.0))) if can.any() else None


def _mean_tried(seen: Observed, carried: Floats) -> Floats:
    """Half of the mean units on a path of each component."""
    return np.asarray(0.5 * carried / np.maximum(seen.paths_on, 1))


def _without_strays(seen: Observed, left: Floats, total: float) -> Floats:
    """The rows' weights, each at most ten times what is expected on its path (and five)."""
    if total <= 0 or not (left > 5.0).any():
        return left
    tried = attempts_of(seen)
    kept = left
    for _ in range(6):
        kept = np.minimum(left, 5.0 + _HEAVY * tried * kept.sum() / total)
    return kept
