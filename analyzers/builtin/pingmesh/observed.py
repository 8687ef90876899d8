"""A window of probes as arrays: pairs of servers, with what was sent, lost, answered, slow and dropped.

The place of each server is read off `topology`. A pod is what contains a server, a podset what contains pods, a data
centre what contains podsets. The tier that joins the podsets (Pingmesh's Spine) is what all of them need
(`depends_on`); where topology names nothing of that kind it is called `spine_tier/` and the name of the data centre.

Round-trip times are counted in bins, some of which hold dropped packets. A share is above its limit if it is by more
than chance, also without the worst of its parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.paths import of_layer, texts, whole
from analyzers.builtin.pingmesh.analyzer import FEW, FINE, SLICE, SYN
from analyzers.builtin.stats.probability import at_least
from analyzers.contract import Paths, Sums, Window

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
        requested, lost = totals(self.dst, self.sent, size), totals(self.dst, self.lost, size)
        found: NDArray[np.bool_] = (
            (self.quick[:, :, 0].sum(axis=1) == 0) & (requested > 0) & (lost >= requested)
        )
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

    def by_pair(mask: NDArray[np.bool_]) -> Floats:
        return totals(binned[0][mask], binned[2][mask], len(src))

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
    tables = [_table(src[mask], minute[mask], values[mask], servers, minutes) for mask in kinds]
    return np.stack(tables, axis=2)


def pooled_bins(seen: Observed, cell: Ints, cells: int) -> Floats:
    """Answers by bin of `FEW` for groups of pairs: `cell` by pair (-1: none), shape (cells, bins)."""
    pair, binned, values = seen.binned
    inside = cell[pair] >= 0
    return _table(cell[pair[inside]], binned[inside], values[inside], cells, len(FEW) + 1)


POD_KINDS = ("tor", "pod", "rack")
"""Kinds of a pod, by rank: where a server has several containers the first of these kinds counts."""

TIER = "spine_tier"


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """`pod` by server, `podset` by pod and `dc` by podset are places in `pods`, `podsets` and `dcs`, or -1."""

    pods: tuple[str, ...]
    podsets: tuple[str, ...]
    dcs: tuple[str, ...]
    pod: Ints
    podset: Ints
    dc: Ints
    spines: tuple[tuple[str, ...], ...]
    """By data centre, and last for podsets in none that is known: what its podsets have in common above them, sorted;
    one name at least.
    """

    def podset_of(self) -> Ints:
        """By server, -1 where unknown."""
        return _through(self.pod, self.podset)

    def dc_of(self) -> Ints:
        """By server, -1 where unknown."""
        return _through(self.podset_of(), self.dc)


def _through(first: Ints, second: Ints) -> Ints:
    return np.where(first >= 0, np.append(second, -1)[first], -1)


def places(window: Window, servers: Sequence[str]) -> Places:
    """The places of `servers`; all unknown where the window has no topology."""
    parents = _sets(window.sums.get("places"), "parents")
    needs = _sets(window.sums.get("needs"), "depends_on")
    pod, pods = _above(servers, parents, POD_KINDS)
    podset, podsets = _above(pods, parents, ())
    dc, dcs = _above(podsets, parents, ())
    called = [*(name.partition("/")[2] for name in dcs), "unnamed"]
    spines = tuple(
        _common(
            [name for name, place in zip(podsets, dc, strict=True) if place == one],
            needs,
            f"{TIER}/{name_of}",
        )
        for one, name_of in zip([*range(len(dcs)), -1], called, strict=True)
    )
    return Places(pods, podsets, dcs, pod, podset, dc, spines)


def _sets(sums: Sums | None, key: str) -> dict[str, tuple[str, ...]]:
    if sums is None:
        return {}
    found = sums.keys[key]
    assert isinstance(found, Paths)
    return {name: found[row] for row, name in enumerate(texts(sums, "component"))}


def _above(
    names: Sequence[str], parents: Mapping[str, tuple[str, ...]], kinds: Sequence[str]
) -> tuple[Ints, tuple[str, ...]]:
    """The container of each name and the containers, sorted. Of several, the one of the first kind of `kinds`; a name
    with two of that kind, or none, is nowhere.
    """
    chosen = [_chosen(parents.get(name, ()), kinds) for name in names]
    above = tuple(sorted({one for one in chosen if one is not None}))
    number = {name: i for i, name in enumerate(above)}
    return np.array([-1 if one is None else number[one] for one in chosen], dtype=np.int64), above


def _chosen(found: tuple[str, ...], kinds: Sequence[str]) -> str | None:
    for kind in kinds if len(found) > 1 else ():
        of_kind = [name for name in found if name.startswith(f"{kind}/")]
        if of_kind:
            return of_kind[0] if len(of_kind) == 1 else None
    return found[0] if len(found) == 1 else None


def _common(podsets: Sequence[str], needs: Mapping[str, tuple[str, ...]], otherwise: str) -> tuple[str, ...]:
    counted = Counter(name for podset in podsets for name in needs.get(podset, ()))
    return tuple(sorted(name for name, times in counted.items() if times == len(podsets))) or (otherwise,)


DROPPED = np.array([FEW.index(SYN[0]) + 1, FEW.index(SYN[2]) + 1])
"""The bins of `FEW` that say that a packet was dropped."""

FINE_DROPPED = np.array([i + 1 for i, edge in enumerate(FINE) if edge in (SYN[0], SYN[2])])
"""The same of `FINE`."""


def limit_bin(microseconds: float) -> int:
    """The first bin of `FEW` that lies above a limit, which is taken to the nearest edge (by ratio)."""
    return int(np.argmin(np.abs(np.log(FEW) - np.log(max(microseconds, 1.0))))) + 1


def percentile(counts: np.ndarray[tuple[int, ...], np.dtype[np.float64]], share: float) -> float | None:
    """The time (microseconds) below which a share of the answers lie, from counts by bin of `FINE` or `FEW`.

    Interpolated within the bin on a logarithmic scale; None without answers. The ends are open: below the first edge it
    is half of it, above the last it is that edge.
    """
    edges = FINE if len(counts) == len(FINE) + 1 else FEW
    total = float(counts.sum())
    if total <= 0:
        return None
    reached = np.cumsum(counts)
    at = int(np.searchsorted(reached, share * total))
    if at >= len(edges):
        return edges[-1]
    low = edges[at - 1] if at else edges[0] / 2
    inside = (share * total - (reached[at] - counts[at])) / counts[at]
    return float(low * (edges[at] / low) ** inside)


SLOW_SHARE = 0.01
"""P99 is above a time if more than so many answers are."""
TRIMMED = 4
"""A group has to be above its limit without the worst one in so many of its parts, and of its peers,"""
STILL = 0.05
"""at this level."""


@dataclass(frozen=True, slots=True)
class Measure:
    """Compared measure: `dropped` (an answer after about 3 or 9 s) or `slow` (an answer above the P99 limit)."""

    name: str
    limit: float


def measures(drop_limit: float) -> tuple[Measure, Measure]:
    return Measure("dropped", drop_limit), Measure("slow", SLOW_SHARE)


def totals(place: Ints, values: Floats, size: int) -> Floats:
    """The sum of `values` at each place, shape (size,)."""
    return np.bincount(place, values, minlength=size).astype(np.float64, copy=False)


def tail(hits: Floats, tries: Floats, limit: float | Floats) -> Floats:
    """The probability of so many hits or more if the true share is the limit; 1 without tries."""
    return at_least(hits, tries, limit)


def p_of(hits: Floats, tries: Floats, limit: float) -> float:
    """The tail of a table (rows are parts, columns peers) if it is not above the limit by its worst parts and peers
    alone, else 1. Without them the evidence is weaker and the share a little too low, so there 5 % are enough.
    """
    rest, among = without_worst(hits, tries)
    if float(tail(rest.sum(), among.sum(), limit)) > STILL:
        return 1.0
    return float(tail(hits.sum(), tries.sum(), limit))


def without_worst(hits: Floats, tries: Floats) -> tuple[Floats, Floats]:
    """The table without the quarter of its rows, then of its columns, of the highest share: one at least, of two."""
    for axis in (1, 0):
        lost, seen = hits.sum(axis=axis), tries.sum(axis=axis)
        there = np.flatnonzero(seen > 0)
        if len(there) < 2:
            continue
        share = lost[there] / seen[there]
        worst = there[np.lexsort((-lost[there], -share))[: max(1, len(there) // TRIMMED)]]
        rest = np.setdiff1d(there, worst)
        hits, tries = (one[rest] if axis == 1 else one[:, rest] for one in (hits, tries))
    return hits, tries
