"""Patterns of slow, dropped or silent probes: the Spine, podsets, pods, servers, the largest first. Pure numpy.

What a larger one explains is taken out before a smaller one is looked at, so that a fault has one name.

The published patterns (Guo et al., Pingmesh, SIGCOMM 2015, section 4.3) are read off a heat map of pods by a person:
a red cross of a podset's width is a fault inside that podset, red with green squares on the diagonal is the Spine.
Here a block (all pods of one podset to all pods of another) is red if it is above a limit by more than chance without
the worst quarter of its pods on either side, so that a single bad rack does not colour a podset. Where blocks have
too few probes to be red one by one, the same two patterns are looked for in what all blocks of a pattern have
together (`pooled`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.pingmesh.observed import STILL, Measure, Observed, measures, p_of, tail, totals

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

DOWN = 0.9
"""Share of a pod's or a podset's servers that have to be silent,"""
MOST = 0.5
"""and share of a podset's pods of which so many are."""
CROWD = 0.5
"""More than so many pods, or servers, above a limit, and it is what they share: none of them is named."""
LEAST_PEERS = 3
"""Fewer peers, and it cannot be told which end is at fault."""


@dataclass(frozen=True, slots=True, eq=False)
class Blamed:
    """`kind` is `podset_down`, `pod_down`, `podset_failure`, `pod_failure`, `spine` or `server_failure`; `measure` is
    `dropped`, `slow` or `silent`, with `hits` of `tries`. `p` is that of one test among
    `tests`. `members` are its servers (of the Spine: all of its data centre) and `place` is the number of the pod,
    podset, data centre or server.
    """

    kind: str
    place: int
    measure: str
    hits: float
    tries: float
    p: float
    tests: float
    members: Ints

    @property
    def adjusted(self) -> float:
        """`p` times the number of tests of its kind (Bonferroni)."""
        return min(1.0, self.p * self.tests)

    def excess(self, limit: float) -> float:
        return self.hits / max(self.tries, 1.0) / limit


@dataclass(slots=True, eq=False)
class Found:
    """`charted` holds the blocks and the pattern of each data centre by its number; `open` marks the pairs that nothing
    explains yet, shape (pairs,); `crowd` says of what too many are above a limit (`pods`, `servers`), if of anything.
    """

    blamed: list[Blamed] = field(default_factory=list)
    charted: dict[int, tuple[Blocks, Pattern]] = field(default_factory=dict)
    crowd: str | None = None
    open: Mask = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))

    @property
    def pattern(self) -> str:
        """One word for the window: what was found, the largest first."""
        kinds = [one.kind for one in self.blamed]
        if kinds:
            return kinds[0]
        unclear = any(pattern.name == "unclassified" for _, pattern in self.charted.values())
        return "unclassified" if unclear else "none"


@dataclass(frozen=True, slots=True, eq=False)
class _Ground:
    """By server: pod, podset, data centre; unnamed podsets and data centres are one each, with the highest number."""

    pod: Ints
    podset: Ints
    dc: Ints


def find(seen: Observed, drop_limit: float, alpha: float) -> Found:
    where = seen.places
    ground = _Ground(
        where.pod,
        np.where(where.pod >= 0, np.where(where.podset_of() < 0, len(where.podsets), where.podset_of()), -1),
        np.where(where.dc_of() < 0, len(where.dcs), where.dc_of()),
    )
    compared = measures(drop_limit)
    found = Found(open=seen.answers >= 0)
    _down(seen, ground, found, alpha)
    placed = (ground.pod[seen.src] >= 0) & (ground.pod[seen.dst] >= 0)
    near = placed & (ground.dc[seen.src] == ground.dc[seen.dst])
    for dc in np.unique(ground.dc[seen.src[near]]).tolist():
        _podsets(seen, ground, found, int(dc), near, compared, alpha)
    _pods(seen, ground, found, near, compared, alpha)
    _servers(seen, found, compared, alpha)
    return found


