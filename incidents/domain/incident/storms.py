"""Whether incidents come faster than people read, and what the one that collects the rest is called: pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from incidents.domain.incident.grouping import STORM_SPAN, STORM_TICKETS
from incidents.domain.values import TITLE_LIMIT

MANY: Final = 50
"""So many incidents within `SPAN` are more than people can look at one by one."""
SPAN: Final = STORM_SPAN


FEW_NAMES: Final = STORM_TICKETS // 2
"""A storm of fewer names (rules, checks) than that is about these; an alert of another name is no part of it."""
MOST_TICKETS: Final = 2 * STORM_TICKETS
"""Incidents of an integration within `SPAN`, as severe or worse, above which another name is no reason for one more."""


@dataclass(frozen=True, slots=True)
class Opened:
    """An incident that an integration opened within `SPAN`: its severity's rank (0 is the worst) and what fired."""

    rank: int
    name: str


def is_storming(opened: Collection[Opened], rank: int, name: str) -> bool:
    """Whether an alert of that severity and name joins the incident of the storm and opens none of its own.

    Only incidents that are as severe or worse count, so that no number of lesser ones hides a critical alert; and a
    storm of few names hides no other name. At most MOST_TICKETS open for each severity.
    """
    as_severe = [one for one in opened if one.rank <= rank]
    if len(as_severe) < STORM_TICKETS:
        return False
    names = {one.name for one in as_severe}
    return name in names or len(names) >= FEW_NAMES or len(as_severe) >= MOST_TICKETS


@dataclass(frozen=True, slots=True)
class Storming:
    """An open incident that collects the alerts of a storm."""

    number: int
    title: str
    alerts: int
    firing: int


@dataclass(frozen=True, slots=True)
class Storm:
    """What goes on: the incidents that collect it, the largest first, and how many incidents were opened
    within `SPAN`.
    """

    gatherings: tuple[Storming, ...]
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


LEAST_SAID: Final = 10


def at_least(count: int) -> int:
    """The largest of 10, 20, 50, 100, 200 … that is no more than a count; 0 below 10. What is said so stays true while
    more comes, and is said anew a few times only."""
    said = 0
    for place in range(1, len(str(count))):
        said = max([said, *(digit * 10**place for digit in (1, 2, 5) if digit * 10**place <= count)])
    return said


def storm_title(integration: str, alerts: int, components: Collection[str]) -> str:
    """`Storm from prometheus: 20,000+ alerts on 200+ components`, as far as that is known."""
    on = at_least(len(components))
    where = (
        f" on {on:,}+ {_kind(components)}"
        if on
        else f" on {next(iter(components))}"
        if len(components) == 1
        else ""
    )
    said = at_least(alerts)
    return f"Storm from {integration}: {f'{said:,}+ ' if said else ''}alerts{where}"[:TITLE_LIMIT]


def _kind(components: Collection[str]) -> str:
    kinds = {name.partition("/")[0] for name in components}
    return f"components of the kind {kinds.pop()}" if len(kinds) == 1 else "components"


def storm_of(gatherings: Sequence[Storming], arrivals: int) -> Storm | None:
    """A storm is on while an incident collects one, or while many incidents come at once; else None."""
    if not gatherings and arrivals < MANY:
        return None
    return Storm(tuple(gatherings), arrivals)
