"""Prediction of the team that will resolve an incident, learned from those that people resolved; none where nothing
can be said.

Naive Bayes (multinomial) over the words of `domain.similarity.text`, without any cause: that is not known
yet. The past is gone through in its order, each incident judged by what was known before it was resolved; how sure the
method was is then translated into how often it was right (a logistic curve over its log-odds), and what it
would have suggested is its record. So the probability and the record are of incidents that it had not seen.
It never acts by itself: where a route says so, `heeding` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.naive_bayes import MultinomialNB

from incidents.domain.similarity.text import Described, words

THRESHOLD: Final = 0.7
"""Least probability of a suggestion."""
LEARNS: Final = 40
"""Resolved incidents before it judges the next one."""
CALIBRATES: Final = 60
"""Judged incidents, right and wrong, before it says a probability."""
RECORD: Final = 500
"""The latest judged incidents that the record is about."""
SMOOTHING: Final = 0.1
SPREAD: Final = 5.0
"""Unit of the curve's slope, in log-odds."""
RIDGE: Final = 0.1
STEPS: Final = 100


@dataclass(frozen=True, slots=True)
class Record:
    """Of the latest `judged` incidents it would have suggested a team for `suggested`, `right` of them the
    right one.
    """

    judged: int
    suggested: int
    right: int


@dataclass(frozen=True, slots=True)
class Suggestion:
    """`team` is None where nothing is suggested; `why` then says why not. `probability` is of the likeliest team."""

    team: str | None
    probability: float | None
    record: Record
    why: str


class Suggesting:
    """Model of incidents and the teams that resolved them, the first resolved one first."""

    def __init__(self, incidents: Sequence[Described], teams: Sequence[str]) -> None:
        self._curve: Curve | None = None
        self._record = Record(0, 0, 0)
        self._known = len(incidents)
        self._teams = np.array(sorted(set(teams)))
        if len(incidents) <= LEARNS or len(self._teams) < 2:
            return
        bare = [_bare(one) for one in incidents]
        self._vectorizer = TfidfVectorizer(analyzer=words, sublinear_tf=True)
        matrix = self._vectorizer.fit_transform(bare)
        self._learned, sure, right = _in_order(matrix, np.array(teams), self._teams)
        self._curve = fitted(sure, right)
        self._record = _record(sure, right)

    def suggest(self, incident: Described) -> Suggestion:
        if self._curve is None:
            return Suggestion(None, None, self._record, self._too_little())
        row = self._vectorizer.transform([_bare(incident)])
        if row.nnz == 0:
            return Suggestion(None, None, self._record, "no resolved incident shares a word with this one")
        likely = self._learned.predict_proba(row)[0]
        best = int(likely.argmax())
        probability = round(float(self._curve.probable(_log_odds(likely[best : best + 1]))[0]), 3)
        if probability < THRESHOLD:
            why = f"the likeliest team has {probability:.0%}, and less than {THRESHOLD:.0%} is not suggested"
            return Suggestion(None, probability, self._record, why)
        why = "learned from the teams that resolved incidents with similar text"
        return Suggestion(str(self._teams[best]), probability, self._record, why)

    def _too_little(self) -> str:
        if len(self._teams) < 2 and self._known > LEARNS:
            return "one team resolved everything so far"
        least = LEARNS + CALIBRATES
        resolved = "1 incident was" if self._known == 1 else f"{self._known} incidents were"
        return f"too little to learn from: {resolved} resolved with a cause, and at least {least} are needed"


def _bare(incident: Described) -> Described:
    return Described(incident.title, incident.component, incident.labels)


def _in_order(
    matrix: Any, teams: NDArray[Any], classes: NDArray[Any]
) -> tuple[MultinomialNB, NDArray[np.float64], NDArray[np.bool_]]:
    """The model that knows all, and of each incident after the first LEARNS how sure it was, and whether it
    was right.
    """
    learned, known, at = MultinomialNB(alpha=SMOOTHING), 0, LEARNS
    sure: list[float] = []
    right: list[bool] = []
    while at < len(teams):
        learned.partial_fit(matrix[known:at], teams[known:at], classes=classes)
        known, end = at, min(len(teams), at + max(5, at // 10))
        likely = learned.predict_proba(matrix[at:end])
        sure += _log_odds(likely.max(axis=1)).tolist()
        right += (classes[likely.argmax(axis=1)] == teams[at:end]).tolist()
        at = end
    learned.partial_fit(matrix[known:], teams[known:], classes=classes)
    return learned, np.array(sure), np.array(right)


def _log_odds(share: NDArray[np.float64]) -> NDArray[np.float64]:
    bounded = np.clip(share, 1e-9, 1 - 1e-9)
    return np.log(bounded / (1 - bounded))


@dataclass(frozen=True, slots=True)
class Curve:
    """P(right) = 1 / (1 + exp(-(level + slope * log-odds)))."""

    level: float
    slope: float

    def probable(self, sure: NDArray[np.float64]) -> NDArray[np.float64]:
        return 1.0 / (1.0 + np.exp(-np.clip(self.level + self.slope * sure, -500, 500)))


def fitted(sure: NDArray[np.float64], right: NDArray[np.bool_]) -> Curve | None:
    """Curve of right answers by stated probability, by Newton's method; None where too little is known.

    One incident more that it was right about and one that it was wrong about: never is not said after a few. A small
    ridge keeps the steps bounded (after Platt, "Probabilistic outputs for support vector machines", 1999).
    """
    if len(right) < CALIBRATES:
        return None
    at = np.append(sure, [np.median(sure)] * 2)
    truth = np.append(right, [True, False]).astype(float)
    design = np.column_stack([np.ones(len(at)), at / SPREAD])
    values = np.zeros(2)
    for _ in range(STEPS):
        probabilities = 1.0 / (1.0 + np.exp(-np.clip(design @ values, -500, 500)))
        slope = design.T @ (truth - probabilities) - RIDGE * values
        bend = (design * (probabilities * (1 - probabilities))[:, None]).T @ design + RIDGE * np.eye(2)
        step = np.clip(np.linalg.solve(bend, slope), -1, 1)
        values = values + step
        if np.abs(step).max() < 1e-9:
            break
    return Curve(float(values[0]), float(values[1]) / SPREAD)


def _record(sure: NDArray[np.float64], right: NDArray[np.bool_]) -> Record:
    """Each of the latest judged by a curve of those before it: what it would have said then."""
    first = max(CALIBRATES, len(right) - RECORD)
    suggested = hits = judged = 0
    at = first
    while at < len(right):
        end = min(len(right), at + max(10, at // 10))
        curve = fitted(sure[:at], right[:at])
        if curve is not None:
            suggests = curve.probable(sure[at:end]) >= THRESHOLD
            judged += end - at
            suggested += int(suggests.sum())
            hits += int((suggests & right[at:end]).sum())
        at = end
    return Record(judged, suggested, hits)