def _down(seen: Observed, ground: _Ground, found: Found, alpha: float) -> None:
    """Podsets, then pods, nearly all of whose servers that are probed are silent."""
    silent = seen.silent()
    receiving = np.bincount(seen.dst, seen.sent, minlength=len(seen.servers)) > 0
    there = receiving & (ground.pod >= 0)
    if not there.any() or silent[there].all():
        return
    pods = len(seen.places.pods)
    among = np.bincount(ground.pod[there], minlength=pods)
    gone = np.bincount(ground.pod[there & silent], minlength=pods)
    down = (gone >= DOWN * among) & (among >= 2)
    background = _share(silent & there, there, np.isin(ground.pod, np.flatnonzero(down)))
    podset = np.where(seen.places.podset < 0, len(seen.places.podsets), seen.places.podset)
    taken, tests = np.zeros(pods, dtype=bool), float(pods)
    for one in range(len(seen.places.podsets)):
        mine = np.flatnonzero((podset == one) & (among > 0))
        if (
            len(mine) < 2
            or gone[mine].sum() < DOWN * among[mine].sum()
            or down[mine].sum() < MOST * len(mine)
        ):
            continue  # a server that topology puts into the wrong pod keeps that pod from being down, not the podset
        taken[mine] = True
        members = np.flatnonzero(ground.podset == one)
        _down_pattern(
            found, "podset_down", one, gone[mine].sum(), among[mine].sum(), background, members, tests, alpha
        )
    for one in np.flatnonzero(down & ~taken).tolist():
        members = np.flatnonzero(ground.pod == one)
        _down_pattern(found, "pod_down", one, gone[one], among[one], background, members, tests, alpha)
    lost = _member(seen, found)
    found.open &= ~(lost[seen.src] | lost[seen.dst])


def _down_pattern(
    found: Found,
    kind: str,
    place: int,
    gone: float,
    among: float,
    background: float,
    members: Ints,
    tests: float,
    alpha: float,
) -> None:
    p = float(tail(np.array(gone), np.array(among), background))
    one = Blamed(kind, place, "silent", float(gone), float(among), p, tests, members)
    if one.adjusted <= alpha:
        found.blamed.append(one)


def _share(hits: Mask, among: Mask, without: Mask) -> float:
    return (float((hits & ~without).sum()) + 1) / (float((among & ~without).sum()) + 2)


def _member(seen: Observed, found: Found) -> Mask:
    """Servers of what is blamed already, but for the Spine."""
    inside = np.zeros(len(seen.servers), dtype=bool)
    for one in found.blamed:
        if one.kind != "spine":
            inside[one.members] = True
    return inside


def _podsets(
    seen: Observed,
    ground: _Ground,
    found: Found,
    dc: int,
    near: Mask,
    compared: tuple[Measure, ...],
    alpha: float,
) -> None:
    """The pattern of one data centre, and what it blames."""
    here = near & (ground.dc[seen.src] == dc)
    tests = 2.0 * max(1, len(np.unique(ground.podset[seen.src[here]]))) ** 2
    tables = _tables(seen, found.open & here, compared)
    chart = blocks(*tables, compared, alpha / tests)
    pattern, unnamed = classify(chart), len(seen.places.podsets)
    together = pooled(*tables, compared, alpha / tests) if pattern.name in ("none", "unclassified") else None
    if together is not None:
        pattern = together.pattern
    if pattern.name == "podset_failure" and unnamed in chart.podsets[list(pattern.members)]:
        pattern = Pattern("unclassified")
    found.charted[dc] = chart, pattern
    row, column = ground.podset[seen.src], ground.podset[seen.dst]
    if pattern.name == "unclassified":  # whatever it is, it is larger than a pod
        red = np.zeros((unnamed + 1, unnamed + 1), dtype=bool)
        red[np.ix_(chart.podsets, chart.podsets)] = chart.red
        found.open &= ~(here & red[row, column])
    for one in _blocks_of(pattern, chart):
        place = dc if pattern.name == "spine" else int(chart.podsets[one])
        inside = np.zeros_like(chart.red)
        if pattern.name == "spine":
            members, touched = np.flatnonzero(ground.dc == dc), here & (row != column)
            inside |= ~np.eye(len(chart.podsets), dtype=bool)
        else:
            members, touched = (
                np.flatnonzero(ground.podset == place),
                here & ((row == place) | (column == place)),
            )
            inside[one, :] = inside[:, one] = True
        inside &= chart.red
        if together is not None:
            measure, p = compared[together.measure], together.p
        else:
            measure = compared[int(np.bincount(chart.measure[inside]).argmax())]
            p = float(chart.p[inside].max())
        apart = touched & found.open & (ground.pod[seen.src] != ground.pod[seen.dst])
        tries, hits = float(seen.answers[apart].sum()), float(_hits(seen, measure)[apart].sum())
        found.blamed.append(Blamed(pattern.name, place, measure.name, hits, tries, p, tests, members))
        found.open &= ~touched


