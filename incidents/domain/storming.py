"""Whether tickets come faster than people read: pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from incidents.domain.alerting import STORM_SPAN

MANY: Final = 50
"""So many tickets within `SPAN` are more than people can look at one by one."""
SPAN: Final = STORM_SPAN


@dataclass(frozen=True, slots=True)
class Gathering:
    """An open ticket that collects the alerts of a storm."""

    number: int
    title: str
    alerts: int
    firing: int


@dataclass(frozen=True, slots=True)
class Storm:
    """What goes on: the tickets that collect it, the largest first, and how many tickets were opened within `SPAN`."""

    gatherings: tuple[Gathering, ...]
    arrivals: int

    @property
    def alerts(self) -> int:
        return sum(one.alerts for one in self.gatherings)

    @property
    def firing(self) -> int:
        return sum(one.firing for one in self.gatherings)

    @property
    def minutes(self) -> int:
        return int(SPAN.total_seconds() // 60)


def storm_of(gatherings: Sequence[Gathering], arrivals: int) -> Storm | None:
    """A storm is on while a ticket collects one, or while many tickets come at once; else None."""
    if not gatherings and arrivals < MANY:
        return None
    return Storm(tuple(gatherings), arrivals)
