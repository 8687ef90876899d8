"""Two backtests of the same windows beside each other: what both blame, and what one alone does. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

Blame = Mapping[str, Any]
"""A blame as the result of a backtest has it."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Blames, those of both in pairs; each is of one region."""

    both: tuple[tuple[Blame, Blame], ...]
    first_alone: tuple[Blame, ...]
    second_alone: tuple[Blame, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """A count of both, and how much more the second has. `better` is None where more is neither."""

    name: str
    first: int | float | None
    second: int | float | None
    better: bool | None

    @property
    def change(self) -> int | float | None:
        return None if self.first is None or self.second is None else self.second - self.first


@dataclass(frozen=True, slots=True)
class WindowVerdict:
    """Verdict of a backtest on one window: its status and the components that it names."""

    region: str
    end: datetime
    status: str
    names: frozenset[str]


def compare(first: Sequence[Blame], second: Sequence[Blame]) -> Compared:
    """A blame of one is a blame of the other where they share a name and overlap in time, in one region."""
    left = list(second)
    both, alone = [], []
    for one in first:
        other = next((it for it in left if _is_same(one, it)), None)
        if other is None:
            alone.append(one)
        else:
            left.remove(other)
            both.append((one, other))
    return Compared(tuple(both), tuple(alone), tuple(left))


def differing(
    first: Iterable[WindowVerdict], second: Iterable[WindowVerdict]
) -> list[tuple[WindowVerdict, WindowVerdict]]:
    """The windows, in order, that the two judge differently; only those that both have judged."""
    known = {(one.region, one.end): one for one in second if one.status}
    pairs = ((one, known.get((one.region, one.end))) for one in first if one.status)
    return [
        (one, other)
        for one, other in pairs
        if other is not None and (one.status != other.status or one.names != other.names)
    ]


_COUNTS = (
    ("found", None),
    ("right", True),
    ("wrong", False),
    ("unconfirmed", None),
    ("missed", False),
    ("found_first", True),
    ("passing", None),
)
"""Counts of a result, and whether more of it is better."""


def lines(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[Line]:
    """Counts, shares and the median lead of both results."""
    found = [_line(name, first[name], second[name], more) for name, more in _COUNTS]
    for name in ("precision", "recall"):
        found.append(_line(name, first[name]["value"], second[name]["value"], True))
    leads = first["median_lead_seconds"], second["median_lead_seconds"]
    return [*found, _line("median_lead_seconds", *leads, True)]


def _line(name: str, first: Any, second: Any, more_is_better: bool | None) -> Line:
    better = None
    if more_is_better is not None and first is not None and second is not None and first != second:
        better = (second > first) is more_is_better
    return Line(name, first, second, better)


def _is_same(one: Blame, other: Blame) -> bool:
    names = {one["component"], *one["ambiguous_with"]} & {other["component"], *other["ambiguous_with"]}
    meet = _at(one, "start") < _at(other, "end") and _at(other, "start") < _at(one, "end")
    return bool(names) and meet and one["region"] == other["region"]


def _at(blame: Blame, name: str) -> datetime:
    return datetime.fromisoformat(blame[name])
