"""A window of probes as arrays: pairs of servers, with what was sent, lost, answered, slow and dropped."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.paths import of_layer, texts, whole
from analyzers.builtin.pingmesh.bins import DROPPED, limit_bin
from analyzers.builtin.pingmesh.limits import totals
from analyzers.builtin.pingmesh.places import Places, places
from analyzers.builtin.pingmesh.reductions import FEW, FINE, SLICE
from analyzers.contract import Sums, Window

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LAST_MINUTES = 3
"""A server is silent that was not heard of in so many minutes at the end."""
UNHEARD = 0.5
"""and that lost so much of what it should have answered: for a dead one it is all, for one without an agent none."""


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """`src`, `dst`, `sent`, `lost`, `answers`, `slow`, `dropped` have shape (pairs,): `slow` are answers above the
    limit, retransmitted ones among them, `dropped` those after about 3 or 9 s. `binned` holds a row for each pair and
    bin of `FEW` (pair, bin, answers). `fine` has shape (servers, bins of `FINE`), `quick` shape (servers, minutes,
    3) with answers, slow and dropped. `lost_at` holds a row for each pair and minute (pair, minute, lost).
    """

    servers: tuple[str, ...]
    places: Places
    src: Ints
    dst: Ints
    sent: Floats
    lost: Floats
    answers: Floats
    slow: Floats
    dropped: Floats
    binned: tuple[Ints, Ints, Floats]
    fine: Floats
    quick: Floats
    lost_at: tuple[Ints, Ints, Floats]
    minutes: int

    @property
    def pairs(self) -> int:
        return len(self.src)

    def silent(self) -> NDArray[np.bool_]:
        """Servers that were probed and, at the window's end or in all of it, neither answered nor had an answer; shape
        (servers,)."""
        last = min(LAST_MINUTES, self.minutes)
        pair, minute, lost = self.lost_at
        late = minute >= self.minutes - last
        size = len(self.servers)
        mute = self.quick[:, -last:, 0].sum(axis=1) == 0
        # What is silent itself sends nothing more, so its share of the probes cannot be waited for.
        late &= ~mute[self.src[pair]]
        sending = ~mute[self.src]
        unheard = totals(self.dst[pair[late]], lost[late], size)
        expected = totals(self.dst[sending], self.sent[sending], size) * last / self.minutes
        found: NDArray[np.bool_] = mute & (unheard >= UNHEARD * expected) & (unheard > 0)
        return found | self._without_answer()

    def _without_answer(self) -> NDArray[np.bool_]:
        """Servers of which the whole window has no sign of life: rows that count a window at once tell no minutes."""
        size = len(self.servers)
        asked, lost = totals(self.dst, self.sent, size), totals(self.dst, self.lost, size)
        found: NDArray[np.bool_] = (self.quick[:, :, 0].sum(axis=1) == 0) & (asked > 0) & (lost >= asked)
        return found


def observe(window: Window, layer: str, p99_limit: float) -> Observed:
    """Read the tables of the input; of probes only those of the layer."""
    names = ("pairs", "answers", "servers", "minutes", "silent")
    pairs, answers, servers, minutes, silent = (of_layer(window.sums[name], layer) for name in names)
    known = tuple(sorted({*texts(pairs, "src"), *texts(pairs, "dst")}))
    number = {name: i for i, name in enumerate(known)}

    def column(sums: Sums, key: str) -> Ints:
        return np.fromiter((number[name] for name in texts(sums, key)), np.int64, sums.rows)

    src, dst = column(pairs, "src"), column(pairs, "dst")
    code = src * len(known) + dst
    order = np.argsort(code, kind="stable")

    def pair_of(sums: Sums) -> Ints:
        wanted = column(sums, "src") * len(known) + column(sums, "dst")
        return order[np.searchsorted(code[order], wanted)]

    binned = (pair_of(answers), whole(answers, "bin"), _values(answers, "answers"))
    count, at = max(1, -(-window.length // SLICE)), limit_bin(p99_limit)

    def by_pair(kept: NDArray[np.bool_]) -> Floats:
        return totals(binned[0][kept], binned[2][kept], len(src))

    return Observed(
        servers=known,
        places=places(window, known),
        src=src,
        dst=dst,
        sent=_values(pairs, "sent"),
        lost=_values(pairs, "lost"),
        answers=by_pair(np.ones(len(binned[0]), dtype=np.bool_)),
        slow=by_pair(binned[1] >= at),
        dropped=by_pair(np.isin(binned[1], DROPPED)),
        binned=binned,
        fine=_table(
            column(servers, "src"),
            whole(servers, "bin"),
            _values(servers, "answers"),
            len(known),
            len(FINE) + 1,
        ),
        quick=_quick(minutes, column(minutes, "src"), len(known), count, at),
        lost_at=(pair_of(silent), whole(silent, "slice"), _values(silent, "lost")),
        minutes=count,
    )


def _values(sums: Sums, name: str) -> Floats:
    return np.asarray(sums.values[name], dtype=np.float64)


def _table(row: Ints, column: Ints, values: Floats, rows: int, columns: int) -> Floats:
    return totals(row * columns + column, values, rows * columns).reshape(rows, columns)


def _quick(sums: Sums, src: Ints, servers: int, minutes: int, at: int) -> Floats:
    binned, values = whole(sums, "bin"), _values(sums, "answers")
    kinds = (np.ones(len(binned), dtype=np.bool_), binned >= at, np.isin(binned, DROPPED))
    minute = whole(sums, "slice")
    tables = [_table(src[kept], minute[kept], values[kept], servers, minutes) for kept in kinds]
    return np.stack(tables, axis=2)


def pooled_bins(seen: Observed, cell: Ints, cells: int) -> Floats:
    """Answers by bin of `FEW` for groups of pairs: `cell` by pair (-1: none), shape (cells, bins)."""
    pair, binned, values = seen.binned
    kept = cell[pair] >= 0
    return _table(cell[pair[kept]], binned[kept], values[kept], cells, len(FEW) + 1)
