"""Commands on an incident. Making a command checks values; `decide` whether it fits the state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal, get_args

from incidents.domain.incident.alerts import JoinSymptoms as JoinSymptoms
from incidents.domain.incident.alerts import LinkToCause as LinkToCause
from incidents.domain.incident.alerts import Member, Reported
from incidents.domain.incident.alerts import RemoveAlerts as RemoveAlerts
from incidents.domain.incident.escalation import Exhaust as Exhaust
from incidents.domain.incident.escalation import Forget as Forget
from incidents.domain.incident.escalation import SkipEscalation as SkipEscalation
from incidents.domain.incident.escalation import StartEscalation as StartEscalation
from incidents.domain.incident.escalation import TakeStep as TakeStep
from incidents.domain.incident.finding import Finding, Relation
from incidents.domain.incident.proposals import AcceptProposal as AcceptProposal
from incidents.domain.incident.proposals import DeclineProposal as DeclineProposal
from incidents.domain.incident.proposals import ProposeAction as ProposeAction
from incidents.domain.incident.questions import AnswerQuestion as AnswerQuestion
from incidents.domain.incident.questions import RequestProbe as RequestProbe
from incidents.domain.incident.remediation import AnswerRemediation as AnswerRemediation
from incidents.domain.incident.remediation import HandToCluster as HandToCluster
from incidents.domain.incident.remediation import JudgeRepair as JudgeRepair
from incidents.domain.incident.split import OpenSplitOff as OpenSplitOff
from incidents.domain.incident.split import SplitAlertsOff as SplitAlertsOff
from incidents.domain.incident.state import Incident, Stance
from incidents.domain.incident.status_updates import RecordStatusUpdate as RecordStatusUpdate
from incidents.domain.incident.theories import RecordTheory as RecordTheory
from incidents.domain.routing.rules import Routing, Subject
from incidents.domain.values import (
    ATTACHED_LIMIT,
    DEFAULT_SEVERITY,
    TITLE_LIMIT,
    InvalidValueError,
    Severity,
    check_cause,
    check_component,
    check_evidence,
    check_labels,
    check_line,
    check_link,
    check_links,
    check_severity,
    check_text,
)

LONGEST_REASON: Final = 2_000


def _set(command: object, name: str, value: object) -> None:
    object.__setattr__(command, name, value)


@dataclass(frozen=True, slots=True)
class Snooze:
    """Until a time, at most 30 days away; None: until it changes. `silence` holds all its firing alerts until then."""

    until: datetime | None = None
    reason: str = ""
    silence: str | None = None

    def __post_init__(self) -> None:
        _set(self, "reason", check_text("reason", self.reason, LONGEST_REASON))


@dataclass(frozen=True, slots=True)
class Unsnooze:
    """Wakes a snoozed incident whose time has come."""


@dataclass(frozen=True, slots=True)
class MergeInto:
    """Into another incident, which takes it in (`Absorb`) in the same transaction."""

    into: Incident
    reason: str = ""

    def __post_init__(self) -> None:
        _set(self, "reason", check_text("reason", self.reason, LONGEST_REASON))


@dataclass(frozen=True, slots=True)
class Absorb:
    """The other side of `MergeInto`; `alerts` are those of the source that fire and are none of this incident's yet."""

    source: Incident
    alerts: tuple[str, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Split:
    """Takes a merged incident out again; `alerts` are those of its own that still fire."""

    target: Incident
    alerts: tuple[str, ...]
    reason: str = ""

    def __post_init__(self) -> None:
        _set(self, "reason", check_text("reason", self.reason, LONGEST_REASON))


@dataclass(frozen=True, slots=True)
class Separate:
    """The other side of `Split`: `alerts` leave the target, of which `firing` still fire there."""

    source: Incident
    alerts: tuple[str, ...]
    firing: tuple[str, ...]
    reason: str = ""


Undoable = Literal["hand_over", "snooze", "merge", "split_off"]


@dataclass(frozen=True, slots=True)
class Undo:
    """Takes back what was done last of what can be; `what` says which, if it must be that.

    `overriding`: the suppressions in force that a person overrides by ending a snooze, as event bodies.
    """

    what: Undoable | None = None
    overriding: tuple[Mapping[str, Any], ...] = ()

    def __post_init__(self) -> None:
        if self.what not in (None, *get_args(Undoable)):
            raise InvalidValueError("what", f"must be one of {', '.join(get_args(Undoable))}")


@dataclass(frozen=True, slots=True)
class Report:
    """Report of a fault by a person or a sender. With a `dedup_key` it joins the open incident of that key."""

    title: str
    component: str | None = None
    severity: Severity | None = None
    dedup_key: str | None = None
    description: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    links: tuple[Mapping[str, str], ...] = ()
    evidence: tuple[Mapping[str, Any], ...] = ()
    region: str | None = None

    def __post_init__(self) -> None:
        _set(self, "title", check_line("title", self.title, TITLE_LIMIT))
        if self.component is not None:
            _set(self, "component", check_component("component", self.component))
        if self.severity is not None:
            check_severity("severity", self.severity)
        if self.dedup_key is not None:
            # An empty key would collapse every incident of a careless sender into one.
            _set(self, "dedup_key", check_line("dedup_key", self.dedup_key))
        _set(self, "description", check_text("description", self.description))
        _set(self, "labels", check_labels("labels", self.labels))
        _set(self, "links", tuple(check_links("links", self.links)))
        _set(self, "evidence", tuple(check_evidence("evidence", self.evidence)))

    def subject(self, at: datetime) -> Subject:
        """Subject for routes, of a report made at `at`."""
        return Subject(
            component=self.component, labels=self.labels, severity=self.severity or DEFAULT_SEVERITY, at=at
        )


@dataclass(frozen=True, slots=True)
class Open:
    """Opens an incident from a report. Id, number and routing are decided outside, so that this stays pure."""

    id: str
    number: int
    routing: Routing
    report: Report


@dataclass(frozen=True, slots=True)
class OpenForFinding:
    """Opens an incident from a finding; `why` says why it did not wait (`sure`, or so many windows).

    Its dedup key is `dedup_key`, which no open incident has.
    """

    id: str
    number: int
    routing: Routing
    finding: Finding
    why: str
    dedup_key: str


@dataclass(frozen=True, slots=True)
class OpenForAlerts:
    """Opens an incident for alerts that belong together: `alerts[0]` gives it its title and component, but
    for a storm. Ten and more are named by their number and what they have in common; `shared` is that of their group.
    """

    id: str
    number: int
    routing: Routing
    dedup_key: str
    alerts: tuple[Reported, ...]
    why: str
    group_key: str | None = None
    shared: str = ""


@dataclass(frozen=True, slots=True)
class JoinAlerts:
    """Alerts that fire and belong to this open incident, and why they do."""

    members: tuple[Member, ...]
    why: str


@dataclass(frozen=True, slots=True)
class ResolveAlerts:
    """Members of this incident that fire no more. `flapping` are those of them that will probably fire again."""

    alerts: tuple[str, ...]
    flapping: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AutoResolve:
    """Nothing that this incident is about fires any more; resolves it unless an analyzer or a person had a part in it.

    `known_until` as `Resolve` has it.
    """

    why: str
    known_until: Mapping[str, datetime] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RaiseSeverity:
    """A member got worse."""

    severity: Severity
    title: str


@dataclass(frozen=True, slots=True)
class Join:
    """A report with the dedup key of this open incident."""

    report: Report


@dataclass(frozen=True, slots=True)
class JoinFinding:
    """`severity` is what its route makes of it; None leaves that to the finding. `relation` ties it to an incident of
    another component."""

    finding: Finding
    severity: Severity | None = None
    relation: Relation | None = None


@dataclass(frozen=True, slots=True)
class RecordFinding:
    """A finding whose failures all precede the resolution: kept on the resolved incident, opens nothing."""

    finding: Finding


@dataclass(frozen=True, slots=True)
class ClearFinding:
    """A finished run of `schedule` whose window is later than the last blame and names this cause no more."""

    run: str
    schedule: str
    analyzer: str
    window_end: str


@dataclass(frozen=True, slots=True)
class NoteOpinion:
    """Opinion of a finished window of a schedule that does not blame this incident."""

    word: Stance


@dataclass(frozen=True, slots=True)
class RecordMissedCause:
    """An analyzer judged `windows` windows over the confirmed cause and named it in none; `run` is the last."""

    confirmed_cause: str
    analyzer: str
    version: str
    windows: int
    window_start: str
    window_end: str
    run: str


@dataclass(frozen=True, slots=True)
class AttachEvidence:
    evidence: tuple[Mapping[str, Any], ...]

    def __post_init__(self) -> None:
        evidence = check_evidence("evidence", self.evidence)
        _set(self, "evidence", tuple(evidence))


@dataclass(frozen=True, slots=True)
class Acknowledge:
    pass


@dataclass(frozen=True, slots=True)
class Unacknowledge:
    pass


@dataclass(frozen=True, slots=True)
class Assign:
    """`owner` is a login name; None takes the owner away."""

    owner: str | None

    def __post_init__(self) -> None:
        if self.owner is not None:
            _set(self, "owner", check_line("owner", self.owner))


@dataclass(frozen=True, slots=True)
class HandOver:
    """To the team with the slug `team`, which the caller has looked up."""

    team: str
    reason: str

    def __post_init__(self) -> None:
        _set(self, "team", check_line("team", self.team))
        _set(self, "reason", check_text("reason", self.reason, 2000, blank=False))


@dataclass(frozen=True, slots=True)
class Accept:
    """The team that it was handed to says that it is theirs."""


@dataclass(frozen=True, slots=True)
class Bounce:
    """Back to the team that handed it over, because it is not theirs."""

    reason: str

    def __post_init__(self) -> None:
        _set(self, "reason", check_text("reason", self.reason, 2000, blank=False))


@dataclass(frozen=True, slots=True)
class Comment:
    """In Markdown; `links` are what is attached to it: logs, pictures, dashboards."""

    text: str
    links: tuple[Mapping[str, str], ...] = ()

    def __post_init__(self) -> None:
        _set(self, "links", tuple(check_links("links", self.links, ATTACHED_LIMIT)))
        _set(self, "text", check_text("text", self.text, blank=False))


@dataclass(frozen=True, slots=True)
class SetSeverity:
    severity: Severity

    def __post_init__(self) -> None:
        check_severity("severity", self.severity)


@dataclass(frozen=True, slots=True)
class SetTitle:
    title: str

    def __post_init__(self) -> None:
        _set(self, "title", check_line("title", self.title, TITLE_LIMIT))


@dataclass(frozen=True, slots=True)
class NameGroup:
    """A title that says how many alerts a group or a storm has by now, in the place of the one that said so before."""

    title: str
    instead_of: str


@dataclass(frozen=True, slots=True)
class Link:
    href: str
    text: str = ""

    def __post_init__(self) -> None:
        checked = check_link("link", {"href": self.href, "text": self.text})
        _set(self, "href", checked["href"])
        _set(self, "text", checked["text"])


@dataclass(frozen=True, slots=True)
class Resolve:
    """`confirmed_cause` is the component that was at fault, a class such as "firmware" where it was no single one, or
    "none" when nothing was; `known_until` how far telemetry had come by feed (`blame.feed_of`), where it is
    behind the clock. `without_proof` is the reason to resolve it before the repair is proved, where it demands that."""

    confirmed_cause: str
    note: str = ""
    known_until: Mapping[str, datetime] = field(default_factory=dict)
    without_proof: str = ""

    def __post_init__(self) -> None:
        _set(self, "confirmed_cause", check_cause("confirmed_cause", self.confirmed_cause))
        _set(self, "note", check_text("note", self.note))
        _set(self, "without_proof", check_text("without_proof", self.without_proof, LONGEST_REASON))


@dataclass(frozen=True, slots=True)
class Reopen:
    reason: str = ""

    def __post_init__(self) -> None:
        _set(self, "reason", check_text("reason", self.reason, 2000))


@dataclass(frozen=True, slots=True)
class RecordMaintenance:
    """Planned work is going on at what this incident blames."""

    window: str
    component: str
    until: datetime
    why: str


Outcome = Literal["sent", "failed", "delayed", "stopped", "given_up"]


@dataclass(frozen=True, slots=True)
class NoteNotified:
    """`person` or `method` is None where there is none; `why` is what was answered, or why it is delayed or ended.

    `reason` is why they are called, `attempt` counts from 1, `incidents` counts those in one message, `until`
    when it is tried next. `method` is a name, never an address.
    """

    notification: str
    person: str | None
    method: str | None
    kind: str | None
    outcome: Outcome
    why: str
    reason: str
    attempt: int = 0
    incidents: int = 1
    until: datetime | None = None


Command = (
    Open
    | OpenForFinding
    | OpenForAlerts
    | OpenSplitOff
    | JoinAlerts
    | JoinSymptoms
    | RemoveAlerts
    | LinkToCause
    | RecordMaintenance
    | ResolveAlerts
    | AutoResolve
    | RaiseSeverity
    | Join
    | JoinFinding
    | RecordFinding
    | ClearFinding
    | NoteOpinion
    | RecordMissedCause
    | NoteNotified
    | AttachEvidence
    | Acknowledge
    | Unacknowledge
    | Assign
    | HandOver
    | Accept
    | Bounce
    | Snooze
    | Unsnooze
    | MergeInto
    | Absorb
    | Split
    | Separate
    | SplitAlertsOff
    | Undo
    | Comment
    | SetSeverity
    | SetTitle
    | NameGroup
    | Link
    | Resolve
    | Reopen
    | HandToCluster
    | AnswerRemediation
    | JudgeRepair
    | RequestProbe
    | AnswerQuestion
    | ProposeAction
    | AcceptProposal
    | DeclineProposal
    | RecordTheory
    | RecordStatusUpdate
    | StartEscalation
    | SkipEscalation
    | TakeStep
    | Exhaust
    | Forget
)
