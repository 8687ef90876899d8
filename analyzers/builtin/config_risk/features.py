"""Features of changes as columns of numbers, each with the words for both sides of a split."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.config_risk.records import HOUR, Change

Floats = NDArray[np.float64]

LEAST_SUPPORT = 8
"""Changes on either side of a yes-or-no feature, for it to be a column."""
MOST_COLUMNS = 400
_RECENT = 24 * HOUR
_PRIOR = 10.0
"""Changes that the share of a team or a target starts from, at the usual share."""

HOUR_OF_DAY = "hour of day (UTC)"
OWN = ("keys changed", "targets", HOUR_OF_DAY, "day of week (Monday is 0)")
"""Figures of every change."""
TEAM_SHARE = "bad share of the team's earlier changes"
TARGET_SHARE = "bad share of earlier changes of the targets"
RECENT = "changes of the same targets in the day before"


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about one change: words that hold of it, coarse and fine, and figures by name."""

    coarse: frozenset[str]
    fine: frozenset[str]
    figures: Mapping[str, float]


def facts_of(changes: Sequence[Change]) -> list[Facts]:
    """Of changes in order of time; what became of earlier ones counts from when it was known."""
    pending: list[tuple[int, int]] = []
    tally = _Tally()
    found = []
    for number, one in enumerate(changes):
        while pending and pending[0][0] < one.at:
            tally.add(changes[heapq.heappop(pending)[1]])
        found.append(
            Facts(frozenset(_coarse(one)), frozenset(_fine(one)), {**_figures(one), **tally.figures(one)})
        )
        tally.note(one)
        if one.outcome:
            heapq.heappush(pending, (one.known_at, number))
    return found


def _coarse(one: Change) -> Iterator[str]:
    yield f"kind is {one.kind}"
    for name, value in (("team", one.team), ("author", one.author)):
        if value:
            yield f"{name} is {value}"
    for target in one.targets:
        yield f"changes {target}"
        yield f"changes a {target.partition('/')[0]}"
    for key in one.settings:
        yield f"sets {key}"
        if "." in key:
            yield f"sets {key.partition('.')[0]}.*"


def _fine(one: Change) -> Iterator[str]:
    for key, value in one.settings.items():
        yield f"sets {key} to {value}"


def _figures(one: Change) -> dict[str, float]:
    moment = datetime.fromtimestamp(one.at / 1e6, UTC)
    own = (len(one.settings), len(one.targets), moment.hour + moment.minute / 60, moment.weekday())
    return {**dict(zip(OWN, map(float, own), strict=True)), **one.measures}


class _Tally:
    """Outcomes of changes so far."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()
        self._bad: Counter[str] = Counter()
        self._last: dict[str, deque[int]] = defaultdict(lambda: deque(maxlen=50))

    def add(self, one: Change) -> None:
        for name in ("", f"team {one.team}", *one.targets):
            self._seen[name] += 1
            self._bad[name] += one.is_bad

    def note(self, one: Change) -> None:
        for target in one.targets:
            self._last[target].append(one.at)

    def figures(self, one: Change) -> dict[str, float]:
        usual = (self._bad[""] + 0.5) / (self._seen[""] + 1)
        recent = {at for target in one.targets for at in self._last[target] if one.at - at <= _RECENT}
        found = {RECENT: float(len(recent))}
        if one.team:
            found[TEAM_SHARE] = self._share(f"team {one.team}", usual)
        if one.targets:
            found[TARGET_SHARE] = max(self._share(target, usual) for target in one.targets)
        return found

    def _share(self, name: str, usual: float) -> float:
        return (self._bad[name] + _PRIOR * usual) / (self._seen[name] + _PRIOR)


@dataclass(frozen=True, slots=True)
class Column:
    """A yes-or-no word, or a figure with its usual value for changes that do not state it; `also` are words of the same
    column."""

    name: str
    is_word: bool
    usual: float = 0.0
    also: tuple[str, ...] = ()

    def value(self, facts: Facts) -> float:
        if self.is_word:
            return float(self.name in facts.coarse or self.name in facts.fine)
        return float(facts.figures.get(self.name, self.usual))

    def condition(self, threshold: float, above: bool) -> str:
        """Condition on one side of a split, in words."""
        if self.is_word:
            words = " and ".join((self.name, *self.also[:2]))
            return words if above else f"not ({words})"
        if self.name.startswith("bad share"):
            return f"{self.name} {'above' if above else 'at most'} {100 * threshold:.3g} %"
        return f"{self.name} {'above' if above else 'at most'} {threshold:.3g}"


def columns_of(facts: Sequence[Facts], fine: bool) -> tuple[tuple[Column, ...], Floats]:
    """The columns that can tell changes apart and their table, shape (changes, columns), in an order that depends on no
    name. Equal columns are one."""
    where: dict[str, list[int]] = defaultdict(list)
    for row, one in enumerate(facts):
        for word in one.coarse | one.fine if fine else one.coarse:
            where[word].append(row)
    by_content: dict[bytes, list[Column]] = defaultdict(list)
    for word, rows in where.items():
        if LEAST_SUPPORT <= len(rows) <= len(facts) - LEAST_SUPPORT:
            values = np.zeros(len(facts))
            values[rows] = 1.0
            by_content[values.tobytes()].append(Column(word, True))
    for name in {name for one in facts for name in one.figures}:
        stated = [one.figures[name] for one in facts if name in one.figures]
        if len(set(stated)) > 1 and len(stated) >= LEAST_SUPPORT:
            column = Column(name, False, float(np.median(stated)))
            values = np.array([column.value(one) for one in facts])
            by_content[values.tobytes()].append(column)
    found = []
    for content in sorted(by_content):
        first, *others = sorted(by_content[content], key=lambda one: (one.is_word, one.name))
        also = tuple(one.name for one in others if one.is_word) if first.is_word else ()
        found.append((Column(first.name, first.is_word, first.usual, also), np.frombuffer(content)))
    found = sorted(found, key=lambda one: -int(np.count_nonzero(one[1])))[:MOST_COLUMNS]
    if not found:
        return (), np.zeros((len(facts), 0))
    return tuple(column for column, _ in found), np.stack([values for _, values in found], axis=1)
