"""Paths against components: attempts and failures per path, keys of sums, and Boolean tomography over them.

`incidence` is where several methods start: a sparse table of paths against components, with components that no path
separates merged into one. Nothing in it depends on the order of paths or, but for the order of equals, on names.

Boolean tomography is the simple methods that others are compared with. A path is bad or good, and the question is
which few components are behind the bad ones. Four answers, all greedy covers of the bad paths that differ in whom
they consider:

- `tomo`: nobody who lies on a good path (Dhamdhere et al., NetDiagnoser, CoNEXT 2007);
- `score`: those of whose paths a large share is bad (Kompella et al., NSDI 2005), at the share, from 1 down to
  a floor, whose answer is cheapest. Cheap is, in our reading, a small number of blamed components plus bad paths
  that nobody explains;
- `coverage`: everybody (maximum coverage; Kompella et al., INFOCOM 2007);
- `pll`: those of whose paths more than a share (0.6) is bad, taking the one that explains most lost packets first
  (Peng et al., deTector, ATC 2017).

None of them knows rates: a component that fails one attempt in fifty leaves many good paths behind and is
excused, and a few failures that happen to meet are an accusation. They are baselines.

`spans` and `last_unusual` say when a fault began and ended where some failures are usual, from failures counted in
slices of a window.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import scipy  # scipy.special takes a third of a second to load, and does when it is first used
from numpy.typing import NDArray

from analyzers.builtin.reductions import SLICE
from analyzers.contract import Evidence, Paths, Sums, Window, table

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Marks = NDArray[np.uint64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Incidence:
    """Paths against components, with what was tried and what failed.

    Entry k says that path `row[k]` holds component `column[k]`; entries are ordered by path. `attempts` and
    `failures` have shape (paths,). Component c is called `names[c]`, and `alike[c]` are the other components that
    lie on exactly the same paths. `hops[p]` is how many components path p has, before merging. `mark[c]` is a
    number that depends on the figures of the paths around c and on no name: it orders what is otherwise equal.
    """

    names: tuple[str, ...]
    alike: tuple[tuple[str, ...], ...]
    row: Ints
    column: Ints
    attempts: Floats
    failures: Floats
    hops: Ints
    mark: Marks

    @property
    def paths(self) -> int:
        return len(self.attempts)

    @property
    def components(self) -> int:
        return len(self.names)

    def per_component(self, weight: Floats) -> Floats:
        """The sum of a weight per path over the paths of each component; shape (components,)."""
        summed = np.bincount(self.column, weight[self.row], minlength=self.components)
        return summed.astype(np.float64)

    def containing(self, components: Iterable[int]) -> Mask:
        """Paths that hold any of the components; shape (paths,)."""
        return self.per_path(components) > 0

    def per_path(self, components: Iterable[int]) -> Ints:
        """Number of the components that each path holds; shape (paths,)."""
        wanted = np.zeros(self.components, dtype=bool)
        wanted[list(components)] = True
        return np.bincount(self.row[wanted[self.column]], minlength=self.paths).astype(np.int64)

    def number(self) -> dict[str, int]:
        """The component that each name belongs to."""
        found = {name: c for c, name in enumerate(self.names)}
        found.update({name: c for c, others in enumerate(self.alike) for name in others})
        return found


def incidence(paths: Paths, attempts: NDArray[np.generic], failures: NDArray[np.generic]) -> Incidence:
    """The incidence of the paths that were tried and that name a component; the others are left out."""
    lengths = np.diff(paths.indptr)
    valid = (np.asarray(attempts) > 0) & (lengths > 0)
    number = np.cumsum(valid) - 1
    owner = np.repeat(np.arange(len(paths)), lengths)
    inside = valid[owner]
    row, member = number[owner[inside]], paths.indices[inside].astype(np.int64)
    tried = np.asarray(attempts, dtype=np.float64)[valid]
    failed = np.asarray(failures, dtype=np.float64)[valid]
    used, member = np.unique(member, return_inverse=True)
    names = [paths.names[i] for i in used.tolist()]
    group, leaders = _merged(row, member, len(names))
    others: list[list[str]] = [[] for _ in leaders]
    for i, of in enumerate(group.tolist()):
        if leaders[of] != i:
            others[of].append(names[i])
    column = group[member]
    if len(leaders) < len(names):
        row, column = _without_repeats(row, column, len(leaders))
    return Incidence(
        tuple(names[i] for i in leaders.tolist()),
        tuple(tuple(one) for one in others),
        row,
        column,
        tried,
        failed,
        lengths[valid].astype(np.int64),
        _fingerprints(row, column, len(leaders), tried, failed),
    )


def with_sources(paths: Paths, sources: Sequence[str]) -> Paths:
    """The paths, each with where it was probed from as one more component; its names come after all others, so that
    what is on the same paths leads them.
    """
    there = {name: i for i, name in enumerate(paths.names)}
    names = (*paths.names, *sorted(set(sources) - set(there)))
    number = {name: i for i, name in enumerate(names)}
    lengths = np.diff(paths.indptr)
    source = np.array([number[name] for name in sources], dtype=np.int64)
    owner = np.concatenate([np.repeat(np.arange(len(paths)), lengths), np.arange(len(paths))[lengths > 0]])
    entries = np.unique(owner * len(names) + np.concatenate([paths.indices, source[lengths > 0]]))
    row, member = np.divmod(entries, max(1, len(names)))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(paths)))]).astype(np.int64)
    return Paths(names, indptr, member.astype(np.int32))


def mixed(number: NDArray[np.generic]) -> Marks:
    """Well-spread 64-bit numbers (the finaliser of splitmix64; Steele et al., OOPSLA 2014)."""
    z = np.asarray(number).astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)), dtype=np.uint64)


def summed(key: Ints, value: Marks, size: int) -> Marks:
    """The sum of `value` by key, modulo 2^64; shape (size,)."""
    total = np.zeros(size, dtype=np.uint64)
    np.add.at(total, key, value)
    return total


def _merged(row: Ints, member: Ints, count: int) -> tuple[Ints, Ints]:
    """For each component its group, and for each group its first component; groups in the order of these.

    Components on the same paths have the same sum of hashed path numbers; that others have it too by chance has
    odds of count^2 / 2^128 (two sums are compared).
    """
    marks = [summed(member, mixed(mixed(row) + np.uint64(salt)), count) for salt in (0, 1)]
    both = np.stack(marks, axis=1)
    _, first, group = np.unique(both, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return place[group.ravel()], first[order].astype(np.int64)


def _without_repeats(row: Ints, column: Ints, columns: int) -> tuple[Ints, Ints]:
    entries = np.sort(row * columns + column)
    entries = entries[np.diff(entries, prepend=-1) > 0]
    return entries // max(columns, 1), entries % max(columns, 1)


def _fingerprints(row: Ints, column: Ints, columns: int, attempts: Floats, failures: Floats) -> Marks:
    """Hashes of each component's surroundings: its paths' figures, then those of the components beside it
    (two rounds of colour refinement; Weisfeiler and Leman 1968).
    """
    path = mixed(mixed(attempts.view(np.uint64)) + failures.view(np.uint64))
    near = mixed(summed(column, path[row], columns))
    around = mixed(path + summed(row, near[column], len(attempts)))
    return mixed(summed(column, around[row], columns))


def texts(sums: Sums, key: str) -> tuple[str, ...]:
    """A key of names or texts, one a row. Raises TypeError for keys of another sort."""
    column = sums.keys[key]
    if isinstance(column, Paths | np.ndarray):
        raise TypeError(f"key {key} holds no texts")
    return tuple(column)


def whole(sums: Sums, key: str) -> Ints:
    """A key of times, counts, flags or slices, one a row. Raises TypeError for keys of another sort."""
    column = sums.keys[key]
    if not isinstance(column, np.ndarray):
        raise TypeError(f"key {key} holds no numbers")
    return column.astype(np.int64, copy=False)


def numbered(column: Sequence[str]) -> tuple[tuple[str, ...], Ints]:
    """The distinct texts, sorted, and the place of each row's text among them, shape (rows,)."""
    names = tuple(sorted(set(column)))
    place = {name: i for i, name in enumerate(names)}
    return names, np.fromiter((place[text] for text in column), np.int64, len(column))


