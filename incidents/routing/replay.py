"""Routes tried before they count: on one alert, and on what was recorded of late."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from incidents import queries
from incidents.domain.incident.alerts import STORM_SPAN, Reported, is_symptom
from incidents.domain.incident.finding import FINDING_KEY
from incidents.domain.past_placement import PastAlert
from incidents.domain.replay import JOINED, REPLAYED, Joined, RecordedInput, Replay, recorded_from, replay
from incidents.domain.routing.explain import Explanation, explain
from incidents.domain.routing.rules import RoutingTable, Subject
from incidents.domain.routing.schema import Written, all_written, check_tree, replaced, tree_from
from incidents.domain.suppression.past import Firing
from incidents.domain.values import (
    DEFAULT_SEVERITY,
    InvalidValueError,
    check_component,
    check_labels,
    check_line,
    check_severity,
)
from incidents.incident.models import IncidentRow, MemberAlert
from incidents.teams.models import routing_table, rules_as_written, services_by_slug, teams_by_slug
from ingest.api.test_alerts import ENDPOINTS, read_pasted
from ingest.integrations.normalized import Alert as Read
from ingest.integrations.normalized import InvalidPayloadError
from ingest.queries import Alert, Event, Position, alerts, firing_at, position_at, read_all

LONGEST = timedelta(days=90)
MOST_EVENTS = 50_000
"""Events that one replay reads."""
PART = 5_000
SUBJECT = ("component", "labels", "severity", "integration", "service", "analyzer", "confidence", "at")


class AlertNotFoundError(LookupError):
    """No alert has this id."""


@dataclass(frozen=True, slots=True)
class Explained:
    """`incident` is the number of the incident that a recorded alert has or had."""

    explanation: Explanation
    incident: int | None = None


@dataclass(frozen=True, slots=True)
class Replayed:
    """Inputs from `start` to `end`; an incomplete replay met MOST_EVENTS and ended there."""

    start: datetime
    end: datetime
    complete: bool
    result: Replay


def explain_alert(id: str, table: RoutingTable) -> Explained:
    """A recorded alert as it stands. Raises AlertNotFoundError."""
    alert = _alert(id)
    one = alert.alert
    subject = Subject(
        component=one.component,
        labels=one.labels,
        severity=one.severity,
        integration=alert.integration,
        at=alert.changed_at,
    )
    return Explained(explain(subject, table), queries.incident_numbers([id]).get(id))


@dataclass(frozen=True, slots=True)
class Pasted:
    """Alerts of a payload: `alert`, the first of `alerts` that fires, else the first, is the one explained."""

    alert: Read
    explanation: Explanation
    alerts: int
    refused: tuple[str, ...]


def explain_pasted(
    endpoint: object, integration: object, payload: Any, at: datetime, table: RoutingTable
) -> Pasted:
    """A payload read as its endpoint reads it, by the mapping of an integration if one is named; kept nowhere.

    Raises InvalidValueError, of `endpoint`, `integration` or the place in `payload`.
    """
    if not isinstance(endpoint, str) or endpoint not in ENDPOINTS:
        raise InvalidValueError("endpoint", f"must be one of {', '.join(ENDPOINTS)}")
    sender = check_line("integration", integration) if integration else None
    try:
        parsed = read_pasted(endpoint, sender, payload)
    except InvalidPayloadError as bad:
        raise InvalidValueError(f"payload.{bad.field}" if bad.field else "payload", bad.reason) from None
    except LookupError as error:
        raise InvalidValueError("integration", str(error)) from None
    refused = tuple(str(one) for one in (*parsed.refused, *parsed.left_out))
    if not parsed.alerts:
        raise InvalidValueError("payload", f"holds no alert: {refused[0]}" if refused else "holds no alert")
    one = next((alert for alert in parsed.alerts if alert.status != "resolved"), parsed.alerts[0])
    subject = Subject(
        component=one.component, labels=one.labels, severity=one.severity, integration=sender, at=at
    )
    return Pasted(one, explain(subject, table), len(parsed.alerts), refused)


def latest_alerts(most: int) -> list[Alert]:
    """Those of incidents that began or rested last."""
    ids = MemberAlert.objects.filter(resolved=False).order_by("-pk").values_list("alert", flat=True)[:most]
    return alerts([str(id) for id in ids])


def _alert(id: str) -> Alert:
    found = alerts([id])
    if not found:
        raise AlertNotFoundError(f"no alert {id}")
    return found[0]


def subject_from(body: Mapping[str, Any], at: datetime) -> Subject:
    """Subject that people type: `component`, `labels`, … (SUBJECT). Raises InvalidValueError."""
    given = {name: value for name, value in body.items() if value not in (None, "")}
    confidence = given.get("confidence")
    if confidence is not None and (
        isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 <= confidence <= 1
    ):
        raise InvalidValueError("confidence", "must be a number from 0 to 1")
    return Subject(
        component=check_component("component", given["component"]) if "component" in given else None,
        labels=check_labels("labels", given.get("labels", {})),
        severity=check_severity("severity", given.get("severity", DEFAULT_SEVERITY)),
        integration=_line(given, "integration"),
        service=_line(given, "service"),
        analyzer=_line(given, "analyzer"),
        confidence=None if confidence is None else float(confidence),
        at=at,
    )


def _line(given: Mapping[str, Any], name: str) -> str | None:
    return check_line(name, given[name]) if name in given else None


def rules_in_force() -> list[Written]:
    return rules_as_written()[0]


def proposed(rules: Sequence[object], table: RoutingTable) -> RoutingTable:
    """The table with other rules, as `rule_form` has them. Raises InvalidValueError."""
    written = all_written(rules, teams_by_slug(), services_by_slug())
    return replace(table, rules=tree_from(written))


def with_one_changed(name: str | None, by: Written | None, table: RoutingTable) -> RoutingTable:
    """The table with one rule changed, added (no `name`) or left out (no `by`). Raises InvalidValueError for what is
    no tree."""
    written = replaced(rules_in_force(), name, by)
    check_tree(written)
    return replace(table, rules=tree_from(written))


def replay_recorded(after: RoutingTable, start: datetime, end: datetime, most: int = MOST_EVENTS) -> Replayed:
    """Recorded inputs between two times through the rules in force and through others. Raises InvalidValueError."""
    check_span(start, end)
    reading = _Reading(position_at(start), position_at(end), most)
    result = replay(reading.each(), routing_table(), after)
    return Replayed(start, end if reading.last is None else reading.last, reading.last is None, result)


def check_span(start: datetime, end: datetime) -> None:
    """Raises InvalidValueError for a span that is not replayed."""
    if end <= start:
        raise InvalidValueError("to", "must be later than the start")
    if end - start > LONGEST:
        raise InvalidValueError("from", f"must be at most {LONGEST.days} days before the end")


@dataclass(frozen=True, slots=True)
class Opening:
    """Cause of an incident's opening: a finding or a report, or alerts; `alerts` are all that came to it first."""

    stream: str
    first: RecordedInput
    alerts: list[PastAlert] = field(default_factory=list)


