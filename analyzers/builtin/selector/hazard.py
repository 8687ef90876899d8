"""The probability that a node has an incident within the horizon: Cox's proportional hazards (Cox, 1972).

The coefficients are lifelines' (Davidson-Pilon, JOSS 2019; Efron's ties, ridge penalty), the baseline is Breslow's
estimator (1974), and an incident within T hours, given none for t hours, has the probability
1 - exp(-(H0(t + T) - H0(t)) exp(beta x)). Durations are counted in steps of a grid: with intervals that begin late the
library takes time with their number times the number of distinct durations.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.selector.episodes import Episodes

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

STEPS = 240
"""Distinct durations at most."""
KNOWN = 0.8
"""Share of intervals in which a covariate must be known."""
PENALTY = 0.01
PER_EVENT = 5
"""Incidents that each covariate needs, so that a few incidents do not explain everything."""

_TAIL = 0.25  # share of the events from which the slope beyond the last duration is taken
_FURTHEST = 3.0  # standard deviations beyond which a covariate says no more


class NoModel(ValueError):
    """Nothing can be learnt; the message says why."""


@dataclass(frozen=True, slots=True, eq=False)
class Effect:
    """What one standard deviation more of a covariate does to the hazard, with the 95 % interval."""

    name: str
    ratio: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """`columns` of the covariates are used, centred and scaled; `times` (hours) and `cumulative` are the baseline,
    which goes on with `slope` per hour after the last.
    """

    columns: Ints
    filling: Floats
    centre: Floats
    scale: Floats
    beta: Floats
    times: Floats
    cumulative: Floats
    slope: float
    effects: tuple[Effect, ...]
    dropped: tuple[str, ...]
    events: int

    def scores(self, covariates: Floats) -> Floats:
        """beta x of each row; shape (rows,)."""
        if not len(self.columns):
            return np.zeros(len(covariates))
        return np.asarray(self._standard(covariates) @ self.beta)

    def strongest(self, covariates: Floats) -> Ints:
        """For each row the place (in `columns`) of the covariate that raises its hazard most."""
        if not len(self.columns):
            return np.full(len(covariates), -1, dtype=np.int64)
        return np.asarray(np.argmax(self._standard(covariates) * self.beta, axis=1))

    def _standard(self, covariates: Floats) -> Floats:
        taken = covariates[:, self.columns]
        filled = np.where(np.isnan(taken), self.filling, taken)
        return np.asarray(np.clip((filled - self.centre) / self.scale, -_FURTHEST, _FURTHEST))

    def baseline(self, hours: Floats) -> Floats:
        """The cumulative baseline hazard at durations in hours."""
        inside = np.interp(hours, np.append(0.0, self.times), np.append(0.0, self.cumulative))
        return np.asarray(inside + self.slope * np.maximum(hours - self.times[-1], 0.0))

    def chance(self, covariates: Floats, since: Floats, horizon: float) -> Floats:
        """The probability of an incident within `horizon` hours, `since` hours after the last; shape (rows,)."""
        gained = self.baseline(since + horizon) - self.baseline(since)
        return np.asarray(-np.expm1(-gained * np.exp(self.scores(covariates))))

    def due(self, covariates: Floats, since: Floats, target: float, most: float) -> Floats:
        """The hours after which the probability reaches `target`, at most `most`; shape (rows,)."""
        low, high = np.zeros(len(since)), np.full(len(since), most)
        for _ in range(24):
            middle = (low + high) / 2
            gained = self.baseline(since + middle) - self.baseline(since)
            reached = -np.expm1(-gained * np.exp(self.scores(covariates))) >= target
            low, high = np.where(reached, low, middle), np.where(reached, middle, high)
        return high


def fit(told: Episodes, min_incidents: int) -> Model:
    """Learn from intervals. Raises NoModel with a sentence if there is too little to learn from."""
    events = int(told.event.sum())
    if events < min_incidents:
        found = {0: "no incident follows a sighting", 1: "one incident follows a sighting"}
        raise NoModel(
            f"{found.get(events, f'{events} incidents follow a sighting')}; {min_incidents} are needed"
        )
    entry, leave = _on_grid(told.start - told.origin, told.stop - told.origin)
    columns, dropped = _usable(told, events)
    filling = np.nanmedian(told.covariates[:, columns], axis=0)
    filled = np.where(np.isnan(told.covariates[:, columns]), filling, told.covariates[:, columns])
    centre, scale = filled.mean(axis=0), filled.std(axis=0)
    standard = np.clip((filled - centre) / scale, -_FURTHEST, _FURTHEST)
    beta, spread = _coefficients(standard, entry, leave, told.event)
    times, cumulative = breslow(entry, leave, told.event, np.exp(standard @ beta))
    names = [told.names[column] for column in columns.tolist()]
    effects = tuple(
        Effect(name, *(float(np.exp(b + z * s)) for z in (0.0, -1.96, 1.96)))
        for name, b, s in zip(names, beta.tolist(), spread.tolist(), strict=True)
    )
    return Model(
        columns,
        filling,
        centre,
        scale,
        beta,
        times,
        cumulative,
        _slope(times, cumulative, float(leave.max())),
        effects,
        dropped,
        events,
    )


def _on_grid(entry: Floats, leave: Floats) -> tuple[Floats, Floats]:
    step = max(1.0, float(leave.max()) / STEPS)
    last = np.maximum(np.ceil(leave / step), 1.0)
    first = np.minimum(np.floor(entry / step), last - 1)
    return first * step, last * step


def _usable(told: Episodes, events: int) -> tuple[Ints, tuple[str, ...]]:
    """The covariates that are known often enough and differ, as many as the incidents carry, and those left out.

    If there are too many, those that differ most between intervals that end with an incident and others stay.
    """
    usable: list[tuple[float, int]] = []
    for column in range(len(told.names)):
        values = told.covariates[:, column]
        known = ~np.isnan(values)
        if known.mean() < KNOWN or not np.nanstd(values) > 1e-9 * (1 + abs(np.nanmean(values))):
            continue
        struck = known & told.event
        apart = abs(values[struck].mean() - np.nanmean(values)) / np.nanstd(values) if struck.any() else 0.0
        usable.append((-apart, column))
    kept = sorted(column for _, column in sorted(usable)[: max(1, events // PER_EVENT)])
    dropped = tuple(name for column, name in enumerate(told.names) if column not in kept)
    return np.array(kept, dtype=np.int64), dropped


def _coefficients(
    standard: Floats, entry: Floats, leave: Floats, event: NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """Coefficients and their standard errors. Raises NoModel if they do not converge."""
    if not standard.shape[1]:
        return np.empty(0), np.empty(0)
    import pandas  # heavy: only when there is something to fit
    from lifelines import CoxPHFitter
    from lifelines.exceptions import ConvergenceError, ConvergenceWarning

    order = np.lexsort((*standard.T, event, entry, leave))  # the same sums whatever order the rows come in
    frame = pandas.DataFrame(standard[order], columns=[f"x{i}" for i in range(standard.shape[1])])
    frame["entry"], frame["leave"], frame["event"] = entry[order], leave[order], event[order]
    fitter = CoxPHFitter(penalizer=PENALTY)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        try:
            fitter.fit(frame, "leave", "event", entry_col="entry")
        except (ConvergenceError, ConvergenceWarning) as error:
            reason = str(error).split(".")[0]
            raise NoModel(f"the covariates do not determine a model ({reason})") from error
    return fitter.params_.to_numpy(dtype=np.float64), fitter.standard_errors_.to_numpy(dtype=np.float64)


def breslow(entry: Floats, leave: Floats, event: NDArray[np.bool_], weight: Floats) -> tuple[Floats, Floats]:
    """Breslow's estimator: the durations at which incidents happen, and the cumulative baseline hazard there.

    At each such duration it grows by the incidents over the sum of `weight` of the intervals that are under way.
    """
    times, count = np.unique(leave[event], return_counts=True)
    by_leave, by_entry = np.argsort(leave, kind="stable"), np.argsort(entry, kind="stable")
    left = np.append(0.0, np.cumsum(weight[by_leave]))
    entered = np.append(0.0, np.cumsum(weight[by_entry]))
    at_risk = (
        entered[np.searchsorted(entry[by_entry], times, side="left")]
        - left[np.searchsorted(leave[by_leave], times, side="left")]
    )
    return times, np.cumsum(count / np.maximum(at_risk, 1e-12))


def _slope(times: Floats, cumulative: Floats, last: float) -> float:
    """The hazard per hour beyond the last incident: that of the last quarter of them, until the end of the data."""
    first = int((1 - _TAIL) * (len(times) - 1))
    before = cumulative[first - 1] if first else 0.0
    begun = times[first - 1] if first else 0.0
    return float((cumulative[-1] - before) / max(last - begun, 1e-9))
