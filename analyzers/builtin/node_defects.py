"""Which nodes are worse than the fleet allows, metric by metric, and where the fleet itself forbids a judgement."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin import similarity
from analyzers.builtin.benchmark_samples import Sample, Stratum
from analyzers.builtin.directions import Direction, direction_of
from analyzers.builtin.node_doubts import Metric, beyond_chance
from analyzers.builtin.similarity import Criteria

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SMALLEST_SPREAD = 0.0005
"""Nodes are never taken to differ by less: a fleet whose figures were rounded would be judged by the rounding."""

CERTAIN = 1e6
"""Spreads at which a failed test stands: a return code is no matter of degree."""


@dataclass(frozen=True, slots=True)
class Rules:
    """When a node is defective: see the parameters of the validator."""

    similarity: float = 0.95
    spreads: float = 4.0
    min_nodes: int = 20
    most_failing: float = 0.2
    most_false: float = 0.02
    higher: frozenset[str] = frozenset()
    lower: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """One stratum whose nodes were judged. Arrays have shape (nodes,), in the order of `nodes`, those of this window.

    `worse` is how far each is worse than the criteria and `bar` how far it may be, as shares; `spreads` is `worse` in
    units of how far healthy nodes scatter. `quantiles` has shape (nodes, quantiles). For failed tests (`direction`
    zero) there are no criteria, and `worse` is 1 or 0.

    `failing` are blamed; `by_chance` is how many healthy nodes are to be expected that are as far off as each (NaN for
    those within their bar).
    """

    stratum: Stratum
    direction: Direction
    nodes: tuple[str, ...]
    worse: Floats
    bar: Floats
    spreads: Floats
    means: Floats
    runs: Ints
    learnt_from: int
    quantiles: Floats
    criteria: Criteria | None
    repeatability: float | None
    failing: NDArray[np.bool_]
    by_chance: Floats


@dataclass(frozen=True, slots=True)
class Unjudged:
    """A stratum that could not be judged: `why` is few, split, direction, scale or repeatability."""

    stratum: Stratum
    why: str
    reason: str


@dataclass(frozen=True, slots=True)
class Failure:
    """One metric in which a node failed: row `at` of `judged`."""

    judged: Judged
    at: int

    @property
    def spreads(self) -> float:
        return float(self.judged.spreads[self.at])


@dataclass(frozen=True, slots=True)
class Charge:
    """A blamed node with what it failed in, worst first."""

    node: str
    failures: tuple[Failure, ...]

    @property
    def spreads(self) -> float:
        return self.failures[0].spreads

    @property
    def by_chance(self) -> float:
        """How many healthy nodes are to be expected that are as far off, in what it fails in most surely."""
        return min(float(one.judged.by_chance[one.at]) for one in self.failures)


@dataclass(frozen=True, slots=True)
class Outcome:
    """`charges` are in order: first what chance explains least."""

    judged: tuple[Judged, ...]
    unjudged: tuple[Unjudged, ...]
    charges: tuple[Charge, ...]
    nodes: int


def judge(now: Mapping[Stratum, Sample], past: Sequence[Mapping[Stratum, Sample]], rules: Rules) -> Outcome:
    """Judge the nodes that were measured `now`; `past` are earlier samples, newest first."""
    found = [_judged(stratum, sample, past, rules) for stratum, sample in now.items()]
    judged = _blamed([one for one in found if not isinstance(one, Unjudged)], rules)
    unjudged = tuple(one for one in found if isinstance(one, Unjudged))
    nodes = {name for sample in now.values() for name in sample.nodes}
    return Outcome(judged, unjudged, _charges(judged), len(nodes))


def _blamed(found: Sequence[tuple[Judged, Metric | None]], rules: Rules) -> tuple[Judged, ...]:
    """Leave out those beyond their bar whom health explains, where that is a question."""
    asked = [metric for _, metric in found if metric is not None]
    answers = iter(beyond_chance(asked, -math.log(rules.similarity), rules.most_false, SMALLEST_SPREAD))
    judged = []
    for one, metric in found:
        if metric is not None:
            answer = next(answers)
            one = replace(one, failing=answer.apart, by_chance=answer.by_chance)
        judged.append(one)
    return tuple(judged)


def _judged(
    stratum: Stratum, sample: Sample, past: Sequence[Mapping[Stratum, Sample]], rules: Rules
) -> tuple[Judged, Metric | None] | Unjudged:
    direction = direction_of(stratum.benchmark, stratum.metric, rules.higher, rules.lower)
    if direction is None:
        return Unjudged(stratum, "direction", "no word of its name tells which way is worse")
    if direction == "zero":
        tested = _tests(stratum, sample, rules)
        return tested if isinstance(tested, Unjudged) else (tested, None)
    learning = _enough(sample, [one[stratum] for one in past if stratum in one], rules.min_nodes)
    if len(learning.runs) < rules.min_nodes:
        reason = f"{len(learning.runs)} nodes were measured, {rules.min_nodes} are needed"
        return Unjudged(stratum, "few", reason)
    criteria = similarity.learn(learning.quantiles, learning.runs, rules.similarity, direction == "higher")
    if criteria is None:
        return Unjudged(
            stratum, "scale", "its usual value is not above 0, so that no share of it can be told"
        )
    worse = similarity.worse_by(learning.quantiles, criteria.quantiles, criteria.scale, direction == "higher")
    scatter = np.maximum(similarity.scatter(criteria, learning.runs), SMALLEST_SPREAD)
    bar = np.maximum(1 - rules.similarity, rules.spreads * scatter)
    apart = similarity.distances(learning.quantiles, criteria.quantiles, criteria.scale) > bar
    split = _split(criteria, apart, rules)
    if split is not None:
        return Unjudged(stratum, "split", split)
    repeatability = _repeatability(sample, learning, criteria, past, stratum, rules)
    if repeatability is not None and repeatability < rules.similarity:
        reason = f"the same nodes give results only {repeatability:.3f} alike from one time to the next"
        return Unjudged(stratum, "repeatability", reason)
    mine = slice(0, len(sample.nodes))
    off = -np.log1p(-np.minimum(worse, 0.999)) if direction == "higher" else np.log1p(worse)
    less_certain = max(criteria.spread, SMALLEST_SPREAD) / scatter  # fewer runs than others have
    metric = Metric(
        far=(worse > bar)[mine],
        off=(off * less_certain)[mine],
        fell=_fell(sample, learning, past, stratum, rules, direction),
        better=_better(learning, criteria, direction),
    )
    judged = Judged(
        stratum,
        direction,
        sample.nodes,
        worse[mine],
        bar[mine],
        (worse / scatter)[mine],
        learning.quantiles.mean(axis=1)[mine],
        learning.runs[mine],
        len(learning.runs),
        learning.quantiles[mine],
        criteria,
        repeatability,
        metric.far,
        np.full(len(sample.nodes), np.nan),
    )
    return judged, metric


def _levels(quantiles: Floats, direction: Direction) -> Floats:
    """How slow nodes are, as logarithms: more is worse, and only differences mean anything; shape (nodes,)."""
    means = quantiles.mean(axis=1)
    least = max(float(np.median(means)), 0.0) * 1e-9 + np.finfo(np.float64).tiny
    logs = np.log(np.maximum(means, least))
    return np.asarray(-logs if direction == "higher" else logs)


def _better(learning: _Learning, criteria: Criteria, direction: Direction) -> Floats:
    """How much better than the median of those that are alike the better half of *all* is: tails included."""
    levels = _levels(learning.quantiles, direction)
    off = levels - np.median(levels[criteria.accepted])
    return np.asarray(-off[off <= 0])


def _fell(
    sample: Sample,
    learning: _Learning,
    past: Sequence[Mapping[Stratum, Sample]],
    stratum: Stratum,
    rules: Rules,
    direction: Direction,
) -> Floats:
    """By how much each node is worse than when it was measured first, beside what the fleet changed by; NaN where
    there is no telling. First and not last, so that what has become worse is not what is normal a window later.
    """
    fell = np.full(len(sample.nodes), np.nan)
    before = next((one[stratum] for one in reversed(past) if stratum in one), None)
    if before is None:
        return fell
    mine, theirs = _measured_twice(sample, before)
    if len(mine) < rules.min_nodes:
        return fell
    now = _levels(learning.quantiles[mine], direction)
    change = now - _levels(before.quantiles(learning.size)[theirs], direction)
    fell[mine] = change - np.median(change)
    return fell


def _measured_twice(sample: Sample, before: Sample) -> tuple[Ints, Ints]:
    """Places of the nodes that are in both samples, in each."""
    place = {name: i for i, name in enumerate(before.nodes)}
    both = [(i, place[name]) for i, name in enumerate(sample.nodes) if name in place]
    mine, theirs = np.array(both, dtype=np.int64).reshape(-1, 2).T
    return mine, theirs


@dataclass(frozen=True, slots=True, eq=False)
class _Learning:
    """Samples to learn from, those of this window first."""

    quantiles: Floats
    runs: Ints
    size: int


def _enough(sample: Sample, past: Sequence[Sample], least: int) -> _Learning:
    """This window's samples; if they are fewer than `least`, those of other nodes from before, newest first."""
    parts, known, rows = [sample], set(sample.nodes), [np.arange(len(sample.nodes))]
    for older in past:
        if len(known) >= least:
            break
        rows.append(np.array([i for i, name in enumerate(older.nodes) if name not in known], dtype=np.int64))
        known.update(older.nodes)
        parts.append(older)
    runs = np.concatenate([part.runs[row] for part, row in zip(parts, rows, strict=True)])
    size = similarity.grid_size(runs)
    taken = [part.quantiles(size)[row] for part, row in zip(parts, rows, strict=True)]
    return _Learning(np.concatenate(taken), runs, size)


