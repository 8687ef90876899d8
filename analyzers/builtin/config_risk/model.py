"""The tree: grown on past changes, chosen and calibrated in time-ordered folds, with the interval of each leaf."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.config_risk.features import Column, Facts, columns_of, facts_of
from analyzers.builtin.config_risk.records import Change
from analyzers.builtin.stats.calibration import calibration, log_loss, logistic, logit

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Table = tuple[tuple[Column, ...], Floats]

SHRINK = 4.0
"""Changes with the share of the parent that the share of a node starts from."""
GAINS = (6.0, 9.0, 13.0)
"""Least gain of a split, as twice the log-likelihood: 6.6 has a p-value of 0.01 for one split that was not searched."""
DEPTH = 5
LEAF = 0.01
"""Least share of the changes in a leaf."""
FEWEST_IN_A_LEAF = 8
BLOCKS = 4
FIRST_BLOCK = 0.4
"""Share of the changes that only teaches in the folds."""


class TooLittleHistoryError(ValueError):
    """Why there is no probability, as the end of a sentence."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a tree may split on and how much a split must gain; no gain is no tree."""

    fine: bool = False
    gain: float = 0.0

    @property
    def name(self) -> str:
        values = ", with values of keys" if self.fine else ""
        return f"tree of splits that gain {self.gain:g} at least{values}" if self.gain else "usual share"


NONE = Shape()
SHAPES = (NONE, *(Shape(fine, gain) for fine, gain in product((False, True), reversed(GAINS))))


@dataclass(frozen=True, slots=True)
class Step:
    """A condition on the path, with how many of the past changes that meet it and all before it were bad."""

    condition: str
    changes: int
    bad: int


@dataclass(frozen=True, slots=True)
class Risk:
    """Probability of a bad outcome with its 95 % interval, the path, and which past changes took it."""

    probability: float
    low: float
    high: float
    path: tuple[Step, ...]
    leaf: int


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """Columns and nodes; `left` is -1 at leaves. `bad` and `count` have shape (nodes,), and so has `share`, shrunk."""

    columns: tuple[Column, ...]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    column: NDArray[np.int64]
    threshold: Floats
    count: Floats
    bad: Floats
    share: Floats
    parent: NDArray[np.int64]

    def way(self, facts: Facts) -> list[tuple[int, bool]]:
        """The nodes from the root to the leaf, each with whether the step to it was to the right."""
        at, found = 0, [(0, False)]
        while self.left[at] >= 0:
            above = self.columns[self.column[at]].value(facts) > self.threshold[at]
            at = int(self.right[at] if above else self.left[at])
            found.append((at, above))
        return found

    def leaf(self, facts: Facts) -> int:
        return self.way(facts)[-1][0]

    def leaves(self, values: Floats) -> NDArray[np.int64]:
        """The leaf of each row of a table of the columns."""
        at = np.zeros(len(values), dtype=np.int64)
        while (inner := np.flatnonzero(self.left[at] >= 0)).size:
            node = at[inner]
            above = values[inner, self.column[node]] > self.threshold[node]
            at[inner] = np.where(above, self.right[node], self.left[node])
        return at

    def path(self, facts: Facts) -> tuple[Step, ...]:
        """Conditions from the root on; of several on one column and side the last, which holds all."""
        steps: dict[tuple[int, bool], Step] = {}
        before = 0
        for node, above in self.way(facts)[1:]:
            column = int(self.column[before])
            words = self.columns[column].condition(float(self.threshold[before]), above)
            steps.pop((column, above), None)
            steps[column, above] = Step(words, int(self.count[node]), int(self.bad[node]))
            before = node
        return tuple(steps.values())


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """What was learnt from `past` changes. `slope` and `shift` calibrate log-odds; `leaves` is the leaf of each past
    change."""

    past: tuple[Change, ...]
    facts: tuple[Facts, ...]
    shape: Shape
    tree: Tree
    shift: float
    slope: float
    leaves: tuple[int, ...]
    usual: float
    losses: tuple[tuple[str, float], ...] = ()

    def risk(self, facts: Facts) -> Risk:
        leaf = self.tree.leaf(facts)
        parent = int(self.tree.parent[leaf])
        prior = float(self.tree.share[parent]) if parent >= 0 else 0.5
        weight = SHRINK if parent >= 0 else 1.0
        count, bad = float(self.tree.count[leaf]), float(self.tree.bad[leaf])
        from scipy.special import betaincinv  # takes a third of a second to load: at the first use

        a, b = bad + weight * prior, count - bad + weight * (1 - prior)
        ends = [self._calibrated(float(betaincinv(a, b, q))) for q in (0.025, 0.975)]
        share = self._calibrated(float(self.tree.share[leaf]))
        return Risk(share, min(ends[0], share), max(ends[1], share), self.tree.path(facts), leaf)

    def _calibrated(self, share: float) -> float:
        return float(logistic(self.shift + self.slope * logit(np.array([share])))[0])


