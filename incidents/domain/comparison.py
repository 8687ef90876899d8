"""Two moments beside each other: their order, the fields of an incident, the cells of a grid. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from math import sqrt
from typing import Any, Final

from incidents.domain.values import InvalidValueError, rfc3339

FIELDS: Final = (
    "title",
    "state",
    "failure",
    "severity",
    "team",
    "owner",
    "component",
    "ambiguous_with",
    "related",
    "confidence",
    "verdict",
    "service",
    "policy",
    "alerts",
    "firing",
    "findings",
    "hops",
    "rejections",
    "handed_from",
    "snoozed_until",
    "silence",
    "merged_into",
    "merged",
    "confirmed_cause",
    "remediation",
    "labels",
    "links",
    "description",
    "failing_since",
    "last_failure",
)
"""Of an incident as the API answers it, in the order in which they are compared; opinions come last, one by one."""
LEAST_DEVIATION: Final = 3.0
"""Standard deviations by which two shares differ that are listed as changed."""


def check_order(start: datetime, end: datetime, now: datetime) -> None:
    """Raises InvalidValueError for moments of which the first is not before the second, or that are to come."""
    if end > now:
        raise InvalidValueError("to", f"must not be in the future; it is {rfc3339(now)} now")
    if start >= end:
        raise InvalidValueError("from", f"must be before `to`, which is {rfc3339(end)}")


def compared_fields(incident: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an incident that a comparison shows, out of its JSON."""
    fields = {name: incident[name] for name in FIELDS}
    fields["failure"] = incident["failure"]["state"]
    fields["merged_into"] = incident["merged_into"] and f"#{incident['merged_into']['number']}"
    fields["merged"] = [f"#{one['number']}" for one in incident["merged"]]
    fields["related"] = [one["component"] for one in incident["related"]]
    for one in incident["opinions"]:
        score = "" if one["score"] is None else f", {one['score']:.1%}"
        about = f" {one['component']}" if one["component"] else ""
        fields[f"opinion of {one['analyzer']}"] = f"{one['stance']}{about}{score}"
    return fields


@dataclass(frozen=True, slots=True)
class Share:
    carried: int
    failed: int

    @property
    def rate(self) -> float | None:
        return self.failed / self.carried if self.carried else None


NOTHING: Final = Share(0, 0)


@dataclass(frozen=True, slots=True)
class CellChange:
    """A cell, or with an empty name a whole row or column, at two moments; `deviation` is that of the two shares in
    standard deviations, positive where more failed later."""

    row: str
    column: str
    before: Share
    after: Share
    deviation: float


def deviation(before: Share, after: Share) -> float:
    """Of two shares by their pooled variance; 0 where one of them has no data.

    One failure and one success are added, so that little evidence says little.
    """
    if not before.carried or not after.carried:
        return 0.0
    pooled = (before.failed + after.failed + 1) / (before.carried + after.carried + 2)
    spread = sqrt(pooled * (1 - pooled) * (1 / before.carried + 1 / after.carried))
    return (after.failed / after.carried - before.failed / before.carried) / spread


def cell_changes(
    before: Mapping[tuple[str, str], Share], after: Mapping[tuple[str, str], Share], most: int
) -> tuple[list[CellChange], int]:
    """The cells whose shares differ by LEAST_DEVIATION or more, the clearest change first, at most `most` of them, and
    how many there are."""
    found = [
        CellChange(*key, before.get(key, NOTHING), after.get(key, NOTHING), z)
        for key in before.keys() | after.keys()
        if abs(z := deviation(before.get(key, NOTHING), after.get(key, NOTHING))) >= LEAST_DEVIATION
    ]
    found.sort(key=lambda one: (-abs(one.deviation), one.row, one.column))
    return found[:most], len(found)


def only_in(before: Iterable[str], after: Iterable[str]) -> tuple[list[str], list[str]]:
    """Names in the first only, and names in the second only."""
    old, new = set(before), set(after)
    return sorted(old - new), sorted(new - old)
