"""Switches that drop all packets of some addresses (type 1) or of some addresses and ports (type 2). Pure numpy.

The symptom (Guo et al., Pingmesh, SIGCOMM 2015, section 5.1): a server cannot reach some peers and reaches others
under the same ToR, and all of them live. Here a pair has the symptom if it loses more, beyond chance, than both its
ends usually do, so that a server that dies within the window gives none. A ToR's score is the share of its servers
with the symptom. The far end of a bad pair is as suspicious as the near one, so the ToR with the largest share of bad
pairs is taken first and its pairs are explained by it before the next.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.pingmesh.observed import LAST_MINUTES, Observed, tail, totals
from analyzers.builtin.pingmesh.patterns import Blamed

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

USUAL = 1e-3
"""Loss that a healthy pair may have at most: three packets lost in a row, or a server that is late."""
LEVEL = 1e-5
"""Of the test of a pair. One false pair in a hundred thousand makes no ToR's score."""
MANY = 0.8
"""Share of a podset's ToRs that makes it the layer above them."""
WHOLE = 0.75
"""A pair of type 1 loses so much of what it should send in the last minutes."""
WHOLLY = 0.95
"""Without retransmissions in the window only pairs count that lose so much."""
LEAST_SERVERS = 3
AT_RANDOM = 0.5
"""Packets dropped at random come through the second or third time, about three for each probe that is lost: more than
so many for each, and it is no black hole."""


@dataclass(frozen=True, slots=True, eq=False)
class Symptoms:
    """The pairs that were judged (`pair`), which are bad, and what is counted by pod, shape (pods,)."""

    pair: Ints
    bad: Mask
    servers: Ints
    struck: Ints
    score: Floats


@dataclass(frozen=True, slots=True, eq=False)
class BlackHole:
    """`blamed.kind` is `black_hole` (a ToR), `black_hole_leaf` (a podset) or `black_hole_spine`; `servers` are those
    with the symptom of `among`; `whole` is the share of its bad pairs that lose everything.
    """

    blamed: Blamed
    servers: int
    among: int
    whole: float

    @property
    def type(self) -> int:
        return 1 if self.whole >= 0.5 else 2

    @property
    def score(self) -> float:
        return self.servers / max(1, self.among)


def symptoms(seen: Observed, open_pairs: Mask, min_tries: int) -> Symptoms:
    pod = seen.places.pod
    alive = ~seen.silent()
    answered = np.bincount(seen.src, seen.answers, minlength=len(seen.servers))
    answered += np.bincount(seen.dst, seen.sent - seen.lost, minlength=len(seen.servers))
    alive &= answered > 0
    judged = np.flatnonzero(
        open_pairs
        & (seen.sent >= min_tries)
        & alive[seen.src]
        & alive[seen.dst]
        & (pod[seen.src] >= 0)
        & (pod[seen.dst] >= 0)
    )
    src, dst, sent, lost = seen.src[judged], seen.dst[judged], seen.sent[judged], seen.lost[judged]
    usual = np.maximum(_usual(seen, src, dst, lost / np.maximum(sent, 1.0)), USUAL)
    bad = np.zeros(len(judged), dtype=bool)
    some = lost > 1
    bad[some] = tail(lost[some], sent[some], usual[some]) <= LEVEL
    if (
        not seen.dropped.any()
    ):  # nobody repeats a packet, or nobody timed it: a loss at random looks like type 2
        bad &= lost >= WHOLLY * sent
    pods = len(seen.places.pods)
    servers, struck = _servers_of(src, dst, pod, pods), _servers_of(src[bad], dst[bad], pod, pods)
    return Symptoms(judged, bad, servers, struck, struck / np.maximum(servers, 1))


def find(seen: Observed, found: Symptoms, least_score: float, alpha: float) -> list[BlackHole]:
    """ToRs, or podsets all of whose ToRs are bad, or the layer above them all; the clearest first."""
    pod = seen.places.pod
    bad = found.pair[found.bad]
    if not len(bad):
        return []
    pods = len(seen.places.pods)
    near, far = pod[seen.src[found.pair]], pod[seen.dst[found.pair]]
    judged = _touching(near, far, pods)
    chosen = _explained(seen, bad, judged, found.servers, least_score)
    if not chosen:
        return []
    groups = _layers(seen, chosen, found)
    outside = ~(np.isin(near, chosen) | np.isin(far, chosen))
    background = (float((found.bad & outside).sum()) + 1) / (float(outside.sum()) + 2)
    holes = []
    for kind, place, mine in groups:
        one = _black_hole(seen, found, kind, place, mine, background)
        if one.blamed.adjusted <= alpha:
            holes.append(one)
    return sorted(holes, key=lambda one: (one.blamed.p, -one.score, -one.blamed.hits))


def _explained(seen: Observed, bad: Ints, judged: Floats, servers: Ints, least_score: float) -> list[int]:
    """ToRs in the order in which they explain the bad pairs that are left."""
    pod, pods = seen.places.pod, len(judged)
    chosen: list[int] = []
    while len(bad):
        src, dst = seen.src[bad], seen.dst[bad]
        touching = _touching(pod[src], pod[dst], pods)
        struck = _servers_of(src, dst, pod, pods)
        share = touching / np.maximum(judged, 1.0)
        fits = (struck >= np.maximum(LEAST_SERVERS, least_score * servers)) & (touching > 0)
        fits &= ~_at_random(seen, bad, pod, pods)
        if not fits.any():
            break
        score = struck / np.maximum(servers, 1)
        best = int(np.lexsort((-touching, -score, -share * fits))[0])
        chosen.append(best)
        bad = bad[(pod[src] != best) & (pod[dst] != best)]
    return chosen


