"""The probability that a node has an incident within the horizon: regression of the hazard at landmarks.

At evenly spaced moments of the past (landmarks; van Houwelingen, Scandinavian Journal of Statistics, 2007) every node
that was at risk is one row: what was known of it then, and whether it had an incident within the next step. The
regression states the probability that is asked for itself, 1 - exp(-exp(columns @ beta)), the complementary log-log
link for grouped times (Prentice and Gloeckler, Biometrics, 1978), and is not thrown off by durations that are rounded.
In the logistic link a node of twice the rate has twice the odds, which is less than it fails where that is most days.
Beside the covariates a row holds what the past of the node says: its own rate of incidents (drawn towards the fleet's
by half an incident), how many it had, and how long ago the last one was. Later rows weigh more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.selector.episodes import Episodes

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

LANDMARKS = 400
"""Moments at most; a step is as long as the horizon, or longer where that would be more."""
MOST_SPARED = 40_000
"""Rows without an incident at most; of more an even choice is taken, which counts for all."""
KNOWN = 0.02
"""Share of rows in which a covariate must be known."""
PER_EVENT = 5
"""Incidents that each column needs, so that a few incidents do not explain everything."""
PENALTY = 1.0
"""Prior precision of each coefficient, per standard deviation of its column."""
HALVES = 1.0
"""Number of times that the weight of rows halves over the data."""

_FURTHEST = 3.0  # standard deviations beyond which a column says no more
_MOST_LOG = 5.0  # log of the most incidents expected in a step
_SKEWED = 2.0  # skewness from which on the logarithm of a covariate is taken
_SOON, _LATER = 72.0, 504.0  # hours over which a recent incident is forgotten

OWN = ("own_rate", "had_incident", "last_3_days", "last_3_weeks")
"""Columns made from the past of a node, beside the covariates."""


class HazardModelError(ValueError):
    """Nothing can be learnt; the message says why."""


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """Nodes at a moment: `covariates` as in `Episodes`, hours `since` the clock of each began, hours that each was
    `observed` in all, and its `incidents` so far; shapes (nodes, names) and (nodes,).
    """

    covariates: Floats
    since: Floats
    observed: Floats
    incidents: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Effect:
    """Effect of one standard deviation more of a column on the hazard, with the 95 % interval."""

    name: str
    ratio: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """`columns` are the covariates used, `logs` those used as a logarithm; `selected` are the columns that the
    incidents support, by place among covariates, OWN and flags of missing values. `window` are the hours of a
    coefficient, `rate` the incidents of the fleet per node and hour.
    """

    columns: Ints
    logs: Mask
    filling: Floats
    gaps: Mask
    selected: Ints
    centre: Floats
    scale: Floats
    beta: Floats
    intercept: float
    window: float
    rate: float
    names: tuple[str, ...]
    effects: tuple[Effect, ...]
    dropped: tuple[str, ...]
    events: int

    def chance(self, state: State, horizon: float) -> Floats:
        """The probability of an incident within `horizon` hours; shape (nodes,)."""
        return np.asarray(-np.expm1(-self._hazard(state) * horizon))

    def scaled(self, factor: float) -> Model:
        """The same model with `factor` times the hazard."""
        return replace(self, intercept=self.intercept + float(np.log(factor)))

    def due(self, state: State, target: float, most: float) -> Floats:
        """The hours after which the probability reaches `target`, at most `most`; shape (nodes,)."""
        return np.asarray(np.minimum(-np.log1p(-target) / np.maximum(self._hazard(state), 1e-300), most))

    def strongest(self, state: State) -> Ints:
        """For each node the place among `columns` of the covariate that raises its probability most, -1 if none."""
        added = self._standard(state) * self.beta
        found = np.full(len(state.since), -1, dtype=np.int64)
        places = np.flatnonzero(self.selected < len(self.columns))
        if len(places):
            best = np.argmax(added[:, places], axis=1)
            raises = added[np.arange(len(found)), places[best]] > 0
            found[raises] = self.selected[places[best]][raises]
        return found

    def _hazard(self, state: State) -> Floats:
        """Incidents per hour, shape (nodes,), such that the step of the regression has the probability it states."""
        logs = self._standard(state) @ self.beta + self.intercept
        return np.asarray(np.exp(np.minimum(logs, _MOST_LOG)) / self.window)

    def _standard(self, state: State) -> Floats:
        rows = _columns(state, self.columns, self.logs, self.filling, self.gaps, self.rate)[:, self.selected]
        return _within((rows - self.centre) / self.scale, self.selected, len(self.columns))


def state_at(record: Episodes, at: float) -> tuple[State, Episodes]:
    """The nodes at risk at a time (hours since 1970), with their intervals."""
    under_way = record.under_way(at)
    return state_of(record, under_way, at), under_way


def state_of(record: Episodes, intervals: Episodes, at: float) -> State:
    """The state at a time of the nodes of `intervals`, one each."""
    worked = np.clip(np.minimum(record.stop, at) - record.start, 0, None)
    exposure = np.asarray(np.bincount(record.node, worked, minlength=len(record.nodes)), dtype=np.float64)
    return State(intervals.covariates, at - intervals.origin, exposure[intervals.node], intervals.incidents)


def fit(record: Episodes, horizon: float, min_incidents: int) -> Model:
    """Learn from intervals. Raises HazardModelError with a sentence if there is too little to learn from."""
    events = int(record.event.sum())
    if events < min_incidents:
        found = {0: "no incident follows a sighting", 1: "one incident follows a sighting"}
        raise HazardModelError(
            f"{found.get(events, f'{events} incidents follow a sighting')}; {min_incidents} are needed"
        )
    state, struck, weight, window = _landmarks(record, horizon)
    if not struck.any() or struck.all():
        raise HazardModelError(
            "no moment divides nodes before an incident from others: the data are too short"
        )
    rate = events / max(float((record.stop - record.start).sum()), 1e-9)
    columns, logs, filling, gaps = _usable(state)
    rows = _columns(state, columns, logs, filling, gaps, rate)
    measured_names = [record.names[column] for column in columns.tolist()]
    every = (*measured_names, *OWN, *(f"{measured_names[at]}_unknown" for at in np.flatnonzero(gaps)))
    selected = _telling(rows, struck, weight, events)
    centre = np.average(rows[:, selected], axis=0, weights=weight)
    scale = np.sqrt(np.average((rows[:, selected] - centre) ** 2, axis=0, weights=weight))
    standard = _within((rows[:, selected] - centre) / scale, selected, len(columns))
    beta, intercept, spread = _regression(standard, struck, weight)
    names = tuple(every[at] for at in selected.tolist())
    effects = tuple(
        Effect(name, *(float(np.exp(b + z * s)) for z in (0.0, -1.96, 1.96)))
        for name, b, s in zip(names, beta.tolist(), spread.tolist(), strict=True)
    )
    used = {name.removesuffix("_unknown") for name in names}
    dropped = tuple(name for name in record.names if name not in used)
    return Model(
        columns,
        logs,
        filling,
        gaps,
        selected,
        centre,
        scale,
        beta,
        intercept,
        window,
        rate,
        names,
        effects,
        dropped,
        events,
    )


def _landmarks(record: Episodes, horizon: float) -> tuple[State, Mask, Floats, float]:
    """Rows of all landmarks, whether each was struck within the step, their weights, and the step in hours.

    A node that left before the step was over, without an incident, says nothing.
    """
    first, last = float(record.start.min()), float(record.stop.max())
    step = max(min(horizon, (last - first) / 4), (last - first) / LANDMARKS)
    moments = np.arange(last - step, first, -step)[::-1]
    parts, hits, weights = [], [], []
    until = np.zeros(len(record.nodes))
    np.maximum.at(until, record.node, record.stop)
    for at in moments.tolist():
        state, under_way = state_at(record, at)
        if not len(under_way):
            continue
        soon = record.event & (record.stop > at) & (record.stop <= at + step)
        struck = np.zeros(len(record.nodes), dtype=bool)
        struck[record.node[soon]] = True
        hit = struck[under_way.node]
        whole = hit | (until[under_way.node] >= at + step - 1e-6)
        parts.append(_taken(state, whole))
        hits.append(hit[whole])
        weights.append(np.full(int(whole.sum()), 0.5 ** (HALVES * (last - at) / (last - first))))
    if not parts:
        raise HazardModelError(
            "no moment divides nodes before an incident from others: the data are too short"
        )
    state = State(
        np.concatenate([one.covariates for one in parts]),
        np.concatenate([one.since for one in parts]),
        np.concatenate([one.observed for one in parts]),
        np.concatenate([one.incidents for one in parts]),
    )
    return (*_thinned(state, np.concatenate(hits), np.concatenate(weights)), step)


def _thinned(state: State, struck: Mask, weight: Floats) -> tuple[State, Mask, Floats]:
    """All rows before an incident and an even choice of the others, which counts for all of them."""
    spared = np.flatnonzero(~struck)
    if len(spared) <= MOST_SPARED:
        return state, struck, weight
    chosen = spared[np.linspace(0, len(spared) - 1, MOST_SPARED).round().astype(np.int64)]
    sampled = struck.copy()
    sampled[chosen] = True
    weight = np.where(struck, weight, weight * len(spared) / len(chosen))
    return _taken(state, sampled), struck[sampled], weight[sampled]


def _taken(state: State, rows: Mask) -> State:
    return State(state.covariates[rows], state.since[rows], state.observed[rows], state.incidents[rows])


def _usable(state: State) -> tuple[Ints, Mask, Floats, Mask]:
    """Covariates that are known often enough and differ: their places, whether the logarithm is taken, what stands for
    unknown values, and whether a column says that a value is unknown.
    """
    columns, logs, filling, gaps = [], [], [], []
    for column in range(state.covariates.shape[1]):
        values = state.covariates[:, column]
        known = values[~np.isnan(values)]
        if len(known) < max(2.0, KNOWN * len(values)) or not known.std() > 1e-9 * (1 + abs(known.mean())):
            continue
        skew = float(np.mean((known - known.mean()) ** 3)) / known.std() ** 3
        columns.append(column)
        logs.append(bool(known.min() >= 0 and skew > _SKEWED))
        filling.append(float(np.median(known)))
        gaps.append(bool(1 - len(known) / len(values) > 0.02))
    return (
        np.array(columns, dtype=np.int64),
        np.array(logs, dtype=bool),
        np.array(filling, dtype=np.float64),
        np.array(gaps, dtype=bool),
    )


def _columns(state: State, columns: Ints, logs: Mask, filling: Floats, gaps: Mask, rate: float) -> Floats:
    """All columns of the regression: covariates, OWN, and whether values are unknown; shape (nodes, columns)."""
    taken = state.covariates[:, columns]
    filled = np.where(np.isnan(taken), filling, taken)
    filled = np.where(logs, np.log1p(np.maximum(filled, 0)), filled)
    had = (state.incidents > 0).astype(np.float64)
    own = np.log((state.incidents + 0.5) / (state.observed + 0.5 / rate))
    recent = [had * np.exp(-np.maximum(state.since, 0) / hours) for hours in (_SOON, _LATER)]
    return np.column_stack([filled, own, had, *recent, np.isnan(taken[:, gaps]).astype(np.float64)])


def _within(standard: Floats, selected: Ints, covariates: int) -> Floats:
    """Columns in standard deviations, covariates up to a bound: a wrong reading says no more than an unusual one. A
    node's own rate has none, because it is what happened: among many nodes without an incident, one with thirty is far
    beyond three standard deviations.
    """
    furthest = np.where(selected == covariates + OWN.index("own_rate"), np.inf, _FURTHEST)
    return np.asarray(np.clip(standard, -furthest, furthest))


def _telling(rows: Floats, struck: Mask, weight: Floats, events: int) -> Ints:
    """Columns that differ, as many as the incidents carry: those that differ most between rows before an incident and
    all rows.
    """
    mean = np.average(rows, axis=0, weights=weight)
    spread = np.sqrt(np.average((rows - mean) ** 2, axis=0, weights=weight))
    differs = spread > 1e-9 * (1 + np.abs(mean))
    before = np.average(rows[struck], axis=0, weights=weight[struck])
    apart = np.abs(before - mean) / np.where(differs, spread, 1.0)
    order = [at for at in np.argsort(-apart, kind="stable").tolist() if differs[at]]
    return np.array(sorted(order[: max(1, events // PER_EVENT)]), dtype=np.int64)


def _regression(standard: Floats, struck: Mask, weight: Floats) -> tuple[Floats, float, Floats]:
    """Coefficients, intercept and standard errors of the coefficients. Raises HazardModelError if they do not
    converge."""
    rows = np.column_stack([standard, np.ones(len(standard))])
    penalty = np.full(rows.shape[1], PENALTY)
    penalty[-1] = 1e-6
    share = np.average(struck, weights=weight)
    beta = np.zeros(rows.shape[1])
    beta[-1] = np.log(-np.log1p(-share))
    best, step = -np.inf, np.zeros_like(beta)
    for _ in range(100):  # Fisher scoring; the penalised likelihood is concave
        value, mean, chance = _likelihood(rows, struck, weight, penalty, beta)
        if value < best - 1e-9 * abs(best):  # too far
            step = step / 2
            beta = beta - step
            continue
        best = value
        gradient = rows.T @ (weight * mean * (struck / chance - 1)) - penalty * beta
        curved = (rows * (weight * mean**2 * (1 / chance - 1))[:, None]).T @ rows + np.diag(penalty)
        step = np.linalg.solve(curved, gradient)
        step = step * min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-12))
        if float(np.abs(step).max()) < 1e-6:
            errors = np.sqrt(np.diag(np.linalg.inv(curved)))
            return beta[:-1], float(beta[-1]), np.asarray(errors[:-1])
        beta = beta + step
    raise HazardModelError("the covariates do not determine a model")


def _likelihood(
    rows: Floats, struck: Mask, weight: Floats, penalty: Floats, beta: Floats
) -> tuple[float, Floats, Floats]:
    """The penalised log-likelihood, and of each row the incidents to be expected and the probability of any."""
    mean = np.exp(np.clip(rows @ beta, -35, _MOST_LOG))
    chance = -np.expm1(-mean)
    value = float(weight @ np.where(struck, np.log(chance), -mean)) - 0.5 * float(penalty @ beta**2)
    return value, mean, chance