class Openings:
    """The incidents that were opened between two times, and `before`: those of alerts that were open already.
    `unplaced` came to none, `firings` are all of that time. `last` as in a routing replay.

    Reading begins STORM_SPAN earlier, so that a storm that goes on at the start is known as one.
    """

    def __init__(self, start: datetime, end: datetime, most: int = MOST_EVENTS) -> None:
        check_span(start, end)
        self.start, self.end = start, end
        self._begin = start - STORM_SPAN
        self._reading = _Reading(position_at(self._begin), position_at(end), most)
        self.found: dict[str, Opening] = {}
        self.before: dict[str, Opening] = {}
        self._waiting: dict[str, bool] = {}
        self._firing: dict[str, PastAlert] = {}
        self._alone: dict[Firing, PastAlert] = {}
        self._placed: set[Firing] = set()
        earlier = list(self._since_before())
        self.firings = [one.firing for one in earlier]
        for events in self._reading.parts():
            for event in events:
                self._read(event)
        self._join_earlier(earlier)

    @property
    def last(self) -> datetime | None:
        return self._reading.last

    @property
    def unplaced(self) -> list[PastAlert]:
        return list(self._alone.values())

    def _since_before(self) -> Iterator[PastAlert]:
        for event, began in firing_at(position_at(self._begin), self._begin):
            one = recorded_from(event.type, event.body, event.recorded_at)
            if one is not None and one.reported is not None:
                alert = _past_alert(one.reported, one.subject, began)
                self._firing[one.id] = alert
                yield alert

    def _join_earlier(self, earlier: Sequence[PastAlert]) -> None:
        """Alerts that came to an incident before anything was read."""
        left = {one.reported.alert: one for one in earlier if one.firing not in self._placed}
        members = MemberAlert.objects.filter(incident__opened_at__lt=self._begin)
        members = members.exclude(incident__resolved_at__lt=self._begin)
        ids = list(left)
        for place in range(0, len(ids), PART):
            rows = members.filter(alert__in=ids[place : place + PART]).order_by("incident__number")
            for alert, incident in rows.values_list("alert", "incident_id"):
                self._join(f"incident/{incident}", left[str(alert)], symptom=False)

    def _read(self, event: Event) -> None:
        if event.type in JOINED:
            symptom = event.type != "incident.alerts_joined" or is_symptom(event.body["why"])
            for alert in event.body["alerts"]:
                if alert in self._firing:
                    self._join(event.stream, self._firing[alert], symptom)
            return
        is_before = event.recorded_at < self.start
        one = recorded_from(event.type, event.body, event.recorded_at)
        if one is None:
            self._waiting[event.stream] = is_before
        elif one.reported is not None:
            self._report(one, one.reported)
        elif not is_before:
            self.found[event.stream] = Opening(event.stream, one)

    def _join(self, stream: str, alert: PastAlert, symptom: bool) -> None:
        self._alone.pop(alert.firing, None)
        first = RecordedInput(
            "alert",
            alert.reported.alert,
            alert.reported.title,
            alert.firing.start,
            alert.subject,
            alert.reported,
        )
        if stream in self._waiting:
            opened = self.before if self._waiting.pop(stream) else self.found
            opened[stream] = Opening(stream, first)
        elif stream not in self.found:
            self.before.setdefault(stream, Opening(stream, first))
        opening = self.found.get(stream) or self.before[stream]
        if opening.first.reported is not None and alert.firing not in self._placed:
            self._placed.add(alert.firing)
            opening.alerts.append(replace(alert, symptom=symptom))

    def _report(self, one: RecordedInput, alert: Reported) -> None:
        before = self._firing.get(one.id)
        if before is not None and (alert.change == "fired" or not alert.fires):
            before.firing.end = before.firing.end or one.at
        if alert.change == "fired":
            fired = _past_alert(alert, one.subject, one.at)
            self._firing[one.id] = fired
            self.firings.append(fired.firing)
            if one.at >= self.start:
                self._alone[fired.firing] = fired


