"""Alerts become incidents: alerts that belong together share one, in batches, so that a storm stays a few
events.

Alerts on components that a blamed cause explains join its incident as symptoms, and leave it when the cause is
withdrawn. Called by the follower of the log, in its transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

import msgspec
from django.db.models import Q

from incidents.alerts import resolve
from incidents.domain.incident import commands as c
from incidents.domain.incident.alerts import (
    MOST_HOPS,
    STORM_SPAN,
    Explanation,
    IncidentReference,
    Links,
    Member,
    Opened,
    Place,
    Reported,
    Symptom,
    about_all,
    at_least,
    explain,
    explains,
    group_title,
    is_blamed,
    is_by_rule,
    is_storm,
    place_of,
    place_without_incident,
    reported_from,
    storm_title,
    symptom,
    title_of_the_rest,
)
from incidents.domain.incident.commands import LONGEST_REASON
from incidents.domain.incident.flapping import is_flapping
from incidents.domain.incident.snooze import LONGEST as LONGEST_SNOOZE
from incidents.domain.incident.state import Incident, opinion_from
from incidents.domain.routing.rules import RouteCache, Routing, RoutingTable
from incidents.domain.suppression.rules import because
from incidents.domain.values import NO_CAUSE, Severity, is_worse
from incidents.incident.models import IncidentRow, MemberAlert, SuppressedAlert, TimelineEntry
from incidents.incident.projection import state_of
from incidents.incident.repository import (
    IncidentCommand,
    LockedIncident,
    lock_keys,
    locked_incidents,
    memberships,
    newest_members,
    next_numbers,
    open_incidents_of,
    open_incidents_of_groups,
    record,
    record_each,
    record_openings,
    stream_of,
)
from incidents.incident.telemetry_horizon import known_until
from incidents.suppression.suppressor import Suppressor, drop_suppressions, end_suppressions, note_planned
from incidents.teams.models import routing_table
from ingest.queries import (
    AlertBrief,
    Context,
    Event,
    alert_briefs,
    alert_components,
    dependencies_of,
    firing_alerts,
    ordered_id,
    read_versions,
)

# Causes
# ----------------------------------------------------------------------------------------------------------
MOST_AT_ONCE = 1_000
"""Alerts that one event moves: a body stays some hundred kilobytes."""
MOST_READ = 10_000
"""Alerts of a group that are read for its title: of millions the newest."""
DEFAULT_REGION = "default"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Blamed:
    """An open incident whose cause an analyzer still blames."""

    incident: IncidentReference
    region: str
    cause: frozenset[str]


@dataclass(frozen=True, slots=True)
class Explained:
    blamed: Blamed
    explanation: Explanation


def blamed_incidents() -> list[Blamed]:
    """By number."""
    rows = IncidentRow.objects.filter(findings__gt=0).exclude(state="resolved").exclude(cause=[])
    pairs = rows.order_by("number").values_list("pk", "number", "title", "region", "cause", "opinions")
    return [
        Blamed(IncidentReference(str(pk), number, title), region or DEFAULT_REGION, frozenset(cause))
        for pk, number, title, region, cause, opinions in pairs
        if is_blamed({name: opinion_from(one) for name, one in opinions.items()})
    ]


def explained_by(components: Collection[str], blamed: Sequence[Blamed], at: datetime) -> dict[str, Explained]:
    """By component, of those that a cause explains, the nearest cause; of incidents with the same cause the first.

    The topology of each region that has a blamed cause is read once, as far as it concerns these components.
    """
    found: dict[str, Explained] = {}
    for region in sorted({one.region for one in blamed}):
        incidents: dict[str, Blamed] = {}
        for one in blamed:
            if one.region == region:
                for name in one.cause:
                    incidents.setdefault(name, one)
        links = _links(region, components, at)
        for component in components:
            explanation = explain(component, incidents.keys(), links)
            if explanation is None:
                continue
            before = found.get(component)
            if before is None or explanation.hops < before.explanation.hops:
                found[component] = Explained(incidents[explanation.cause], explanation)
    return found


def _links(region: str, components: Collection[str], at: datetime) -> Mapping[str, Links]:
    known = dependencies_of(region, sorted(components), at, MOST_HOPS)
    return {name: Links(one.parents, one.depends_on, one.path) for name, one in known.items()}


# Afterwards: alerts that have incidents already
# ----------------------------------------------------------------------------------------------------------
def move_symptoms(incident: Incident, at: datetime, context: Context) -> int:
    """Move alerts that this incident's cause explains out of the incidents that only alerts made; how many moved.

    An incident in work keeps its alerts and records the incident that explains it.
    """
    blamed = Blamed(_reference(incident), incident.region or DEFAULT_REGION, incident.covers)
    made_by_alerts = IncidentRow.objects.filter(findings=0, alert_at__isnull=False, firing__gt=0)
    rows = made_by_alerts.exclude(state="resolved").exclude(pk=incident.id).order_by("number")
    # Locked, so that nobody takes one up between the look and the move.
    sources = {str(row.pk): state_of(row) for row in rows.select_for_update()}
    firing = MemberAlert.objects.filter(incident__pk__in=list(sources), resolved=False).order_by("pk")
    members = [(str(alert), str(pk)) for alert, pk in firing.values_list("alert", "incident_id")]
    known = alert_briefs([alert for alert, _ in members])
    components = {one.component for one in known.values() if one.component is not None}
    found = explained_by(components, [blamed], at) if components else {}
    mine: dict[str, list[Symptom]] = {}
    for alert, source in members:
        brief = known.get(alert)
        if brief is not None and brief.component in found:
            mine.setdefault(source, []).append(_symptom(alert, brief, found[brief.component].explanation))
    touched = _touched(mine)
    moved = 0
    for source, symptoms in mine.items():
        if source in touched:
            _note(sources[source], blamed.incident, symptoms, touched[source], context)
        else:
            _move(sources[source], blamed.incident, symptoms, at, context)
            moved += len(symptoms)
    return moved


def _reference(incident: Incident) -> IncidentReference:
    return IncidentReference(incident.id, incident.number, incident.title)


def _symptom(alert: str, brief: AlertBrief, explanation: Explanation) -> Symptom:
    return Symptom(Member(alert, brief.title, brief.severity), explanation)


def _touched(incidents: Collection[str]) -> dict[str, str]:
    """Of these incidents those that somebody works on, and who did something there last."""
    entries = TimelineEntry.objects.filter(incident__pk__in=list(incidents)).exclude(
        Q(actor__startswith="system:") | Q(actor="")
    )
    rows = entries.order_by("version").values_list("incident_id", "actor")
    return {str(pk): f"{actor.partition(':')[2]} worked on this incident" for pk, actor in rows}


def _note(
    source: Incident, by: IncidentReference, symptoms: Sequence[Symptom], reason: str, context: Context
) -> None:
    notes = TimelineEntry.objects.filter(incident__pk=source.id, type="incident.linked_to_cause")
    if notes.filter(body__by__id=by.id).exists():
        return
    note = c.LinkToCause(by, symptoms[0].explanation, len(symptoms), reason)
    record(source.id, note, context)


def _move(
    source: Incident, target: IncidentReference, symptoms: Sequence[Symptom], at: datetime, context: Context
) -> None:
    here = _reference(source)
    for part in parts(symptoms):
        alerts = tuple(one.member.alert for one in part)
        why = f"{part[-1].explanation.how}, the subject of #{target.number}"
        record(source.id, c.RemoveAlerts(alerts, len(alerts), why, target), context)
        record(target.id, c.JoinSymptoms(part, here), context)
    after = source.firing - len(symptoms)
    if after > 0:
        _name_the_rest(source.id, context)
    else:
        over = f"its alerts are symptoms of #{target.number} “{target.title}”"
        record(source.id, c.AutoResolve(over, known_until(source.region, at)), context)


def _name_the_rest(incident: str, context: Context) -> None:
    """Give a group that alerts left a title that tells no more of them than are in it."""
    group = state_of(IncidentRow.objects.get(pk=incident))
    if _named_otherwise([group]):
        return
    members = MemberAlert.objects.filter(incident__pk=incident).values_list("alert", flat=True)
    components = alert_components([str(alert) for alert in members])
    title = title_of_the_rest(group.title, group.alerts, components)
    if title is not None:
        record(incident, c.NameGroup(title, group.title), context)


def _named_otherwise(groups: Sequence[Incident]) -> set[str]:
    """The ids of those of which a finding or a person says what they are about."""
    named = TimelineEntry.objects.filter(
        incident__pk__in=[one.id for one in groups], type="incident.title_set"
    )
    by_people = named.exclude(actor__startswith="system:").values_list("incident_id", flat=True)
    return {one.id for one in groups if one.findings} | ({str(pk) for pk in by_people} if groups else set())


def parts(items: Sequence[T]) -> Iterator[tuple[T, ...]]:
    """Parts of a sequence, each as large as one event moves."""
    return (tuple(items[start : start + MOST_AT_ONCE]) for start in range(0, len(items), MOST_AT_ONCE))


# Withdrawn
# ----------------------------------------------------------------------------------------------------------
def withdrawn() -> Iterator[tuple[Incident, list[str]]]:
    """Open incidents of findings, each with those of its symptoms that its cause explains no more."""
    rows = IncidentRow.objects.filter(findings__gt=0, alert_at__isnull=False).exclude(state="resolved")
    for row in rows.filter(timeline__type="incident.symptoms_joined").distinct().order_by("number"):
        state = state_of(row)
        covered = state.covers if explains(state) else frozenset[str]()
        left = [
            one.alert
            for one in symptoms_of(state.id)
            # An alert on the very component stays: that is what the incident is about, blamed or not.
            if one.cause not in covered and (one.hops or one.cause not in state.covers)
        ]
        if left:
            yield state, left


@dataclass(frozen=True, slots=True)
class Joined:
    """A member that joined as a symptom of `cause`; with 0 hops it is an alert on the cause itself."""

    alert: str
    cause: str
    hops: int


def symptoms_of(incident: str) -> list[Joined]:
    """The members that joined an incident as symptoms."""
    entries = TimelineEntry.objects.filter(incident__pk=incident, type="incident.symptoms_joined")
    spans = list(entries.order_by("version").values_list("version", "last_version"))
    if not spans:
        return []
    versions = Q()
    for first, last in spans:
        versions |= Q(version__range=(first, last))
    members = MemberAlert.objects.filter(versions, incident__pk=incident).order_by("pk")
    joined = {str(alert) for alert in members.values_list("alert", flat=True)}
    # Each run asks this of each incident with symptoms: not the whole stream, which holds all evidence.
    versions_joined = [version for first, last in spans for version in range(first, last + 1)]
    joined_events = read_versions(stream_of(incident), versions_joined) if joined else []
    explanation_of = {
        alert: event.body["explanations"][place]
        for event in joined_events
        if event.type == "incident.symptoms_joined"
        for alert, place in zip(event.body["alerts"], event.body["explanation_of"], strict=True)
    }
    return [
        Joined(alert, how["cause"], how["hops"]) for alert, how in explanation_of.items() if alert in joined
    ]


def leave(incident: str, alerts: Sequence[str], why: str, context: Context) -> None:
    """Take alerts out of an incident, whether they fire or rest."""
    resolved = MemberAlert.objects.filter(incident__pk=incident, resolved=True, alert__in=alerts)
    rests = {str(alert) for alert in resolved.values_list("alert", flat=True)}
    for part in parts(alerts):
        firing = sum(alert not in rests for alert in part)
        record(incident, c.RemoveAlerts(part, firing, why), context)


# Correlate
# ----------------------------------------------------------------------------------------------------------
ACTOR = "system:incidents"
LAST_TIME = "all alerts resolved"


def place_alerts(events: Sequence[Event], at: datetime | None = None, back: str | None = None) -> None:
    """Place alerts in incidents, for a run of events `alert.reported` in the order of the log.

    Silences count as of `at`; None is when the alerts were recorded. `back` says why alerts that had left
    their incidents come back to them.
    """
    for part in _without_repeats(events):
        _Placing(part, routing_table(), at or part[-1].recorded_at, back).carry_out()


def _without_repeats(events: Sequence[Event]) -> Iterable[list[Event]]:
    """The events in parts in which each alert occurs once: what it says later builds on what it said before."""
    part: dict[str, Event] = {}
    for event in events:
        if event.body["alert"] in part:
            yield list(part.values())
            part = {}
        part[event.body["alert"]] = event
    if part:
        yield list(part.values())


@dataclass(slots=True)
class _Group:
    """Alerts that go to one incident, which may have to be opened."""

    place: Place
    routing: Routing
    alerts: list[Reported]

    @property
    def integration(self) -> str:
        return self.alerts[0].integration

    @property
    def key(self) -> str:
        return self.place.group_key or self.place.dedup_key


class _Placing:
    """One part of a batch: every alert in it occurs once."""

    def __init__(self, events: Sequence[Event], table: RoutingTable, at: datetime, back: str | None) -> None:
        self._events = events
        self._holding = Suppressor(at)
        self._context = Context(ACTOR, cause=events[-1].id, trace=events[-1].trace)
        self._at = at
        self._back = back
        self._routes = RouteCache(table)
        self._routings: dict[str, Routing] = {}
        self._alerts = [self._routed(reported_from(event.body)) for event in events]
        self._members = memberships([alert.alert for alert in self._alerts])

    def _routed(self, alert: Reported) -> Reported:
        """As bad as its route says; what no longer fires needs no route."""
        if not alert.fires:
            return alert
        routing = self._routings[alert.alert] = self._routes.route(alert.subject(self._at))
        if routing.severity is None:
            return alert
        return msgspec.structs.replace(alert, severity=routing.severity)

    def carry_out(self) -> None:
        self._holding.inhibition.observe(self._alerts)
        self._rest([alert for alert in self._alerts if not alert.fires])
        fires = [alert for alert in self._alerts if alert.fires]
        self._change([alert for alert in fires if not self._is_out(alert)])
        self._join([alert for alert in fires if self._is_out(alert)])

    def _is_out(self, alert: Reported) -> bool:
        member = self._members.get(alert.alert)
        return member is None or member.rests

    def _incident_of(self, alert: Reported) -> str:
        return self._members[alert.alert].incident

    def _change(self, alerts: Sequence[Reported]) -> None:
        """Members that fire on say something new: they are acknowledged, or worse."""
        acknowledged = {self._incident_of(alert) for alert in alerts if alert.change == "acknowledged"}
        alone = IncidentRow.objects.filter(pk__in=acknowledged, alerts=1, state="open").values_list(
            "pk", flat=True
        )
        to_acknowledge = set(map(str, alone)) if acknowledged else set[str]()
        commands: list[IncidentCommand] = []
        raised: dict[str, Severity] = {}
        for alert in alerts:
            incident = self._incident_of(alert)
            # One that is no worse than another before it changes nothing, and each command takes its own statements.
            if alert.change == "severity" and (
                incident not in raised or is_worse(alert.severity, raised[incident])
            ):
                raised[incident] = alert.severity
                worse = c.RaiseSeverity(alert.severity, alert.title)
                commands.append(IncidentCommand(incident, worse, self._context))
            elif alert.change == "acknowledged" and incident in to_acknowledge:
                sender = Context(f"key:{alert.integration}", self._context.cause)
                commands.append(IncidentCommand(incident, c.Acknowledge(), sender))
        record_each(commands)

    def _record(
        self,
        commands: Iterable[tuple[str, c.Command]],
        when: datetime | None = None,
        locked: dict[str, LockedIncident] | None = None,
    ) -> list[Incident]:
        """The incidents after these commands on them; those on the same incident are carried out in order."""
        recorded = record_each(
            [IncidentCommand(id_, command, self._context) for id_, command in commands], when, locked
        )
        return [one.incident for one in recorded]

    # Firing
    # ------------------------------------------------------------------------------------------------------
    def _join(self, alerts: Sequence[Reported]) -> None:
        """Alerts that belong to no open incident, or to one where they rested."""
        unsuppressed = self._unsuppressed(alerts)
        back = _by([alert for alert in unsuppressed if alert.alert in self._members], self._incident_of)
        why = self._because("previously part of this incident")
        after = self._record((id_, c.JoinAlerts(_members_of(again, again=True), why)) for id_, again in back)
        self._resume(zip(after, (again for _, again in back), strict=True))
        new = [alert for alert in unsuppressed if alert.alert not in self._members]
        self._join_groups(self._grouped(self._join_causes(new)))

    def _unsuppressed(self, alerts: Sequence[Reported]) -> list[Reported]:
        """Records why the others notify nobody; they are placed once their suppression ends."""
        drop_suppressions([alert.alert for alert in alerts])
        held = self._holding.holds(alerts)
        SuppressedAlert.objects.bulk_create(
            SuppressedAlert(alert=alert, silence=hold.by, why=hold.why, at=self._at)
            for alert, hold in held.items()
        )
        return [alert for alert in alerts if alert.alert not in held]

    def _join_causes(self, alerts: Sequence[Reported]) -> list[Reported]:
        """Joins symptoms to the incidents of findings; returns the alerts that are none."""
        if all(alert.component is None for alert in alerts):
            return self._join_by_topology(alerts)
        # All causes, not those that overlap: hundreds of names in a condition cost more than the few open causes.
        blamed = IncidentRow.objects.filter(findings__gt=0).exclude(state="resolved").order_by("-number")
        incident_of = {name: pk for pk, cause in blamed.values_list("pk", "cause") for name in cause}
        symptoms = [alert for alert in alerts if alert.component in incident_of]
        self._record(
            (str(incident_of[name]), c.JoinAlerts(_members_of(group), self._because(symptom(name))))
            for name, group in _by(symptoms, lambda alert: str(alert.component))
        )
        return self._join_by_topology([alert for alert in alerts if alert.component not in incident_of])

    def _join_by_topology(self, alerts: Sequence[Reported]) -> list[Reported]:
        """The same for alerts on what a blamed cause contains, carries or is crossed by."""
        named = {alert.component for alert in alerts if alert.component is not None}
        blamed = blamed_incidents() if named else []
        found = explained_by(named, blamed, self._at) if blamed else {}
        symptoms: dict[str, list[Symptom]] = {}
        for alert in alerts:
            if alert.component in found:
                one = found[alert.component]
                member = Member(alert.alert, alert.title, alert.severity)
                how = replace(one.explanation, how=self._because(one.explanation.how))
                symptoms.setdefault(one.blamed.incident.id, []).append(Symptom(member, how))
        self._record((incident, c.JoinSymptoms(tuple(joined))) for incident, joined in symptoms.items())
        return [alert for alert in alerts if alert.component not in found]

    def _because(self, why: str) -> str:
        """With what would perhaps have held these alerts back and cannot be read."""
        return because(why, self._holding.passed_over)

    def _grouped(self, alerts: Sequence[Reported]) -> list[_Group]:
        groups: dict[str, _Group] = {}
        of_rules: dict[tuple[str, str, int], _Group] = {}
        for alert in alerts:
            routing = self._routings[alert.alert]
            rule = (alert.integration, alert.group, id(routing))
            group = of_rules.get(rule)
            if group is None:
                found = place_of(alert, routing)
                place = replace(found, why=self._because(found.why)) if self._holding.passed_over else found
                new = _Group(place, routing, [])
                group = groups.setdefault(new.key, new)
                if is_by_rule(alert, routing):
                    of_rules[rule] = group
            group.alerts.append(alert)
        return list(groups.values())

    def _join_groups(self, groups: Sequence[_Group]) -> None:
        """Each to its incident, or a new one; in a storm all that have none go together, however many groups
        they are.
        """
        opened = {name: _opened_recently(name, self._at) for name in {one.integration for one in groups}}
        alone: list[_Group] = []
        storms: dict[str, _Group] = {}
        for group in self._join_open(groups):
            team, recent = group.routing.team, opened[group.integration]
            place = place_without_incident(group.place, team, group.alerts, recent)
            if is_storm(place.dedup_key):
                storm = _Group(replace(place, why=self._because(place.why)), group.routing, [])
                storms.setdefault(place.dedup_key, storm).alerts.extend(group.alerts)
            else:
                alone.append(group)
        self._open([*alone, *self._join_open(list(storms.values()))])

    def _open(self, groups: Sequence[_Group]) -> None:
        if not groups:
            return
        numbers = next_numbers(len(groups))
        ids = self._new_ids(groups, numbers)
        opened = record_openings(
            [
                c.OpenForAlerts(
                    id_,
                    number,
                    group.routing,
                    group.place.opened_as(number),
                    tuple(group.alerts),
                    group.place.why,
                    group.place.group_key,
                    group.place.shared,
                )
                for id_, number, group in zip(ids, numbers, groups, strict=True)
            ],
            self._context,
        )
        self._put_to_sleep({one.incident.id: group for one, group in zip(opened, groups, strict=True)})

    def _new_ids(self, groups: Sequence[_Group], numbers: Sequence[int]) -> list[str]:
        """Ids that follow from the first event, so that what is handled twice opens no two incidents; but an alert
        that comes back may have opened one by the very same event, which is resolved by now."""
        names = [f"alerts:{group.place.dedup_key}:{self._events[0].id}" for group in groups]
        at = self._events[0].recorded_at
        ids = [ordered_id(at, name) for name in names]
        taken = set(IncidentRow.objects.filter(pk__in=ids).values_list("pk", flat=True))
        return [
            str(ordered_id(at, f"{name}:{number}") if id_ in taken else id_)
            for id_, name, number in zip(ids, names, numbers, strict=True)
        ]

    def _put_to_sleep(self, opened: Mapping[str, _Group]) -> None:
        """An incident all of whose alerts are about planned work sleeps until the work is over."""
        asleep: list[tuple[str, c.Command]] = []
        for id_, group in opened.items():
            windows = [self._holding.quiet(alert.component, alert.labels) for alert in group.alerts]
            sleeping = [one for one in windows if one is not None]
            if sleeping and len(sleeping) == len(windows):
                last = max(sleeping, key=lambda one: one.span.ends_at)
                until = min(last.span.ends_at, self._at + LONGEST_SNOOZE)
                asleep.append((id_, c.Snooze(until, last.why[:LONGEST_REASON])))
        self._record(asleep, self._at)

    def _join_open(self, groups: Sequence[_Group]) -> list[_Group]:
        """Joins those that have an open incident to it; returns the others."""
        if not groups:
            return []
        lock_keys(group.key for group in groups)
        incidents, locked = self._open_incidents(groups)
        joined = [(group, incidents[group.key]) for group in groups if group.key in incidents]
        after = self._record(
            (
                (incident, c.JoinAlerts(_members_of(group.alerts), group.place.why))
                for group, incident in joined
            ),
            locked=locked,
        )
        last: dict[str, tuple[Incident, list[_Group]]] = {}
        for one, (group, _) in zip(after, joined, strict=True):
            last[one.id] = (one, [*last.get(one.id, (one, []))[1], group])
        self._name(list(last.values()), locked)
        self._resume(
            ((one, [alert for group in of_it for alert in group.alerts]) for one, of_it in last.values()),
            locked,
        )
        return [group for group in groups if group.key not in incidents]

    def _open_incidents(self, groups: Sequence[_Group]) -> tuple[dict[str, str], dict[str, LockedIncident]]:
        """Id of the open incident of each group that has one, by key; it stays open until the transaction ends. Then
        those that are locked for it, by id."""
        found = self._found(groups)
        locked = locked_incidents(found.values()) if found else {}
        while any(one.row.state == "resolved" for one in locked.values()):
            found = self._found(groups)  # somebody resolved it between the look and the lock
            locked = locked_incidents(found.values()) if found else {}
        if self._back is not None:
            for group in groups:
                if group.key not in found and (again := self._opened_again(group.place)) is not None:
                    found[group.key] = again
        return found, locked

    def _found(self, groups: Sequence[_Group]) -> dict[str, str]:
        found = open_incidents_of(
            [group.place.dedup_key for group in groups if group.place.group_key is None]
        )
        grouped = [group.place for group in groups if group.place.group_key is not None]
        for window in {place.window for place in grouped}:
            keys = [str(place.group_key) for place in grouped if place.window == window]
            since = None if window is None else self._at - window
            found |= open_incidents_of_groups(keys, since)
        return found

    def _resume(
        self,
        joined: Iterable[tuple[Incident, Sequence[Reported]]],
        locked: dict[str, LockedIncident] | None = None,
    ) -> None:
        """Notify again about incidents that were suppressed for planned work or a silence, which do not cover all that
        happens there any more."""
        self._record(
            (
                (after.id, c.Undo("snooze"))
                for after, alerts in joined
                if after.snoozed_by == ACTOR
                and not all(self._holding.quiet(alert.component, alert.labels) for alert in alerts)
            ),
            locked=locked,
        )

    def _name(
        self, joined: Sequence[tuple[Incident, Sequence[_Group]]], locked: dict[str, LockedIncident]
    ) -> None:
        """The title of a group says how large it has become, unless somebody gave it another one or a finding says what
        it is about.
        """
        grown = {
            after.id: (after, groups[-1])
            for after, groups in joined
            if at_least(after.alerts) != at_least(after.alerts - sum(len(group.alerts) for group in groups))
        }
        if not grown:
            return
        named = _named_otherwise([after for after, _ in grown.values()])
        members = newest_members([id_ for id_ in grown if id_ not in named], MOST_READ)
        briefs = alert_briefs([alert for of_it in members.values() for alert in of_it])
        titles = (
            (_title(grown[id_][1], grown[id_][0], of_it, briefs), grown[id_][0])
            for id_, of_it in members.items()
        )
        self._record(((after.id, c.NameGroup(title, after.title)) for title, after in titles), locked=locked)

    def _opened_again(self, place: Place) -> str | None:
        """The incident of that place that was resolved because all its alerts had left it."""
        same = {"dedup_key": place.dedup_key} if place.group_key is None else {"group_key": place.group_key}
        row = IncidentRow.objects.filter(**same).order_by("-number").first()
        if row is None or row.resolved_by != ACTOR or row.alerts or row.merged_into is not None:
            return None
        record(str(row.pk), c.Reopen(self._back or ""), self._context)
        return str(row.pk)

    # No longer firing
    # ------------------------------------------------------------------------------------------------------
    def _rest(self, alerts: Sequence[Reported]) -> None:
        end_suppressions([alert.alert for alert in alerts], self._at)
        over = _by([alert for alert in alerts if not self._is_out(alert)], self._incident_of)
        after = self._record((incident, _resolving(of_it)) for incident, of_it in over)
        ended = [one for one in after if not one.firing and not one.flapping]
        known = {region: known_until(region, self._at) for region in {one.region for one in ended}}
        self._record((one.id, c.AutoResolve(LAST_TIME, known[one.region])) for one in ended)


def _resolving(alerts: Sequence[Reported]) -> c.ResolveAlerts:
    flapping = tuple(alert.alert for alert in alerts if is_flapping(alert.fired))
    return c.ResolveAlerts(tuple(alert.alert for alert in alerts), flapping)


def _members_of(alerts: Sequence[Reported], *, again: bool = False) -> tuple[Member, ...]:
    return tuple(Member(one.alert, one.title, one.severity, again) for one in alerts)


def _title(group: _Group, after: Incident, members: Sequence[str], briefs: Mapping[str, AlertBrief]) -> str:
    known = [briefs[alert] for alert in members if alert in briefs]
    titles: Collection[str] = {one.title for one in known}
    components: Collection[str] = {one.component for one in known if one.component is not None}
    if len(members) == MOST_READ:
        titles, components = about_all(after.title, titles, components)
    if is_storm(group.place.dedup_key):
        return storm_title(group.integration, after.alerts, components)
    return group_title(group.place.shared, after.alerts, titles, components)


def _by(alerts: Iterable[Reported], key: Any) -> list[tuple[str, list[Reported]]]:
    groups: dict[str, list[Reported]] = {}
    for alert in alerts:
        groups.setdefault(key(alert), []).append(alert)
    return list(groups.items())


def _opened_recently(integration: str, at: datetime) -> list[Opened]:
    of_it = Q(dedup_key__startswith=f"alerts:{integration}:") | Q(
        dedup_key__startswith=f"alert:{integration}:"
    )
    rows = IncidentRow.objects.filter(of_it, opened_at__gt=at - STORM_SPAN)
    found = list[Opened]()
    for rank, labels, key, team, grouped in rows.values_list(
        "severity_rank", "labels", "dedup_key", "team", "group_key"
    ):
        rule = "" if grouped else key.removeprefix(f"alerts:{integration}:{team}:")
        name = labels.get("alertname") or ("" if rule == key else rule)
        found.append(Opened(rank, name))
    return found


# What people and time do
# ----------------------------------------------------------------------------------------------------------
def on_incident_resolved(event: Event) -> None:
    """Alerts that still fire while a person resolves their incident: should they be sent again later, they
    fire anew.
    """
    if event.body["confirmed_cause"] is None:
        return
    incident = event.stream.removeprefix("incident/")
    if event.body["confirmed_cause"] == NO_CAUSE:
        number = IncidentRow.objects.values_list("number", flat=True).get(pk=incident)
        why = f"#{number} was resolved as a false alarm and no longer explains them"
        _send_back(incident, [one.alert for one in symptoms_of(incident) if one.hops], why, event)
    resolve.begin(event)


def release_withdrawn_symptoms(event: Event) -> None:
    """After a run's verdict: symptoms whose cause nobody blames any more go back to incidents of their own."""
    for incident, alerts in withdrawn():
        why = f"the finding of #{incident.number} was withdrawn"
        _send_back(incident.id, alerts, why, event)


