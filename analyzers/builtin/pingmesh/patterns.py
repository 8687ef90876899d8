"""Who explains what is slow, dropped or silent: the Spine, podsets, pods, servers, the largest first. Pure numpy.

What a larger one explains is taken out before a smaller one is looked at, so that a fault has one name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.pingmesh.blocks import Blocks, Pattern, blocks, classify, pooled
from analyzers.builtin.pingmesh.limits import Measure, measures, p_of, tail, totals
from analyzers.builtin.pingmesh.observed import Observed

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
    heard = np.bincount(seen.dst, seen.sent, minlength=len(seen.servers)) > 0
    there = heard & (ground.pod >= 0)
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
    seen: Observed, kept: Mask, compared: tuple[Measure, ...]
) -> tuple[Ints, Floats, tuple[Floats, ...]]:
    """The podset of each pod, and tables of pods by pods: answers, and what is above the limit by measure."""
    mine = np.flatnonzero(kept)
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
    kept = near & found.open & (ground.pod[seen.src] != ground.pod[seen.dst])
    told = _crosses(
        seen, np.flatnonzero(kept), ground.pod, len(seen.places.pods), "pod_failure", compared, alpha
    )
    _add(found, told, compared, len(np.unique(ground.pod[seen.src[kept]])), "pods")
    inside = _member(seen, found)
    found.open &= ~(inside[seen.src] | inside[seen.dst])


def _servers(seen: Observed, found: Found, compared: tuple[Measure, ...], alpha: float) -> None:
    """Servers that are above a limit as source and as destination, without the worst of their peers."""
    kept, itself = np.flatnonzero(found.open), np.arange(len(seen.servers))
    told = _crosses(seen, kept, itself, len(itself), "server_failure", compared, alpha)
    _add(found, told, compared, len(np.unique(seen.src[kept])), "servers")


def _crosses(
    seen: Observed,
    kept: Ints,
    unit: Ints,
    units: int,
    kind: str,
    compared: tuple[Measure, ...],
    alpha: float,
) -> list[Blamed]:
    """Units (`unit` by server) whose row and column are above a limit, in the pairs `kept`."""
    src, dst = seen.src[kept], seen.dst[kept]
    ends = _End(src, unit[src], unit[dst], units), _End(dst, unit[dst], unit[src], units)
    tests = 4.0 * max(1, units)
    told: list[Blamed] = []
    for measure in compared:
        hits, tries = _hits(seen, measure)[kept], seen.answers[kept]
        clear = np.ones(units, dtype=bool)
        for end in ends:
            pooled = totals(end.own, hits, units), totals(end.own, tries, units)
            clear &= tail(pooled[0], pooled[1], measure.limit) <= alpha / tests
        for one in np.flatnonzero(clear).tolist():
            sides = [end.table(one, hits, tries) for end in ends]
            if min(side[0].shape[1] for side in sides) < LEAST_PEERS:
                continue
            p = max(p_of(*side, measure.limit) for side in sides)
            if p <= alpha / tests:
                struck, among = (float(sum(side[i].sum() for side in sides)) for i in (0, 1))
                members = np.flatnonzero(unit == one)
                told.append(Blamed(kind, one, measure.name, struck, among, p, tests, members))
    return told


class _End:
    """One end of the pairs: its server, the unit of that and that of the other end, all by pair; and the pairs of each
    unit, sorted once, because a network in trouble has thousands of candidates.
    """

    def __init__(self, server: Ints, own: Ints, peer: Ints, units: int) -> None:
        self.server, self.own, self.peer = server, own, peer
        self.order = np.argsort(own, kind="stable")
        self.ends = np.searchsorted(own[self.order], np.arange(units + 1))

    def table(self, unit: int, hits: Floats, tries: Floats) -> tuple[Floats, Floats]:
        """Two tables (the unit's servers by peers) of its pairs."""
        mine = self.order[self.ends[unit] : self.ends[unit + 1]]
        parts, row = np.unique(self.server[mine], return_inverse=True)
        peers, column = np.unique(self.peer[mine], return_inverse=True)
        code, shape = row * len(peers) + column, (len(parts), len(peers))
        size = len(parts) * len(peers)
        return totals(code, hits[mine], size).reshape(shape), totals(code, tries[mine], size).reshape(shape)


def _add(found: Found, told: list[Blamed], compared: tuple[Measure, ...], there: int, what: str) -> None:
    """One entry for each place: by the measure that is further above its limit. None, if they are a crowd of the
    `there` that were looked at.
    """
    limits = {measure.name: measure.limit for measure in compared}
    best: dict[int, Blamed] = {}
    for one in told:
        other = best.get(one.place)
        if other is None or one.excess(limits[one.measure]) > other.excess(limits[other.measure]):
            best[one.place] = one
    if len(best) > CROWD * there:
        found.crowd = what
        return
    found.blamed += sorted(best.values(), key=lambda one: (one.p, -one.excess(limits[one.measure])))
