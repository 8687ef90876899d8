"""Class-weighted learners of rare failures, chosen, calibrated and held to a budget of alarms on held-out nodes and
days."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.failure_forecast.days import Days, within_a_week
from analyzers.builtin.stats.calibration import calibration, logistic, logit
from analyzers.builtin.stats.intervals import HOUR
from analyzers.builtin.stats.probability import wilson

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

GROUPS = 4
TAUGHT = 0.6
"""Share of the days that teaches in the folds; the rest is tested, of nodes that did not teach."""
LEAST_DAYS = 14
RIDGE = 0.02
REGRESSION, TREES = "logistic regression", "boosted trees"
LEARNERS = (REGRESSION, TREES)
SURE, PRIOR, PRIOR_SHARE = 0.7, 20, 0.75
"""Probabilities are at most the share of held-out node-days stated at `SURE` or more that an incident followed,
counted with `PRIOR` more of which `PRIOR_SHARE` failed: sure signs are often too early for the horizon, and a straight
line of log-odds goes on beyond them. Of such node-days of 44 tuning fleets .87 was stated and .75 failed.
"""
QUANTILES = np.linspace(0, 1, 129)[1:-1]
"""Between which the trees split."""


class TooLittleError(ValueError):
    """Too little history for a forecast; the message is the end of a sentence."""


@dataclass(frozen=True, slots=True)
class Trial:
    """Held-out node-days: of `alarms` raised at the budget `right` were followed by an incident; `areas` are those
    under precision and recall by learner, `usual` the share of node-days before an incident, `days` the horizon."""

    node_days: int
    failing: int
    alarms: int
    right: int
    areas: tuple[tuple[str, float], ...]
    brier: float
    days: int

    @property
    def usual(self) -> float:
        return self.failing / max(1, self.node_days)

    @property
    def precision(self) -> float:
        return self.right / max(1, self.alarms)

    @property
    def holds(self) -> bool:
        """Whether alarms are right more often than chance, at 95 %. One incident makes as many node-days right as the
        horizon has days, so that alarms are counted as so many times fewer."""
        return wilson(self.right // self.days, -(-self.alarms // self.days))[0] > self.usual


@dataclass(frozen=True, slots=True, eq=False)
class Forecast:
    """Probability of an incident within the horizon for each node at the last day, NaN for nodes that report nothing;
    `raised` are those within the budget of alarms. `reasons` are features by node, the strongest first. `shift`,
    `slope` and `ceiling` calibrate the log-odds of the learner."""

    learner: str
    probability: Floats
    raised: Mask
    trial: Trial
    reasons: tuple[tuple[str, ...], ...]
    shift: float
    slope: float
    ceiling: float


def calibrated(odds: Floats, shift: float, slope: float, ceiling: float) -> Floats:
    """Probabilities of log-odds of the learner; the same shape."""
    return np.minimum(logistic(shift + slope * odds), ceiling)


def ceiling_of(stated: Floats, happened: Mask) -> float:
    """The largest probability to state, from those of held-out node-days."""
    sure = stated >= SURE
    return float((happened[sure].sum() + PRIOR * PRIOR_SHARE) / (sure.sum() + PRIOR))


def forecast(days: Days, horizon: int, end: int, alarms: float, min_incidents: int) -> Forecast:
    """At the last day. Raises TooLittleError."""
    failing = days.failing(horizon)
    active = within_a_week(days.seen)
    known = active & (days.ends + horizon <= end)[None, :]
    if len(days.ends) < LEAST_DAYS or len(days.incidents) < min_incidents:
        raise TooLittleError(
            f"{len(days.incidents)} incidents in {len(days.ends)} days; {min_incidents} and {LEAST_DAYS} are needed"
        )
    tested, predicted = _held_out(days.values, failing, known)
    if not tested.any() or not failing[tested].any() or failing[tested].all():
        raise TooLittleError("no incident follows a held-out day of a node, so that nothing can be tried")
    happened = failing[tested]
    spells = max(1, round(horizon / (24 * HOUR)))
    areas = tuple((name, precision_area(predicted[name][tested], happened)) for name in LEARNERS)
    best = max(LEARNERS, key=lambda name: (dict(areas)[name], name))
    raw = predicted[best][tested]
    shift, slope = calibration(logistic(raw), happened)
    many = max(1, round(alarms / 1000 * len(raw)))
    threshold = float(np.sort(raw)[-many])
    raised = raw >= threshold
    ceiling = ceiling_of(logistic(shift + slope * raw), happened)
    stated = calibrated(raw, shift, slope, ceiling)
    trial = Trial(
        len(raw),
        int(happened.sum()),
        int(raised.sum()),
        int(happened[raised].sum()),
        areas,
        float(np.mean((stated - happened) ** 2)),
        spells,
    )
    now = active[:, -1]
    fitted = learn(best, days.values[known], failing[known])
    odds = np.full(len(days.nodes), np.nan)
    if now.any():
        odds[now] = fitted(days.values[now, -1])
    probability = calibrated(odds, shift, slope, ceiling)
    reasons = _reasons(days, failing, known)
    return Forecast(best, probability, odds >= threshold, trial, reasons, shift, slope, ceiling)


def groups_of(values: Floats) -> NDArray[np.int64]:
    """A group for each node, from its figures and not from its name."""
    mark = np.sort(values, axis=1).sum(axis=1)
    order = np.lexsort([*mark.T, values.sum(axis=(1, 2))])
    group = np.empty(len(values), dtype=np.int64)
    group[order] = np.arange(len(values)) % GROUPS
    return group


def _held_out(values: Floats, failing: Mask, known: Mask) -> tuple[Mask, dict[str, Floats]]:
    """Tested node-days, and the log-odds that each learner gives them, of shape (nodes, days)."""
    days = values.shape[1]
    cut = int(TAUGHT * days)
    early = np.arange(days) < cut
    group = groups_of(values)
    predicted = {name: np.full(known.shape, np.nan) for name in LEARNERS}
    for one in range(GROUPS):
        teach = known & (group != one)[:, None] & early[None, :]
        test = known & (group == one)[:, None] & ~early[None, :]
        if not test.any() or not failing[teach].any() or failing[teach].all():
            continue
        for name in LEARNERS:
            predicted[name][test] = learn(name, values[teach], failing[teach])(values[test])
    return np.isfinite(predicted[REGRESSION]), predicted


def learn(name: str, rows: Floats, failing: Mask) -> Any:
    """A function from rows to log-odds. Classes weigh alike in the learning; the weight is taken out of the odds."""
    share = float(failing.mean())
    weight = np.log(share / (1 - share))
    if name == REGRESSION:
        from sklearn.linear_model import LogisticRegression  # takes a second to load: at the first use

        centre, scale = rows.mean(axis=0), rows.std(axis=0) + 1e-9
        linear = LogisticRegression(C=RIDGE, class_weight="balanced", max_iter=300)
        linear.fit((rows - centre) / scale, failing)
        return lambda new: linear.decision_function((new - centre) / scale) + weight
    from sklearn.ensemble import HistGradientBoostingClassifier

    # Of weighted rows the library sorts a column once for each of its levels.
    edges = [np.unique(np.quantile(column, QUANTILES)) for column in rows.T]
    trees = HistGradientBoostingClassifier(
        class_weight="balanced",
        max_iter=80,
        learning_rate=0.06,
        max_leaf_nodes=8,
        min_samples_leaf=40,
        l2_regularization=5.0,
        early_stopping=False,
        random_state=0,
    ).fit(_levels(rows, edges), failing)
    return lambda new: logit(trees.predict_proba(_levels(new, edges))[:, 1]) + weight


def _levels(values: Floats, edges: Sequence[Floats]) -> Floats:
    """Each column as the number of its quantiles that lie at or below it; the same shape."""
    found = [np.searchsorted(cut, column, side="right") for column, cut in zip(values.T, edges, strict=True)]
    return np.column_stack(found).astype(np.float64)


def precision_area(predicted: Floats, happened: Mask) -> float:
    """The area under precision and recall (average precision)."""
    from sklearn.metrics import average_precision_score

    return float(average_precision_score(happened, predicted))


def _reasons(days: Days, failing: Mask, known: Mask) -> tuple[tuple[str, ...], ...]:
    """Features of the last day that lie on the side of failing node-days, by standard deviations times the difference
    of the means; at most three a node."""
    rows, bad = days.values[known], failing[known]
    centre, scale = rows.mean(axis=0), rows.std(axis=0) + 1e-9
    apart = (rows[bad].mean(axis=0) - centre) / scale
    pull = (days.values[:, -1] - centre) / scale * apart
    order = np.argsort(-pull, axis=1, kind="stable")[:, :3]
    return tuple(
        tuple(days.names[column] for column in row.tolist() if pull[node, column] > 1)
        for node, row in enumerate(order)
    )