def _at_random(seen: Observed, bad: Ints, pod: Ints, pods: int) -> Mask:
    near, far = pod[seen.src[bad]], pod[seen.dst[bad]]
    dropped = np.bincount(near, seen.dropped[bad], minlength=pods)
    dropped += np.bincount(far, seen.dropped[bad], minlength=pods)
    lost = np.bincount(near, seen.lost[bad], minlength=pods) + np.bincount(
        far, seen.lost[bad], minlength=pods
    )
    found: Mask = dropped > AT_RANDOM * lost
    return found


def _layers(seen: Observed, chosen: list[int], found: Symptoms) -> list[tuple[str, int, Ints]]:
    """(kind, place, pods): ToRs of one podset together if they are nearly all of it, and podsets of a data centre
    together if they are all of it, or all but one, and pairs within podsets are well.
    """
    where = seen.places
    there = found.servers > 0
    groups: list[tuple[str, int, Ints]] = []
    left = list(chosen)
    whole: dict[int, Ints] = {}
    for podset in range(len(where.podsets)):
        all_of_it = np.flatnonzero((where.podset == podset) & there)
        mine = [one for one in chosen if where.podset[one] == podset]
        if len(all_of_it) > 1 and len(mine) >= max(2.0, MANY * len(all_of_it)):
            whole[podset] = all_of_it
            left = [one for one in left if one not in mine]
    for dc in range(len(where.dcs)):
        podsets = [one for one in range(len(where.podsets)) if where.dc[one] == dc]
        mine = [one for one in podsets if one in whole]
        if len(podsets) > 2 and len(mine) >= len(podsets) - 1 and not _within(seen, found, dc):
            pods = np.flatnonzero(np.isin(where.podset, podsets) & there)
            groups.append(("black_hole_spine", dc, pods))
            whole = {one: all_of_it for one, all_of_it in whole.items() if one not in mine}
            left = [one for one in left if where.podset[one] not in podsets]
    groups += [("black_hole_leaf", podset, all_of_it) for podset, all_of_it in whole.items()]
    return groups + [("black_hole", one, np.array([one])) for one in left]


def _within(seen: Observed, found: Symptoms, dc: int) -> bool:
    """Whether pairs within a podset are bad about as often as those between podsets."""
    podset, src, dst = seen.places.podset_of(), seen.src[found.pair], seen.dst[found.pair]
    pod = seen.places.pod
    mine = (seen.places.dc_of()[src] == dc) & (pod[src] != pod[dst])
    inside, between = mine & (podset[src] == podset[dst]), mine & (podset[src] != podset[dst])
    shares = [float(found.bad[kind].sum()) / max(1, int(kind.sum())) for kind in (inside, between)]
    return shares[0] > 0.2 * shares[1]


def _black_hole(
    seen: Observed, found: Symptoms, kind: str, place: int, pods: Ints, background: float
) -> BlackHole:
    pod = seen.places.pod
    near, far = pod[seen.src[found.pair]], pod[seen.dst[found.pair]]
    touched = np.isin(near, pods) | np.isin(far, pods)
    bad = found.pair[touched & found.bad]
    tries, hits = float(touched.sum()), float(len(bad))
    p = float(tail(np.array(hits), np.array(tries), background))
    members = np.flatnonzero(np.isin(pod, pods))
    struck = np.isin(members, np.concatenate([seen.src[bad], seen.dst[bad]]))
    whole = float(_now_whole(seen, bad).mean()) if len(bad) else 0.0
    blamed = Blamed(kind, place, "black_hole", hits, tries, p, float(len(found.servers)), members)
    return BlackHole(blamed, int(struck.sum()), int(found.servers[pods].sum()), whole)


def _now_whole(seen: Observed, bad: Ints) -> Mask:
    """Pairs of `bad` that still lose nearly everything in the last minutes of the window."""
    last = min(LAST_MINUTES, seen.minutes)
    pair, minute, lost = seen.lost_at
    late = minute >= seen.minutes - last
    recent = totals(pair[late], lost[late], seen.pairs)[bad]
    found: Mask = recent >= WHOLE * seen.sent[bad] * last / seen.minutes
    return found


def _touching(near: Ints, far: Ints, pods: int) -> Floats:
    """Pairs by pod, those within a pod once."""
    counted = np.bincount(near, minlength=pods) + np.bincount(far[far != near], minlength=pods)
    return counted.astype(np.float64)


def _servers_of(src: Ints, dst: Ints, pod: Ints, pods: int) -> Ints:
    found = np.unique(np.concatenate([src, dst]))
    return np.bincount(pod[found], minlength=pods)


def _usual(seen: Observed, src: Ints, dst: Ints, share: Floats) -> Floats:
    """Usual loss of the two ends of each pair: the median over their peers in the same pod, in other pods of the
    podset, and elsewhere, whichever is largest, because neighbours that restart together lose nothing to each other.
    """
    where, size = seen.places, len(seen.servers)
    pod, podset = where.pod, where.podset_of()
    far = np.where(pod[src] == pod[dst], 0, np.where(podset[src] == podset[dst], 1, 2))
    most = np.zeros((2, size))
    for relation in range(3):
        same = far == relation
        for side, end in enumerate((src, dst)):
            most[side] = np.maximum(most[side], _medians(end[same], share[same], size))
    usual: Floats = np.maximum(most[0][src], most[1][dst])
    return usual


def _medians(group: Ints, values: Floats, groups: int) -> Floats:
    """The lower median of each group's values, 0 for empty groups."""
    order = np.lexsort((values, group))
    counted = np.bincount(group, minlength=groups)
    first = np.cumsum(counted) - counted
    at = np.minimum(first + np.maximum(counted - 1, 0) // 2, max(0, len(values) - 1))
    if not len(values):
        return np.zeros(groups)
    return np.where(counted > 0, values[order][at], 0.0)