def _tables(
    seen: Observed, mask: Mask, compared: tuple[Measure, ...]
) -> tuple[Ints, Floats, tuple[Floats, ...]]:
    """The podset of each pod, and tables of pods by pods: answers, and what is above the limit by measure."""
    mine = np.flatnonzero(mask)
    pod = seen.places.pod
    pods, of = np.unique(np.concatenate([pod[seen.src[mine]], pod[seen.dst[mine]]]), return_inverse=True)
    size = len(pods)
    code = of[: len(mine)] * size + of[len(mine) :]
    answers, *hits = (
        totals(code, values[mine], size * size).reshape(size, size)
        for values in (seen.answers, *(_hits(seen, measure) for measure in compared))
    )
    podset = np.where(seen.places.podset < 0, len(seen.places.podsets), seen.places.podset)
    return podset[pods], answers, tuple(hits)


def _blocks_of(pattern: Pattern, chart: Blocks) -> Iterator[int]:
    """The podsets to blame, the clearest first; for the Spine one entry."""
    if pattern.name == "spine":
        yield 0
    elif pattern.name == "podset_failure":
        yield from sorted(pattern.members, key=lambda one: float(chart.p[one, :].max()))


def _hits(seen: Observed, measure: Measure) -> Floats:
    return seen.dropped if measure.name == "dropped" else seen.slow


def _pods(
    seen: Observed,
    ground: _Ground,
    found: Found,
    near: Mask,
    compared: tuple[Measure, ...],
    alpha: float,
) -> None:
    """Pods that are above a limit as source and as destination, without the worst of their servers and peers."""
    across = near & found.open & (ground.pod[seen.src] != ground.pod[seen.dst])
    blamed = _crosses(
        seen, np.flatnonzero(across), ground.pod, len(seen.places.pods), "pod_failure", compared, alpha
    )
    _add(found, blamed, compared, len(np.unique(ground.pod[seen.src[across]])), "pods")
    inside = _member(seen, found)
    found.open &= ~(inside[seen.src] | inside[seen.dst])


def _servers(seen: Observed, found: Found, compared: tuple[Measure, ...], alpha: float) -> None:
    """Servers that are above a limit as source and as destination, without the worst of their peers."""
    pairs, itself = np.flatnonzero(found.open), np.arange(len(seen.servers))
    blamed = _crosses(seen, pairs, itself, len(itself), "server_failure", compared, alpha)
    _add(found, blamed, compared, len(np.unique(seen.src[pairs])), "servers")


def _crosses(
    seen: Observed,
    pairs: Ints,
    unit: Ints,
    units: int,
    kind: str,
    compared: tuple[Measure, ...],
    alpha: float,
) -> list[Blamed]:
    """Units (`unit` by server) whose row and column are above a limit, in the pairs `pairs`, not by the worst of their
    servers and peers alone. These are taken off row and column together: where a side has few hits, whichever cells
    they fell into by chance are its worst, and hardly any are left.
    """
    src, dst = seen.src[pairs], seen.dst[pairs]
    ends = _End(src, unit[src], unit[dst], units), _End(dst, unit[dst], unit[src], units)
    servers = np.concatenate([src, dst])
    both = _End(servers, unit[servers], unit[np.concatenate([dst, src])], units)
    tests = 4.0 * max(1, units)
    blamed: list[Blamed] = []
    for measure in compared:
        hits, tries = _hits(seen, measure)[pairs], seen.answers[pairs]
        p = np.zeros(units)
        for end in ends:
            pooled = totals(end.own, hits, units), totals(end.own, tries, units)
            p = np.maximum(p, tail(pooled[0], pooled[1], measure.limit))
        for one in np.flatnonzero(p <= alpha / tests).tolist():
            if min(end.peers(one) for end in ends) < LEAST_PEERS:
                continue
            struck, among = both.table(one, np.tile(hits, 2), np.tile(tries, 2))
            if p_of(struck, among, measure.limit) <= alpha / tests:
                sums, members = (float(struck.sum()), float(among.sum())), np.flatnonzero(unit == one)
                blamed.append(Blamed(kind, one, measure.name, *sums, float(p[one]), tests, members))
    return blamed


