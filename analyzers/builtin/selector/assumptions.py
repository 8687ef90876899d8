"""What the selector assumes, checked on its data, and how it corrects its probabilities where that fails."""

from __future__ import annotations

import numpy as np

from analyzers.builtin.selector.hazard import State
from analyzers.builtin.selector.trial import Trial
from analyzers.builtin.text import percent, so_many
from analyzers.contract import Assumption

_OFF = 1.5
"""How many times as many or as few incidents as predicted may happen."""
_ERRORS = 3.0
"""Standard errors of a count that this must exceed, too."""
_PRIOR = 5.0
"""Incidents as predicted that a correction starts from, so that a few do not move it far."""
_KNOWN = 0.5


def correction(tried: Trial | None) -> float:
    """What the odds of an incident are multiplied by: 1 where the predictions that were tried came true."""
    if tried is None or _came_true(tried):
        return 1.0
    return (tried.incidents + _PRIOR) / (tried.expected + _PRIOR)


def assumptions(tried: Trial | None, state: State) -> tuple[Assumption, ...]:
    """Whether the past predicts what follows it, and whether covariates are told of the nodes at risk."""
    return (_history(tried), _sampling(state))


def _history(tried: Trial | None) -> Assumption:
    if tried is None:
        detail = "The data are too short to hold some out: nothing shows that the probabilities hold."
        return Assumption("history", False, detail)
    happened = f"{so_many(tried.incidents, 'incident')} happened"
    said = f"{happened} where {tried.expected:.3g} were predicted, on held-out data"
    if _came_true(tried):
        return Assumption("history", True, f"{said}.")
    return Assumption("history", False, f"{said}: odds are multiplied by {correction(tried):.2g}.")


def _came_true(tried: Trial) -> bool:
    error = _ERRORS * float(np.sqrt(max(tried.expected, 1.0)))
    ratio = (tried.incidents + 0.5) / (tried.expected + 0.5)
    return abs(tried.incidents - tried.expected) <= error or 1 / _OFF <= ratio <= _OFF


def _sampling(state: State) -> Assumption:
    told = state.covariates[:, 1:]  # the first is the count of incidents, which is always known
    if not told.shape[1] or not len(told):
        return Assumption("sampling", True, "No covariates are told: nodes differ by their incidents only.")
    known = float(np.mean(~np.isnan(told)))
    detail = f"{percent(known)} of the covariates of {so_many(len(told), 'node')} at risk are known."
    return Assumption("sampling", known >= _KNOWN, detail)