def of_layer(sums: Sums, layer: str) -> Sums:
    """The rows of one layer (key `layer`, as `probe` has it); all, where rows have none."""
    if "layer" not in sums.keys:
        return sums
    chosen = np.asarray([one == layer for one in texts(sums, "layer")], dtype=np.bool_)
    if chosen.all():
        return sums
    keys = {
        name: _taken(key, chosen) if isinstance(key, Paths) else _picked(key, chosen)
        for name, key in sums.keys.items()
    }
    return Sums(keys, {name: value[chosen] for name, value in sums.values.items()}, int(chosen.sum()))


def _picked(key: Sequence[str] | Ints | Floats, chosen: Mask) -> Sequence[str] | Ints | Floats:
    if isinstance(key, np.ndarray):
        return key[chosen]
    return tuple(one for one, wanted in zip(key, chosen.tolist(), strict=True) if wanted)


def _taken(paths: Paths, chosen: Mask) -> Paths:
    lengths = np.diff(paths.indptr)
    indptr = np.concatenate([[0], np.cumsum(lengths[chosen])]).astype(np.int64)
    return Paths(paths.names, indptr, paths.indices[np.repeat(chosen, lengths)])


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
        remaining = left[row]
        row, column = row[remaining], column[remaining]
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


TITLE = "Answers of simpler methods"

