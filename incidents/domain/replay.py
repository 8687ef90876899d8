"""Recorded inputs, routed once more by other rules: those that would go elsewhere. Pure.

Both tables decide anew on what an alert, a finding or a report said when it was recorded, so that what differs is due
to the rules alone and not to who handed what over since. An alert that was held back then, or that joined the
incident of its cause, would be again: silences, planned work, inhibition and causes ask no rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal

from incidents.domain.incident.alerts import Place, Reported, is_storm, place_of, reported_from
from incidents.domain.incident.finding import severity_of
from incidents.domain.past_placement import RecentOpenings
from incidents.domain.routing.rules import RouteCache, Routing, RoutingTable, Subject
from incidents.domain.routing.schema import grouping_json
from incidents.domain.values import DEFAULT_SEVERITY

Kind = Literal["alert", "finding", "report"]
JOINED: Final = ("incident.alerts_joined", "incident.symptoms_joined")
REPLAYED: Final = ("alert.reported", "incident.opened", *JOINED)
EXAMPLES: Final = 3
"""Of each difference, the first ones."""
LEFT_OUT: Final = ("suggested teams", "what people did")
"""Deciders on incidents beside the rules, which are not replayed."""
COMPARED: Final = ("team", "service", "severity", "policy", "grouping", "follow_suggestion")


@dataclass(frozen=True, slots=True)
class RecordedInput:
    """Input to be routed at a time. `reported` is an alert's own, also when it is over: groups end with it."""

    kind: Kind
    id: str
    title: str
    at: datetime
    subject: Subject
    reported: Reported | None = None

    @property
    def routed(self) -> bool:
        """Whether it looked for an incident; of an alert only that it began to fire does."""
        return self.reported is None or self.reported.change == "fired"


@dataclass(frozen=True, slots=True)
class Joined:
    """Alerts that came to an incident: to that of their `cause`, or to one where their group put them."""

    alerts: Sequence[str]
    cause: bool


def recorded_from(type_: str, body: Mapping[str, Any], at: datetime) -> RecordedInput | None:
    """Of an event that was recorded at `at`; None for one that was not routed on its own."""
    if type_ == "alert.reported":
        reported = reported_from(body)
        return RecordedInput("alert", reported.alert, reported.title, at, reported.subject(at), reported)
    if body["finding"] is not None:
        answer = _Answers.of(body["finding"])
        subject = Subject(
            component=body["finding"]["component"],
            analyzer=body["finding"]["analyzer"],
            confidence=answer.score,
            severity=severity_of(answer),
            at=at,
        )
        return RecordedInput("finding", str(body["number"]), body["title"], at, subject)
    if body["why"] != "opened by a report":
        return None
    # A route may have said how bad it is; what the reporter said is not kept apart.
    severity = body["severity"] or DEFAULT_SEVERITY
    subject = Subject(component=body["component"], labels=body["labels"], severity=severity, at=at)
    return RecordedInput("report", str(body["number"]), body["title"], at, subject)


@dataclass(frozen=True, slots=True)
class _Answers:
    """Fields of a finding that decide its severity."""

    forecast: bool
    failure_rate: float | None
    sure: bool
    score: float | None

    @classmethod
    def of(cls, finding: Mapping[str, Any]) -> _Answers:
        rate, score = finding["failure_rate"], finding["score"]
        return cls(bool(finding.get("forecast")), rate, bool(finding["sure"]), score)


@dataclass(frozen=True, slots=True)
class Example:
    kind: Kind
    id: str
    title: str
    component: str | None
    at: datetime
    before: str
    after: str
    """The sentences of both decisions."""


@dataclass(slots=True)
class Difference:
    """So many would have `after` in the field `what` (one of COMPARED) where they had `before`."""

    what: str
    before: Any
    after: Any
    count: int = 0
    examples: list[Example] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Replay:
    looked_at: Mapping[Kind, int]
    suppressed: int
    """Of the alerts, those that were suppressed while they fired, and would be again."""
    to_cause: int
    """Of the alerts, those that joined the incident of their cause, and would again."""
    differ: int
    """Number that would be routed otherwise in any field."""
    differences: tuple[Difference, ...]
    """Of each field, the one that concerns most first."""
    incidents_before: int
    incidents_after: int
    """Incidents that the others would have opened by their groups, storms included: without people."""


