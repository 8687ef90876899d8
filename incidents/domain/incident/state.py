"""An incident as its events leave it; refusals and event bodies shared by decisions about it. Pure.

The fold is `incidents.domain.incident.evolve`. The state holds only what decisions and lists need, so it stays
small however long the incident lives: comments and evidence are in the log and in read models of their own.

Opinions: only the latest word of an analyzer counts. `blames`: it names the incident's cause. `blames_other`: it
judged the cause and names something else on the same paths. `saw_nothing`: it judged the cause and names nothing
there. `no_longer_blames`: it did, and a later window of the same schedule does not. An analyzer that judged the cause
and never named it dissents.

State of the failure, apart from the state of the work: a firing alert is failing. A failure found by analyzers
is failing while the latest window over it blames it and a failure lies in the recent part of that window (a long
window still names what has been over for most of it). If no window was judged for a while, neither "failing" nor
"quiet" is known. A failure that only a person reported is unknown.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, ParamSpec, Protocol, TypeVar

from incidents.domain.incident.dissent import CAP, NO_DISSENT, Dissent, logit, lowered
from incidents.domain.proposals import Proposal
from incidents.domain.questions import Dialogue
from incidents.domain.remediation.state import Remediation
from incidents.domain.routing.rules import Routing
from incidents.domain.values import (
    CommandRefusedError,
    Severity,
    State,
    optional_rfc3339,
    optional_time,
    parse_rfc3339,
    rfc3339,
)

# States
# ----------------------------------------------------------------------------------------------------------
if TYPE_CHECKING:
    from dataclasses import replace as replace
else:

    def replace(one, /, **changes):
        """As `dataclasses.replace`. A state without slots is copied whole: 66 fields one by one took 24 us an event."""
        values = getattr(one, "__dict__", None)
        if values is None:
            return dataclasses.replace(one, **changes)
        return _made(type(one), values, changes)


P = ParamSpec("P")
T = TypeVar("T")


def make(cls: Callable[P, T], /, *_: P.args, **values: P.kwargs) -> T:
    """As `cls(**values)`, of a state without slots: its `__init__` took 20 us. States share their empty defaults."""
    made: T = _made(cls, _defaults(cls), values)
    return made


@cache
def _defaults(cls: Any) -> Mapping[str, Any]:
    """By name, in the order of the fields; of one without a default, None."""
    values = dict.fromkeys(one.name for one in dataclasses.fields(cls))
    for one in dataclasses.fields(cls):
        if one.default is not dataclasses.MISSING:
            values[one.name] = one.default
        elif one.default_factory is not dataclasses.MISSING:
            values[one.name] = one.default_factory()
    return values


def _made(cls: Any, values: Any, changes: Mapping[str, Any]) -> Any:
    copied = values | changes
    if len(copied) != len(values):
        unknown = sorted(changes.keys() - values.keys())
        raise TypeError(f"{cls.__name__} has no field {', '.join(unknown)}")
    made = object.__new__(cls)
    object.__setattr__(made, "__dict__", copied)
    return made


# Opinions
# ----------------------------------------------------------------------------------------------------------
OpinionKind = Literal["blames", "blames_other", "saw_nothing", "no_longer_blames"]
Opinions = Mapping[str, "Opinion"]
"""By name of the analyzer."""

FAILS: Final = "fails {} of what depends on it"
"""Unit of a failure rate, where the analyzer names none."""

SHARED_EVIDENCE: Final = 0.5
"""Weight of a second analyzer's log-odds: it may have read the same telemetry. With 0.5 the fused number keeps its
word even then; where they share nothing but the fault it is too modest (`tests/benchmarks/fusion.py`)."""
_WEIGHT: Mapping[OpinionKind, int] = {"blames": 2, "blames_other": 1, "saw_nothing": 0, "no_longer_blames": 0}


@dataclass(frozen=True, slots=True)
class Stance:
    """Stance of a finished window of a schedule on an incident that it does not blame.

    `component` is what it names instead, None when it names nothing there; `dissent` as in `Opinion`.
    """

    analyzer: str
    version: str
    run: str
    schedule: str
    window_start: datetime
    window_end: datetime
    component: str | None = None
    ambiguous_with: tuple[str, ...] = ()
    score: float | None = None
    dissent: Dissent = NO_DISSENT


@dataclass(frozen=True, slots=True)
class Opinion:
    """The latest word of one analyzer. Component, group and score are those that it blames or blamed last.

    `schedules` are those that still say so; `first_at` is when it first blamed this incident, None if it never did.
    `dissent` is what it took off the log-odds of a blame when it judged the cause and did not name it.
    """

    analyzer: str
    version: str
    stance: OpinionKind
    component: str | None
    ambiguous_with: tuple[str, ...]
    score: float | None
    failure_rate: float | None
    run: str
    schedules: tuple[str, ...]
    window_start: datetime
    window_end: datetime
    first_at: datetime | None
    phrase: str = FAILS
    forecast: bool = False
    indicator: str = ""
    path: tuple[str, ...] = ()
    dissent: Dissent = NO_DISSENT

    @property
    def dissents(self) -> bool:
        """Whether it judged the cause and never named it."""
        return self.stance in ("saw_nothing", "blames_other") and self.first_at is None

    @property
    def cause(self) -> frozenset[str]:
        """The component and those that the data could not tell apart from it; empty if it names nothing."""
        return frozenset(() if self.component is None else (self.component, *self.ambiguous_with))

    @property
    def window_length(self) -> timedelta:
        return self.window_end - self.window_start

    @property
    def weight(self) -> int:
        return _WEIGHT[self.stance]

    def as_json(self) -> dict[str, Any]:
        return {
            "analyzer": self.analyzer,
            "version": self.version,
            "stance": self.stance,
            "component": self.component,
            "ambiguous_with": list(self.ambiguous_with),
            "score": self.score,
            "failure_rate": self.failure_rate,
            "phrase": self.phrase,
            "forecast": self.forecast,
            "indicator": self.indicator,
            "path": list(self.path),
            "run": self.run,
            "schedules": list(self.schedules),
            "window": {"start": rfc3339(self.window_start), "end": rfc3339(self.window_end)},
            "first_at": optional_rfc3339(self.first_at),
            "dissent": {"one": self.dissent.one, "several": self.dissent.several},
        }


def opinion_from(body: Mapping[str, Any]) -> Opinion:
    """Reads `Opinion.as_json`."""
    return Opinion(
        analyzer=body["analyzer"],
        version=body["version"],
        stance=body["stance"],
        component=body["component"],
        ambiguous_with=tuple(body["ambiguous_with"]),
        score=body["score"],
        failure_rate=body["failure_rate"],
        phrase=body.get("phrase", FAILS),
        forecast=body.get("forecast", False),
        indicator=body.get("indicator", ""),
        path=tuple(body.get("path", ())),
        run=body["run"],
        schedules=tuple(body["schedules"]),
        window_start=parse_rfc3339(body["window"]["start"]),
        window_end=parse_rfc3339(body["window"]["end"]),
        first_at=optional_time(body["first_at"]),
        dissent=Dissent(**body.get("dissent", {})),
    )


def blaming(before: Opinion | None, finding: Mapping[str, Any], leads: bool, at: datetime | None) -> Opinion:
    """The opinion after a finding joined, from the finding's reference.

    One that merely meets the incident's group (`leads` false) names a neighbour; it does not take back what the
    same analyzer says of the cause itself.
    """
    if not leads and before is not None and before.stance == "blames":
        return before
    stance: OpinionKind = "blames" if leads else "blames_other"
    schedule = finding["schedule"]
    same = before.schedules if before is not None and before.stance == stance else ()
    first_at = None if before is None else before.first_at
    return Opinion(
        analyzer=finding["analyzer"],
        version=finding["version"],
        stance=stance,
        component=finding["component"],
        ambiguous_with=tuple(finding["ambiguous_with"]),
        score=finding["score"],
        failure_rate=finding["failure_rate"],
        phrase=finding.get("phrase", FAILS),
        forecast=finding.get("forecast", False),
        indicator=finding.get("indicator", ""),
        path=tuple(finding.get("path", ())),
        run=finding["run"],
        schedules=same if schedule is None else tuple(sorted({*same, schedule})),
        window_start=parse_rfc3339(finding["window"]["start"]),
        window_end=parse_rfc3339(finding["window"]["end"]),
        first_at=at if leads and first_at is None else first_at,
    )


def without(before: Opinion, schedule: str) -> Opinion:
    """The opinion once a schedule says so no more; the window stays that of the last blame."""
    if schedule not in before.schedules:
        return before
    left = tuple(one for one in before.schedules if one != schedule)
    if left or before.weight == 0:
        return replace(before, schedules=left)
    quiet: OpinionKind = "saw_nothing" if before.first_at is None else "no_longer_blames"
    return replace(before, schedules=left, stance=quiet)


def after_word(before: Opinion | None, word: Stance) -> Opinion | None:
    """The opinion that `word` makes of `before`; None where it changes nothing.

    A weaker word takes a stronger one back only if it comes from a schedule that said it, and from a later window:
    the hour that sees nothing does not contradict the day that does.
    """
    stance: OpinionKind = "blames_other" if word.component is not None else "saw_nothing"
    if before is None:
        return _spoken(word, stance, None)
    if word.window_end <= before.window_end:
        return None
    taken_back = not before.schedules or word.schedule in before.schedules
    if stance == "saw_nothing":
        if before.weight == 0 or not taken_back:
            return None
        if before.first_at is None:
            return _spoken(word, stance, None)
        withdrawn = _spoken(word, "no_longer_blames", before.first_at)
        return replace(
            withdrawn,
            component=before.component,
            ambiguous_with=before.ambiguous_with,
            score=before.score,
            failure_rate=before.failure_rate,
            phrase=before.phrase,
            forecast=before.forecast,
            indicator=before.indicator,
            path=before.path,
        )
    if before.weight > 0 and not taken_back:
        return None
    if before.stance == "blames_other" and before.component == word.component:
        return None
    return _spoken(word, stance, before.first_at)


def _spoken(word: Stance, stance: OpinionKind, first_at: datetime | None) -> Opinion:
    return Opinion(
        analyzer=word.analyzer,
        version=word.version,
        stance=stance,
        component=word.component,
        ambiguous_with=word.ambiguous_with,
        score=word.score,
        failure_rate=None,
        phrase=FAILS,
        run=word.run,
        schedules=(word.schedule,),
        window_start=word.window_start,
        window_end=word.window_end,
        first_at=first_at,
        dissent=word.dissent,
    )


def agreeing(opinions: Opinions, cause: frozenset[str]) -> list[Opinion]:
    """Those that blame the cause about the same time as the newest of them: its window begins before they could have
    said otherwise, that is before their next window has ended.

    The one whose sentence the incident shows comes first: the highest score, then a known failure rate, then the name.
    Forecasts agree with one another only: they say nothing about a fault that is there.
    """
    blames = [one for one in opinions.values() if one.stance == "blames" and one.cause & cause]
    if not all(one.forecast for one in blames):
        blames = [one for one in blames if not one.forecast]
    if not blames:
        return []
    newest = max(blames, key=lambda one: (one.window_end, one.analyzer))
    together = [
        one
        for one in blames
        if one.window_start < newest.window_end
        and newest.window_start < 2 * one.window_length + one.window_start
    ]
    return sorted(together, key=lambda one: (-(one.score or 0.0), one.failure_rate is None, one.analyzer))


def dissenting(opinions: Opinions, together: Sequence[Opinion]) -> list[Opinion]:
    """Those whose dissent lowers what `together` say, by name; none if that is a forecast."""
    if all(one.forecast for one in together):
        return []
    found = [one for one in opinions.values() if one.dissents and one.dissent.against(len(together)) > 0]
    return sorted(found, key=lambda one: one.analyzer)


def fused(
    scores: Iterable[float | None], shared: float = SHARED_EVIDENCE, dissent: float = 0.0
) -> float | None:
    """The probability that several analyzers together give a component, from the score of each that names it.

    The log-odds of the best, plus `shared` times those of each other one as far as they speak for it
    (a score under one half is no evidence against what it blames). None supports without a number.
    One score alone stays what it is; agreement never lowers the best and never exceeds `CAP`. Then the `dissent` of
    those that judged the component and did not name it is taken off, in nats (`incidents.domain.incident.dissent`).
    """
    known = sorted((score for score in scores if score is not None), reverse=True)
    return lowered(_agreed(known, shared), dissent) if known else None


def _agreed(known: Sequence[float], shared: float) -> float:
    best, *others = known
    if not others or not 0.5 < best < 1:
        return best
    log_odds = logit(best) + shared * sum(logit(one) for one in others if one > 0.5)
    return max(best, min(CAP, 1 / (1 + math.exp(-log_odds))))


# State
# ----------------------------------------------------------------------------------------------------------
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
    """Evidence of one analyzer that an incident already shows: its score and the end of its window."""

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


@dataclass(frozen=True)
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
    """Time of the last change of its team."""
    counted_at: datetime
    """Until when `team_seconds` and `owner_seconds` are counted."""
    service: str | None = None
    """The slug of the service that its route named."""
    policy: str | None = None
    """The slug of the escalation policy that its route named."""
    group_key: str | None = None
    """Common key of its alerts, where their route groups them."""
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
    """Time of the last change of an alert that joined or was resolved."""
    findings: int = 0
    hops: int = 0
    """Number of moves to another team."""
    rejections: int = 0
    """Number of rejections: it came back from a team that does not own it; each is a hop, too."""
    handed_over: HandedOver | None = None
    accepted_at: datetime | None = None
    accepted_by: str | None = None
    """Person who accepted the last hand-over for the team that has it."""
    team_seconds: Mapping[str, float] = field(default_factory=dict)
    owner_seconds: Mapping[str, float] = field(default_factory=dict)
    """By team and by person: how long they had it until `counted_at`, in seconds."""
    seconds_to_team: float | None = None
    """Once it is resolved: from its opening until it came, to stay, to the team that resolved it."""
    acknowledged_at: datetime | None = None
    acknowledged_by: str | None = None
    took_ownership: bool = False
    """Owner by acknowledging; when that is undone, it has none again."""
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
    related: Mapping[str, str] = field(default_factory=dict)
    """By component: another name under which an analyzer sees this fault, and how the topology ties it to the cause."""
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
    """Time of the first report by a person or an alert; None while only analyzers reported it."""
    missed_by: Mapping[str, str] = field(default_factory=dict)
    """Analyzers (with version) that judged the confirmed cause and did not name it."""
    remediation: Remediation | None = None
    """Last request to the cluster, and its progress."""
    questions: Dialogue | None = None
    """Questions that would tell its suspects apart, and the answers; None before the first."""
    proposals: tuple[Proposal, ...] = ()
    """Actions that wait for a person to accept or decline them."""

    @property
    def handed_from(self) -> str | None:
        """The team whose hand-over waits to be accepted or rejected."""
        return None if self.handed_over is None else self.handed_over.team

    @property
    def merged_causes(self) -> frozenset[str]:
        return frozenset(name for one in self.merged.values() for name in one.cause)

    @property
    def covers(self) -> frozenset[str]:
        """All that a finding or an alert may name and belong here: its own cause, those of what it took in, and what an
        answer ruled out: blamed again it speaks against that answer, not for another incident."""
        ruled_out = frozenset(() if self.questions is None else self.questions.ruled_out)
        return self.named | self.merged_causes | ruled_out

    @property
    def is_forecast(self) -> bool:
        """Whether all analyzers that ever blamed it forecast a failure."""
        blames = _blames(self)
        return bool(blames) and all(one.forecast for one in blames)

    @property
    def named(self) -> frozenset[str]:
        """The cause, and the related components under which other analyzers see it."""
        return self.cause | self.related.keys()

    @property
    def cause(self) -> frozenset[str]:
        """All that a finding may name and mean this incident; after resolution also the confirmed cause."""
        names = {*self.ambiguous_with, self.component, self.confirmed_cause}
        return frozenset(name for name in names if name and "/" in name)


AWAKE: Mapping[str, Any] = {"snoozed_until": None, "snoozed_by": None, "silence": None}
"""Fields of an incident that is no longer snoozed."""


def person(actor: str) -> str:
    """The name people see: `user:alice` is alice; keys and the system keep their prefix."""
    return actor.removeprefix("user:")


# Refusals
# ----------------------------------------------------------------------------------------------------------
Bodies = list[tuple[str, Mapping[str, Any]]]
"""Types and bodies of the events that a decision makes."""


def opening(id_: str, number: int, routing: Routing, group_key: str | None = None) -> dict[str, Any]:
    """Opening of every incident: its names, and the decisions of its route."""
    window = routing.grouping.window
    return {
        "id": id_,
        "number": number,
        "routing": {
            "team": routing.team,
            "rule": routing.rule,
            "path": list(routing.path),
            "explanation": routing.explanation,
        },
        "service": routing.service,
        "policy": routing.policy,
        "grouping": {
            "key": group_key,
            "by": None if routing.grouping.by is None else list(routing.grouping.by),
            "window_seconds": None if window is None else int(window.total_seconds()),
        },
    }


def raise_severity(severity: Severity, state: Incident, reason: str) -> tuple[str, dict[str, Any]]:
    body = {"severity": severity, "previous": state.severity, "by_person": False, "reason": reason}
    return "incident.severity_set", body


def resolution(
    cause: str | None, note: str, known_until: Mapping[str, datetime]
) -> tuple[str, dict[str, Any]]:
    known = {feed: rfc3339(at) for feed, at in sorted(known_until.items())}
    return "incident.resolved", {"confirmed_cause": cause, "note": note, "known_until": known}


def refuse_merged(state: Incident) -> None:
    if state.merged_into is not None:
        where = f"#{state.number} was merged into #{state.merged_number}{_resolver(state)}"
        raise CommandRefusedError(f"{where}; use that incident, or undo the merge")


def refuse_resolved(state: Incident) -> None:
    refuse_merged(state)
    if state.state == "resolved":
        raise CommandRefusedError(f"#{state.number} is resolved{_resolver(state)}; reopen it first")


def _resolver(state: Incident) -> str:
    return "" if state.resolved_at is None else f", by {state.resolved_by} at {at_second(state.resolved_at)}"


def at_second(moment: datetime) -> str:
    """A time as refusals name it: RFC 3339 to the second."""
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


# Suppression override
# ----------------------------------------------------------------------------------------------------------
def override(overriding: Sequence[Mapping[str, Any]]) -> Bodies:
    """The incident notifies although these silences and maintenance windows cover it."""
    if not overriding:
        return []
    return [("incident.suppression_overridden", {"covers": [dict(one) for one in overriding]})]


def suppression_overridden(state: Incident, event: Fact) -> Incident:
    found = tuple(
        Overridden(
            id=one["id"],
            starts_at=parse_rfc3339(one["starts_at"]),
            until=parse_rfc3339(one["until"]),
            why=one["why"],
            by=person(event.actor),
        )
        for one in event.body["covers"]
    )
    again = {(one.id, one.starts_at) for one in found}
    withdrawn = tuple(
        one
        for one in state.overridden
        if (one.id, one.starts_at) not in again and one.until > event.occurred_at
    )
    return replace(state, overridden=(*withdrawn, *found))


# Failure
# ----------------------------------------------------------------------------------------------------------
FailureState = Literal["failing", "quiet", "no_data", "unknown"]
FAILURE_STATES: Final[tuple[FailureState, ...]] = ("failing", "quiet", "no_data", "unknown")

RECENT: Final = timedelta(minutes=15)
RECENT_SHARE: Final = 4
"""The recent part of a window: a quarter of it, at least `RECENT`, at most the whole window."""
DUE: Final = timedelta(minutes=30)
DUE_WINDOWS: Final = 2
"""The next judged window is overdue after `DUE`, or after so many windows if these are longer."""


@dataclass(frozen=True, slots=True)
class Failure:
    """`since`: data time of the first failure (failing), the last one (quiet), or the last judged window (no data)."""

    state: FailureState
    since: datetime | None

    def as_json(self) -> dict[str, Any]:
        return {"state": self.state, "since": optional_rfc3339(self.since)}


UNKNOWN: Final = Failure("unknown", None)


def failure_of(state: Incident, now: datetime, judged: datetime | None) -> Failure:
    """The state of an incident's failure at `now`.

    `judged`: end of the latest window that any schedule judged in the incident's region, None where none is known.
    """
    if state.firing:
        return Failure("failing", state.failing_since or state.reported_at or state.opened_at)
    if not _was_blamed(state):
        return UNKNOWN if state.alert_at is None else Failure("quiet", state.alert_at)
    assert state.last_blamed is not None
    last = max(filter(None, (state.last_failure or state.last_blamed, state.alert_at)))
    if state.state == "resolved":
        return Failure("quiet", last)
    if _fails_in_latest_window(state):
        overdue = now - state.last_blamed > _due(state)
        return (
            Failure("no_data", state.last_blamed)
            if overdue
            else Failure("failing", state.failing_since or state.opened_at)
        )
    known = max(filter(None, (state.last_blamed, state.alert_at, judged)))
    return Failure("no_data", known) if now - known > _due(state) else Failure("quiet", last)


def is_quiet(state: Incident) -> bool:
    """Whether an unresolved incident is over as far as its own events tell; lists show it below those that fail."""
    if state.state == "resolved" or state.firing:
        return False
    return not _fails_in_latest_window(state) if _was_blamed(state) else state.alert_at is not None


def _was_blamed(state: Incident) -> bool:
    """Whether an analyzer found a failure; a forecast is none."""
    if state.last_blamed is None:
        return False
    return state.last_failure is not None or not state.is_forecast


def _blames(state: Incident) -> list[Opinion]:
    return [one for one in state.opinions.values() if one.first_at is not None]


def _fails_in_latest_window(state: Incident) -> bool:
    # A run by hand has no schedule; no later window takes its word back.
    by_hand = any(one.stance == "blames" and not one.schedules for one in state.opinions.values())
    if not state.blamed_by and not by_hand:
        return False
    if state.last_failure is None or state.last_blamed is None:
        return True
    length = _window(state)
    return state.last_failure > state.last_blamed - min(length, max(RECENT, length / RECENT_SHARE))


def _due(state: Incident) -> timedelta:
    return max(DUE, DUE_WINDOWS * _window(state))


def _window(state: Incident) -> timedelta:
    """Length of the shortest window among the latest of analyzers that blame or blamed it."""
    lengths = [one.window_end - one.window_start for one in _blames(state)]
    return min(lengths, default=timedelta(hours=1))