def fit(changes: Sequence[Change], min_changes: int, min_bad: int) -> Model:
    """The model of changes in order of time; those without an outcome teach nothing. Raises TooLittleHistoryError."""
    facts = facts_of(changes)
    rows = [i for i, one in enumerate(changes) if one.outcome]
    past, known = tuple(changes[i] for i in rows), tuple(facts[i] for i in rows)
    bad = np.array([one.is_bad for one in past], dtype=bool)
    if len(past) < min_changes or int(bad.sum()) < min_bad or len(past) - int(bad.sum()) < min_bad:
        raise TooLittleHistoryError(
            f"{len(past)} changes with a known outcome, of which {int(bad.sum())} were bad; "
            f"{min_changes} and {min_bad} are needed"
        )
    tables = {fine: columns_of(known, fine) for fine in (False, True)}
    shape, predicted, losses = _chosen(past, tables, bad)
    tested = np.isfinite(predicted)
    shift, slope = calibration(predicted[tested], bad[tested]) if tested.any() else (0.0, 1.0)
    columns, values = tables[shape.fine]
    tree = grow(columns, values, bad, shape)
    leaves = tuple(tree.leaves(values).tolist())
    return Model(past, known, shape, tree, shift, slope, leaves, float(bad.mean()), losses)


def folds(past: Sequence[Change]) -> list[tuple[Mask, Mask]]:
    """Which changes teach and which are tested, block after block of time: what teaches was known before the block."""
    at = np.array([one.at for one in past], dtype=np.int64)
    known = np.array([one.known_at for one in past], dtype=np.int64)
    edges = np.linspace(FIRST_BLOCK, 1.0, BLOCKS + 1)
    cuts = [round(edge * len(past)) for edge in edges.tolist()]
    found = []
    for begin, end in pairwise(cuts):
        tested = np.zeros(len(past), dtype=bool)
        tested[begin:end] = True
        found.append((known < at[begin], tested))
    return [(teach, tested) for teach, tested in found if tested.any()]


def _chosen(
    past: Sequence[Change], tables: Mapping[bool, Table], bad: Mask
) -> tuple[Shape, Floats, tuple[tuple[str, float], ...]]:
    """The shape of least log loss in the folds, its predictions there (NaN elsewhere), and each loss."""
    usable = [one for one in folds(past) if bad[one[0]].any() and not bad[one[0]].all()]
    tried = {shape: np.full(len(past), np.nan) for shape in SHAPES}
    for (teach, tested), shape in product(usable, SHAPES):
        columns, values = tables[shape.fine]
        tree = grow(columns, values[teach], bad[teach], shape)
        tried[shape][tested] = tree.share[tree.leaves(values[tested])]
    losses = {shape: log_loss(predicted, bad) for shape, predicted in tried.items()}
    best = min(SHAPES, key=lambda one: (round(losses[one], 9), SHAPES.index(one)))
    return best, tried[best], tuple((shape.name, losses[shape]) for shape in SHAPES)


def grow(columns: tuple[Column, ...], values: Floats, bad: Mask, shape: Shape) -> Tree:
    if not shape.gain or not columns or not bad.any() or bad.all():
        return _leaf_only(bad)
    from sklearn.tree import DecisionTreeClassifier  # takes a second to load: at the first use

    grown = DecisionTreeClassifier(
        criterion="log_loss",  # in bits, as a mean over all changes
        max_depth=DEPTH,
        min_samples_leaf=max(FEWEST_IN_A_LEAF, round(LEAF * len(values))),
        min_impurity_decrease=shape.gain / (2 * math.log(2) * len(values)),
        random_state=0,
    ).fit(values, bad)
    return _tree(columns, grown.tree_, list(grown.classes_).index(True))


def _tree(columns: tuple[Column, ...], grown: Any, place: int) -> Tree:
    left, right = np.asarray(grown.children_left), np.asarray(grown.children_right)
    count = np.asarray(grown.n_node_samples, dtype=np.float64)
    bad = np.round(np.asarray(grown.value)[:, 0, place] * count)
    parent = np.full(len(left), -1, dtype=np.int64)
    share = np.zeros(len(left))
    share[0] = (bad[0] + 0.5) / (count[0] + 1)
    for node in range(len(left)):  # children come after their parents
        for child in (left[node], right[node]):
            if child >= 0:
                parent[child] = node
                share[child] = (bad[child] + SHRINK * share[node]) / (count[child] + SHRINK)
    column, threshold = np.asarray(grown.feature, np.int64), np.asarray(grown.threshold, np.float64)
    return Tree(
        columns, left.astype(np.int64), right.astype(np.int64), column, threshold, count, bad, share, parent
    )


def _leaf_only(bad: Mask) -> Tree:
    none = np.array([-1], dtype=np.int64)
    count, hits = float(len(bad)), float(bad.sum())
    share = np.array([(hits + 0.5) / (count + 1)])
    return Tree((), none, none, none, np.zeros(1), np.array([count]), np.array([hits]), share, none)