def replay(recorded: Iterable[RecordedInput | Joined], before: RoutingTable, after: RoutingTable) -> Replay:
    """`recorded` in the order of the log."""
    old, new, fates = _Board(before), _Board(after), _Outcomes()
    looked_at: Counter[Kind] = Counter()
    found: dict[tuple[str, str, str], Difference] = {}
    differ = 0
    for one in fates.requests_of(recorded):
        was, would = old.observe(one), new.observe(one)
        if was is None or would is None:
            continue
        looked_at[one.kind] += 1
        fields = _differing(was, would)
        differ += bool(fields)
        for name, pair in fields.items():
            difference = found.setdefault((name, str(pair[0]), str(pair[1])), Difference(name, *pair))
            difference.count += 1
            if len(difference.examples) < EXAMPLES:
                difference.examples.append(_example(one, was, would))
    ordered = sorted(found.values(), key=lambda one: (COMPARED.index(one.what), -one.count, str(one.after)))
    looked_at["alert"] += fates.suppressed + fates.to_cause
    return Replay(
        looked_at, fates.suppressed, fates.to_cause, differ, tuple(ordered), old.incidents, new.incidents
    )


def _differing(was: Routing, would: Routing) -> dict[str, tuple[Any, Any]]:
    pairs: dict[str, tuple[Any, Any]] = {
        "team": (was.team, would.team),
        "service": (was.service, would.service),
        "severity": (was.severity, would.severity),
        "policy": (was.policy, would.policy),
        "grouping": (grouping_json(was.grouping), grouping_json(would.grouping)),
        "follow_suggestion": (was.follow_suggestion, would.follow_suggestion),
    }
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _example(one: RecordedInput, was: Routing, would: Routing) -> Example:
    component = one.subject.component
    return Example(one.kind, one.id, one.title, component, one.at, was.explanation, would.explanation)


class _Outcomes:
    """Outcomes of alerts that began to fire: a rule is tried on those that came to an incident by their group."""

    def __init__(self) -> None:
        self._waiting: dict[str, RecordedInput] = {}
        self.suppressed = 0
        self.to_cause = 0

    def requests_of(self, recorded: Iterable[RecordedInput | Joined]) -> Iterator[RecordedInput]:
        """Those that ask a rule, each when that is known of it."""
        for one in recorded:
            if isinstance(one, Joined):
                found = [self._waiting.pop(alert) for alert in one.alerts if alert in self._waiting]
                self.to_cause += len(found) if one.cause else 0
                yield from () if one.cause else found
            elif one.reported is None:
                yield one
            elif one.routed:
                self.suppressed += one.id in self._waiting
                self._waiting[one.id] = one
            else:
                self.suppressed += not one.reported.fires and self._waiting.pop(one.id, None) is not None
                yield one
        self.suppressed += len(self._waiting)


class _Board:
    """The incidents that a table would have opened for alerts: of groups, and of storms as the live path opens them."""

    def __init__(self, table: RoutingTable) -> None:
        self._routes = RouteCache(table)
        self._open: dict[str, tuple[datetime, set[str]]] = {}
        self._group_of: dict[str, str] = {}
        self._recent: dict[str, RecentOpenings] = {}
        self.incidents = 0

    def observe(self, one: RecordedInput) -> Routing | None:
        """Routing of an input; None where nothing is to be routed."""
        if one.reported is not None and not one.reported.fires:
            self._rest(one.reported.alert)
        if not one.routed:
            return None
        routing = self._routes.route(one.subject)
        if one.reported is not None:
            self._fire(one.reported, routing, one.at)
        return routing

    def _fire(self, alert: Reported, routing: Routing, at: datetime) -> None:
        if alert.alert in self._group_of:
            return
        place = place_of(alert, routing)
        members = self._members(place, at)
        if members is None:
            recent = self._recent.setdefault(alert.integration, RecentOpenings())
            place = recent.place_for(place, routing.team, [alert], at)
            members = self._members(place, at) if is_storm(place.dedup_key) else None
        key = _key(place)
        if members is None:
            self.incidents += 1
            members = set()
            self._open[key] = (at, members)
        members.add(alert.alert)
        self._group_of[alert.alert] = key

    def _members(self, place: Place, at: datetime) -> set[str] | None:
        """Alerts of the open incident of a place; None where none is open or its window is over."""
        opened, members = self._open.get(_key(place), (at, set()))
        if not members or (place.window is not None and opened <= at - place.window):
            return None
        return members

    def _rest(self, alert: str) -> None:
        key = self._group_of.pop(alert, None)
        if key is not None:
            self._open[key][1].discard(alert)


def _key(place: Place) -> str:
    return place.group_key or place.dedup_key
