"""Which nodes are worse than the fleet allows, metric by metric, and where the fleet itself forbids a judgement."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.nodes import similarity
from analyzers.builtin.nodes.directions import Direction, direction_of
from analyzers.builtin.nodes.doubts import Metric, beyond_chance
from analyzers.builtin.nodes.kinds import mislabelled
from analyzers.builtin.nodes.outcome import Charge, Failure, Judged, Outcome, Rules, Unjudged
from analyzers.builtin.nodes.runs import by_runs
from analyzers.builtin.nodes.samples import Sample, Stratum, without_zeros
from analyzers.builtin.nodes.similarity import Criteria
from analyzers.builtin.stats import tails
from analyzers.builtin.stats.tails import Better
from analyzers.builtin.text import so_many

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SMALLEST_SPREAD = 0.0005
"""Nodes are never taken to differ by less: a fleet whose figures were rounded would be judged by the rounding."""

WANTED = 20
"""Nodes from which a fleet says itself what is normal; with fewer, what is known of other fleets counts as much."""

_TWICE = 3
"""Nodes that must have been measured before, so that what all changed by is told from what one did."""
_MOST_UNLIKE = 0.4
"""Share of nodes unlike the typical one, better ones included, from which on there is no typical one."""
_OF_MEDIAN = math.pi / 2
"""The variance of a median, times the number of nodes, in units of theirs."""

CERTAIN = 1e6
"""Spreads at which a failed test stands: a return code is no matter of degree."""


def judge(now: Mapping[Stratum, Sample], past: Sequence[Mapping[Stratum, Sample]], rules: Rules) -> Outcome:
    """Judge the nodes that were measured `now`; `past` are earlier samples, newest first."""
    tested, unjudged, learnt = _learnt_all(now, past, rules)
    places = tails.learn([one.better for one in learnt], SMALLEST_SPREAD)
    asked: list[tuple[int, Judged, Metric]] = []
    for at, one in enumerate(learnt):
        found = _judged(one, float(places.width[at]), past, rules)
        if isinstance(found, Unjudged):
            unjudged.append(found)
        else:
            asked.append((at, *found))
    answers = beyond_chance(
        [metric for _, _, metric in asked],
        places.only([at for at, _, _ in asked]),
        -math.log(rules.similarity),
        rules.most_false,
        SMALLEST_SPREAD,
    )
    blamed = [
        replace(one, failing=answer.apart, by_chance=answer.by_chance)
        for (_, one, _), answer in zip(asked, answers, strict=True)
    ]
    judged = tuple(sorted((*tested, *blamed), key=lambda one: one.stratum))
    other_kind = mislabelled(judged)
    charges = _charges(judged, other_kind)
    nodes = {name for sample in now.values() for name in sample.nodes}
    return Outcome(
        judged, tuple(sorted(unjudged, key=lambda one: one.stratum)), charges, len(nodes), other_kind
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Learnt:
    """One stratum and what its nodes say is normal. `better` is how much better than usual the better half of all is,
    as logarithms: tails included, and nodes that are better for a reason of their own.
    """

    stratum: Stratum
    direction: Direction
    sample: Sample
    learning: _Learning
    criteria: Criteria
    better: Better


def _learnt_all(
    now: Mapping[Stratum, Sample], past: Sequence[Mapping[Stratum, Sample]], rules: Rules
) -> tuple[list[Judged], list[Unjudged], list[_Learnt]]:
    tested: list[Judged] = []
    unjudged: list[Unjudged] = []
    learnt: list[_Learnt] = []
    for stratum, sample in now.items():
        found = _learnt(stratum, sample, past, rules)
        if isinstance(found, Judged):
            tested.append(found)
        elif isinstance(found, Unjudged):
            unjudged.append(found)
        else:
            learnt.append(found)
    return tested, unjudged, learnt


def _learnt(
    stratum: Stratum, sample: Sample, past: Sequence[Mapping[Stratum, Sample]], rules: Rules
) -> Judged | Unjudged | _Learnt:
    direction = direction_of(stratum.benchmark, stratum.metric, rules.higher, rules.lower)
    if direction is None:
        return Unjudged(stratum, "direction", "no word of its name tells which way is worse")
    if direction == "zero":
        return _tests(stratum, sample, rules)
    before = [one[stratum] for one in past if stratum in one]
    sample = without_zeros(sample, before[0] if before else None)
    learning = _enough(sample, before, max(rules.min_nodes, WANTED))
    if len(learning.runs) < rules.min_nodes:
        number = so_many(len(learning.runs), "node")
        return Unjudged(stratum, "few", f"{number} measured, {rules.min_nodes} are needed")
    criteria = similarity.learn(learning.quantiles, learning.runs, rules.similarity)
    if criteria is None:
        return Unjudged(
            stratum, "scale", "its usual value is not above 0, so that no share of it can be told"
        )
    return _Learnt(stratum, direction, sample, learning, criteria, _better(learning, criteria, direction))


def _judged(
    one: _Learnt, width: float, past: Sequence[Mapping[Stratum, Sample]], rules: Rules
) -> tuple[Judged, Metric] | Unjudged:
    """The nodes of one stratum held against what is normal; `width` is how far healthy nodes scatter."""
    learning, sample, higher = one.learning, one.sample, one.direction == "higher"
    criteria = replace(one.criteria, spread=width)
    worse = similarity.worse_by(learning.quantiles, criteria.quantiles, criteria.scale, higher)
    levels = similarity.levels(learning.quantiles)
    usual = float(np.median(levels[criteria.accepted]))
    typical = (levels / usual - 1) * (-1 if higher else 1)
    scatter = np.maximum(similarity.scatter(criteria, learning.runs), SMALLEST_SPREAD)
    bar = np.maximum(1 - rules.similarity, rules.spreads * scatter)
    split = _split(criteria, typical > bar, rules)
    if split is not None:
        return Unjudged(one.stratum, "split", split)
    repeatability = _repeatability(sample, learning, criteria, past, one.stratum)
    if repeatability is not None and repeatability < rules.similarity:
        reason = f"the same nodes give results only {repeatability:.3f} alike from one time to the next"
        return Unjudged(one.stratum, "repeatability", reason)
    mine = slice(0, len(sample.nodes))
    off = _levels(learning.quantiles, one.direction)
    off = off - np.median(off[criteria.accepted])
    few = (worse > bar) & (typical <= bar)
    chance = by_runs(learning.quantiles, learning.runs, criteria, typical, 1 - rules.similarity, higher)
    less_certain = max(width, SMALLEST_SPREAD) / scatter  # fewer runs than others have
    less_certain = less_certain / math.sqrt(1 + _OF_MEDIAN / int(criteria.accepted.sum()))
    metric = Metric(
        sample.nodes,
        far=((worse > bar) | (typical > bar))[mine],
        below=(typical > 1 - rules.similarity)[mine],
        off=(off * less_certain)[mine],
        fell=_fell(sample, learning, past, one.stratum, one.direction),
        by_runs=chance[mine],
        few=few[mine],
    )
    judged = Judged(
        one.stratum,
        one.direction,
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
    means = similarity.levels(quantiles)
    least = max(float(np.median(means)), 0.0) * 1e-9 + np.finfo(np.float64).tiny
    logs = np.log(np.maximum(means, least))
    return np.asarray(-logs if direction == "higher" else logs)


def _better(learning: _Learning, criteria: Criteria, direction: Direction) -> Better:
    """How much better than the median of those that are alike the better half of all is. The median itself, where it is
    a node, says nothing of how far nodes are from it.
    """
    levels = _levels(learning.quantiles, direction)
    off = levels - np.median(levels[criteria.accepted])
    order = np.argsort(-off, kind="stable")
    places = order[off[order] <= 0][int(criteria.accepted.sum()) % 2 :]
    return Better(tuple(learning.nodes[at] for at in places.tolist()), -off[places])


def _fell(
    sample: Sample,
    learning: _Learning,
    past: Sequence[Mapping[Stratum, Sample]],
    stratum: Stratum,
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
    if len(mine) < _TWICE:
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

    nodes: tuple[str, ...]
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
    names = tuple(part.nodes[at] for part, row in zip(parts, rows, strict=True) for at in row.tolist())
    return _Learning(names, np.concatenate(taken), runs, size)


def _split(criteria: Criteria, far: NDArray[np.bool_], rules: Rules) -> str | None:
    """Why it would be the fleet that is blamed and not its nodes, or None; `far` are the nodes beyond their bar.

    A minority of better nodes blames nobody: the others still agree on what is normal. One node is never a kind.
    """
    nodes, similar, worse = len(far), int(criteria.accepted.sum()), int(far.sum())
    if worse > max(1.0, rules.most_failing * nodes) or nodes - similar > max(1.0, _MOST_UNLIKE * nodes):
        unlike = max(worse, nodes - similar)
        return f"{unlike} of {nodes} nodes are unlike the others: two kinds of node, or a roll-out half done?"
    if 2 * similar < nodes:
        return f"only {similar} of {nodes} nodes are alike: there is nothing to compare with"
    return None


def _repeatability(
    sample: Sample,
    learning: _Learning,
    criteria: Criteria,
    past: Sequence[Mapping[Stratum, Sample]],
    stratum: Stratum,
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
    if len(mine) < _TWICE:
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


def _charges(judged: Sequence[Judged], other_kind: Mapping[str, str]) -> tuple[Charge, ...]:
    """Who failed in what. A node that is of another kind than its label says is charged with failed tests only."""
    failures: dict[str, list[Failure]] = {}
    for one in judged:
        for at in np.flatnonzero(one.failing).tolist():
            if one.criteria is None or one.nodes[at] not in other_kind:
                failures.setdefault(one.nodes[at], []).append(Failure(one, at))
    charges = [
        Charge(node, tuple(sorted(found, key=lambda one: (-one.spreads, one.judged.stratum))))
        for node, found in failures.items()
    ]
    return tuple(sorted(charges, key=lambda one: (one.by_chance, -one.spreads, -len(one.failures), one.node)))