_SPOKEN = {
    "tomo": "Boolean tomography: components on no good path",
    "score": "SCORE: components with mostly bad paths, cheapest set",
    "coverage": "maximum coverage: components that explain most bad paths",
    "pll": "PLL: components with mostly bad paths, most losses first",
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
    return table(TITLE, ("method", "would have named", "against this verdict"), tuple(rows), note)


def _shown(answer: list[tuple[str, ...]], most: int = 4) -> str:
    if not answer:
        return "none"
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


# Begin and end of a fault
# ----------------------------------------------------------------------------------------------------------
_ORDINARY = 0.01
"""Failures that come by chance less often than this are not those that are usual."""


def last_unusual(counts: NDArray[Any], expected: float) -> int:
    """The last slice that fails, without those at the end that together fail no more than is usual, where `expected`
    failures of the whole window are. Some slice has to fail.

    Else what always fails a little would keep a component failing after its repair, and open its incident again.
    """
    failing = np.flatnonzero(counts)
    since = np.cumsum(counts[::-1])[::-1][failing]
    usual = expected * (len(counts) - failing) / len(counts)
    unusual = failing[scipy.special.pdtrc(since - 1, usual) < _ORDINARY]
    return int((unusual if len(unusual) else failing)[-1])


def spans(
    window: Window, layer: str, seen: Incidence, blamed: Sequence[int], noise: float
) -> dict[int, tuple[datetime, datetime]]:
    """Span in which each of the blamed failed: the beginning of its first slice and the end of the last, where a
    share `noise` of what is tried fails anyway. Paths that hold another blamed one say nothing, unless there are no
    others. Who did not fail is left out, and all are where the window does not tell of time. Where `over_time` was
    grouped by `src`, that is a component of its paths too.
    """
    found: dict[int, tuple[datetime, datetime]] = {}
    if "over_time" not in window.sums:
        return found
    sums = of_layer(window.sums["over_time"], layer)
    (table,) = (key for key in sums.keys.values() if isinstance(key, Paths))
    table = with_sources(table, texts(sums, "src")) if "src" in sums.keys else table
    at, failures = whole(sums, "slice"), np.asarray(sums.values["failures"])
    names = {name: place for place, name in enumerate(table.names)}
    places = [names.get(seen.names[one], -1) for one in blamed]
    crowd, here = _blamed_on(table, places), seen.per_path(blamed)
    for one, place in zip(blamed, places, strict=True):
        mine, covering = _blamed_on(table, [place]) > 0, seen.containing([one])
        if (mine & (crowd == 1)).any():
            mine, covering = mine & (crowd == 1), covering & (here == 1)
        if mine.any():
            counts = np.bincount(at[mine], failures[mine], minlength=-(-window.length // SLICE))
            last = last_unusual(counts, noise * float(seen.attempts[covering].sum()))
            start = window.start + int(at[mine].min()) * SLICE
            found[one] = start, min(window.start + (last + 1) * SLICE, window.end)
    return found


def _blamed_on(table: Paths, places: Sequence[int]) -> NDArray[np.int64]:
    """Number of these names that each path holds; shape (paths,)."""
    owner = np.repeat(np.arange(len(table)), np.diff(table.indptr))
    return np.bincount(owner[np.isin(table.indices, places)], minlength=len(table)).astype(np.int64)