def _split(criteria: Criteria, apart: NDArray[np.bool_], rules: Rules) -> str | None:
    """Why it would be the fleet that is blamed and not its nodes, or None.

    Nodes that are better count, too: of two kinds of node the typical one may be of either.
    """
    nodes, similar, other = len(apart), int(criteria.accepted.sum()), int(apart.sum())
    if other > rules.most_failing * nodes:
        return f"{other} of {nodes} nodes are unlike the others: two kinds of node, or a roll-out half done?"
    if 2 * similar < nodes:
        return f"only {similar} of {nodes} nodes are alike: there is nothing to compare with"
    return None


def _repeatability(
    sample: Sample,
    learning: _Learning,
    criteria: Criteria,
    past: Sequence[Mapping[Stratum, Sample]],
    stratum: Stratum,
    rules: Rules,
) -> float | None:
    """The mean similarity of accepted nodes to their own latest earlier sample; None if too few have one.

    Levels are taken out, so that an upgrade of the whole fleet between the two does not count.
    """
    before = next((one[stratum] for one in past if stratum in one), None)
    if before is None:
        return None
    mine, theirs = _measured_twice(sample, before)
    alike = criteria.accepted[mine]
    mine, theirs = mine[alike], theirs[alike]
    if len(mine) < rules.min_nodes:
        return None
    now, then = learning.quantiles[mine], before.quantiles(learning.size)[theirs]
    level = np.median(then.mean(axis=1))
    if level <= 0:
        return None
    return similarity.repeated(now, then * (np.median(now.mean(axis=1)) / level), criteria.scale)


