"""An incident as it stands. It is folded from its events (`domain.evolve`).

The state holds only what decisions and lists need and stays small however long the incident lives: comments and
evidence are in the log and in their own read models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from incidents.domain.incident.opinions import Opinions
from incidents.domain.values import Severity, State


class Fact(Protocol):
    """The part of a stored event that an incident is folded from."""

    @property
    def type(self) -> str: ...
    @property
    def body(self) -> Mapping[str, Any]: ...
    @property
    def actor(self) -> str: ...
    @property
    def occurred_at(self) -> datetime: ...


@dataclass(frozen=True, slots=True)
class Shown:
    """What evidence of one analyzer an incident already shows: the score it had and the end of its window."""

    score: float | None
    window_end: datetime


@dataclass(frozen=True, slots=True)
class HandedOver:
    """A hand-over that nobody has answered yet, and how the incident stood at the team that sent it."""

    team: str
    by: str
    at: datetime
    reason: str
    state: State
    owner: str | None
    acknowledged_at: datetime | None
    acknowledged_by: str | None
    team_since: datetime


@dataclass(frozen=True, slots=True)
class Merged:
    """An incident that was merged into this one, and what it brought."""

    number: int
    title: str
    cause: tuple[str, ...]
    alerts: int
    findings: int
    waits: bool
    """Whether the incident now waits for a person also when all its alerts are over."""


@dataclass(frozen=True, slots=True)
class Overridden:
    """A silence or maintenance window, in one of its spans, that a person overrode for this incident."""

    id: str
    starts_at: datetime
    until: datetime
    why: str
    by: str


@dataclass(frozen=True, slots=True)
class Incident:
    id: str
    number: int
    title: str
    description: str
    state: State
    severity: Severity
    component: str | None
    ambiguous_with: tuple[str, ...]
    region: str | None
    team: str
    routing: str
    dedup_key: str
    labels: Mapping[str, str]
    links: tuple[Mapping[str, str], ...]
    opened_at: datetime
    opened_by: str
    team_since: datetime
    """When it came to the team that has it."""
    counted_at: datetime
    """Until when `team_seconds` and `owner_seconds` are counted."""
    service: str | None = None
    """The slug of the service that its route named."""
    policy: str | None = None
    """The slug of the escalation policy that its route named."""
    group_key: str | None = None
    """What alerts that belong here have in common, where their route says so."""
    titled_by_analyzer: bool = False
    """Then the title says what the latest verdict says."""
    severity_by_person: bool = False
    """Then findings and reports leave it alone."""
    verdict: str | None = None
    confidence: float | None = None
    analyzer: str | None = None
    owner: str | None = None
    alerts: int = 0
    """Reports that joined, and alerts that ever were members."""
    firing: int = 0
    """Members that fire now."""
    flapping: bool = False
    """Its last members that rested had fired so often that they will probably fire again."""
    alert_at: datetime | None = None
    """When an alert last joined or rested."""
    findings: int = 0
    hops: int = 0
    """How often it moved to another team."""
    bounces: int = 0
    """How often it came back because it was not theirs; each is a hop, too."""
    handed_over: HandedOver | None = None
    accepted_at: datetime | None = None
    accepted_by: str | None = None
    """Who accepted the last hand-over for the team that has it."""
    team_seconds: Mapping[str, float] = field(default_factory=dict)
    owner_seconds: Mapping[str, float] = field(default_factory=dict)
    """By team and by person: how long they had it until `counted_at`, in seconds."""
    seconds_to_team: float | None = None
    """Once it is resolved: from its opening until it came, to stay, to the team that resolved it."""
    acknowledged_at: datetime | None = None
    acknowledged_by: str | None = None
    took_ownership: bool = False
    """Who acknowledged it became its owner by that; taken back, it has none again."""
    resolved_at: datetime | None = None
    resolved_by: str | None = None
    confirmed_cause: str | None = None
    snoozed_until: datetime | None = None
    """None while it is snoozed: until it changes."""
    snoozed_by: str | None = None
    silence: str | None = None
    """The silence that holds all its firing alerts, while it is snoozed for that."""
    overridden: tuple[Overridden, ...] = ()
    """Silences and maintenance windows in spite of which it notifies, each until its end."""
    known_until: Mapping[str, datetime] = field(default_factory=dict)
    """By feed (`feed_of`): how far the telemetry had come when it was resolved, where it was behind the clock."""
    merged_into: str | None = None
    """The incident that this one was merged into: there it is worked on."""
    merged_number: int | None = None
    merged: Mapping[str, Merged] = field(default_factory=dict)
    """By id: the incidents that were merged into this one."""
    failing_since: datetime | None = None
    last_failure: datetime | None = None
    last_blamed: datetime | None = None
    """End of the latest window whose finding joined."""
    blamed_by: tuple[str, ...] = ()
    """Schedules whose latest finished window still blames this cause."""
    shown: Mapping[str, Shown] = field(default_factory=dict)
    """By analyzer: the evidence attached last."""
    opinions: Opinions = field(default_factory=dict)
    """By analyzer: its latest word on this cause."""
    reported_at: datetime | None = None
    """When a person or an alert first reported it; None while only analyzers have."""
    missed_by: Mapping[str, str] = field(default_factory=dict)
    """Analyzers (with version) that judged the confirmed cause and did not name it."""

    @property
    def handed_from(self) -> str | None:
        """The team whose hand-over waits to be accepted or bounced back."""
        return None if self.handed_over is None else self.handed_over.team

    @property
    def merged_causes(self) -> frozenset[str]:
        return frozenset(name for one in self.merged.values() for name in one.cause)

    @property
    def covers(self) -> frozenset[str]:
        """All that a finding or an alert may name and belong here: its own cause, and those of what it took in."""
        return self.cause | self.merged_causes

    @property
    def cause(self) -> frozenset[str]:
        """All that a finding may name and mean this incident; after resolution also the confirmed cause."""
        names = {*self.ambiguous_with, self.component, self.confirmed_cause}
        return frozenset(name for name in names if name and "/" in name)


AWAKE: Mapping[str, Any] = {"snoozed_until": None, "snoozed_by": None, "silence": None}
"""What an incident that sleeps no more forgets."""


def person(actor: str) -> str:
    """The name people see: `user:alice` is alice; keys and the system keep their prefix."""
    return actor.removeprefix("user:")
