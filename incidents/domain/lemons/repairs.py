"""Incidents of parts in which nothing was found, or that came back after the cause was confirmed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from analyzers.builtin.stats.probability import wilson

BACK_WITHIN = timedelta(days=30)
"""Time after its resolution in which another incident of the same part shows that the repair did not help."""


@dataclass(frozen=True, slots=True)
class PartIncident:
    """A resolved incident of a part. `found` says whether the part was confirmed as the cause; False is `none`.
    `unchanged`: the cluster drained the node and returned it without replacing anything."""

    part: str
    opened_at: datetime
    resolved_at: datetime
    found: bool
    unchanged: bool = False


@dataclass(frozen=True, slots=True)
class RepairRate:
    """Of `incidents` resolved incidents of some parts, in how many nothing was found and how many came back within
    `BACK_WITHIN`; `low` and `high` are the 95 % interval (Wilson 1927) of the share of either. `returned_unchanged`
    counts those whose node the cluster returned without a replacement, found or not."""

    name: str
    incidents: int
    no_fault_found: int
    came_back: int
    low: float
    high: float
    returned_unchanged: int = 0

    @property
    def share(self) -> float:
        return (self.no_fault_found + self.came_back) / self.incidents


def repair_rates(
    resolved: Sequence[PartIncident],
    opened: Mapping[str, Sequence[datetime]],
    groups: Mapping[str, Iterable[str]],
) -> list[RepairRate]:
    """By group of parts with an incident, the most incidents first. `opened` are the times at which incidents of each
    part were opened, resolved or not. An incident without a fault found that came back counts once, as not found."""
    back = {
        one
        for one in resolved
        if one.found
        and any(one.resolved_at < at <= one.resolved_at + BACK_WITHIN for at in opened.get(one.part, ()))
    }
    rates = []
    for name, parts in groups.items():
        members = set(parts)
        own = [one for one in resolved if one.part in members]
        if own:
            missed, returned = sum(not one.found for one in own), sum(one in back for one in own)
            low, high = wilson(missed + returned, len(own))
            unchanged = sum(one.unchanged for one in own)
            rates.append(RepairRate(name, len(own), missed, returned, low, high, unchanged))
    return sorted(rates, key=lambda one: (-one.incidents, one.name))