class _End:
    """One end of the pairs: its server, the unit of that and that of the other end, all by pair; and the pairs of each
    unit, sorted once, because a network in trouble has thousands of candidates.
    """

    def __init__(self, server: Ints, own: Ints, peer: Ints, units: int) -> None:
        self.server, self.own, self.peer = server, own, peer
        self.order = np.argsort(own, kind="stable")
        self.ends = np.searchsorted(own[self.order], np.arange(units + 1))

    def _pairs(self, unit: int) -> Ints:
        return self.order[self.ends[unit] : self.ends[unit + 1]]

    def peers(self, unit: int) -> int:
        """The number of units at the other end of its pairs."""
        return len(np.unique(self.peer[self._pairs(unit)]))

    def table(self, unit: int, hits: Floats, tries: Floats) -> tuple[Floats, Floats]:
        """Two tables (the unit's servers by peers) of its pairs."""
        mine = self._pairs(unit)
        parts, row = np.unique(self.server[mine], return_inverse=True)
        peers, column = np.unique(self.peer[mine], return_inverse=True)
        code, shape = row * len(peers) + column, (len(parts), len(peers))
        size = len(parts) * len(peers)
        return totals(code, hits[mine], size).reshape(shape), totals(code, tries[mine], size).reshape(shape)


def _add(found: Found, blamed: list[Blamed], compared: tuple[Measure, ...], there: int, what: str) -> None:
    """One entry for each place: by the measure that is further above its limit. None, if they are a crowd of the
    `there` that were looked at.
    """
    limits = {measure.name: measure.limit for measure in compared}
    best: dict[int, Blamed] = {}
    for one in blamed:
        other = best.get(one.place)
        if other is None or one.excess(limits[one.measure]) > other.excess(limits[other.measure]):
            best[one.place] = one
    if len(best) > CROWD * there:
        found.crowd = what
        return
    found.blamed += sorted(best.values(), key=lambda one: (one.p, -one.excess(limits[one.measure])))


CROSS, REST = 0.8, 0.1
"""Shares of red blocks that make a cross, and that may be red elsewhere."""
OPEN, DIAGONAL = 0.8, 0.2
"""Shares of red blocks off and on the diagonal that make the Spine."""


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """`tries`, `p` and `red` have shape (podsets, podsets), the podsets being those of one data centre. `p` is the
    least of its measures', `measure` the place of the one furthest above its limit; answers within a pod do not count.
    """

    podsets: Ints
    tries: Floats
    p: Floats
    measure: Ints
    red: Mask

    @property
    def seen(self) -> Mask:
        found: Mask = self.tries > 0
        return found


@dataclass(frozen=True, slots=True)
class Pattern:
    """`name` is `none`, `podset_failure`, `spine` or `unclassified`; `members` are places in `Blocks.podsets`."""

    name: str
    members: tuple[int, ...] = ()


