"""Boolean tomography: the simple methods that others are compared with.

A path is bad or good, and the question is which few components are behind the bad ones. Four answers, all
greedy covers of the bad paths that differ in whom they consider:

- `tomo`: nobody who lies on a good path (Dhamdhere et al., NetDiagnoser, CoNEXT 2007);
- `score`: those of whose paths a large share is bad (Kompella et al., NSDI 2005), at the share, from 1 down to
  a floor, whose answer is cheapest. Cheap is, in our reading, a small number of blamed components plus bad paths
  that nobody explains;
- `coverage`: everybody (maximum coverage; Kompella et al., INFOCOM 2007);
- `pll`: those of whose paths more than a share (0.6) is bad, taking the one that explains most lost packets first
  (Peng et al., deTector, ATC 2017).

None of them knows rates: a component that fails one attempt in fifty leaves many good paths behind and is
excused, and a few failures that happen to meet are an accusation. They are baselines.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.paths.incidence import Incidence, mixed, summed
from analyzers.contract import Evidence, table

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

METHODS = ("tomo", "score", "coverage", "pll")

HIT_RATIO = 0.6
"""Share of a component's paths that must be bad: deTector's choice, and the floor of our `score`."""

LEAST_PATHS = 3
"""Bad paths that a component must explain; fewer are what chance brings together."""

MOST = 100

_STEPS = 9  # hit ratios that `score` tries, evenly from 1 down to the floor


@dataclass(frozen=True, slots=True)
class Found:
    """A blamed component: of `paths` bad paths and `failures` on them that none before it explained. `others` are
    further components for which the method would have said the same.
    """

    component: int
    others: tuple[int, ...]
    paths: int
    failures: float


@dataclass(frozen=True, slots=True, eq=False)
class Bad:
    """The bad paths of an incidence. Entry k says that bad path `row[k]` holds component `column[k]`; `failures`
    has shape (bad paths,). `hit[c]` is the share of c's paths that are bad.
    """

    seen: Incidence
    row: Ints
    column: Ints
    failures: Floats
    hit: Floats


def bad_paths(seen: Incidence, threshold: float) -> Bad:
    """A path is bad when more than the share `threshold` of its attempts failed."""
    return bad_among(seen, seen.failures > threshold * seen.attempts)


def bad_among(seen: Incidence, bad: Mask) -> Bad:
    """The bad paths that a mask says, shape (paths,)."""
    number = np.cumsum(bad) - 1
    inside = bad[seen.row]
    row, column = number[seen.row[inside]], seen.column[inside]
    on = np.bincount(seen.column, minlength=seen.components)
    hit = np.bincount(column, minlength=seen.components) / np.maximum(on, 1)
    return Bad(seen, row, column, seen.failures[bad], hit)


def solve(method: str, bad: Bad, hit_ratio: float = HIT_RATIO, least: int = LEAST_PATHS) -> tuple[Found, ...]:
    """The answer of one of `METHODS`, in the order in which it found them."""
    if method == "tomo":
        return _cover(bad, bad.hit >= 1, np.ones(len(bad.failures)), least)
    if method == "coverage":
        return _cover(bad, bad.hit > 0, np.ones(len(bad.failures)), least)
    if method == "pll":
        return _cover(bad, bad.hit > hit_ratio, bad.failures, least)
    if method == "score":
        return _score(bad, hit_ratio, least)
    raise ValueError(f"no method {method!r}; there are {', '.join(METHODS)}")


def _score(bad: Bad, hit_ratio: float, least: int) -> tuple[Found, ...]:
    best: tuple[Found, ...] = ()
    cheapest = len(bad.failures)
    for ratio in np.linspace(1.0, hit_ratio, _STEPS):
        found = _cover(bad, bad.hit >= ratio - 1e-12, np.ones(len(bad.failures)), least)
        cost = len(found) + len(bad.failures) - sum(one.paths for one in found)
        if cost < cheapest:
            best, cheapest = found, cost
    return best


def _cover(bad: Bad, allowed: Mask, weight: Floats, least: int) -> tuple[Found, ...]:
    """Blame whoever covers most of the weight that is left, until nobody covers `least` bad paths."""
    count = bad.seen.components
    inside = allowed[bad.column]
    row, column = bad.row[inside], bad.column[inside]
    name = mixed(np.arange(len(bad.failures)))
    left = np.ones(len(bad.failures), dtype=bool)
    found: list[Found] = []
    while len(found) < MOST and len(row):
        paths = np.bincount(column, minlength=count)
        gain = np.where(paths >= least, np.bincount(column, weight[row], minlength=count), 0.0)
        if gain.max() <= 0:
            break
        lead, others = _best(bad, gain, summed(column, name[row], count))
        mine = row[column == lead]
        found.append(Found(lead, others, len(mine), float(bad.failures[mine].sum())))
        left[mine] = False
        kept = left[row]
        row, column = row[kept], column[kept]
    return tuple(found)


def _best(bad: Bad, gain: Floats, covered: NDArray[np.uint64]) -> tuple[int, tuple[int, ...]]:
    """The component with the largest gain, and those that cover exactly the same. Between components that cover
    as much of something else, the larger share of bad paths decides, then `Incidence.mark`.
    """
    equal = np.flatnonzero(gain == gain.max())
    order = np.lexsort((equal, bad.seen.mark[equal], -bad.hit[equal]))
    lead = int(equal[order[0]])
    same = equal[(covered[equal] == covered[lead]) & (equal != lead)]
    return lead, tuple(same.tolist())


def names_of(seen: Incidence, found: Found) -> tuple[str, ...]:
    """All names that a finding stands for, the leading one first, the others sorted."""
    others = {name for c in found.others for name in (seen.names[c], *seen.alike[c])}
    return (seen.names[found.component], *sorted(others | set(seen.alike[found.component])))


TITLE = "What simpler methods would have said"

_SPOKEN = {
    "tomo": "Boolean tomography: whoever lies on no good path",
    "score": "SCORE: whoever has mostly bad paths, cheapest set",
    "coverage": "maximum coverage: whoever explains most bad paths",
    "pll": "PLL: whoever has mostly bad paths, most losses first",
}


def simpler_methods(seen: Incidence, threshold: float, blamed: Collection[str]) -> Evidence:
    """A table of the four methods' answers beside the verdict's, for evidence.

    `threshold` is the share of failed attempts above which a path is bad; `blamed` are the names in the verdict,
    those that cannot be told apart included.
    """
    bad = bad_paths(seen, threshold)
    rows = []
    for method in METHODS:
        answer = [names_of(seen, found) for found in solve(method, bad)]
        rows.append((_SPOKEN[method], _shown(answer), _compared(answer, blamed)))
    note = (
        f"{len(bad.failures):,} of {seen.paths:,} paths count as bad here: more than {100 * threshold:.2g} % of "
        "attempts failed. These methods know bad and good paths only, no rates and no chance."
    )
    return table(TITLE, ("method", "would have named", "beside this verdict"), tuple(rows), note)


def _shown(answer: list[tuple[str, ...]], most: int = 4) -> str:
    if not answer:
        return "nobody"
    entries = [one[0] if len(one) == 1 else f"{one[0]} (or {len(one) - 1} alike)" for one in answer[:most]]
    more = [f"and {len(answer) - most} more"] if len(answer) > most else []
    return ", ".join([*entries, *more])


def _compared(answer: list[tuple[str, ...]], blamed: Collection[str]) -> str:
    named = {name for one in answer for name in one}
    right = sum(not set(one).isdisjoint(blamed) for one in answer)
    if not blamed:
        return "the same" if not answer else f"{len(answer)} that this verdict does not blame"
    parts = [] if right else ["none of the blamed"]
    if right:
        missed = sum(name not in named for name in blamed)
        parts.append("all of the blamed" if not missed else "some of the blamed")
    if len(answer) > right:
        more = len(answer) - right
        parts.append(f"{more} others" if more > 1 else "1 other")
    return ", ".join(parts)
