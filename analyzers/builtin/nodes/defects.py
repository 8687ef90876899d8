"""Nodes that are worse than the fleet allows, metric by metric, and metrics in which the fleet forbids a judgement.

A node beyond its bar is a defect if it is off by more than chance over all metrics of the fleet at once. Of the
blamed at most a share is expected to be healthy, and so of healthy fleets at most this share accuses anyone
(Benjamini and Hochberg, 1995). A node is asked twice, where it was measured before: whether it has become worse by
more than nodes change by chance, and than is allowed at all; and whether it is farther off than healthy nodes are.
Half of what may be false goes to either question; what the first one explains is no witness in the second.

The runs of a node must say what its mean says. A node is typically worse because it is, or because some of its runs
were: single runs are bad on healthy nodes, too, and the better half of a fleet does not show it. How far runs fall
short of what is typical of their own node, pooled over all nodes, says how often. A node that is worse has nearly all
of its runs on the bad side.

A label may name another kind of machine than the results do. A node of a slower kind under a faster kind's label is
worse than its like in every metric, and healthy. Its results say so: wherever the two kinds differ, they are those of
the other kind.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy  # scipy.stats takes a second to load, and does when it is first used
from numpy.typing import NDArray

from analyzers.builtin.nodes import similarity
from analyzers.builtin.nodes.outcome import Charge, Failure, Judged, Outcome, Rules, Unjudged
from analyzers.builtin.nodes.samples import Direction, Sample, Stratum, direction_of, without_zeros
from analyzers.builtin.nodes.similarity import TRIMMED_FROM, Criteria, levels
from analyzers.builtin.stats import tails
from analyzers.builtin.stats.probability import q_values
from analyzers.builtin.stats.tails import Better, Tails
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
    requested: list[tuple[int, Judged, Metric]] = []
    for at, one in enumerate(learnt):
        found = _judged(one, float(places.width[at]), past, rules)
        if isinstance(found, Unjudged):
            unjudged.append(found)
        else:
            requested.append((at, *found))
    answers = beyond_chance(
        [metric for _, _, metric in requested],
        places.only([at for at, _, _ in requested]),
        -math.log(rules.similarity),
        rules.most_false,
        SMALLEST_SPREAD,
    )
    blamed = [
        replace(one, failing=answer.apart, by_chance=answer.by_chance)
        for (_, one, _), answer in zip(requested, answers, strict=True)
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
        return Unjudged(stratum, "direction", "its name does not say which direction is worse")
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
        return Unjudged(stratum, "scale", "its usual value is not above 0, so a share of it is undefined")
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
    """Slowness of nodes, as logarithms: more is worse, and only differences mean anything; shape (nodes,)."""
    means = similarity.levels(quantiles)
    least = max(float(np.median(means)), 0.0) * 1e-9 + np.finfo(np.float64).tiny
    logs = np.log(np.maximum(means, least))
    return np.asarray(-logs if direction == "higher" else logs)


def _better(learning: _Learning, criteria: Criteria, direction: Direction) -> Better:
    """Distances of the better half from the median of those that are alike. The median itself, where it is a node,
    says nothing of how far nodes are from it.
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
    """Reason why it would be the fleet that is blamed and not its nodes, or None; `far` are the nodes beyond their
    bar.

    A minority of better nodes blames nobody: the others still agree on what is normal. One node is never a kind.
    """
    nodes, similar, worse = len(far), int(criteria.accepted.sum()), int(far.sum())
    if worse > max(1.0, rules.most_failing * nodes) or nodes - similar > max(1.0, _MOST_UNLIKE * nodes):
        unlike = max(worse, nodes - similar)
        return f"{unlike} of {nodes} nodes are unlike the others: two kinds of node, or a roll-out half done?"
    if 2 * similar < nodes:
        return f"only {similar} of {nodes} nodes are alike: too few for a comparison"
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
    """Charges: the failed metrics of each node. A node that is of another kind than its label says is charged with
    failed tests only."""
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


Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """Question about one metric; shape (nodes,). Figures are logarithms of ratios, in which better and worse weigh
    the same, and more is worse.

    `far` are the nodes beyond their bar, `below` those that are worse by more than is allowed, whatever nodes differ
    by. `off` is how far each is from what is usual, `fell` how much worse it is than it was itself (NaN where it was
    not measured). `by_runs` is the probability of as many bad runs, and `few` says where only a part of the runs is
    bad, so that it alone counts.
    """

    nodes: tuple[str, ...]
    far: Bools
    below: Bools
    off: Floats
    fell: Floats
    by_runs: Floats
    few: Bools


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """`apart` are to blame. `by_chance` is how many healthy ones are to be expected, among all that were measured, that
    are as far off as each, or fell as far; NaN for nodes within their bar.
    """

    apart: Bools
    by_chance: Floats


def beyond_chance(
    metrics: Sequence[Metric], places: Tails, allowed: float, most_false: float, least_width: float
) -> list[Answer]:
    """The answers, in the order of `metrics` and of `places`, what was learnt of where healthy nodes stand. `allowed`
    is how much worse a node may become, as a logarithm; `least_width` the least that nodes are taken to change by.
    """
    known = [np.isfinite(one.fell) for one in metrics]
    twice = sum(int(one.sum()) for one in known)
    share = most_false / 2 if twice else most_false
    worse = [one.below & (one.fell > allowed) for one in metrics]
    changes = [_improved(one) for one in metrics]
    learnt = tails.learn(changes, least_width) if any(one.any() for one in worse) else places
    change = [learnt.chance(at, one.fell) + one.by_runs for at, one in enumerate(metrics)]
    became = _answers(change, worse, twice, share)
    rest = [one.far & ~new.apart for one, new in zip(metrics, became, strict=True)]
    off = [np.where(one.few, 0.0, places.chance(at, one.off)) + one.by_runs for at, one in enumerate(metrics)]
    stands = _answers(off, rest, sum(len(one.far) for one in metrics), share)
    return [
        Answer(new.apart | far.apart, np.where(new.apart, new.by_chance, far.by_chance))
        for new, far in zip(became, stands, strict=True)
    ]