def _tests(stratum: Stratum, sample: Sample, rules: Rules) -> Judged | Unjudged:
    """Metrics that must be 0: return codes and uncorrected errors."""
    wrong = np.maximum.reduceat(np.abs(sample.values), sample.starts)
    failing = wrong > 0
    if (failing.mean() > rules.most_failing and failing.sum() > 1) or failing.all():
        reason = (
            f"it is not 0 on {int(failing.sum())} of {len(failing)} nodes: that is no matter of single nodes"
        )
        return Unjudged(stratum, "split", reason)
    worse = failing.astype(np.float64)
    return Judged(
        stratum,
        "zero",
        sample.nodes,
        worse,
        np.zeros(len(failing)),
        worse * CERTAIN,
        wrong,
        sample.runs,
        len(failing),
        wrong[:, None],
        None,
        None,
        failing,
        np.zeros(len(failing)),
    )


def _charges(judged: Sequence[Judged]) -> tuple[Charge, ...]:
    failures: dict[str, list[Failure]] = {}
    for one in judged:
        for at in np.flatnonzero(one.failing).tolist():
            failures.setdefault(one.nodes[at], []).append(Failure(one, at))
    charges = [
        Charge(node, tuple(sorted(found, key=lambda one: (-one.spreads, one.judged.stratum))))
        for node, found in failures.items()
    ]
    return tuple(sorted(charges, key=lambda one: (one.by_chance, -one.spreads, -len(one.failures), one.node)))
