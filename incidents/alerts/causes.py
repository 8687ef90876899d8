"""Alerts and the causes that explain them: found by topology, joined as symptoms, released when the cause is withdrawn.

Called by the follower of the log, in its transaction. What explains what decides `domain.explaining`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from django.db.models import Q

from incidents.domain.incident import commands as c
from incidents.domain.incident.explanations import MOST_HOPS, Explanation, Links, explain, explains, is_blamed
from incidents.domain.incident.grouping import Member
from incidents.domain.incident.opinions import opinion_from
from incidents.domain.incident.state import Incident
from incidents.domain.incident.symptoms import Symptom, Ticket
from incidents.incident.models import IncidentRow, MemberAlert, TimelineEntry
from incidents.incident.repository import record, stream_of
from incidents.incident.rows import state_of
from incidents.incident.telemetry_horizon import known_until
from ingest.queries import AlertBrief, Context, alert_briefs, dependencies_of, read_versions

MOST_AT_ONCE = 1_000
"""Alerts that one event moves: a body stays some hundred kilobytes."""
DEFAULT_REGION = "default"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Blamed:
    """An open incident whose cause an analyzer still blames."""

    ticket: Ticket
    region: str
    cause: frozenset[str]


@dataclass(frozen=True, slots=True)
class Explained:
    blamed: Blamed
    explanation: Explanation


def blamed_tickets() -> list[Blamed]:
    """By number."""
    rows = IncidentRow.objects.filter(findings__gt=0).exclude(state="resolved").exclude(cause=[])
    told = rows.order_by("number").values_list("pk", "number", "title", "region", "cause", "opinions")
    return [
        Blamed(Ticket(str(pk), number, title), region or DEFAULT_REGION, frozenset(cause))
        for pk, number, title, region, cause, opinions in told
        if is_blamed({name: opinion_from(one) for name, one in opinions.items()})
    ]


def explained_by(components: Collection[str], blamed: Sequence[Blamed], at: datetime) -> dict[str, Explained]:
    """By component, of those that a cause explains, the nearest cause; of incidents with the same cause the first.

    The topology of each region that has a blamed cause is read once, as far as it concerns these components.
    """
    found: dict[str, Explained] = {}
    for region in sorted({one.region for one in blamed}):
        tickets: dict[str, Blamed] = {}
        for one in blamed:
            if one.region == region:
                for name in one.cause:
                    tickets.setdefault(name, one)
        links = _links(region, components, at)
        for component in components:
            explanation = explain(component, tickets.keys(), links)
            if explanation is None:
                continue
            before = found.get(component)
            if before is None or explanation.hops < before.explanation.hops:
                found[component] = Explained(tickets[explanation.cause], explanation)
    return found


def _links(region: str, components: Collection[str], at: datetime) -> Mapping[str, Links]:
    known = dependencies_of(region, sorted(components), at, MOST_HOPS)
    return {name: Links(one.parents, one.depends_on, one.path) for name, one in known.items()}


# Afterwards: alerts that have incidents already
# ----------------------------------------------------------------------------------------------------------
def absorb_symptoms(incident: Incident, at: datetime, context: Context) -> int:
    """Move alerts that this incident's cause explains out of the incidents that only alerts made; how many moved.

    An incident that somebody works on is told what explains it and keeps its alerts.
    """
    blamed = Blamed(_ticket(incident), incident.region or DEFAULT_REGION, incident.covers)
    made_by_alerts = IncidentRow.objects.filter(findings=0, alert_at__isnull=False, firing__gt=0)
    rows = made_by_alerts.exclude(state="resolved").exclude(pk=incident.id).order_by("number")
    # Locked, so that nobody takes one up between the look and the move.
    sources = {str(row.pk): state_of(row) for row in rows.select_for_update()}
    firing = MemberAlert.objects.filter(incident__pk__in=list(sources), resting=False).order_by("pk")
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
            _note(sources[source], blamed.ticket, symptoms, touched[source], context)
        else:
            _move(sources[source], blamed.ticket, symptoms, at, context)
            moved += len(symptoms)
    return moved


def _ticket(incident: Incident) -> Ticket:
    return Ticket(incident.id, incident.number, incident.title)


def _symptom(alert: str, brief: AlertBrief, explanation: Explanation) -> Symptom:
    return Symptom(Member(alert, brief.title, brief.severity), explanation)


def _touched(incidents: Collection[str]) -> dict[str, str]:
    """Of these incidents those that somebody works on, and who did something there last."""
    entries = TimelineEntry.objects.filter(incident__pk__in=list(incidents)).exclude(
        Q(actor__startswith="system:") | Q(actor="")
    )
    told = entries.order_by("version").values_list("incident_id", "actor")
    return {str(pk): f"{actor.partition(':')[2]} worked on this incident" for pk, actor in told}


def _note(source: Incident, by: Ticket, symptoms: Sequence[Symptom], kept: str, context: Context) -> None:
    notes = TimelineEntry.objects.filter(incident__pk=source.id, type="incident.linked_to_cause")
    if notes.filter(body__by__id=by.id).exists():
        return
    note = c.LinkToCause(by, symptoms[0].explanation, len(symptoms), kept)
    record(source.id, note, context)


def _move(
    source: Incident, target: Ticket, symptoms: Sequence[Symptom], at: datetime, context: Context
) -> None:
    here = _ticket(source)
    for part in parts(symptoms):
        alerts = tuple(one.member.alert for one in part)
        why = f"{part[-1].explanation.how}, the subject of #{target.number}"
        record(source.id, c.RemoveAlerts(alerts, len(alerts), why, target), context)
        record(target.id, c.JoinSymptoms(part, here), context)
    after = source.firing - len(symptoms)
    if after <= 0:
        over = f"its alerts are symptoms of #{target.number} “{target.title}”"
        record(source.id, c.AutoResolve(over, known_until(source.region, at)), context)


def parts(items: Sequence[T]) -> Iterator[tuple[T, ...]]:
    """What one event moves at a time."""
    return (tuple(items[start : start + MOST_AT_ONCE]) for start in range(0, len(items), MOST_AT_ONCE))


# Withdrawn
# ----------------------------------------------------------------------------------------------------------
def withdrawn() -> Iterator[tuple[Incident, list[str]]]:
    """Open incidents of findings, each with those of its symptoms that its cause explains no more."""
    rows = IncidentRow.objects.filter(findings__gt=0, alert_at__isnull=False).exclude(state="resolved")
    for row in rows.filter(timeline__type="incident.symptoms_joined").distinct().order_by("number"):
        state = state_of(row)
        kept = state.covers if explains(state) else frozenset[str]()
        left = [
            one.alert
            for one in symptoms_of(state.id)
            # An alert on the very component stays: that is what the incident is about, blamed or not.
            if one.cause not in kept and (one.hops or one.cause not in state.covers)
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
    told = read_versions(stream_of(incident), versions_joined) if joined else []
    how_of = {
        alert: event.body["hows"][place]
        for event in told
        if event.type == "incident.symptoms_joined"
        for alert, place in zip(event.body["alerts"], event.body["how_of"], strict=True)
    }
    return [Joined(alert, how["cause"], how["hops"]) for alert, how in how_of.items() if alert in joined]


def leave(incident: str, alerts: Sequence[str], why: str, context: Context) -> None:
    """Take alerts out of an incident, whether they fire or rest."""
    resting = MemberAlert.objects.filter(incident__pk=incident, resting=True, alert__in=alerts)
    rests = {str(alert) for alert in resting.values_list("alert", flat=True)}
    for part in parts(alerts):
        firing = sum(alert not in rests for alert in part)
        record(incident, c.RemoveAlerts(part, firing, why), context)
