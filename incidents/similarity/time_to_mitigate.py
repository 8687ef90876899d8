"""Duration of an incident: quantiles of the time from opening to resolution, learned from resolved incidents.

The distribution is that of all past times, each weighted by how much its incident is like the one asked for: the cosine
of what they say, the kind of component, the team, the severity, the hour of the day. Weights are `exp(focus * score)`,
shrunk towards equal weights where few incidents carry them (`PRIOR`). Each past incident is then judged by those that
were resolved before it opened: that chooses the focus (by pinball loss; 0 is all of the past alike), corrects the
levels (a level is taken where so many past incidents lay below it, which is a probability integral transform; then it
moves by `RATE` against each miss, which is adaptive conformal inference, Gibbs and Candès 2021), and is the record. So
the record is of incidents that were not learned from.

Incidents that are still open are not learned from: a backlog of long ones makes times look shorter than they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import HashingVectorizer

from incidents.domain.similarity.text import Described, words

LEVELS: Final = (0.1, 0.5, 0.9)
LATEST: Final = 2_000
"""Resolved incidents that are learned from: the latest."""
LEARNS: Final = 30
"""Resolved incidents before the next one is judged."""
CALIBRATES: Final = 30
"""Judged incidents before levels are corrected, and as many with corrected levels before anything is said."""
RECORD: Final = 400
"""The latest judged incidents that the record is about."""
RATE: Final = 0.02
"""Step of a level after each judged incident, chosen on seeds below 4000 of the second generator."""
FOCUSES: Final = (0.0, 0.5, 1.0, 2.0, 4.0)
PRIOR: Final = 5.0
"""Weight of the past as a whole, in incidents."""
SHORTEST: Final = 1.0
"""Seconds: what was over sooner counts as that."""
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Timed:
    """An incident with all that is known of it at its opening, and when it was resolved (None for one that is asked
    about)."""

    described: Described
    team: str
    severity: str
    opened_at: datetime
    resolved_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class TimeRecord:
    """Over the latest `judged` incidents: how many times lay between the quantiles .1 and .9, and the mean pinball loss
    in seconds over the three levels; beside it that of the median of the past and of its quantiles."""

    judged: int = 0
    covered: int = 0
    loss: float = 0.0
    loss_of_median: float = 0.0
    loss_of_quantiles: float = 0.0

    @property
    def coverage(self) -> float | None:
        return self.covered / self.judged if self.judged else None


@dataclass(frozen=True, slots=True)
class TimeEstimate:
    """Seconds from the opening at each of `LEVELS`, given that the incident is still open; empty where nothing is said,
    and `why` says why not."""

    seconds: tuple[float, ...]
    learned: int
    record: TimeRecord
    why: str


class TimeToMitigate:
    """Model of resolved incidents."""

    def __init__(self, past: Sequence[Timed]) -> None:
        self._known = len(past)
        latest = sorted((one for one in past if one.resolved_at is not None), key=lambda one: one.opened_at)
        self._past = latest[-LATEST:]
        self._features = _Features(self._past)
        self._opened = np.array([one.opened_at.timestamp() for one in self._past])
        ends = [one.resolved_at.timestamp() for one in self._past if one.resolved_at is not None]
        self._resolved = np.array(ends)
        self._logs = np.log(np.maximum(self._resolved - self._opened, SHORTEST))
        self._order = np.argsort(self._logs, kind="stable")
        self._focus, self._places, self._levels = 0, np.empty(0), np.array(LEVELS)
        self.record = TimeRecord()
        if len(self._past) >= LEARNS + 2 * CALIBRATES:
            self._judge()

    def estimate(self, incident: Timed, age: float) -> TimeEstimate:
        """For an incident that has been open for `age` seconds."""
        if self.record.judged < CALIBRATES:
            least = LEARNS + 2 * CALIBRATES
            resolved = "1 is resolved" if self._known == 1 else f"{self._known} are resolved"
            why = f"too few past incidents: {resolved}, and at least {least} are needed"
            return TimeEstimate((), self._known, self.record, why)
        scores = self._features.scores([incident])[0]
        curve = self._curve(scores, FOCUSES[self._focus], np.ones(len(self._past), bool))
        passed = _place(curve, np.log(max(age, SHORTEST)))
        if passed >= curve[0][-1]:
            why = "it has lasted longer than any past incident"
            return TimeEstimate((), len(self._past), self.record, why)
        gone = _corrected(self._places, passed)
        levels = [gone + level * (1 - gone) for level in self._levels.tolist()]
        seconds = [float(np.exp(_at(curve, _raw(self._places, level)))) for level in levels]
        left = tuple(round(max(age, one), 1) for one in seconds)
        return TimeEstimate(left, len(self._past), self.record, "")

    def _judge(self) -> None:
        """Each of the latest incidents by those that were resolved when it opened, in the order of opening."""
        first = max(0, len(self._past) - 2 * RECORD)
        scores = self._features.scores(self._past[first:])
        places: list[Floats] = []
        losses: list[Floats] = []
        judged: list[int] = []
        stated: list[tuple[Floats, Floats, float]] = []
        rated: list[int] = []
        misses: list[Floats] = []
        for row, at in enumerate(range(first, len(self._past))):
            known = self._resolved <= self._opened[at]
            if known.sum() < LEARNS:
                continue
            curves = [self._curve(scores[row], focus, known) for focus in FOCUSES]
            before = self._resolved[judged] <= self._opened[at] if judged else np.empty(0, bool)
            truth = self._logs[at]
            if before.sum() >= CALIBRATES:
                focus = int(np.array(losses)[before].mean(axis=0).argmin())
                of_focus = np.sort(np.array(places)[before, focus])
                levels = _adapted(
                    [one for one, of in zip(misses, rated, strict=True) if self._is_over(of, at)]
                )
                mine = np.array([_at(curves[focus], _raw(of_focus, level)) for level in levels.tolist()])
                all_alike = np.array([_at(curves[0], level) for level in LEVELS])
                stated.append((np.exp(mine), np.exp(all_alike), float(np.exp(truth))))
                rated.append(at)
                misses.append(np.array(LEVELS) - (truth <= mine))
            judged.append(at)
            places.append(np.array([_place(curve, truth) for curve in curves]))
            losses.append(
                np.array([_pinball([_at(curve, level) for level in LEVELS], truth) for curve in curves])
            )
        if len(judged) < CALIBRATES:
            return
        self._focus = int(np.array(losses).mean(axis=0).argmin())
        self._places = np.sort(np.array(places)[:, self._focus])
        self._levels = _adapted(misses)
        self.record = _record(stated[-RECORD:])

    def _is_over(self, one: int, at: int) -> bool:
        """Whether a past incident was resolved when another opened."""
        return bool(self._resolved[one] <= self._opened[at])

    def _curve(self, scores: Floats, focus: float, known: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        """The distribution of times by weighted past incidents: cumulated weights, and logarithms of seconds."""
        chosen = self._order[known[self._order]]
        weights = np.exp(focus * (scores[chosen] - scores[chosen].max()))
        weights /= weights.sum()
        effective = 1 / float((weights**2).sum())
        weights = (effective * weights + PRIOR / len(chosen)) / (effective + PRIOR)
        return np.cumsum(weights) - weights / 2, self._logs[chosen]


class _Features:
    """Likeness of an incident to each past one, from 0 to 6."""

    def __init__(self, past: Sequence[Timed]) -> None:
        self._words = HashingVectorizer(
            analyzer=words, alternate_sign=False, n_features=2**18, dtype=np.float32
        )
        self._matrix: Any = self._words.transform([one.described for one in past]) if past else None
        self._facts = [_facts(one) for one in past]
        self._hours = np.array([_hour(one) for one in past])

    def scores(self, incident: Sequence[Timed]) -> Floats:
        """A row for each incident that is asked about, a column for each past one."""
        likeness = (self._words.transform([one.described for one in incident]) @ self._matrix.T).toarray()
        found = 2.0 * np.asarray(likeness, float)
        for place, (weight, column) in enumerate(
            (weight, [facts[i] for facts in self._facts]) for i, weight in enumerate(_WEIGHTS)
        ):
            mine = [_facts(one)[place] for one in incident]
            found += weight * (np.array(mine, object)[:, None] == np.array(column, object)[None, :])
        hours = np.array([_hour(one) for one in incident])
        near: Floats = 0.5 * (1 + np.cos(2 * np.pi * (hours[:, None] - self._hours[None, :]) / 24))
        return found + near


_WEIGHTS: Final = (1.0, 1.0, 1.0)


def _facts(one: Timed) -> tuple[str, str, str]:
    return (one.described.component or "").partition("/")[0], one.team, one.severity


def _hour(one: Timed) -> float:
    return one.opened_at.hour + one.opened_at.minute / 60


def _at(curve: tuple[Floats, Floats], level: float) -> float:
    return float(np.interp(level, *curve))


def _place(curve: tuple[Floats, Floats], log: float) -> float:
    """The share of the weight that lies below a time; in the middle of equal ones."""
    low, high = np.searchsorted(curve[1], [log], "left")[0], np.searchsorted(curve[1], [log], "right")[0]
    if low < high:
        return float(curve[0][low:high].mean())
    return float(np.interp(log, curve[1], curve[0], left=0.0, right=1.0))


def _raw(places: Floats, level: float) -> float:
    """The level of a curve below which so large a share of past incidents lay."""
    return float(np.interp(level, np.linspace(0, 1, len(places) + 2), [0.0, *places, 1.0]))


def _adapted(misses: Sequence[Floats]) -> Floats:
    """Levels to take in place of `LEVELS` after misses: the level, less 1 where the time was at or below it."""
    moved = np.array(LEVELS) + RATE * np.sum(misses, axis=0) if misses else np.array(LEVELS)
    return np.sort(np.clip(moved, 0.005, 0.995))


def _corrected(places: Floats, raw: float) -> float:
    return float(np.interp(raw, [0.0, *places, 1.0], np.linspace(0, 1, len(places) + 2)))


def _pinball(levels: Sequence[float] | Floats, truth: float) -> float:
    """Mean pinball loss over the levels."""
    pairs = zip(LEVELS, levels, strict=True)
    return float(np.mean([max(level * (truth - one), (level - 1) * (truth - one)) for level, one in pairs]))


def _record(judged: Sequence[tuple[Floats, Floats, float]]) -> TimeRecord:
    if not judged:
        return TimeRecord()
    return TimeRecord(
        judged=len(judged),
        covered=sum(bool(mine[0] <= truth <= mine[-1]) for mine, _, truth in judged),
        loss=float(np.mean([_pinball(mine, truth) for mine, _, truth in judged])),
        loss_of_median=float(
            np.mean([_pinball([alike[1]] * len(LEVELS), truth) for _, alike, truth in judged])
        ),
        loss_of_quantiles=float(np.mean([_pinball(alike, truth) for _, alike, truth in judged])),
    )
