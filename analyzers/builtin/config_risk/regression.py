"""Logistic regression over columns of changes, with the standard error of a probability and its strongest reasons."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.config_risk.features import Column, Facts

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

RIDGES = (0.003, 0.03, 0.3)
"""Inverse weights of the penalty on coefficients of standardised columns, the strongest penalty first."""
MOST_REASONS = 3
_NOTABLE = 0.2
"""Least log-odds that a column adds to be a reason."""


@dataclass(frozen=True, eq=False)
class Regression:
    """`weights` has the constant first; `precision` is that of the weights, the penalty taken as a prior."""

    columns: tuple[Column, ...]
    centre: Floats
    scale: Floats
    weights: Floats
    precision: Floats

    @cached_property
    def _covariance(self) -> Floats:
        return np.asarray(np.linalg.inv(self.precision))

    def odds(self, values: Floats) -> Floats:
        """Log-odds of rows of the columns."""
        return np.asarray(self.weights[0] + self._standard(values) @ self.weights[1:])

    def error(self, facts: Facts) -> float:
        """Standard error of the log-odds of one change."""
        row = np.concatenate([[1.0], self._standard(self._row(facts))])
        return float(np.sqrt(row @ self._covariance @ row))

    def odds_of(self, facts: Facts) -> float:
        return float(self.odds(self._row(facts)[None, :])[0])

    def reasons(self, facts: Facts) -> tuple[str, ...]:
        """Features that raise the odds most, with the factor, the strongest first."""
        values = self._row(facts)
        added = self._standard(values) * self.weights[1:]
        strongest = [at for at in np.argsort(-added, kind="stable").tolist() if added[at] >= _NOTABLE]
        return tuple(
            f"{self._condition(at, float(values[at]))} (odds times {np.exp(added[at]):.2g})"
            for at in strongest[:MOST_REASONS]
        )

    def _condition(self, at: int, value: float) -> str:
        column = self.columns[at]
        return column.condition(0.5 if column.is_word else float(self.centre[at]), value > self.centre[at])

    def _row(self, facts: Facts) -> Floats:
        return np.array([column.value(facts) for column in self.columns])

    def _standard(self, values: Floats) -> Floats:
        return np.asarray((values - self.centre) / self.scale)


def regression(columns: tuple[Column, ...], values: Floats, bad: Mask, ridge: float) -> Regression:
    """Of changes of both outcomes."""
    from sklearn.linear_model import LogisticRegression  # takes a second to load: at the first use

    centre, scale = values.mean(axis=0), values.std(axis=0) + 1e-9
    x = (values - centre) / scale
    if not columns:
        share = (bad.sum() + 0.5) / (len(bad) + 1)
        precision = np.array([[len(bad) * share * (1 - share)]])
        return Regression((), centre, scale, np.array([np.log(share / (1 - share))]), precision)
    fitted = LogisticRegression(C=ridge, max_iter=500).fit(x, bad)
    weights = np.concatenate([fitted.intercept_, fitted.coef_[0]])
    design = np.column_stack([np.ones(len(x)), x])
    p = fitted.predict_proba(x)[:, 1]
    precision = (design * (p * (1 - p))[:, None]).T @ design
    precision[1:, 1:] += np.eye(len(columns)) / ridge
    return Regression(columns, centre, scale, weights, precision)