def _send_back(incident: str, alerts: Sequence[str], why: str, event: Event) -> None:
    leave(incident, alerts, why, Context(ACTOR, event.id, event.trace))
    firing = firing_alerts(alerts)
    for part in parts(firing):
        place_alerts(part, event.recorded_at, why)


def absorb_symptoms(before: Incident | None, after: Incident, event: Event) -> None:
    """Once an incident has a cause that it had not: alerts that it explains join from the incidents that they have."""
    known = before is not None and explains(before) and before.covers == after.covers
    context = Context(ACTOR, event.id, event.trace)
    if explains(after) and not known:
        move_symptoms(after, event.recorded_at, context)
    note_planned(after, event.recorded_at, context)


def unsuppressed_alerts(now: datetime, but: Collection[str] = (), most: int = 1_000) -> list[str]:
    """Suppressed alerts without an active suppression."""
    over = Suppressor(now).no_longer_suppressed().exclude(alert__in=list(but)).order_by("at", "alert")
    return [str(alert) for alert in over.values_list("alert", flat=True)[:most]]


def place_unsuppressed(ids: Sequence[str], now: datetime) -> int:
    """Give an incident to those of the alerts that still fire and that nothing holds still; how many were looked at.

    What something else holds by now is kept under that one.
    """
    over = [
        str(alert)
        for alert in Suppressor(now)
        .no_longer_suppressed()
        .filter(alert__in=ids)
        .values_list("alert", flat=True)
    ]
    firing = firing_alerts(over)
    place_alerts(firing, now)
    # An alert that resolved before the follower read its event.
    end_suppressions(set(over) - {event.body["alert"] for event in firing}, now)
    return len(over)
