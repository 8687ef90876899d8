"""Which ticket an alert belongs to, and why: pure.

- An alert joins the open ticket that it is a member of already.
- Else the open ticket of a finding that names its component: the alert is a symptom of that cause.
- Else the open ticket of its group: what the same rule fired on, for the same team.
- Else it opens a ticket; in a storm, when an integration has just opened STORM_TICKETS of them, one for the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from incidents.domain.times import optional_time
from incidents.domain.values import SEVERITIES, Severity

STORM_TICKETS: Final = 100
STORM_SPAN: Final = timedelta(minutes=5)
"""An integration that opened so many tickets within so long is in a storm."""
FLAPS: Final = 5
"""An alert that fired so often within an hour is flapping: its ticket is not resolved while it rests."""
SETTLED: Final = timedelta(minutes=15)
"""A ticket that was held open for a flapping alert is resolved once nothing fired for so long."""


@dataclass(frozen=True, slots=True)
class Reported:
    """What an event `alert.reported` tells tickets."""

    alert: str
    integration: str
    key: str
    change: str
    status: str
    title: str
    severity: Severity
    group: str
    component: str | None
    description: str
    labels: Mapping[str, str]
    links: tuple[Mapping[str, str], ...]
    fired: int
    starts_at: datetime | None

    @property
    def fires(self) -> bool:
        return self.status != "resolved"


def reported_from(body: Mapping[str, Any]) -> Reported:
    return Reported(
        alert=body["alert"],
        integration=body["integration"],
        key=body["key"],
        change=body["change"],
        status=body["status"],
        title=body["title"],
        severity=body["severity"],
        group=body["group"],
        component=body["component"],
        description=body["description"],
        labels=body["labels"],
        links=tuple(body["links"]),
        fired=body["fired"],
        starts_at=optional_time(body["starts_at"]),
    )


@dataclass(frozen=True, slots=True)
class Place:
    """The ticket of an alert by its dedup key, and why it is that one."""

    dedup_key: str
    why: str


def place_of(alert: Reported, team: str) -> Place:
    """Where the alert goes in quiet times: to what its rule fired on for the same team, or alone without a rule."""
    if not alert.group:
        return Place(f"alert:{alert.integration}:{alert.key}", "the same key of the same integration")
    why = f"{alert.integration} fired {alert.group} on several things that {team} looks after"
    return Place(f"alerts:{alert.integration}:{team}:{alert.group}", why)


def storm_place(integration: str, team: str) -> Place:
    """Where an alert that has no ticket yet goes in a storm."""
    why = f"storm: {integration} opened more than {STORM_TICKETS} tickets within {_minutes(STORM_SPAN)}"
    return Place(f"storm:{integration}:{team}", why)


def symptom(component: str) -> str:
    return f"its component {component} is what this ticket is about"


def _minutes(span: timedelta) -> str:
    return f"{int(span.total_seconds() // 60)} minutes"


def worst(severities: Iterable[Severity]) -> Severity:
    return min(severities, key=SEVERITIES.index)


def in_common(alerts: Sequence[Reported]) -> dict[str, str]:
    """The labels that all of them carry with the same value."""
    if not alerts:
        return {}
    shared = dict(alerts[0].labels)
    for alert in alerts[1:]:
        shared = {name: value for name, value in shared.items() if alert.labels.get(name) == value}
    return shared


@dataclass(frozen=True, slots=True)
class Member:
    """An alert that joins a ticket; `again` if it was a member before and had been resolved."""

    alert: str
    title: str
    severity: Severity
    again: bool = False