def blocks(
    podset: Ints, tries: Floats, hits: tuple[Floats, ...], measures: tuple[Measure, ...], level: float
) -> Blocks:
    """From tables of pods by pods (shape (pods, pods)) of one data centre, the podset of each pod given."""
    podsets, of = np.unique(podset, return_inverse=True)
    size = len(podsets)
    apart = ~np.eye(len(podset), dtype=bool)
    code = (of[:, None] * size + of[None, :])[apart]
    total = totals(code, tries[apart], size * size)
    p, excess = np.ones((2, len(measures), size * size))
    for number, (measure, table) in enumerate(zip(measures, hits, strict=True)):
        struck = totals(code, table[apart], size * size)
        pooled = tail(struck, total, measure.limit)
        excess[number] = np.where(pooled <= level, struck / np.maximum(total, 1.0) / measure.limit, 0.0)
        for block in np.flatnonzero(pooled <= level).tolist():
            rows, columns = np.flatnonzero(of == block // size), np.flatnonzero(of == block % size)
            inside = np.ix_(rows, columns)
            outside = apart[inside]
            p[number, block] = p_of(table[inside] * outside, tries[inside] * outside, measure.limit)
    least = p.min(axis=0).reshape(size, size)
    return Blocks(
        podsets, total.reshape(size, size), least, excess.argmax(axis=0).reshape(size, size), least <= level
    )


def classify(found: Blocks) -> Pattern:
    """The pattern of the red blocks. With two podsets the Spine and the uplinks of one of them look alike."""
    red, seen = found.red & found.seen, found.seen
    if not red.any():
        return Pattern("none")
    size = len(found.podsets)
    diagonal = np.eye(size, dtype=bool)
    if (
        size > 1
        and _share_of_blocks(red, ~diagonal & seen) >= OPEN
        and _share_of_blocks(red, diagonal & seen) <= DIAGONAL
    ):
        return Pattern("spine", tuple(range(size)))
    crossed = [one for one in range(size) if _share_of_blocks(red, _cross(one, size) & seen) >= CROSS]
    outside = np.ones((size, size), dtype=bool)
    for one in crossed:
        outside &= ~_cross(one, size)
    if crossed and (size == 1 or (outside & seen).any()) and _share_of_blocks(red, outside & seen) <= REST:
        return Pattern("podset_failure", tuple(crossed))
    return Pattern("unclassified")


@dataclass(frozen=True, slots=True)
class Pooled:
    """A pattern of all its blocks together: `measure` is the place of the one that is above its limit, with `p`."""

    pattern: Pattern
    measure: int
    p: float


def pooled(
    podset: Ints, tries: Floats, hits: tuple[Floats, ...], measures: tuple[Measure, ...], level: float
) -> Pooled | None:
    """The surest pattern of one podset or of the Spine that fits all answers, from the tables that `blocks` takes.

    A podset fits if its pods to and from the others are above a limit without the worst quarter of either, so are the
    pods within it (or lose no less than that leads to expect: they are few), and the rest is not. The Spine fits if
    what is between podsets is, also without any one of them, and what is within podsets is not. None where nothing
    fits, or where two podsets do.
    """
    podsets, of = np.unique(podset, return_inverse=True)
    apart, size = ~np.eye(len(podset), dtype=bool), len(podsets)
    found = []
    for number, (measure, struck) in enumerate(zip(measures, hits, strict=True)):

        def p(mask: Mask, struck: Floats = struck, limit: float = measure.limit) -> float:
            return float(tail(struck[mask].sum(), tries[mask].sum(), limit))

        within = (of[:, None] == of[None, :]) & apart
        crosses = [((of == one)[:, None] | (of == one)[None, :]) & apart for one in range(size)]
        fits = [
            one
            for one, cross in enumerate(crosses)
            if p(cross) <= level
            and (p(within & cross) <= STILL or _as_much(within & cross, cross, tries, struck))
            and p(apart & ~cross) > STILL
            and _all_over(of == one, tries, struck, measure.limit)
        ]
        found += [Pooled(Pattern("podset_failure", (one,)), number, p(crosses[one])) for one in fits[:1]]
        if len(fits) > 1:
            return None
        between = apart & ~within
        without = [p(between & ~cross) for cross in crosses]
        if size > 2 and p(between) <= level and p(within) > STILL >= max(without):
            found.append(Pooled(Pattern("spine", tuple(range(size))), number, p(between)))
    names = {one.pattern for one in found}
    return min(found, key=lambda one: one.p) if len(names) == 1 else None


def _as_much(few: Mask, many: Mask, tries: Floats, hits: Floats) -> bool:
    """Whether so few hits or fewer are probable where the share is that of the others of `many`."""
    others = many & ~few
    good = 1 - hits[others].sum() / max(float(tries[others].sum()), 1.0)
    return float(tail(tries[few].sum() - hits[few].sum(), tries[few].sum(), good)) > STILL


def _all_over(mine: Mask, tries: Floats, hits: Floats, limit: float) -> bool:
    """Whether the pods of a podset are above the limit to and from all others, and not by the worst of them alone."""
    struck, sent = (one[np.ix_(mine, ~mine)] + one[np.ix_(~mine, mine)].T for one in (hits, tries))
    return bool(mine.sum() > 1) and p_of(struck, sent, limit) <= STILL


def _cross(one: int, size: int) -> Mask:
    marked = np.zeros((size, size), dtype=bool)
    marked[one, :] = marked[:, one] = True
    return marked


def _share_of_blocks(red: Mask, among: Mask) -> float:
    return float((red & among).sum()) / max(1, int(among.sum()))
