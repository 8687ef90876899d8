"""The probability of a bad outcome: a tree, a regression or both, chosen and calibrated in time-ordered folds. The tree
is the rule in words, whichever gives the probability."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.config_risk.features import Column, Facts, columns_of, facts_of
from analyzers.builtin.config_risk.records import Change
from analyzers.builtin.config_risk.regression import RIDGES, Regression, regression
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


STEEPEST = 0.9
"""Largest slope of the calibration, chosen on the simulator's seeds for that: models of the folds learn from fewer
changes and are more timid than the one of all changes, whose log-odds are too bold by about this."""
OUTDATED = 0.25
"""Weight of log-odds that no longer do better than the usual share."""


class TooLittleHistoryError(ValueError):
    """Too few changes for a probability; the message is the end of a sentence."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Splits of a tree and their least gain; no gain is no tree."""

    fine: bool = False
    gain: float = 0.0

    @property
    def name(self) -> str:
        values = ", with values of keys" if self.fine else ""
        return f"tree of splits that gain {self.gain:g} at least{values}" if self.gain else "usual share"


TREE, REGRESSION, BOTH = "tree", "logistic regression", "tree and logistic regression"
LEARNERS = (TREE, REGRESSION, BOTH)
"""Learners of the probability; both is the mean of their log-odds."""
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
    """Probability of a bad outcome with its 95 % interval, the path, which past changes took it, and what raises the
    odds of the regression if that counts."""

    probability: float
    low: float
    high: float
    path: tuple[Step, ...]
    leaf: int
    reasons: tuple[str, ...] = ()

    @property
    def rule(self) -> str:
        """The path, else the reasons, in words."""
        return ", ".join([step.condition for step in self.path] or self.reasons)


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
    """Model learnt from `past` changes. `slope` and `shift` calibrate log-odds; `leaves` is the leaf of each past
    change, `stated` its calibrated probability from changes before it, NaN for the first."""

    past: tuple[Change, ...]
    facts: tuple[Facts, ...]
    shape: Shape
    tree: Tree
    regression: Regression
    learner: str
    shift: float
    slope: float
    leaves: tuple[int, ...]
    usual: float
    losses: tuple[tuple[str, float], ...] = ()
    stated: Floats = field(default_factory=lambda: np.empty(0))

    def risk(self, facts: Facts) -> Risk:
        leaf = self.tree.leaf(facts)
        parts = []
        if self.learner != REGRESSION:
            parts.append(self._of_tree(leaf))
        if self.learner != TREE:
            at, error = self.regression.odds_of(facts), 1.96 * self.regression.error(facts)
            parts.append(np.array([at - error, at, at + error]))
        odds = self.shift + self.slope * np.mean(parts, axis=0)
        low, middle, high = np.asarray(logistic(odds)).tolist()
        reasons = () if self.learner == TREE else self.regression.reasons(facts)
        return Risk(middle, min(low, middle), max(high, middle), self.tree.path(facts), leaf, reasons)

    def _of_tree(self, leaf: int) -> Floats:
        """Log-odds of a leaf between the ends of the interval of a beta distribution that begins at its parent."""
        from scipy.special import betaincinv  # takes a third of a second to load: at the first use

        parent = int(self.tree.parent[leaf])
        prior = float(self.tree.share[parent]) if parent >= 0 else 0.5
        weight = SHRINK if parent >= 0 else 1.0
        count, bad = float(self.tree.count[leaf]), float(self.tree.bad[leaf])
        a, b = bad + weight * prior, count - bad + weight * (1 - prior)
        low, high = (float(betaincinv(a, b, q)) for q in (0.025, 0.975))
        return logit(np.array([low, float(self.tree.share[leaf]), high]))


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
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    tables = {fine: columns_of(known, fine) for fine in (False, True)}
    # Threads that wait for each other cost more than they save on small tables.
    with threadpool_limits(limits=1):
        return _fitted(past, known, bad, tables)


def _fitted(
    past: tuple[Change, ...], known: tuple[Facts, ...], bad: Mask, tables: Mapping[bool, Table]
) -> Model:
    tried = _tried(past, tables, bad)
    chosen = tried.choice(bad, np.isfinite(tried.trees[NONE]))
    shape, ridge, learner = chosen.shape, chosen.ridge, chosen.learner
    stated = tried.out_of_time(past, bad)
    shift, slope = _calibrated(stated, bad)
    columns, values = tables[shape.fine]
    tree = grow(columns, values, bad, shape)
    leaves = tuple(tree.leaves(values).tolist())
    line = regression(*tables[True], bad, ridge)
    shown = (
        *((one.name, log_loss(each, bad)) for one, each in tried.trees.items()),
        *((f"{REGRESSION}, ridge {one:g}", log_loss(each, bad)) for one, each in tried.ridges.items()),
        (BOTH, log_loss(tried.predictions(shape, ridge, BOTH), bad)),
    )
    calibrated = np.asarray(logistic(shift + slope * logit(stated)))
    return Model(
        past, known, shape, tree, line, learner, shift, slope, leaves, float(bad.mean()), shown, calibrated
    )