def _past_alert(alert: Reported, subject: Subject, start: datetime) -> PastAlert:
    firing = Firing(alert.alert, alert.component, alert.labels, alert.matched, start)
    return PastAlert(alert, subject, firing)


class _Reading:
    """The events of a span, in parts. `last` is when the last one was recorded, if `most` ended it."""

    def __init__(self, start: Position, end: Position, most: int) -> None:
        self._after, self._end, self._left = start, end, most
        self.last: datetime | None = None

    def each(self) -> Iterator[RecordedInput | Joined]:
        for events in self.parts():
            of_findings = _opened_by_findings(event.stream for event in events if event.type in JOINED)
            for event in events:
                if event.type in JOINED:
                    cause = event.type == "incident.symptoms_joined" or event.stream in of_findings
                    yield Joined(event.body["alerts"], cause)
                    continue
                recorded = recorded_from(event.type, event.body, event.recorded_at)
                if recorded is not None:
                    yield recorded

    def parts(self) -> Iterator[list[Event]]:
        while events := read_all(self._after, min(PART, self._left), REPLAYED, upto=self._end):
            yield events
            self._after, self._left = events[-1].position, self._left - len(events)
            if self._left <= 0:
                more = read_all(self._after, 1, REPLAYED, upto=self._end)
                self.last = events[-1].recorded_at if more else None
                return


def _opened_by_findings(streams: Iterable[str]) -> set[str]:
    """Incidents that alerts join because they are about the component, whatever the rules."""
    ids = {stream.removeprefix("incident/") for stream in streams}
    rows = IncidentRow.objects.filter(pk__in=ids, dedup_key__startswith=FINDING_KEY)
    return {f"incident/{pk}" for pk in rows.values_list("pk", flat=True)}


def now() -> datetime:
    return datetime.now(UTC)
