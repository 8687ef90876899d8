"""Places that a pattern of transfers between ranks points at: a sending side, a receiving side, a NIC, a connection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from analyzers.builtin.c4d.observed import Flags, Ints, Records

Side = Literal["rank", "rank_tx", "rank_rx", "channel"]

ROW_SHARE = 0.6
"""Share of a row or column that has to be hot, of two elements at least."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A rank, one side of its NIC, or the connection from it to `peer`."""

    side: Side
    rank: int
    peer: int = -1

    @property
    def component(self) -> str:
        return (
            f"{self.side}/{self.rank}~{self.peer}" if self.side == "channel" else f"{self.side}/{self.rank}"
        )

    @property
    def ranks(self) -> tuple[int, ...]:
        return (self.rank, self.peer) if self.side == "channel" else (self.rank,)


def nodes_of(records: Records, place: Place) -> tuple[str, ...]:
    """The nodes of the place's ranks as the rows name them, each once; none where they do not."""
    known = [int(records.node[rank]) for rank in place.ranks if rank < len(records.node)]
    return tuple(dict.fromkeys(records.nodes[one] for one in known if one >= 0))


@dataclass(frozen=True, slots=True)
class Pattern:
    """A place, the places that explain the same elements, and these elements as pairs of ranks."""

    place: Place
    alike: tuple[Place, ...]
    pairs: tuple[tuple[int, int], ...]


def patterns(observed: Flags, hot: Flags) -> tuple[Pattern, ...]:
    """The rows, columns and single elements that explain the hot elements, largest first.

    `observed` and `hot` have shape (ranks, ranks), from sender to receiver. A row or column that was explained is taken
    off before the next is sought. A row and a column of one rank are its NIC, in a ring also the two elements of it.
    """
    left, among = hot & observed, observed.copy()
    found: list[tuple[Place, list[tuple[int, int]]]] = []
    while (line := _line(left, among)) is not None:
        axis, rank = line
        taken = (slice(None), rank) if axis else (rank, slice(None))
        others = np.flatnonzero(left[taken]).tolist()
        pairs = [(other, rank) if axis else (rank, other) for other in others]
        found.append((Place("rank_rx" if axis else "rank_tx", rank), pairs))
        left[taken], among[taken] = False, False
    made = [Pattern(place, (), tuple(pairs)) for place, pairs in _joined(found)]
    sends, receives = observed.sum(axis=1), observed.sum(axis=0)
    made += _in_a_ring(left, sends, receives)
    for src, dst in np.argwhere(left).tolist():
        alike = [Place("rank_tx", src)] if sends[src] == 1 else []
        alike += [Place("rank_rx", dst)] if receives[dst] == 1 else []
        made.append(Pattern(Place("channel", src, dst), tuple(sorted(alike)), ((src, dst),)))
    return tuple(made)


def _in_a_ring(left: Flags, sends: Ints, receives: Ints) -> list[Pattern]:
    """Ranks that send to one and receive from one, both hot: one NIC is likelier than two connections. Takes them off
    `left`."""
    found = []
    for rank in np.flatnonzero((sends == 1) & (receives == 1) & left.any(axis=0) & left.any(axis=1)).tolist():
        if left[rank].any() and left[:, rank].any():
            pairs = [(rank, int(np.argmax(left[rank]))), (int(np.argmax(left[:, rank])), rank)]
            left[rank], left[:, rank] = False, False
            found.append(Pattern(Place("rank", rank), (), tuple(pairs)))
    return found


def _line(left: Flags, among: Flags) -> tuple[int, int] | None:
    """The axis (0 a row, 1 a column) and rank of the line with most hot elements, None if none qualifies."""
    best: tuple[int, float, int, int] | None = None
    for axis in (0, 1):
        hot, seen = left.sum(axis=1 - axis), among.sum(axis=1 - axis)
        share = hot / np.maximum(seen, 1)
        for rank in np.flatnonzero((hot >= 2) & (share >= ROW_SHARE)).tolist():
            one = (int(hot[rank]), float(share[rank]), -axis, -rank)
            best = one if best is None or one > best else best
    return None if best is None else (-best[2], -best[3])


def _joined(
    found: list[tuple[Place, list[tuple[int, int]]]],
) -> list[tuple[Place, list[tuple[int, int]]]]:
    """The same with the row and the column of one rank as one place."""
    both = {place.rank for place, _ in found if place.side == "rank_tx"}
    both &= {place.rank for place, _ in found if place.side == "rank_rx"}
    retained = [(place, pairs) for place, pairs in found if place.rank not in both]
    for rank in sorted(both):
        pairs = [pair for place, some in found if place.rank == rank for pair in some]
        retained.append((Place("rank", rank), pairs))
    return sorted(retained, key=lambda one: (-len(one[1]), one[0]))