def folds(past: Sequence[Change]) -> list[tuple[Mask, Mask]]:
    """Changes to learn from and changes to test, block after block of time: the former were known before the block."""
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


@dataclass(frozen=True, slots=True)
class _Choice:
    shape: Shape
    ridge: float
    learner: str


@dataclass(frozen=True, slots=True, eq=False)
class _Tried:
    """Predictions in the folds by each shape of tree and each penalty of the regression, NaN elsewhere."""

    trees: Mapping[Shape, Floats]
    ridges: Mapping[float, Floats]

    def predictions(self, shape: Shape, ridge: float, learner: str) -> Floats:
        tree, line = self.trees[shape], self.ridges[ridge]
        if learner == BOTH:
            return logistic((logit(tree) + logit(line)) / 2)
        return tree if learner == TREE else line

    def choice(self, bad: Mask, rows: Mask) -> _Choice:
        """Learner with the least log loss over some of the tested rows."""

        def loss(predicted: Floats) -> float:
            return round(log_loss(predicted[rows], bad[rows]), 9)

        shape = min(SHAPES, key=lambda one: (loss(self.trees[one]), SHAPES.index(one)))
        ridge = min(RIDGES, key=lambda one: (loss(self.ridges[one]), one))
        # The usual share ranks nothing: without a rule the regression says which changes are likelier, half-way at
        # least.
        allowed = LEARNERS if shape.gain else (BOTH, REGRESSION)
        learner = min(
            allowed, key=lambda one: (loss(self.predictions(shape, ridge, one)), allowed.index(one))
        )
        return _Choice(shape, ridge, learner)

    def out_of_time(self, past: Sequence[Change], bad: Mask) -> Floats:
        """Of each block what would have been stated before it, by the choice that the blocks before it make; NaN up to
        the second block. A choice that has seen the block makes its own predictions look better than they are."""
        stated = np.full(len(past), np.nan)
        before = np.zeros(len(past), dtype=bool)
        for _, tested in folds(past):
            seen = before & np.isfinite(self.trees[NONE])
            if seen.any():
                best = self.choice(bad, seen)
                stated[tested] = self.predictions(best.shape, best.ridge, best.learner)[tested]
            before |= tested
        return stated


def _tried(past: Sequence[Change], tables: Mapping[bool, Table], bad: Mask) -> _Tried:
    usable = [one for one in folds(past) if bad[one[0]].any() and not bad[one[0]].all()]
    trees = {shape: np.full(len(past), np.nan) for shape in SHAPES}
    ridges = {ridge: np.full(len(past), np.nan) for ridge in RIDGES}
    for teach, tested in usable:
        for shape in SHAPES:
            columns, values = tables[shape.fine]
            tree = grow(columns, values[teach], bad[teach], shape)
            trees[shape][tested] = tree.share[tree.leaves(values[tested])]
        columns, values = tables[True]
        for ridge in RIDGES:
            line = regression(columns, values[teach], bad[teach], ridge)
            ridges[ridge][tested] = logistic(line.odds(values[tested]))
    return _Tried(trees, ridges)


def _calibrated(predicted: Floats, bad: Mask) -> tuple[float, float]:
    """Shift and slope of log-odds, around the usual share. Of what does worse than the usual share on the later half of
    the folds little is left: what made changes bad may have been mended."""
    tested = np.flatnonzero(np.isfinite(predicted))
    if not len(tested):
        return 0.0, 1.0
    usual = float(bad.mean())
    centre = float(logit(np.array([usual]))[0])
    shift, slope = calibration(predicted[tested], bad[tested], centre=centre, steepest=STEEPEST)
    later = tested[len(tested) // 2 :]
    stated = logistic(shift + slope * logit(predicted[later]))
    if log_loss(stated, bad[later]) > log_loss(np.full(len(later), usual), bad[later]):
        return (1 - OUTDATED) * centre + OUTDATED * shift, OUTDATED * slope
    return shift, slope


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
