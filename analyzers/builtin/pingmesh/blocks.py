"""Answers between podsets, and the pattern they make (Guo et al., Pingmesh, SIGCOMM 2015, section 4.3). Pure numpy.

The published patterns are read off a heat map of pods by a person: a red cross of a podset's width is a fault inside
that podset, red with green squares on the diagonal is the Spine. Here a block (all pods of one podset to all pods of
another) is red if it is above a limit by more than chance without the worst quarter of its pods on either side, so that
a single bad rack does not colour a podset. Where blocks have too few probes to be red one by one, the same two
patterns are looked for in what all blocks of a pattern have together (`pooled`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.pingmesh.limits import STILL, Measure, p_of, tail, totals

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

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
            kept = apart[inside]
            p[number, block] = p_of(table[inside] * kept, tries[inside] * kept, measure.limit)
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
    if size > 1 and _share(red, ~diagonal & seen) >= OPEN and _share(red, diagonal & seen) <= DIAGONAL:
        return Pattern("spine", tuple(range(size)))
    crossed = [one for one in range(size) if _share(red, _cross(one, size) & seen) >= CROSS]
    outside = np.ones((size, size), dtype=bool)
    for one in crossed:
        outside &= ~_cross(one, size)
    if crossed and (size == 1 or (outside & seen).any()) and _share(red, outside & seen) <= REST:
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
    pods within it, and the rest is not. The Spine fits if what is between podsets is, also without any one of them, and
    what is within podsets is not. None where nothing fits, or where two podsets do.
    """
    podsets, of = np.unique(podset, return_inverse=True)
    apart, size = ~np.eye(len(podset), dtype=bool), len(podsets)
    found = []
    for number, (measure, struck) in enumerate(zip(measures, hits, strict=True)):

        def p(kept: Mask, struck: Floats = struck, limit: float = measure.limit) -> float:
            return float(tail(struck[kept].sum(), tries[kept].sum(), limit))

        within = (of[:, None] == of[None, :]) & apart
        crosses = [((of == one)[:, None] | (of == one)[None, :]) & apart for one in range(size)]
        fits = [
            one
            for one, cross in enumerate(crosses)
            if p(cross) <= level
            and p(within & cross) <= STILL < p(apart & ~cross)
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


def _all_over(mine: Mask, tries: Floats, hits: Floats, limit: float) -> bool:
    """Whether the pods of a podset are above the limit to and from all others, and not by the worst of them alone."""
    struck, sent = (one[np.ix_(mine, ~mine)] + one[np.ix_(~mine, mine)].T for one in (hits, tries))
    return bool(mine.sum() > 1) and p_of(struck, sent, limit) <= STILL


def _cross(one: int, size: int) -> Mask:
    marked = np.zeros((size, size), dtype=bool)
    marked[one, :] = marked[:, one] = True
    return marked


def _share(red: Mask, among: Mask) -> float:
    return float((red & among).sum()) / max(1, int(among.sum()))