def _improved(one: Metric) -> Better:
    """The nodes that became better than they were, and by how much."""
    places = np.flatnonzero(one.fell < 0).tolist()  # false for NaN
    return Better(tuple(one.nodes[at] for at in places), -one.fell[places])


def _answers(chance: Sequence[Floats], requested: Sequence[Bools], tests: int, share: float) -> list[Answer]:
    """One question of `tests` nodes and metrics, whose candidates are `requested`; `chance` is of all nodes."""
    found = [one[chosen] for one, chosen in zip(chance, requested, strict=True)]
    q = q_values(np.concatenate([*found, np.empty(0)]), tests)
    answers, at = [], 0
    for chosen, one in zip(requested, found, strict=True):
        apart, expected = np.zeros(len(chosen), dtype=bool), np.full(len(chosen), np.nan)
        apart[chosen], expected[chosen] = q[at : at + len(one)] <= share, one * tests
        at += len(one)
        answers.append(Answer(apart, expected))
    return answers


FEWEST = 3
"""Runs of a node from which on they can be told from it."""
_SPREADS = 4.0


def by_runs(
    quantiles: Floats, runs: Ints, criteria: Criteria, typical: Floats, allowed: float, higher: bool
) -> Floats:
    """The probability that a healthy node has as many bad runs as each, shape (nodes,), runs being bad independently of
    each other; 0 where a node has too few runs to say.

    `typical` is how far each node is worse than usual. Where that is more than `allowed`, a run is bad if it is worse
    than usual by half of it. Elsewhere a run is bad if it is worse than what is typical of its node by more than
    `allowed`, and than runs scatter by.
    """
    sign = 1.0 if higher else -1.0
    own = (levels(quantiles)[:, None] - quantiles) / criteria.scale * sign
    usual = (criteria.quantiles.mean() - quantiles) / criteria.scale * sign
    level = typical > allowed
    least = np.where(level, typical / 2, max(allowed, _SPREADS * np.sqrt(criteria.noise)))
    bad = (np.where(level[:, None], usual, own) >= least[:, None]).mean(axis=1)
    judged = np.where(runs >= TRIMMED_FROM, runs - 2, runs)  # the best and the worst do not count
    counted = np.round(bad * judged)
    found = np.asarray(scipy.stats.binom.sf(counted - 1, judged, _shares(own, runs, least)))
    return np.where(runs < FEWEST, 0.0, np.where(counted > 0, found, 1.0))


def _shares(own: Floats, runs: Ints, least: Floats) -> Floats:
    """The share of all runs that are worse than what is typical of their node by each of `least`."""
    enough = runs >= FEWEST
    if not enough.any():
        return np.zeros(len(least))
    ascending = np.sort(own[enough], axis=None)
    total = float(runs[enough].sum())
    beyond = (len(ascending) - np.searchsorted(ascending, least, side="left")) / len(ascending)
    return np.asarray((beyond * total + 0.5) / (total + 1.0))


_DIFFER = 0.02
"""Kinds of machine differ in a metric from this share on, and from `_SPREADS` of what nodes differ by."""
_NEARER = 1 / 3
"""A result is that of the other kind if it is off by less than this part of what lies between the two kinds."""
_MOST = 0.9
"""Share of the metrics in which two kinds differ that have to show the other kind."""


def mislabelled(judged: Sequence[Judged]) -> dict[str, str]:
    """The kind of machine that failing nodes are, where it is another than their label says; by node."""
    kinds: dict[tuple[str, str], dict[str, Judged]] = {}
    for one in judged:
        if one.criteria is not None:
            kinds.setdefault((one.stratum.benchmark, one.stratum.metric), {})[one.stratum.sku] = one
    votes: dict[str, dict[str, list[bool]]] = {}
    failed: dict[str, dict[str, list[bool]]] = {}
    for by_kind in kinds.values():
        for one in by_kind.values():
            failing = {one.nodes[at] for at in np.flatnonzero(one.failing).tolist()}
            for sku, node, like in _likenesses(one, by_kind):
                votes.setdefault(node, {}).setdefault(sku, []).append(like)
                if node in failing:
                    failed.setdefault(node, {}).setdefault(sku, []).append(like)
    found = {}
    for node, by_sku in sorted(failed.items()):
        shares = {sku: np.mean(votes[node][sku]) for sku, matches in by_sku.items() if all(matches)}
        best = max(sorted(shares), key=lambda sku: shares[sku], default=None)
        if best is not None and shares[best] >= _MOST:
            found[node] = best
    return found


def _likenesses(one: Judged, by_kind: dict[str, Judged]) -> Iterator[tuple[str, str, bool]]:
    """(other kind, node, whether the node's mean is that of the other kind), where the two kinds differ."""
    assert one.criteria is not None
    for sku, other in by_kind.items():
        assert other.criteria is not None
        gap = abs(math.log(one.criteria.scale / other.criteria.scale))
        spread = max(one.criteria.spread, other.criteria.spread)
        if other is one or gap < max(_DIFFER, _SPREADS * spread):
            continue
        with np.errstate(divide="ignore", invalid="ignore"):
            off = np.abs(np.log(one.means / other.criteria.scale))
        like = off <= max(_NEARER * gap, _SPREADS * other.criteria.spread)
        for node, value in zip(one.nodes, like.tolist(), strict=True):
            yield sku, node, value
