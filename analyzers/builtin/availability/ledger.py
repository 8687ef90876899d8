"""Account of every component's time: observed, lost to which cause, planned; from uptimes and outages.

Time reported both as up and as down is down; time in planned work is nobody's loss. A component that only outages
speak of is taken as observed for the whole period, but for what follows the believed end of an outage whose end was
never reported. Rows get lost: between a component's first row and its last there may be time of which nothing is
known, and a component whose first row says that it is down was there before, as one whose last row says so is after.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.paths import numbered, texts, whole
from analyzers.builtin.stats.intervals import (
    MINUTE,
    Segments,
    Spells,
    believed_ends,
    main_label,
    spells,
    sweep,
)
from analyzers.builtin.uptime import UNKNOWN_CAUSE
from analyzers.contract import Sums

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

UP, PLANNED, UNTOLD = 0, 1, 2
_FIRST_CAUSE = 3


@dataclass(frozen=True, slots=True, eq=False)
class Ledger:
    """Minutes of each component, arrays of shape (components,); `by_cause` of shape (components, causes).

    `observed` counts neither planned work nor time of which nothing is known; that is `unknown`, while the component
    is known to have been there. `spells` are the unplanned stretches of down time with their main `cause`, an index
    into `causes`. `unended` is how many outages are doubted because their end was never told.
    """

    components: tuple[str, ...]
    period: float
    observed: Floats
    lost: Floats
    planned: Floats
    unknown: Floats
    causes: tuple[str, ...]
    by_cause: Floats
    spells: Spells
    cause: Ints
    unended: int

    @property
    def outages(self) -> Ints:
        """Unplanned spells of each component."""
        return np.bincount(self.spells.owner, minlength=len(self.components))

    @property
    def availability(self) -> Floats:
        """Share of the observed time that was not lost; 1 where nothing was observed."""
        return 1 - self.lost / np.where(self.observed > 0, self.observed, np.inf)


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    name: tuple[str, ...]
    start: Ints
    end: Ints
    label: Ints


def ledger_of(sums: Mapping[str, Sums], low: int, high: int, open_hours: float) -> Ledger:
    """The account from `low` to `high` (microseconds) of whichever of `uptimes` and `outages` is there.

    For `open_hours` see `open_ends`.
    """
    tables = [sums[name] for name in ("uptimes", "outages") if name in sums]
    known = sorted({text or UNKNOWN_CAUSE for table in tables for text in texts(table, "cause")})
    place = {cause: _FIRST_CAUSE + i for i, cause in enumerate(known)}
    parts = [_up_rows(sums["uptimes"], place)] if "uptimes" in sums else []
    unended = 0
    if "outages" in sums:
        rows, unended = _outage_rows(sums["outages"], place, high, open_hours)
        parts.append(rows)
    components, owner = numbered([name for part in parts for name in part.name])
    start, end, label = (
        np.concatenate([getattr(part, field) for part in parts]) for field in ("start", "end", "label")
    )
    pieces = sweep(owner, start, end, label, _FIRST_CAUSE + len(known), low, high)
    return _account(pieces, components, tuple(known), _whole_period(sums, components), low, high, unended)


def _causes(table: Sums, place: Mapping[str, int]) -> Ints:
    return np.array([place[text or UNKNOWN_CAUSE] for text in texts(table, "cause")], dtype=np.int64)


def _up_rows(table: Sums, place: Mapping[str, int]) -> _Rows:
    up = np.array([state == "up" for state in texts(table, "state")], dtype=bool)
    label = np.where(up, UP, _causes(table, place))
    return _Rows(texts(table, "unit"), whole(table, "start"), whole(table, "end"), label)


def _outage_rows(table: Sums, place: Mapping[str, int], high: int, open_hours: float) -> tuple[_Rows, int]:
    """Outages up to their believed ends, and what comes after those of the doubted; how many those are."""
    names, start, end = texts(table, "device"), whole(table, "start"), whole(table, "end")
    planned = whole(table, "planned") > 0
    believed, doubted = believed_ends(start, end, planned, high, open_hours)
    after = np.flatnonzero(doubted)
    rows = _Rows(
        (*names, *(names[row] for row in after.tolist())),
        np.concatenate([start, believed[after]]),
        np.concatenate([believed, end[after]]),
        np.concatenate([np.where(planned, PLANNED, _causes(table, place)), np.full(len(after), UNTOLD)]),
    )
    return rows, len(after)


def _whole_period(sums: Mapping[str, Sums], components: tuple[str, ...]) -> Bools:
    """The components that only outages speak of."""
    reported = set(texts(sums["uptimes"], "unit")) if "uptimes" in sums else set()
    return np.array([name not in reported for name in components], dtype=bool)


def _account(
    pieces: Segments,
    components: tuple[str, ...],
    causes: tuple[str, ...],
    whole_period: Bools,
    low: int,
    high: int,
    unended: int,
) -> Ledger:
    labels = range(_FIRST_CAUSE, _FIRST_CAUSE + len(causes))
    planned = pieces.active[PLANNED]
    lost = pieces.any(labels) & ~planned
    count, period = len(components), (high - low) / MINUTE
    minutes_lost, minutes_planned = pieces.time(lost, count), pieces.time(planned, count)
    reported = pieces.active[UP] | lost
    measured = pieces.time(reported & ~planned, count)
    after = pieces.time(pieces.active[UNTOLD] & ~reported & ~planned, count)
    there = _there(pieces, lost, count, low, high)
    found = spells(pieces, lost)
    cause = main_label(pieces, found, labels) - _FIRST_CAUSE
    by_cause = np.zeros((count, len(causes)))
    np.add.at(by_cause, (found.owner, cause), found.minutes)
    observed = np.where(whole_period, period - minutes_planned - after, measured)
    return Ledger(
        components=components,
        period=period,
        observed=np.maximum(observed, minutes_lost),  # rounding: down all the time is no less than nothing
        lost=minutes_lost,
        planned=minutes_planned,
        unknown=np.where(whole_period, after, np.maximum(there - measured - minutes_planned, 0.0)),
        causes=causes,
        by_cause=by_cause,
        spells=found,
        cause=cause,
        unended=unended,
    )


def _there(pieces: Segments, lost: Bools, count: int, low: int, high: int) -> Floats:
    """Minutes from each component's first row to its last; to the edge of the period where that says "down"."""
    begin, over = np.full(count, high), np.full(count, low)
    np.minimum.at(begin, pieces.owner, np.where(lost, pieces.start, high))
    np.maximum.at(over, pieces.owner, np.where(lost, pieces.end, low))
    first, last = np.full(count, high), np.full(count, low)
    np.minimum.at(first, pieces.owner, pieces.start)
    np.maximum.at(last, pieces.owner, pieces.end)
    first = np.where((begin == first) & (begin < high), low, first)
    last = np.where((over == last) & (over > low), high, last)
    return np.asarray(np.maximum(last - first, 0) / MINUTE)


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Components taken together: those of a kind, or those that share a label."""

    label: str
    value: str
    rows: tuple[int, ...]


def groups_of(ledger: Ledger, labels: Mapping[str, Mapping[str, str]]) -> tuple[Group, ...]:
    """By kind, then by every label that some have; `labels` as the topology gives them, by component."""
    members: dict[tuple[str, str], list[int]] = {}
    for row, name in enumerate(ledger.components):
        kind = name.partition("/")[0] if "/" in name else "(no kind)"
        members.setdefault(("kind", kind), []).append(row)
        for label, value in labels.get(name, {}).items():
            members.setdefault((label, value), []).append(row)
    order = sorted(members, key=lambda pair: (pair[0] != "kind", pair))
    return tuple(Group(label, value, tuple(members[label, value])) for label, value in order)


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The account, and for each component the chance `q` of so long outages, or on so many days, if it met the target.

    Time of which nothing is known counts as up here: that rows are missing is no sign against anyone.
    """

    ledger: Ledger
    groups: tuple[Group, ...]
    target: float
    target_nines: float
    p: NDArray[np.float64]
    q: NDArray[np.float64]
    named: tuple[int, ...]
    below: int
