"""Which incident an alert belongs to, and why: pure.

- An alert joins the open incident that it is a member of already.
- Else the open incident of a finding that names its component: the alert is a symptom of that cause.
- Else the open incident of its group: what the same rule fired on, for the same team; or as its route groups them.
- Else it opens an incident; in a storm, when an integration has just opened STORM_TICKETS of them that are as severe or
  worse, one for the rest (`domain.storming`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Final

from incidents.domain.routing.conditions import Subject
from incidents.domain.routing.rules import EACH_ALONE, Grouping, Routing
from incidents.domain.time import optional_time
from incidents.domain.values import SEVERITIES, TEXT_LIMIT, Severity

STORM_KEY: Final = "storm:"
"""What the dedup key of an incident that collects a storm begins with."""
STORM_TICKETS: Final = 100
STORM_SPAN: Final = timedelta(minutes=5)
"""An integration that opened so many incidents within so long is in a storm."""
FLAPS: Final = 5
"""An alert that fired so often within an hour is flapping: its incident is not resolved while it rests."""
SETTLED: Final = timedelta(minutes=15)
"""An incident that was held open for a flapping alert is resolved once nothing fired for so long."""


@dataclass(frozen=True, slots=True)
class Reported:
    """What an event `alert.reported` tells incidents."""

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

    @property
    def name(self) -> str:
        """The rule or check that fired; empty where its sender has none."""
        return self.labels.get("alertname") or self.group

    @property
    def matched(self) -> dict[str, str]:
        return matched_labels(self.labels, self.component, self.integration, self.key)

    def subject(self, at: datetime) -> Subject:
        """What routes look at, of an alert that was recorded at `at`."""
        return Subject(
            component=self.component,
            labels=self.labels,
            severity=self.severity,
            integration=self.integration,
            at=at,
        )


def matched_labels(
    labels: Mapping[str, str], component: str | None, integration: str, key: str
) -> dict[str, str]:
    """What matchers of silences look at: the labels of an alert, and where no label has that name, its `component`,
    `integration` and `dedup_key`, so that an alert without labels can be silenced."""
    named = {} if component is None else {"component": component}
    return {**named, "integration": integration, "dedup_key": key, **labels}


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
        description=_described(body),
        labels=body["labels"],
        links=tuple(body["links"]),
        fired=body["fired"],
        starts_at=optional_time(body["starts_at"]),
    )


def _described(body: Mapping[str, Any]) -> str:
    """The description, and below it the annotations that nothing else of an incident shows."""
    said: str = body["description"]
    rest = [
        f"{name}: {text.strip()}"
        for name, text in (body.get("annotations") or {}).items()
        if text.strip() not in ("", body["title"])
        and text.strip() not in said
        and not name.startswith("__")
        and not _is_link(text)
    ]
    return "\n\n".join(filter(None, (said, "\n".join(rest))))[:TEXT_LIMIT]


def _is_link(text: str) -> bool:
    """Whether it is among the links already."""
    return text.strip().startswith(("http://", "https://")) and not any(map(str.isspace, text.strip()))


@dataclass(frozen=True, slots=True)
class Place:
    """The incident of an alert by its dedup key, and why it is that one.

    With a `group_key` it is the latest incident of that group, unless it was opened longer ago than `window`:
    then a new one opens, and no dedup key could be that of both.
    """

    dedup_key: str
    why: str
    group_key: str | None = None
    window: timedelta | None = None

    def opened_as(self, number: int) -> str:
        """The dedup key of the incident with this number."""
        return self.dedup_key if self.group_key is None else f"{self.dedup_key}#{number}"


def place_of(alert: Reported, routing: Routing) -> Place:
    """Where the alert goes in quiet times: as its route groups, else to what its rule fired on for the same team."""
    grouping = routing.grouping
    if grouping.by is not None and grouping.by != EACH_ALONE:
        return _group(alert, routing, grouping.by)
    place = _alone_or_by_rule(alert, routing.team, alone=grouping.by == EACH_ALONE)
    if grouping.window is None:
        return place
    return Place(place.dedup_key, _within(place.why, grouping), place.dedup_key, grouping.window)


def _alone_or_by_rule(alert: Reported, team: str, *, alone: bool) -> Place:
    if alone or not alert.group:
        return Place(f"alert:{alert.integration}:{alert.key}", "same key of the same integration")
    why = f"all {alert.group} alerts of {team} from {alert.integration} are grouped"
    return Place(f"alerts:{alert.integration}:{team}:{alert.group}", why)


def _group(alert: Reported, routing: Routing, by: Sequence[str]) -> Place:
    """One incident for what a route gets with the same labels, whichever integration sends it."""
    values = {name: _value(alert, routing, name) for name in by}
    rule = routing.path[-1] if routing.path else ""
    told = f"{rule}:{routing.team}:{','.join(f'{name}={value}' for name, value in values.items())}"
    # A key has an index, which takes no long texts; and one that is cut would mix up what is not the same.
    key = told if len(told) <= 200 else f"{told[:150]}…{sha256(told.encode()).hexdigest()[:24]}"
    same = " and ".join(f"{name} {value or 'none'}"[:100] for name, value in values.items())
    why = f"route {rule} groups by {same}" if values else f"route {rule} groups all its alerts"
    place = Place(f"alerts:{alert.integration}:{key}", why, f"route:{key}", routing.grouping.window)
    return place if place.window is None else replace(place, why=_within(why, routing.grouping))


def _value(alert: Reported, routing: Routing, name: str) -> str:
    """Of a label; or of what an alert has besides labels, unless a label is called so."""
    own = {
        "component": alert.component,
        "integration": alert.integration,
        "rule": alert.group,
        "service": routing.service,
    }
    return alert.labels.get(name) or own.get(name) or ""


def _within(why: str, grouping: Grouping) -> str:
    return why if grouping.window is None else f"{why}, within {_minutes(grouping.window)} of its opening"


def storm_place(integration: str, team: str) -> Place:
    """Where an alert that has no incident yet goes in a storm."""
    within = f"within {_minutes(STORM_SPAN)}, of at least this severity"
    why = f"storm: {integration} opened more than {STORM_TICKETS} incidents {within}"
    return Place(f"{STORM_KEY}{integration}:{team}", why)


def is_storm(dedup_key: str) -> bool:
    """Whether an incident collects what comes too fast to be an incident each."""
    return dedup_key.startswith(STORM_KEY)


def symptom(component: str) -> str:
    return f"same component {component}"


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
    """An alert that joins an incident; `again` if it was a member before and had been resolved."""

    alert: str
    title: str
    severity: Severity
    again: bool = False
