"""Whether the network is cut in two: sides that reach each other within themselves and not across.

A process that crashes is a side of one. Where several processes still answer each other and none of the other side
does, what lies between them is at fault, and no process is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from analyzers.builtin.panorama.episodes import Episode
from analyzers.builtin.panorama.likelihood import OBSERVER
from analyzers.builtin.panorama.observed import Observed, Tally

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

LEAST_SIDE = 3
"""Components that a side has at least."""

_COMPLAINING = 2
"""Observers of each side that complain about the other, at least."""

_CUT = 0.85
"""Share of the pairs across that fail, and of those within that do not."""

_TURNS = 60
_SHIFT = 3.0
"""Added to the diagonal, so that the leading eigenvector is that of the largest eigenvalue, not of the least."""

_EXPLAINED = 0.8
"""Share of an episode's failed calls that must cross the cut for it to be explained by it."""


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """`side` numbers the side of each component, -1 for those on none, shape (components,), at one step."""

    side: Ints
    sizes: tuple[int, ...]

    def crossed(self, seen: Observed) -> Bools:
        """The cells whose observer and subject are on different sides."""
        one, other = self.side[seen.observer], self.side[seen.subject]
        return np.asarray((one >= 0) & (other >= 0) & (one != other))


def partition_between(seen: Observed, counted: Tally, first: int, last: int) -> Partition | None:
    """The cut that steps `first` to `last` show, if there is one.

    Pairs that mostly answer each other belong on one side and pairs that mostly do not on different sides: sides are
    the signs of the leading eigenvector of that signed graph, each component then moved to the side that most of its
    pairs say (Kunegis et al., SDM 2010).
    """
    inside, size = slice(first, last + 1), len(seen.components)
    low, high = np.minimum(seen.observer, seen.subject), np.maximum(seen.observer, seen.subject)
    code, pair = np.unique(low * size + high, return_inverse=True)
    well = np.bincount(pair, seen.healthy[:, inside].sum(axis=1))
    ill = np.bincount(pair, seen.unhealthy[:, inside].sum(axis=1) + counted.hung[:, last])
    sign = np.sign(well - ill)
    kept = sign != 0
    one, other = np.divmod(code[kept], size)
    sign = sign[kept]
    if (sign < 0).sum() < LEAST_SIDE or not (sign > 0).any():
        return None
    side = _sides(one, other, sign, size)
    across = side[one] != side[other]
    sizes = np.bincount(side[np.unique(np.concatenate([one, other]))], minlength=2)
    if sizes.min() < LEAST_SIDE or not across.any() or across.all():
        return None
    if np.mean(sign[across] < 0) < _CUT or np.mean(sign[~across] > 0) < _CUT:
        return None
    # Observers that lie are a side that complains of the other and is not complained of.
    complains = (seen.unhealthy[:, inside].any(axis=1)) & (side[seen.observer] != side[seen.subject])
    complaining = np.bincount(side[np.unique(seen.observer[complains])], minlength=2)
    if complaining.min() < _COMPLAINING:
        return None
    side[np.setdiff1d(np.arange(size), np.concatenate([one, other]))] = -1
    return Partition(side, tuple(sizes.tolist()))


def _sides(one: Ints, other: Ints, sign: NDArray[np.float64], size: int) -> Ints:
    """0 or 1 for each of `size` components, from the signs of their pairs."""
    ends = np.concatenate([one, other]), np.concatenate([other, one])
    graph = csr_array((np.concatenate([sign, sign]), ends), shape=(size, size))
    vector = np.cos(np.arange(size))  # any start that favours no side
    for _ in range(_TURNS):
        vector = graph @ vector + _SHIFT * vector
        vector /= max(float(np.abs(vector).max()), 1e-12)
    side = np.where(vector >= 0, 1.0, -1.0)
    for _ in range(_TURNS):
        pull = graph @ side
        moved = np.where(pull * side < 0)[0]
        if not len(moved):
            break
        worst = moved[np.argmax(np.abs(pull[moved]))]
        side[worst] = -side[worst]
    return (side > 0).astype(np.int64)


def explained(
    seen: Observed, counted: Tally, episodes: Sequence[Episode]
) -> tuple[list[Episode], Partition | None]:
    """The episodes whose failures cross a cut that lasts as long as one of them, and the first of these cuts."""
    spans = sorted({(one.first, one.last) for one in episodes})
    cuts = [cut for span in spans if (cut := partition_between(seen, counted, *span)) is not None]
    crossed = [one.crossed(seen) for one in cuts]
    found = []
    for one in episodes:
        cells = np.flatnonzero(seen.observer == one.who) if one.sort == OBSERVER else one.cells
        failed = counted.failed[cells, one.best]
        most = max((int(failed[across[cells]].sum()) for across in crossed), default=0)
        if most and most >= _EXPLAINED * failed.sum():
            found.append(one)
    return found, cuts[0] if found else None
